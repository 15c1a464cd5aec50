"""The block-attention pass: attention of a block's rows a tile at a time instead of row by row.

It looks for rows below each other, each `softmax(q k^T) v` of one row of q, where every row sees
one row of k and v more than the row above it. Four such rows become one product of scores against
all keys that the last of them sees, one softmax of each row over its own prefix with zeros after
it, and one product with the values: the array computes 4 x 4 tiles where it computed 1 x 4.

The integers are the same. A score is the same sum whichever tile holds it; the softmax of a row
reads the same scores; and a probability of exactly 0 adds nothing to a sum of 32 bits, so a row is
blind to the keys and values after its prefix. Every row must have the same rescales, or the pass
leaves the attention alone. The rows' own tensors become views of the tiles, so all tensors of the
graph are still there.
"""

from collections.abc import Sequence
from typing import NamedTuple

from capra.ir.graph import CONCATS, PRODUCTS, Graph, Kind, Node
from capra.ir.rewrite import View, add_view, view_of
from capra.ir.scales import Scales
from capra.isa.spec import ARRAY_SIZE


class _Head(NamedTuple):
    """One row of one head: its three operations and what they read."""

    scores: Node
    probs: Node
    product: Node
    q: View
    k: View
    v: View


class _Row(NamedTuple):
    """One row of the attention output: a head's product, or several beside each other."""

    name: str
    heads: tuple[_Head, ...]

    @property
    def is_head(self) -> bool:
        """True where the row is a head's product itself, and no concatenation."""
        return self.name == self.heads[0].product.name

    @property
    def replaced(self) -> set[str]:
        """The tensors that become views."""
        nodes = (node for h in self.heads for node in (h.scores, h.probs, h.product))
        return {self.name, *(node.name for node in nodes)}


def block_attention(graph: Graph, scales: Scales) -> tuple[Graph, Scales]:
    """The graph with row-by-row attention in tiles, and its scales: those of the rows."""
    concats = (node for node in graph if node.kind in CONCATS)
    found = ((node.name, _rows_of(graph, scales, node)) for node in concats)
    blocks = {name: rows for name, rows in found if rows is not None}
    if not blocks:
        return graph, scales
    return _Rewriter(graph, scales).run(blocks)


# What is looked for


def _rows_of(graph: Graph, scales: Scales, concat: Node) -> list[_Row] | None:
    """The rows of a concatenation, if all of them are attention that can be done in tiles."""
    if concat.kind is not Kind.CONCAT_ROWS or len(concat.inputs) < 2:
        return None
    rows: list[_Row] = []
    for part in concat.inputs:
        row = _row_of(graph, part)
        if row is None or (rows and not _follows(scales, row, rows[-1])):
            return None
        rows.append(row)
    return rows


def _row_of(graph: Graph, name: str) -> _Row | None:
    node = graph[name]
    if node.rows != 1 or not _is_read_once(graph, name):
        return None
    parts = node.inputs if node.kind is Kind.CONCAT_COLS else (name,)
    heads = [head for head in (_head_of(graph, part) for part in parts) if head is not None]
    return _Row(name, tuple(heads)) if len(heads) == len(parts) else None


def _head_of(graph: Graph, name: str) -> _Head | None:
    product = graph[name]
    if product.kind is not Kind.MATMUL or product.transpose_b:
        return None
    probs = graph[product.inputs[0]]
    if probs.kind is not Kind.SOFTMAX or probs.prefix:
        return None
    scores = graph[probs.inputs[0]]
    if scores.kind not in PRODUCTS or not scores.transpose_b:
        return None
    if not all(_is_read_once(graph, node.name) for node in (scores, probs, product)):
        return None
    reads = (*scores.inputs, product.inputs[1])
    return _Head(scores, probs, product, *(view_of(graph, each) for each in reads))


def _is_read_once(graph: Graph, name: str) -> bool:
    return len(graph.users(name)) == 1 and not graph.is_output(name)


def _follows(scales: Scales, row: _Row, before: _Row) -> bool:
    if row.is_head != before.is_head or len(row.heads) != len(before.heads):
        return False
    pairs = zip(row.heads, before.heads, strict=True)
    return all(_continues(scales, head, above) for head, above in pairs)


