"""The tiles pass: the graph as a sequence of operations that the machine has.

A product is tiles of at most 4 x 4 outputs over the whole K (split, accumulating, only where K
exceeds the operand memories), then one requantization of the whole result, with a relu fused into
it where the relu is the only reader. Inputs and weights are loaded just before the first operation
that reads them; outputs are stored as soon as they are complete.
"""

from collections.abc import Iterator, Mapping

from capra.compiler.ops import (
    AddRows,
    ArgmaxRow,
    Load,
    Op,
    Product,
    Requantize,
    SoftmaxRow,
    Store,
)
from capra.compiler.passes.views import Place
from capra.ir.graph import LEAVES, PRODUCTS, VIEWS, Graph, Kind, Node
from capra.ir.scales import Scales
from capra.numerics import UNITY, Rescale

_NOTHING = Rescale(0, 1)
"""Turns every word into 0."""

_UNCOMPUTED = VIEWS | LEAVES


def tile_operations(
    graph: Graph, scales: Scales, places: Mapping[str, Place], operand_depth: int,
    *, shared_zeros: bool = False,
) -> tuple[Op, ...]:  # fmt: skip
    """The operations of a graph, in an order in which every tensor is written before it is read.

    With `shared_zeros`, softmaxes with the same mask share a buffer, whose zeros are written once.
    """
    return tuple(_Tiler(graph, scales, places, operand_depth, shared_zeros).run())


class _Tiler:
    def __init__(
        self, graph: Graph, scales: Scales, places: Mapping[str, Place], operand_depth: int,
        shared_zeros: bool,
    ) -> None:  # fmt: skip
        self._graph = graph
        self._scales = scales
        self._places = places
        self._depth = operand_depth
        self._loaded: set[str] = set()
        self._zeros = _shared_by_mask(graph) if shared_zeros else {}
        self._zeroed: set[str] = set()

    def run(self) -> Iterator[Op]:
        for node in self._graph:
            if node.kind not in _UNCOMPUTED and self._graph.is_materialized(node.name):
                for operand in self._operands(node):
                    yield from self._load(operand)
                yield from self._compute(node)
            if self._graph.is_output(node.name):
                yield from self._load(node.name)
                yield Store(node.name, self._places[node.name])

    def _operands(self, node: Node) -> tuple[str, ...]:
        """What a node reads from memory: a fused relu reads its product's operands."""
        source = node.inputs[0]
        return self._graph[source].inputs if self._fuses(node) else node.inputs

    def _fuses(self, node: Node) -> bool:
        return node.kind is Kind.RELU and not self._graph.is_materialized(node.inputs[0])

    def _load(self, name: str) -> Iterator[Op]:
        """Load the inputs and weights that a tensor is a view of, unless they are there."""
        sources = [name]
        while sources:
            node = self._graph[sources.pop()]
            if node.name in self._loaded:
                continue
            self._loaded.add(node.name)
            if node.kind in VIEWS:
                sources += reversed(node.inputs)
            elif node.kind in LEAVES:
                yield Load(node.name, self._places[node.name])

    def _compute(self, node: Node) -> Iterator[Op]:
        name, dst = node.name, self._places[node.name]
        if node.kind in PRODUCTS:
            yield from self._product(node, name, dst)
        elif self._fuses(node):
            yield from self._product(self._graph[node.inputs[0]], name, dst, relu=True)
        elif node.kind is Kind.RELU:
            yield Requantize(name, self._places[node.inputs[0]], dst, UNITY, relu=True)
        elif node.kind is Kind.SOFTMAX:
            yield from self._softmax(node, dst)
        elif node.kind is Kind.ADD:
            yield from self._add(node, dst)
        elif node.kind is Kind.ARGMAX:
            source = self._places[node.inputs[0]]
            for row in range(node.rows):
                yield ArgmaxRow(name, source.row(row), dst.row(row))

    def _product(self, node: Node, name: str, dst: Place, relu: bool = False) -> Iterator[Op]:
        """The tensor `name` at `dst`: the product itself, or the relu fused into it."""
        a, b = (self._places[operand] for operand in node.inputs)
        sums = _temporary(f"{name}.sums", node.rows, node.cols)
        yield Product(name, a, b, sums, node.transpose_b, self._depth)
        yield Requantize(name, sums, dst, self._scales.product[node.name], relu)

    def _softmax(self, node: Node, dst: Place) -> Iterator[Op]:
        name, source = node.name, self._places[node.inputs[0]]
        fixed = self._zeros.get(name) or _temporary(f"{name}.fixed", node.rows, node.cols)
        index = self._scales.softmax_index[name]
        # The rows that do not see all; the words that they do see are written after the zeros.
        blind = sum(node.seen(row) < node.cols for row in range(node.rows))
        if blind and fixed.buffer not in self._zeroed:
            zeros = (0, node.seen(0), blind, node.cols - node.seen(0))
            yield Requantize(name, source.part(*zeros), fixed.part(*zeros), _NOTHING)
            self._zeroed.add(fixed.buffer)
        for row in range(node.rows):
            seen = (row, 0, 1, node.seen(row))
            yield SoftmaxRow(name, source.part(*seen), fixed.part(*seen), index)
        yield Requantize(name, fixed, dst, self._scales.product[name])

    def _add(self, node: Node, dst: Place) -> Iterator[Op]:
        """One requantization an operand, left out where it would multiply by exactly 1."""
        addends: list[Place] = []
        to_out = self._scales.addends[node.name]
        for side, operand, rescale in zip("ab", node.inputs, to_out, strict=True):
            place = self._places[operand]
            if not rescale.is_identity:
                rescaled = _temporary(f"{node.name}.{side}", node.rows, node.cols)
                yield Requantize(node.name, place, rescaled, rescale)
                place = rescaled
            addends.append(place)
        yield AddRows(node.name, addends[0], addends[1], dst)


def _shared_by_mask(graph: Graph) -> dict[str, Place]:
    """Where the rows of masked softmaxes go: those with one mask end in the same columns.

    Softmaxes of as many rows that hide as many elements leave the same words of a buffer alone.
    """
    alike: dict[tuple[int, int], list[Node]] = {}
    for node in graph:
        if node.prefix and node.seen(0) < node.cols:
            alike.setdefault((node.rows, node.cols - node.prefix), []).append(node)
    places: dict[str, Place] = {}
    for (rows, _), nodes in alike.items():
        widest = max(node.cols for node in nodes)
        buffer = _temporary(f"{nodes[0].name}.fixed", rows, widest)
        for node in nodes:
            places[node.name] = buffer.part(0, widest - node.cols, rows, node.cols)
    return places


def _temporary(name: str, rows: int, cols: int) -> Place:
    """A buffer of its own for words that no graph tensor holds. '%' keeps its name apart."""
    return Place(f"%{name}", 0, rows, cols, cols)
