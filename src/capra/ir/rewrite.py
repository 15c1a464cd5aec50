"""What a pass that rewrites graphs needs: views seen through, and added to another graph."""

from typing import NamedTuple

from capra.ir.graph import BY_ROWS, SLICES, Graph


class View(NamedTuple):
    """Rows row .. row + rows - 1 and columns col .. col + cols - 1 of a tensor."""

    source: str
    row: int
    col: int
    rows: int
    cols: int


def view_of(graph: Graph, name: str) -> View:
    """What a slice of slices shows of the first tensor that is none; other tensors show all."""
    node = source = graph[name]
    row = col = 0
    while source.kind in SLICES:
        if source.kind in BY_ROWS:
            row += source.start
        else:
            col += source.start
        source = graph[source.inputs[0]]
    return View(source.name, row, col, node.rows, node.cols)


def add_view(graph: Graph, name: str, view: View, rows_name: str, *, tag: str) -> str:
    """A view as a node of this name: a slice of columns, of a slice of rows if it needs both."""
    source = view.source
    if view.cols == graph[source].cols:
        return graph.slice_rows(name, source, view.row, view.rows, tag=tag)
    if view.rows < graph[source].rows:
        source = graph.slice_rows(rows_name, source, view.row, view.rows, tag=tag)
    return graph.slice_cols(name, source, view.col, view.cols, tag=tag)
