"""What a pass that rewrites graphs needs: views seen through, and nodes added to another graph."""

from dataclasses import dataclass

from capra.ir.graph import Graph, Kind, Node


@dataclass(frozen=True, slots=True)
class View:
    """Rows row .. row + rows - 1 and columns col .. col + cols - 1 of a tensor."""

    source: str
    row: int
    col: int
    rows: int
    cols: int


def view_of(graph: Graph, name: str) -> View:
    """What a slice of slices shows of the first tensor that is none; other tensors show all."""
    node = graph[name]
    if node.kind is Kind.SLICE_ROWS:
        outer = view_of(graph, node.inputs[0])
        return View(outer.source, outer.row + node.start, outer.col, *node.shape)
    if node.kind is Kind.SLICE_COLS:
        outer = view_of(graph, node.inputs[0])
        return View(outer.source, outer.row, outer.col + node.start, *node.shape)
    return View(name, 0, 0, *node.shape)


def add_view(graph: Graph, name: str, view: View, rows_name: str, *, tag: str) -> str:
    """A view as a node of this name: a slice of columns, of a slice of rows if it needs both."""
    source = view.source
    if view.cols == graph[source].cols:
        return graph.slice_rows(name, source, view.row, view.rows, tag=tag)
    if view.rows < graph[source].rows:
        source = graph.slice_rows(rows_name, source, view.row, view.rows, tag=tag)
    return graph.slice_cols(name, source, view.col, view.cols, tag=tag)


def add_copy(graph: Graph, node: Node) -> str:
    """A node of another graph, checked as when it was built there."""
    name, tag, inputs = node.name, node.tag, node.inputs
    match node.kind:
        case Kind.INPUT:
            return graph.input(name, node.rows, node.cols, tag=tag)
        case Kind.WEIGHT:
            return graph.weight(name, node.rows, node.cols, tag=tag)
        case Kind.MATMUL:
            a, b = inputs
            transpose_b, scale = node.transpose_b, node.scale
            return graph.matmul(name, a, b, transpose_b=transpose_b, scale=scale, tag=tag)
        case Kind.SCORES:
            a, b = inputs
            return graph.scores(name, a, b, scale=node.scale, tag=tag)
        case Kind.ADD:
            a, b = inputs
            return graph.add(name, a, b, tag=tag)
        case Kind.CONCAT_ROWS:
            return graph.concat_rows(name, inputs, tag=tag)
        case Kind.CONCAT_COLS:
            return graph.concat_cols(name, inputs, tag=tag)
        case Kind.SOFTMAX:
            return graph.softmax(name, inputs[0], prefix=node.prefix, tag=tag)
        case Kind.RELU:
            return graph.relu(name, inputs[0], tag=tag)
        case Kind.SLICE_ROWS:
            return graph.slice_rows(name, inputs[0], node.start, node.rows, tag=tag)
        case Kind.SLICE_COLS:
            return graph.slice_cols(name, inputs[0], node.start, node.cols, tag=tag)
        case Kind.ARGMAX:
            return graph.argmax(name, inputs[0])
