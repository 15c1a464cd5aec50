"""A lower bound for the cycles of any program that computes a graph on GA2.

It counts what no program can leave out, each at the cost that the instruction table gives it:

- every word of an input or a weight that something reads is loaded, every output word stored, in
  one instruction each at best;
- every sum of a product is computed by the array, in tiles of 4 columns and of as many rows as the
  graph multiplies by the same right operand, at most 4; K is split where it exceeds the operand
  memories. Tiles of any other shape, reuse of rows across nodes included, cost more a sum;
- every int8 element that is made of wider words or of another scale is requantized, with one
  instruction a factor at best; every sum of two tensors is added; every row has its softmax over
  what it sees, every row its argmax;
- every instruction so counted, and HALT, has its control cycles.

Nothing is counted for what no output needs. The bound takes the graph's operations as they are: a
program that found a shorter way to the same integers, or two nodes that compute the same, could be
below it. Zeros for keys that a row does not see, tiles at an edge and operands that are read again
for the next tile are what the best known programs pay on top.
"""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from math import ceil
from typing import NamedTuple

import numpy as np

from capra.compiler.passes.views import Place, place_tensors
from capra.ir.graph import CONCATS, LEAVES, PRODUCTS, SLICES, Graph, Kind, Node
from capra.ir.scales import Scales
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, instruction
from capra.isa.spec import ARRAY_SIZE, BY_MNEMONIC, CONTROL_CYCLES, Unit
from capra.isa.timing import Counters
from capra.numerics import UNITY, Rescale


def lower_bound(graph: Graph, scales: Scales, chip: Chip) -> Counters:
    """Cycles by unit below which no program of this graph gets on a chip."""
    return _Bound(graph, scales, chip).counters()


class _Product(NamedTuple):
    """Rows that are multiplied by one right operand."""

    right: Place
    """The columns that it has in its buffer."""
    rows: int
    sums: tuple[tuple[int, int], ...]
    """(K, how many) of the sums."""


