"""The graph: the shape of every operation, and every refusal with what its message must say."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from capra.errors import GraphError
from capra.ir.graph import MAX_DIMENSION, Graph, Kind
from capra.ir.text import print_graph
from capra.ir.visible import Visible


def sample_graph() -> Graph:
    """x 4x6, y 4x6, w 6x5, its product p 4x5 and a slice s of x, 2x6."""
    graph = Graph("sample")
    graph.input("x", 4, 6)
    graph.input("y", 4, 6)
    graph.weight("w", 6, 5)
    graph.matmul("p", "x", "w")
    graph.slice_rows("s", "x", 1, 2)
    return graph


@contextmanager
def refused(graph: Graph, *fragments: str) -> Iterator[None]:
    """The block raises GraphError with all these words, and the graph stays as it was."""
    before = print_graph(graph), {name: graph.users(name) for name in graph.nodes}
    with pytest.raises(GraphError) as caught:
        yield
    for fragment in (*fragments, "expected"):
        assert fragment in str(caught.value)
    assert (print_graph(graph), {name: graph.users(name) for name in graph.nodes}) == before


@pytest.mark.parametrize(
    ("build", "shape"),
    [
        (lambda g: g.input("n", 2, 7), (2, 7)),
        (lambda g: g.weight("n", MAX_DIMENSION, 1), (MAX_DIMENSION, 1)),
        (lambda g: g.matmul("n", "x", "w"), (4, 5)),
        (lambda g: g.matmul("n", "x", "y", transpose_b=True), (4, 4)),
        (lambda g: g.matmul("n", "s", "y", transpose_b=True), (2, 4)),
        (lambda g: g.scores("n", "s", "y"), (2, 4)),
        (lambda g: g.softmax("n", "s"), (2, 6)),
        (lambda g: g.attention("n", "x", "y", "x", visible=Visible.causal(4, 0)), (4, 6)),
        (lambda g: g.attention("n", "s", "x", "y", visible=Visible.causal(2, 2), heads=3), (2, 6)),
        (lambda g: g.relu("n", "p"), (4, 5)),
        (lambda g: g.add("n", "x", "y"), (4, 6)),
        (lambda g: g.concat_rows("n", ["x", "y"]), (8, 6)),
        (lambda g: g.concat_cols("n", ["p", "x"]), (4, 11)),
        (lambda g: g.concat_cols("n", ["p"]), (4, 5)),
        (lambda g: g.slice_rows("n", "x", 0, 4), (4, 6)),
        (lambda g: g.slice_rows("n", "s", 1, 1), (1, 6)),
        (lambda g: g.slice_cols("n", "x", 5, 1), (4, 1)),
        (lambda g: g.slice_cols("n", "s", 2, 3), (2, 3)),
        (lambda g: g.argmax("n", "p"), (4, 1)),
    ],
)
def test_every_operation_has_its_shape(
    build: Callable[[Graph], str], shape: tuple[int, int]
) -> None:
    graph = sample_graph()
    assert build(graph) == "n"
    assert graph["n"].shape == shape


@pytest.mark.parametrize(
    ("start", "count", "found"),
    [
        (0, 0, "0 .. -1 (0 of them)"),
        (2, -1, "2 .. 0 (-1 of them)"),
        (-1, 2, "-1 .. 0 (2 of them)"),
        (-4, 8, "-4 .. 3 (8 of them)"),
        (0, 5, "0 .. 4 (5 of them)"),
        (3, 2, "3 .. 4 (2 of them)"),
        (4, 1, "4 .. 4 (1 of them)"),
        (4, 0, "4 .. 3 (0 of them)"),
    ],
)
def test_slice_outside_its_tensor_is_refused(start: int, count: int, found: str) -> None:
    graph = Graph("g")
    graph.input("x", 4, 9)
    graph.input("y", 9, 4)
    with refused(graph, "cut:", f"rows {found}", "x (4x9)", "0 .. 3"):
        graph.slice_rows("cut", "x", start, count)
    with refused(graph, "cut:", f"columns {found}", "y (9x4)", "0 .. 3"):
        graph.slice_cols("cut", "y", start, count)


def test_slice_of_a_slice_is_bounded_by_the_slice() -> None:
    graph = sample_graph()
    with refused(graph, "n:", "rows 1 .. 2", "s (2x6)", "0 .. 1"):
        graph.slice_rows("n", "s", 1, 2)


@pytest.mark.parametrize("by_rows", [True, False])
def test_slice_may_not_feed_a_concatenation(by_rows: bool) -> None:
    graph = sample_graph()
    graph.slice_cols("c", "x", 0, 6)
    concat = graph.concat_rows if by_rows else graph.concat_cols
    for part, other in (("s", "s"), ("c", "y")):
        with refused(graph, "n:", f"the slice {part} (", "would need a copy"):
            concat("n", [other, part])


def test_slice_may_not_feed_a_relu() -> None:
    graph = sample_graph()
    graph.slice_cols("c", "p", 0, 2)
    for cut, shape in (("s", "2x6"), ("c", "4x2")):
        with refused(graph, "n:", f"the slice {cut} ({shape})", "would need a copy"):
            graph.relu("n", cut)


def test_shape_mismatches_are_refused() -> None:
    graph = sample_graph()
    with refused(graph, "n:", "matmul of x (4x6) and y (4x6)", "6 and 4"):
        graph.matmul("n", "x", "y")
    with refused(graph, "n:", "matmul of x (4x6) and w (6x5) transposed", "6 and 5"):
        graph.matmul("n", "x", "w", transpose_b=True)
    with refused(graph, "n:", "scores of x (4x6) and p (4x5)", "6 and 5"):
        graph.scores("n", "x", "p")
    with refused(graph, "n:", "add of x (4x6) and p (4x5)", "equal shapes"):
        graph.add("n", "x", "p")
    with refused(graph, "n:", "add of x (4x6) and s (2x6)", "equal shapes"):
        graph.add("n", "x", "s")
    with refused(graph, "n:", "x (4x6) and p (4x5)", "equal columns"):
        graph.concat_rows("n", ["x", "p"])
    with refused(graph, "n:", "x (4x6) and w (6x5)", "equal rows"):
        graph.concat_cols("n", ["x", "w"])


def test_concatenation_of_nothing_is_refused() -> None:
    graph = sample_graph()
    for concat in (graph.concat_rows, graph.concat_cols):
        with refused(graph, "n:", "of nothing"):
            concat("n", [])


def test_tensor_has_one_place_in_one_concatenation() -> None:
    graph = sample_graph()
    with refused(graph, "n:", "x (4x6)", "written into n already"):
        graph.concat_rows("n", ["x", "y", "x"])
    graph.concat_rows("first", ["x", "y"])
    with refused(graph, "second:", "y (4x6)", "written into first already"):
        graph.concat_cols("second", ["p", "y"])
    assert graph.concat_of("x") == graph.concat_of("y") == "first"
    assert graph.concat_of("p") is None


def test_concatenation_may_be_part_of_another_one() -> None:
    graph = sample_graph()
    graph.concat_cols("inner", ["x", "p"])
    graph.input("z", 2, 11)
    graph.concat_rows("outer", ["z", "inner"])
    assert graph["outer"].shape == (6, 11)
    assert graph.concat_of("inner") == "outer"


BUILDERS: dict[str, Callable[[Graph, str, str], str]] = {
    "matmul": lambda g, n, x: g.matmul(n, x, "w"),
    "matmul_b": lambda g, n, x: g.matmul(n, "x", x),
    "scores": lambda g, n, x: g.scores(n, x, "x"),
    "scores_k": lambda g, n, x: g.scores(n, "x", x),
    "softmax": lambda g, n, x: g.softmax(n, x),
    "relu": lambda g, n, x: g.relu(n, x),
    "add": lambda g, n, x: g.add(n, x, "x"),
    "add_b": lambda g, n, x: g.add(n, "x", x),
    "concat_rows": lambda g, n, x: g.concat_rows(n, [x]),
    "concat_cols": lambda g, n, x: g.concat_cols(n, ["x", x]),
    "slice_rows": lambda g, n, x: g.slice_rows(n, x, 0, 1),
    "slice_cols": lambda g, n, x: g.slice_cols(n, x, 0, 1),
    "argmax": lambda g, n, x: g.argmax(n, x),
}


@pytest.mark.parametrize("build", BUILDERS.values(), ids=BUILDERS)
def test_operand_must_exist_and_hold_no_indices(build: Callable[[Graph, str, str], str]) -> None:
    graph = sample_graph()
    graph.argmax("token", "p")
    with refused(graph, "n:", "'nowhere'"):
        build(graph, "n", "nowhere")
    with refused(graph, "n:", "'n'"):
        build(graph, "n", "n")
    with refused(graph, "n:", "token", "indices"):
        build(graph, "n", "token")


def operand_for(what: str) -> str:
    return "w" if what == "matmul_b" else "x"


@pytest.mark.parametrize("what", BUILDERS)
def test_name_must_be_new(what: str) -> None:
    graph = sample_graph()
    other = "y" if what == "concat_cols" else operand_for(what)
    for taken in ("p", "y"):
        with refused(graph, "sample:", f"'{taken}'", "a new name"):
            BUILDERS[what](graph, taken, other)


@pytest.mark.parametrize("name", ["", "1x", ".x", "a b", "a-b", "a=b", "é", "x\n", "%x", "#"])
def test_bad_names_are_refused(name: str) -> None:
    graph = sample_graph()
    with refused(graph, "node name", repr(name)):
        graph.input(name, 1, 1)
    with refused(graph, "node name", repr(name)):
        graph.relu(name, "p")
    with refused(graph, "tag name", repr(name)):
        graph.softmax("n", "x", tag=name)
    with pytest.raises(GraphError, match="graph name"):
        Graph(name)


@pytest.mark.parametrize("size", [0, -1, MAX_DIMENSION + 1])
def test_dimensions_have_limits(size: int) -> None:
    graph = sample_graph()
    for leaf in (graph.input, graph.weight):
        with refused(graph, "n:", f"{size} rows", f"1 .. {MAX_DIMENSION}"):
            leaf("n", size, 1)
        with refused(graph, "n:", f"{size} columns", f"1 .. {MAX_DIMENSION}"):
            leaf("n", 1, size)


def test_concatenation_may_not_outgrow_the_limit() -> None:
    graph = Graph("g")
    graph.input("a", MAX_DIMENSION, 1)
    graph.input("b", 1, 1)
    with refused(graph, "n:", f"{MAX_DIMENSION + 1} rows"):
        graph.concat_rows("n", ["a", "b"])
    assert graph.concat_of("a") is None


@pytest.mark.parametrize("scale", [0.0, -1.0, math.inf, -math.inf, math.nan])
def test_factor_of_a_product_is_finite_and_positive(scale: float) -> None:
    graph = sample_graph()
    with refused(graph, "n:", f"scale is {scale}"):
        graph.matmul("n", "x", "w", scale=scale)
    with refused(graph, "n:", f"scale is {scale}"):
        graph.scores("n", "x", "y", scale=scale)


def test_outputs_keep_their_order_and_are_declared_once() -> None:
    graph = sample_graph()
    graph.argmax("token", "p")
    for name in ("token", "s", "x"):
        assert graph.output(name) == name
    with refused(graph, "sample:", "s is an output already"):
        graph.output("s")
    with refused(graph, "sample:", "'nowhere'"):
        graph.output("nowhere")
    assert graph.outputs == ("token", "s", "x")
    assert [node.name for node in graph if graph.is_output(node.name)] == ["x", "s", "token"]


def test_graph_without_output_is_incomplete() -> None:
    graph = sample_graph()
    with refused(graph, "sample:", "no output"):
        graph.check_complete()
    graph.output("p")
    graph.check_complete()


def test_unknown_node_is_refused_by_name() -> None:
    graph = sample_graph()
    with refused(graph, "sample:", "'nowhere'"):
        graph["nowhere"]


def test_users_has_one_entry_a_use() -> None:
    graph = sample_graph()
    graph.add("twice", "x", "x")
    assert graph.users("x") == ("p", "s", "twice", "twice")
    assert graph.users("twice") == ()


def test_tag_is_the_own_name_unless_given() -> None:
    graph = sample_graph()
    graph.softmax("probs", "x", tag="shared.tag")
    assert graph["p"].tag == "p"
    assert graph["probs"].tag == "shared.tag"


def test_only_indices_are_indices() -> None:
    graph = sample_graph()
    graph.argmax("token", "p")
    assert [node.name for node in graph if node.is_index] == ["token"]


def test_relu_is_fused_where_it_is_the_only_reader_of_a_product() -> None:
    graph = sample_graph()
    assert graph.fused_relu("p") is None
    graph.relu("r", "p")
    assert graph.fused_relu("p") == "r"
    assert not graph.is_materialized("p")
    assert graph.is_materialized("r")


@pytest.mark.parametrize(
    "second_use",
    [
        lambda g: g.output("p"),
        lambda g: g.relu("again", "p"),
        lambda g: g.slice_rows("cut", "p", 0, 1),
        lambda g: g.concat_rows("all", ["p"]),
    ],
)
def test_relu_is_not_fused_where_the_product_is_needed_too(
    second_use: Callable[[Graph], str],
) -> None:
    graph = sample_graph()
    graph.relu("r", "p")
    second_use(graph)
    assert graph.fused_relu("p") is None
    assert graph.is_materialized("p")


def test_relu_is_fused_into_products_only() -> None:
    graph = sample_graph()
    graph.add("sum", "x", "y")
    graph.relu("r", "sum")
    graph.scores("q", "s", "y")
    graph.relu("rq", "q")
    assert graph.fused_relu("sum") is None
    assert graph.fused_relu("q") == "rq"


def test_nodes_are_read_only_and_in_order() -> None:
    graph = sample_graph()
    assert [node.name for node in graph] == list(graph.nodes) == ["x", "y", "w", "p", "s"]
    with pytest.raises(TypeError):
        graph.nodes["z"] = graph["x"]  # type: ignore[index]
    assert graph["s"].kind is Kind.SLICE_ROWS