def _continues(scales: Scales, head: _Head, above: _Head) -> bool:
    """True when a row is the next query over one key and value more, in the same integers."""
    pairs = (
        (head.scores, above.scores), (head.probs, above.probs), (head.product, above.product),
    )  # fmt: skip
    return (
        head.q == above.q._replace(row=above.q.row + 1)
        and head.k == above.k._replace(rows=above.k.rows + 1)
        and head.v == above.v._replace(rows=above.v.rows + 1)
        and all(
            mine.kind is other.kind
            and mine.scale == other.scale
            and scales.scale[mine.name] == scales.scale[other.name]
            and scales.product[mine.name] == scales.product[other.name]
            for mine, other in pairs
        )
        and scales.softmax_index[head.probs.name] == scales.softmax_index[above.probs.name]
    )


# What is put in its place


class _Rewriter:
    def __init__(self, graph: Graph, scales: Scales) -> None:
        self._old = graph
        self._graph = Graph(graph.name)
        self._mark = ".block"
        while any(self._mark in name for name in graph.nodes):
            self._mark += "_"
        self._scale = dict(scales.scale)
        self._product = dict(scales.product)
        self._softmax_index = dict(scales.softmax_index)
        self._addends = scales.addends

    def run(self, blocks: dict[str, list[_Row]]) -> tuple[Graph, Scales]:
        replaced = {name for rows in blocks.values() for row in rows for name in row.replaced}
        for node in self._old:
            if node.name in blocks:
                self._concatenate(node, blocks[node.name])
            elif node.name not in replaced:
                self._graph.adopt(node, self._old)
        for name in self._old.outputs:
            self._graph.output(name)
        return self._graph, Scales(self._scale, self._product, self._softmax_index, self._addends)

    def _concatenate(self, concat: Node, rows: Sequence[_Row]) -> None:
        tiles = [rows[i : i + ARRAY_SIZE] for i in range(0, len(rows), ARRAY_SIZE)]
        parts = [self._tile(tile) for tile in tiles]
        self._graph.concat_rows(concat.name, parts, tag=concat.tag)

    def _tile(self, rows: Sequence[_Row]) -> str:
        """The attention output of a tile's rows."""
        heads = [
            self._head([row.heads[head] for row in rows]) for head in range(len(rows[0].heads))
        ]
        if rows[0].is_head:
            return heads[0]
        name = rows[0].name + self._mark
        self._graph.concat_cols(name, heads, tag=self._old[rows[0].name].tag)
        self._scale[name] = self._scale[rows[0].name]
        for index, row in enumerate(rows):
            self._row_of(name, index, self._old[row.name])
        return name

    def _head(self, rows: Sequence[_Head]) -> str:
        """The products of one head for a tile's rows; the rows' tensors as views of them."""
        graph, first, last = self._graph, rows[0], rows[-1]
        name = self._named_as(first.scores)
        q = self._operand(f"{name}.q", first.q._replace(rows=len(rows)), first.scores.inputs[0])
        k = self._operand(f"{name}.k", last.k, first.scores.inputs[1])
        if first.scores.kind is Kind.SCORES:
            graph.scores(name, q, k, scale=first.scores.scale, tag=first.scores.tag)
        else:
            graph.matmul(
                name, q, k, transpose_b=True, scale=first.scores.scale, tag=first.scores.tag
            )
        probs = self._named_as(first.probs)
        graph.softmax(probs, name, prefix=first.k.rows, tag=first.probs.tag)
        v = self._operand(f"{probs}.v", last.v, first.product.inputs[1])
        product = self._named_as(first.product)
        graph.matmul(product, probs, v, scale=first.product.scale, tag=first.product.tag)
        for index, row in enumerate(rows):
            self._row_of(name, index, row.scores)
            self._row_of(probs, index, row.probs)
            self._row_of(product, index, row.product)
        return product

    def _named_as(self, node: Node) -> str:
        """The name of the tile that starts with this row, with the row's scale and rescales."""
        name = node.name + self._mark
        self._scale[name] = self._scale[node.name]
        self._product[name] = self._product[node.name]
        if node.kind is Kind.SOFTMAX:
            self._softmax_index[name] = self._softmax_index[node.name]
        return name

    def _operand(self, name: str, view: View, like: str) -> str:
        """What a tile reads, with the tag and the scale of what its first row read."""
        if (view.rows, view.cols) == self._graph[view.source].shape:
            return view.source
        return self._view(name, view, self._old[like])

    def _row_of(self, tile: str, index: int, node: Node) -> None:
        """A row's tensor as what it is now: the first elements of a row of its tile."""
        self._view(node.name, View(tile, index, 0, *node.shape), node)

    def _view(self, name: str, view: View, like: Node) -> str:
        rows_name = f"{name}.rows" if self._mark in name else f"{name}{self._mark}.rows"
        self._scale[name] = self._scale[rows_name] = self._scale[like.name]
        return add_view(self._graph, name, view, rows_name, tag=like.tag)
