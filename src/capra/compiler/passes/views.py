"""The views pass: which buffer each tensor is a part of, at which offset and row stride.

A tensor owns a buffer unless it is a view or is written into a concatenation. A part of a
concatenation lies inside the concatenation's buffer; a slice lies inside its source's.
"""

from collections.abc import Mapping
from typing import NamedTuple

from capra.ir.graph import SLICES, Graph, Kind, Node


class Place(NamedTuple):
    """A rectangle inside a buffer: row i starts at word offset + i * stride."""

    buffer: str
    offset: int
    rows: int
    cols: int
    stride: int

    @property
    def end(self) -> int:
        """One past the last word, relative to the buffer."""
        return self.offset + (self.rows - 1) * self.stride + self.cols

    @property
    def is_contiguous(self) -> bool:
        """True when the rows follow each other without a gap."""
        return self.rows == 1 or self.stride == self.cols

    def part(self, row: int, col: int, rows: int, cols: int) -> "Place":
        """The rows x cols rectangle that starts at (row, col) of this one."""
        return Place(self.buffer, self.offset + row * self.stride + col, rows, cols, self.stride)

    def row(self, index: int) -> "Place":
        """One row."""
        return self.part(index, 0, 1, self.cols)


def place_tensors(graph: Graph) -> Mapping[str, Place]:
    """The place of every tensor, in graph order; a fused product has its relu's place."""
    places: dict[str, Place] = {}
    # What a tensor is written into comes later in the graph, what a slice is cut from comes before.
    for node in reversed(list(graph)):
        if node.kind not in SLICES:
            places[node.name] = _own_place(graph, node, places)
    for node in graph:
        if node.kind is Kind.SLICE_ROWS:
            places[node.name] = places[node.inputs[0]].part(node.start, 0, node.rows, node.cols)
        elif node.kind is Kind.SLICE_COLS:
            places[node.name] = places[node.inputs[0]].part(0, node.start, node.rows, node.cols)
    return {node.name: places[node.name] for node in graph}


def _own_place(graph: Graph, node: Node, later: Mapping[str, Place]) -> Place:
    """Inside the relu or the concatenation that the tensor is written into, or a new buffer."""
    relu, concat = graph.fused_relu(node.name), graph.concat_of(node.name)
    if relu is not None:
        return later[relu]
    if concat is None:
        return Place(node.name, 0, node.rows, node.cols, node.cols)
    parts = graph[concat].inputs
    before = [graph[part] for part in parts[: parts.index(node.name)]]
    if graph[concat].kind is Kind.CONCAT_ROWS:
        return later[concat].part(sum(part.rows for part in before), 0, node.rows, node.cols)
    return later[concat].part(0, sum(part.cols for part in before), node.rows, node.cols)
