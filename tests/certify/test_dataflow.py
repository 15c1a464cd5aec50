"""The expansion of a graph: worth what the integer interpreter computes, for any leaves."""

import numpy as np
import pytest
from tests.certify.meaning import Meaning
from tests.certify.symbolic import expanded
from tests.compiler.random_graphs import random_graph

from capra.certify.dataflow import Dataflow, Rows
from capra.certify.terms import Terms
from capra.compiler.passes.scales import assign_scales
from capra.ir.graph import Graph, Kind, Node
from capra.ir.interpreter import evaluate_int
from capra.ir.ranges import Ranges, record_ranges
from capra.ir.scales import Scales
from capra.ir.visible import Visible
from capra.numerics import INT8_MAX, Int64Array


@pytest.mark.parametrize("graph_seed", range(40))
def test_terms_are_worth_what_the_interpreter_computes(graph_seed: int) -> None:
    random = random_graph(graph_seed)
    scales = assign_scales(random.graph, record_ranges(random.graph, random.leaves))
    draw = np.random.default_rng(graph_seed)
    leaves: dict[str, Int64Array] = {
        node.name: draw.integers(-INT8_MAX, INT8_MAX, node.shape, endpoint=True)
        for node in random.graph
        if node.kind in (Kind.INPUT, Kind.WEIGHT)
    }
    expected = evaluate_int(random.graph, scales, leaves)
    dataflow, values = expanded(random.graph, scales)
    meaning = Meaning(dataflow.terms, lambda tensor, row, column: int(leaves[tensor][row, column]))
    assert set(values) == random.graph.nodes.keys()
    for name, rows in values.items():
        found = np.stack([meaning.row(row) for row in rows])
        np.testing.assert_array_equal(found, expected[name], name)


def test_an_attention_is_as_many_shorter_rows() -> None:
    """At once with a visible set, or row by row over the keys that a row sees: the same terms."""
    graph = Graph("g")
    for name in ("q", "k", "v"):
        graph.input(name, 3, 4)
    graph.output(graph.attention("a", "q", "k", "v", visible=Visible.causal(3, 0), inner_tag="in"))
    for row in range(3):
        graph.slice_rows(f"q{row}", "q", row, 1)
        graph.slice_rows(f"k{row}", "k", 0, row + 1)
        graph.slice_rows(f"v{row}", "v", 0, row + 1)
        graph.scores(f"s{row}", f"q{row}", f"k{row}", tag="in.h0.scores")
        graph.softmax(f"p{row}", f"s{row}", tag="in.h0.probs")
        graph.matmul(f"a{row}", f"p{row}", f"v{row}", tag="a")
    ranges = Ranges(dict.fromkeys((tensor.tag for tensor in graph.tensors()), 1.0))
    _, values = expanded(graph, assign_scales(graph, ranges))
    for row in range(3):
        assert values["a"][row] == values[f"a{row}"][0]


def _attention(keys: str) -> tuple[Graph, Scales]:
    graph = Graph("g")
    for name in ("q", "k", "v"):
        graph.input(name, 3, 4)
    graph.slice_rows("seen", keys, 0, 2)
    graph.softmax("p", graph.scores("s", "q", "seen"))
    graph.slice_rows("values", "v", 0, 2)
    graph.output(graph.matmul("a", "p", "values"))
    return graph, assign_scales(graph, Ranges(dict.fromkeys(graph.nodes, 1.0)))


def test_equal_graphs_give_equal_rows_and_other_ones_do_not() -> None:
    dataflow = Dataflow(Terms())

    def rows(keys: str) -> Rows:
        graph, scales = _attention(keys)

        def leaf(node: Node, scale: float) -> Rows:
            return dataflow.leaf(node.name, 0, node.rows, node.cols, scale)

        return dataflow.expand(graph, scales, leaf)["a"]

    assert rows("k") == rows("k")
    assert rows("k") != rows("v")
    before, mark = rows("k"), dataflow.mark()
    rows("q")
    dataflow.forget_since(mark)
    assert dataflow.mark() == mark and rows("k") == before


def test_readers_see_what_a_cut_gives_them() -> None:
    graph, scales = _attention("k")
    dataflow = Dataflow(Terms())
    stand_in = dataflow.leaf("stand_in", 0, 3, 2, None)

    def leaf(node: Node, scale: float) -> Rows:
        return dataflow.leaf(node.name, 0, node.rows, node.cols, scale)

    values = dataflow.expand(
        graph, scales, leaf, lambda node, rows: stand_in if node.name == "s" else rows
    )
    p = dataflow.terms[int(dataflow.array(values["p"])[0, 0])]
    assert dataflow.terms[p.terms[0]].vectors == stand_in[:1]
