"""Pass 2, views: which buffer each tensor is a part of, at which offset and row stride.

A tensor owns a buffer unless it is a view or is written into a concatenation. A part of a
concatenation lies inside the concatenation's buffer; a slice lies inside its source's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from capra.ir.graph import SLICES, Graph, Kind


@dataclass(frozen=True, slots=True)
class Place:
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
    """The place of every materialized tensor; a fused product has its relu's place."""
    places: dict[str, Place] = {}

    def place(name: str) -> Place:
        if name not in places:
            places[name] = _find(name)
        return places[name]

    def _find(name: str) -> Place:
        node = graph[name]
        relu, concat = graph.fused_relu(name), graph.concat_of(name)
        if relu is not None:
            return place(relu)
        if concat is not None:
            before = graph[concat].inputs[: graph[concat].inputs.index(name)]
            if graph[concat].kind is Kind.CONCAT_ROWS:
                row, col = sum(graph[part].rows for part in before), 0
            else:
                row, col = 0, sum(graph[part].cols for part in before)
            return place(concat).part(row, col, node.rows, node.cols)
        if node.kind in SLICES:
            row, col = (node.start, 0) if node.kind is Kind.SLICE_ROWS else (0, node.start)
            return place(node.inputs[0]).part(row, col, node.rows, node.cols)
        return Place(name, 0, node.rows, node.cols, node.cols)

    for node in graph:
        place(node.name)
    return places
