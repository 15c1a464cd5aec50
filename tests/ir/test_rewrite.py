"""Views seen through, and made again."""

import numpy as np
import pytest
from tests.compiler.random_graphs import leaf_samples, random_graph

from capra.ir.graph import SLICES, Graph
from capra.ir.reference import evaluate_float
from capra.ir.rewrite import View, add_view, view_of
from capra.ir.text import print_graph


@pytest.mark.parametrize("seed", range(20))
def test_a_view_shows_the_elements_of_its_slice(seed: int) -> None:
    graph = random_graph(seed).graph
    values = evaluate_float(graph, leaf_samples(graph, seed)[0])
    for node in graph:
        view = view_of(graph, node.name)
        assert graph[view.source].kind not in SLICES
        shown = values[view.source][view.row :, view.col :][: view.rows, : view.cols]
        np.testing.assert_array_equal(shown, values[node.name])


def test_a_view_is_a_slice_of_columns_of_a_slice_of_rows_only_if_need_be() -> None:
    graph = Graph("g")
    graph.input("x", 6, 8)
    add_view(graph, "rows", View("x", 2, 0, 3, 8), "unused", tag="t")
    add_view(graph, "cols", View("x", 0, 1, 6, 2), "unused", tag="t")
    add_view(graph, "both", View("x", 2, 1, 3, 2), "its_rows", tag="t")
    assert print_graph(graph).splitlines()[2:] == [
        "rows = slice_rows x start=2 count=3 tag=t",
        "cols = slice_cols x start=1 count=2 tag=t",
        "its_rows = slice_rows x start=2 count=3 tag=t",
        "both = slice_cols its_rows start=1 count=2 tag=t",
    ]
