"""The views pass: which buffer each tensor is a part of, at which offset and row stride.

A tensor owns a buffer unless it is a view or is written into a concatenation. A part of a
concatenation lies inside the concatenation's buffer; a slice lies inside its source's.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from capra.ir.graph import BY_ROWS, CONCATS, SLICES, Graph, Kind, Node
from capra.isa.instruction import Region
from capra.isa.spec import Memory

_Element = TypeVar("_Element", bound=np.generic)


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

    def of(self, buffer: npt.NDArray[_Element]) -> npt.NDArray[_Element]:
        """Its rows x cols elements of an array of the whole buffer, as a view."""
        place = Region(Memory.SCRATCHPAD, self.offset, self.rows, self.cols, self.stride)
        return place.of(buffer)

    def row(self, index: int) -> "Place":
        """One row."""
        return self.part(index, 0, 1, self.cols)


def place_tensors(graph: Graph) -> Mapping[str, Place]:
    """The place of every tensor, in graph order; a fused product has its relu's place."""
    places: dict[str, Place] = {}
    # What a tensor is written into comes later in the graph, what a slice is cut from comes before.
    for node in reversed(list(graph)):
        if node.kind not in SLICES:
            place = places.get(node.name)
            if place is None:
                place = places[node.name] = Place(node.name, 0, node.rows, node.cols, node.cols)
            if node.kind in CONCATS:
                places.update(_parts(graph, node, place))
            elif node.kind is Kind.RELU and not graph.is_materialized(node.inputs[0]):
                places[node.inputs[0]] = place
    for node in graph:
        if node.kind in SLICES:
            row, col = (node.start, 0) if node.kind in BY_ROWS else (0, node.start)
            places[node.name] = places[node.inputs[0]].part(row, col, node.rows, node.cols)
    return {node.name: places[node.name] for node in graph}


def _parts(graph: Graph, concat: Node, place: Place) -> Iterator[tuple[str, Place]]:
    """The parts of a concatenation, each with its place inside that of the whole."""
    row = col = 0
    for name in concat.inputs:
        part = graph[name]
        yield name, place.part(row, col, part.rows, part.cols)
        if concat.kind in BY_ROWS:
            row += part.rows
        else:
            col += part.cols