class _Bound:
    def __init__(self, graph: Graph, scales: Scales, chip: Chip) -> None:
        self._graph = graph
        self._scales = scales
        self._depth = chip.operand_depth
        self._places = place_tensors(graph)
        self._needed = [node for node in graph if node.name in _needed_by_outputs(graph)]
        self._computed = [n for n in self._needed if n.kind not in LEAVES | SLICES | CONCATS]
        self._cycles = dict.fromkeys(Unit, Fraction(0))
        self._instructions = Fraction(0)

    def counters(self) -> Counters:
        self._count(_of("HALT"))
        self._transfers()
        self._products()
        self._requantizations()
        self._rows()
        self._sums()
        control = CONTROL_CYCLES * ceil(self._instructions)
        cycles = {unit.value: ceil(count) for unit, count in self._cycles.items()}
        return Counters(**(cycles | {Unit.CONTROL.value: control}))

    def _count(self, inst: Instruction, times: Fraction | int = 1) -> None:
        self._cycles[inst.unit] += times * inst.cycles
        self._instructions += times

    def _transfers(self) -> None:
        """One load of all words that are read, one store of all outputs."""
        loaded = self._words_read()
        stored = sum(self._graph[n].rows * self._graph[n].cols for n in self._graph.outputs)
        for mnemonic, words in (("LD", loaded), ("ST", stored)):
            if words:
                self._vector(mnemonic, words)

    def _words_read(self) -> int:
        """Words of leaves that an operation or an output reads, through views or not."""
        ends: dict[str, int] = {}
        for place in self._places.values():
            ends[place.buffer] = max(place.end, ends.get(place.buffer, 0))
        is_read = {name: np.zeros(end, dtype=np.bool_) for name, end in ends.items()}
        for node in self._computed:
            for name in node.inputs:
                place = self._places[name]
                place.of(is_read[place.buffer])[self._rows_read(node, name)] = True
        for name in self._graph.outputs:
            place = self._places[name]
            place.of(is_read[place.buffer])[...] = True
        leaves = (self._places[n.name] for n in self._needed if n.kind in LEAVES)
        return sum(int(place.of(is_read[place.buffer]).sum()) for place in leaves)

    def _rows_read(self, node: Node, operand: str) -> list[int]:
        """The rows of an operand that a node reads: of keys and values those that a row sees."""
        rows = set[int]()
        if node.visible is not None and operand in node.inputs[1:]:
            rows.update(*map(node.visible.columns, range(node.rows)))
        if node.visible is None or operand == node.inputs[0]:
            rows.update(range(self._graph[operand].rows))
        return sorted(rows)

    def _products(self) -> None:
        """Every sum at the price that it has in the largest tile."""
        products = [product for node in self._computed for product in self._products_of(node)]
        rows = Counter[Place]()  # by the columns that the right operand has in its buffer
        for product in products:
            rows[product.right] += product.rows
        for product in products:
            together = sum(n for other, n in rows.items() if _share_columns(product.right, other))
            for inner, sums in product.sums:
                self._sums_of(inner, Fraction(sums), min(ARRAY_SIZE, together))

    def _products_of(self, node: Node) -> Iterator[_Product]:
        """Of an attention those of every head; each row meets the keys that it sees."""
        if node.kind in PRODUCTS:
            inner = self._graph[node.inputs[0]].cols
            right = self._right_columns(node.inputs[1])
            yield _Product(right, node.rows, ((inner, node.rows * node.cols),))
        if node.visible is not None:
            seen = list(map(node.visible.count, range(node.rows)))
            for head in range(node.heads):
                cut = node.columns(head)
                width = cut.stop - cut.start
                keys, values = (
                    self._right_columns(operand).part(0, cut.start, 1, width)
                    for operand in node.inputs[1:]
                )
                yield _Product(keys, node.rows, ((width, sum(seen)),))
                yield _Product(values, node.rows, tuple((count, width) for count in seen))

    def _sums_of(self, inner: int, sums: Fraction, tile_rows: int) -> None:
        """So many sums of `inner` products, at the price that they have in the best tile."""
        tiles = sums / (tile_rows * ARRAY_SIZE)
        for start in range(0, inner, self._depth):
            depth = min(self._depth, inner - start)
            size = {"m": tile_rows, "n": ARRAY_SIZE, "k": depth, "acc": int(start > 0)}
            self._count(_of("MM", sd=ARRAY_SIZE, **size), tiles)

    def _right_columns(self, operand: str) -> Place:
        place = self._places[operand]
        return Place(place.buffer, place.offset % place.stride, 1, place.cols, place.stride)

    def _requantizations(self) -> None:
        words: dict[tuple[Rescale, bool], int] = {}

        def requantize(rescale: Rescale, count: int, relu: bool = False) -> None:
            words[rescale, relu] = words.get((rescale, relu), 0) + count

        for node in self._computed:
            relu = self._graph.fused_relu(node.name)
            count = node.rows * node.cols
            if node.kind in PRODUCTS:
                requantize(self._scales.product[node.name], count, relu is not None)
            elif node.kind is Kind.SOFTMAX:
                requantize(self._scales.product[node.name], count)
            elif node.visible is not None:
                seen = sum(map(node.visible.count, range(node.rows)))
                for head in node.inner:
                    requantize(self._scales.product[head.scores.name], seen)
                    requantize(self._scales.product[head.probs.name], seen)
                    requantize(
                        self._scales.product[head.mixed.name], head.mixed.rows * head.mixed.cols
                    )
            elif node.kind is Kind.RELU and self._graph.is_materialized(node.inputs[0]):
                requantize(UNITY, count, relu=True)
            elif node.kind is Kind.ADD:
                rescaled = set(zip(node.inputs, self._scales.addends[node.name], strict=True))
                for _, rescale in rescaled:
                    if not rescale.is_identity:
                        requantize(rescale, count)
        for count in words.values():
            self._vector("RQ", count)

    def _rows(self) -> None:
        for node in self._computed:
            if node.kind is Kind.SOFTMAX:
                self._count(_of("SM", n=node.cols), node.rows)
            elif node.visible is not None:
                for row in range(node.rows):
                    self._count(_of("SM", n=node.visible.count(row)), node.heads)
            elif node.kind is Kind.ARGMAX:
                cols = self._graph[node.inputs[0]].cols
                self._count(_of("AMAX", n=cols), node.rows)

    def _sums(self) -> None:
        words = sum(node.rows * node.cols for node in self._computed if node.kind is Kind.ADD)
        if words:
            self._vector("VADD", words)

    def _vector(self, mnemonic: str, words: int) -> None:
        """So many words in one instruction, whose cost grows evenly with its length."""
        size = "c" if mnemonic == "RQ" else "n"
        one, two = (_of(mnemonic, **{size: count}) for count in (1, 2))
        self._count(one)
        self._cycles[one.unit] += (words - 1) * (two.cycles - one.cycles)


def _of(mnemonic: str, **fields: int) -> Instruction:
    """An instruction of this size, whatever its other fields."""
    smallest = {field.name: field.minimum for field in BY_MNEMONIC[mnemonic].fields}
    return instruction(mnemonic, **(smallest | fields))


def _share_columns(a: Place, b: Place) -> bool:
    """False where two parts of a buffer have no column in common, and so no vector."""
    overlap = a.offset < b.offset + b.cols and b.offset < a.offset + a.cols
    return a.buffer == b.buffer and overlap


def _needed_by_outputs(graph: Graph) -> set[str]:
    needed = set(graph.outputs)
    for node in reversed(list(graph)):
        if node.name in needed:
            needed.update(node.inputs)
    return needed
