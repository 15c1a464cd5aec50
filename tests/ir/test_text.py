"""The text form: printing and parsing are inverse, and bad text is refused with its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiler.random_graphs import random_graph

from capra.errors import GraphError
from capra.ir.graph import Graph, Kind
from capra.ir.text import parse_graph, print_graph

EVERYTHING = """\
graph everything
x = input 4x6
w = weight 6x4 tag=shared
p = matmul x w scale=0.125
t = matmul x x transpose_b=1 tag=elsewhere
q = scores p t scale=0.1
s = softmax q
other = scores x x
r = relu p
a = add p t
mix = attention p t a scale=0.5 heads=2 prefix=1 width=3 tails=1,5,7,4 inner_tag=in tag=m
plain = attention q q q heads=1 prefix=4 width=0 tails=0,0,0,0
all = concat_rows a r tag=a
wide = concat_cols s other
top = slice_rows all start=0 count=3
left = slice_cols top start=1 count=2
token = argmax left
output token
output all
output x
"""


def same(a: Graph, b: Graph) -> bool:
    return a.name == b.name and list(a) == list(b) and a.outputs == b.outputs


def test_all_operations_parse_and_print_to_the_same_text() -> None:
    graph = parse_graph(EVERYTHING)
    assert print_graph(graph) == EVERYTHING
    assert {node.kind for node in graph} == set(Kind)


def test_built_and_parsed_graph_are_equal() -> None:
    graph = Graph("g")
    graph.input("x", 3, 2, tag="t")
    graph.scores("s", "x", "x", scale=1 / 3)
    graph.slice_cols("c", "s", 1, 2)
    graph.output("c")
    parsed = parse_graph(
        "graph g\nx = input 3x2 tag=t\ns = scores x x scale=0.3333333333333333\n"
        "c = slice_cols s count=2 start=1\noutput c"
    )
    assert same(graph, parsed)
    assert same(graph, parse_graph(print_graph(graph)))


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_random_graphs_survive_the_round_trip(first: int) -> None:
    for seed in range(first, first + 20):
        graph = random_graph(seed).graph
        text = print_graph(graph)
        parsed = parse_graph(text)
        assert same(graph, parsed), f"seed {seed}\n{text}"
        assert print_graph(parsed) == text


def test_comments_and_blank_lines_count_as_lines_only() -> None:
    text = "# a comment\n\n  graph g  # its name\n\tx = input 1x1\n\nx = input 1x1\n"
    with pytest.raises(GraphError, match=r"^line 6: "):
        parse_graph(text)
    assert same(parse_graph(text.rsplit("x =", 1)[0]), parse_graph("graph g\nx = input 1x1"))


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_empty_text_is_refused(text: str) -> None:
    with pytest.raises(GraphError, match="the text is empty, expected 'graph NAME'"):
        parse_graph(text)


@pytest.mark.parametrize("line", ["x = input 1x1", "graph", "graph a b", "graph 1a", "Graph g"])
def test_bad_header_is_refused(line: str) -> None:
    with pytest.raises(GraphError, match=r"^line 2: .*expected"):
        parse_graph(f"\n{line}\n")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x", "expected 'NAME = KIND"),
        ("y = ", "expected 'NAME = KIND"),
        ("y relu x", "expected 'NAME = KIND"),
        ("y = gelu x", "expected 'NAME = KIND"),
        ("output", "expected 'NAME = KIND"),
        ("output x x", "expected 'NAME = KIND"),
        ("graph again", "expected 'NAME = KIND"),
        ("output nowhere", "'nowhere'"),
        ("x = input 1x1", "'x' exists"),
        ("1y = input 1x1", "node name is '1y'"),
        ("y = input", "0 operands"),
        ("y = input 2", "expected ROWSxCOLS"),
        ("y = input 2x", "expected ROWSxCOLS"),
        ("y = input -2x2", "expected ROWSxCOLS"),
        ("y = input 2x2x2", "expected ROWSxCOLS"),
        ("y = weight 1234567890x1", "expected ROWSxCOLS"),
        ("y = weight 0x2", "0 rows"),
        ("y = weight 2x70000", "70000 columns"),
        ("y = input 2x2 start=1", "unknown key 'start'"),
        ("y = relu", "0 operands"),
        ("y = relu x x", "2 operands (x x), expected 1"),
        ("y = softmax z", "'z'"),
        ("y = softmax x 3x4", "2 operands"),
        ("y = softmax x prefix=1", "unknown key 'prefix'"),
        ("y = attention x x", "2 operands (x x), expected 3"),
        ("y = attention x x x", "prefix is None"),
        ("y = attention x x x prefix=3", "width is None"),
        ("y = attention x x x prefix=3 width=0", "tails is None"),
        ("y = attention x x x prefix=3 width=0 tails=0,0,", "hexadecimal masks with commas"),
        ("y = attention x x x prefix=3 width=0 tails=0,0,G", "tails is '0,0,G'"),
        ("y = attention x x x prefix=3 width=0 tails=0,0,-1", "tails is '0,0,-1'"),
        (
            "y = attention x x x prefix=3 width=0 tails=0,0,1",
            "row 2 of a visible set has a tail of",
        ),
        ("y = attention x x x prefix=0 width=3 tails=1,0,7", "row 1 of a visible set sees no key"),
        ("y = attention x x x prefix=-1 width=4 tails=1,1,1", "prefix -1, width 4 and 3 rows"),
        ("y = attention x x x prefix=3 width=0 tails=0,0", "q is x (3x4), expected 2x4"),
        ("y = attention x x x prefix=3 width=1 tails=0,0,0", "k is x (3x4), expected 4x4"),
        ("y = attention x x x prefix=1 width=999999999 tails=0,0,0", "expected 1000000000x4"),
        ("y = attention x x x heads=3 prefix=3 width=0 tails=0,0,0", "heads is 3"),
        ("y = attention x x x scale=0 prefix=3 width=0 tails=0,0,0", "scale is 0.0"),
        ("y = attention x x x prefix=3 width=0 tails=0,0,0 inner_tag=1", "tag name is '1'"),
        ("y = attention x x x prefix=3 width=0 tails=0,0,0 start=0", "unknown key 'start'"),
        ("y = add x", "1 operands (x), expected 2"),
        ("y = matmul x x", "matmul of x (3x4) and x (3x4)"),
        ("y = matmul x x transpose_b=yes", "transpose_b is 'yes'"),
        ("y = matmul x x transpose_b=1 scale=big", "scale is 'big'"),
        ("y = matmul x x transpose_b=1 scale=-1", "scale is -1.0"),
        ("y = matmul x x transpose_b=1 scale=1e999", "scale is '1e999', expected a number"),
        ("y = matmul x x transpose_b=1 scale=nan", "scale is 'nan', expected a number"),
        ("y = matmul x x transpose_b=1 factor=2", "unknown key 'factor'"),
        ("y = scores x x transpose_b=1", "unknown key 'transpose_b'"),
        ("y = matmul x x transpose_b=1 scale=1_0", "scale is '1_0', expected a number"),
        ("y = matmul x x transpose_b=1 scale=٣", "scale is '٣', expected a number"),
        ("y = scores x x scale=1 scale=2", "key scale is given twice"),
        ("y = slice_rows x start=0", "count is None"),
        ("y = slice_rows x count=1", "start is None"),
        ("y = slice_rows x start=0.5 count=1", "start is '0.5'"),
        ("y = slice_rows x start=2 count=2", "rows 2 .. 3"),
        ("y = slice_cols x start=-1 count=2", "columns -1 .. 0"),
        ("y = slice_cols x x start=0 count=2", "2 operands"),
        ("y = concat_rows", "of nothing"),
        ("y = concat_cols x x", "written into y already"),
        ("y = relu x tag=", "tag name is ''"),
        ("y = relu x tag=a=b", "tag name is 'a=b'"),
        ("y = argmax x count=1", "unknown key 'count'"),
        ("y = argmax x tag=t", "unknown key 'tag'"),
    ],
)
def test_bad_line_is_refused_with_its_number(line: str, said: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse_graph(f"graph g\n# the only node\nx = input 3x4\n{line}\n")
    assert str(caught.value).startswith("line 4: ")
    assert said in str(caught.value)


def parses_or_refuses(text: str) -> None:
    try:
        graph = parse_graph(text)
    except GraphError:
        return
    assert same(parse_graph(print_graph(graph)), graph)


@given(st.text())
def test_any_text_parses_or_raises_a_graph_error(text: str) -> None:
    parses_or_refuses(text)


WORDS = st.sampled_from(
    ["x", "y", "z", "=", "output", "graph", "2x2", "2x3", "0x1", "start=0", "start=1", "count=1",
     "count=2", "count=", "scale=2", "scale=1_0", "scale=inf", "transpose_b=1", "tag=x", "tag",
     "heads=2", "prefix=0", "prefix=2", "width=0", "width=2", "tails=1,3", "tails=0,0", "tails=3",
     "=x", "#", *Kind]
)  # fmt: skip
NODES = st.builds(
    lambda name, kind, rest: " ".join([name, "=", kind, *rest]),
    st.sampled_from("xyzuv"), st.sampled_from(list(Kind)), st.lists(WORDS, max_size=5),
)  # fmt: skip


@given(st.lists(NODES | st.lists(WORDS, max_size=6).map(" ".join), max_size=6))
def test_any_lines_of_known_words_parse_or_raise_a_graph_error(lines: list[str]) -> None:
    parses_or_refuses("\n".join(["graph g", "x = input 2x2", *lines]))


@given(
    st.integers(0, len(EVERYTHING)), st.integers(0, 8), st.text("xw=#. 0123456789\n", max_size=6)
)
def test_damaged_text_parses_or_raises_a_graph_error(at: int, cut: int, put: str) -> None:
    parses_or_refuses(EVERYTHING[:at] + put + EVERYTHING[at + cut :])
