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
    Store,
)
from capra.compiler.passes.masks import (
    Mask,
    Runs,
    Zeros,
    mask_of,
    softmax_operations,
    temporary,
)
from capra.compiler.passes.views import Place
from capra.ir.graph import LEAVES, PRODUCTS, VIEWS, Graph, Kind, Node
from capra.ir.scales import Scales
from capra.numerics import UNITY

_UNCOMPUTED = VIEWS | LEAVES


def tile_operations(
    graph: Graph, scales: Scales, places: Mapping[str, Place], operand_depth: int,
    *, attention_rows: int = 1, shared_zeros: bool = False,
) -> tuple[Op, ...]:  # fmt: skip
    """The operations of a graph, in an order in which every tensor is written before it is read.

    Attention goes by tiles of at most `attention_rows` rows. With `shared_zeros`, softmaxes of
    the same mask share a buffer, whose zeros are written once.
    """
    zeros = Zeros(_masks(graph, attention_rows) if shared_zeros else ())
    return tuple(_Tiler(graph, scales, places, operand_depth, attention_rows, zeros).run())


class _Tiler:
    def __init__(
        self, graph: Graph, scales: Scales, places: Mapping[str, Place], operand_depth: int,
        tile_rows: int, zeros: Zeros,
    ) -> None:  # fmt: skip
        self._graph = graph
        self._scales = scales
        self._places = places
        self._depth = operand_depth
        self._loaded: set[str] = set()
        self._tile_rows = tile_rows
        self._zeros = zeros

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
        """What a node reads first: a fused relu its product's operands, an attention no values."""
        source = node.inputs[0]
        if node.kind is Kind.ATTENTION:
            return node.inputs[:2]
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
        elif node.kind is Kind.ATTENTION:
            yield from self._attention(node, dst)
        elif node.kind is Kind.ADD:
            yield from self._add(node, dst)
        elif node.kind is Kind.ARGMAX:
            source = self._places[node.inputs[0]]
            for row in range(node.rows):
                yield ArgmaxRow(name, source.row(row), dst.row(row))

    def _product(self, node: Node, name: str, dst: Place, relu: bool = False) -> Iterator[Op]:
        """The tensor `name` at `dst`: the product itself, or the relu fused into it."""
        a, b = (self._places[operand] for operand in node.inputs)
        sums = temporary(f"{name}.sums", node.rows, node.cols)
        yield Product(name, a, b, sums, node.transpose_b, self._depth)
        yield Requantize(name, sums, dst, self._scales.product[node.name], relu)

    def _attention(self, node: Node, dst: Place) -> Iterator[Op]:
        """Tile by tile, head by head: scores, probabilities, weighed values.

        A score, a sum of values and a softmax are the same integers in a tile of any height.
        """
        q, k, v = (self._places[operand] for operand in node.inputs)
        load_values = self._load(node.inputs[2])  # when the first probabilities are there
        for rows in _tiles_of(node, self._tile_rows):
            runs, keys = _visible_to(node, rows)
            for number, head in enumerate(node.inner):
                cut, tile = node.columns(number), f"r{rows.start}"
                width = cut.stop - cut.start
                query, key, value, out = (
                    place.part(row, cut.start, count, width)
                    for place, row, count in (
                        (q, rows.start, len(rows)), (k, 0, keys), (v, 0, keys),
                        (dst, rows.start, len(rows)),
                    )
                )  # fmt: skip
                scores, probs = (
                    temporary(f"{tensor.name}.{tile}", len(rows), keys) for tensor in head[:2]
                )
                yield from self._tile(node, head.scores, tile, query, key, scores, is_scores=True)
                rescales = (
                    self._scales.softmax_index[head.probs.name],
                    self._scales.product[head.probs.name],
                )
                yield from softmax_operations(
                    node.name, f"{head.probs.name}.{tile}", scores, probs, runs, rescales,
                    self._zeros,
                )  # fmt: skip
                yield from load_values
                yield from self._tile(node, head.mixed, tile, probs, value, out)

    def _tile(
        self, node: Node, tensor: Node, tile: str, a: Place, b: Place, dst: Place, *,
        is_scores: bool = False,
    ) -> Iterator[Op]:  # fmt: skip
        """A tile of a tensor inside an attention: a product and its requantization."""
        sums = temporary(f"{tensor.name}.{tile}.sums", dst.rows, dst.cols)
        yield Product(node.name, a, b, sums, is_scores, self._depth)
        yield Requantize(node.name, sums, dst, self._scales.product[tensor.name])

    def _softmax(self, node: Node, dst: Place) -> Iterator[Op]:
        name = node.name
        rows = [[(0, node.cols)]] * node.rows
        rescales = self._scales.softmax_index[name], self._scales.product[name]
        source = self._places[node.inputs[0]]
        yield from softmax_operations(name, name, source, dst, rows, rescales, self._zeros)

    def _add(self, node: Node, dst: Place) -> Iterator[Op]:
        """One requantization an operand, left out where it would multiply by exactly 1."""
        addends: list[Place] = []
        to_out = self._scales.addends[node.name]
        for side, operand, rescale in zip("ab", node.inputs, to_out, strict=True):
            place = self._places[operand]
            if not rescale.is_identity:
                rescaled = temporary(f"{node.name}.{side}", node.rows, node.cols)
                yield Requantize(node.name, place, rescaled, rescale)
                place = rescaled
            addends.append(place)
        yield AddRows(node.name, addends[0], addends[1], dst)


def _masks(graph: Graph, tile_rows: int) -> Iterator[tuple[Mask, int]]:
    """The mask of every tile of an attention that has one, and its keys."""
    for node in graph:
        for rows in _tiles_of(node, tile_rows) if node.visible else ():
            runs, keys = _visible_to(node, rows)
            mask = mask_of(runs, keys)
            if mask is not None:
                yield from [(mask, keys)] * node.heads


def _tiles_of(node: Node, tile_rows: int) -> list[range]:
    """The rows of an attention, tile by tile."""
    starts = range(0, node.rows, tile_rows)
    return [range(start, min(start + tile_rows, node.rows)) for start in starts]


def _visible_to(node: Node, rows: range) -> tuple[list[Runs], int]:
    """What the rows of a tile see, and how many keys it has: up to the last that any row sees."""
    assert node.visible is not None
    keys = max(node.visible.end(row) for row in rows)
    return [node.visible.runs(row) for row in rows], keys
