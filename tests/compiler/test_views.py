"""Views: buffer, offset and row stride of every tensor."""

import numpy as np
import pytest
from tests.compiler.random_graphs import random_graph

from capra.compiler.passes.views import Place, place_tensors
from capra.ir.graph import Graph, Kind
from capra.ir.reference import evaluate_float


def test_tensor_of_its_own_starts_at_its_buffer() -> None:
    graph = Graph("g")
    graph.input("x", 3, 5)
    assert place_tensors(graph)["x"] == Place("x", 0, 3, 5, 5)


def test_slices_are_offsets_into_their_source() -> None:
    graph = Graph("g")
    graph.input("x", 6, 8)
    graph.slice_rows("rows", "x", 2, 3)
    graph.slice_cols("cols", "x", 3, 4)
    places = place_tensors(graph)
    assert places["rows"] == Place("x", 16, 3, 8, 8)
    assert places["cols"] == Place("x", 3, 6, 4, 8)


def test_offsets_of_nested_slices_add_up() -> None:
    graph = Graph("g")
    graph.input("x", 6, 8)
    graph.slice_rows("a", "x", 1, 4)
    graph.slice_rows("b", "a", 2, 2)
    graph.slice_cols("c", "b", 3, 4)
    graph.slice_cols("d", "c", 1, 2)
    graph.slice_rows("e", "d", 1, 1)
    places = place_tensors(graph)
    assert places["b"] == Place("x", 24, 2, 8, 8)
    assert places["c"] == Place("x", 27, 2, 4, 8)
    assert places["d"] == Place("x", 28, 2, 2, 8)
    assert places["e"] == Place("x", 36, 1, 2, 8)


def test_parts_of_a_row_concatenation_follow_each_other() -> None:
    graph = Graph("g")
    for name, rows in (("x", 2), ("y", 1), ("z", 3)):
        graph.input(name, rows, 5)
    graph.concat_rows("all", ["y", "x", "z"])
    graph.slice_rows("cut", "all", 2, 3)
    places = place_tensors(graph)
    assert places["all"] == Place("all", 0, 6, 5, 5)
    assert places["y"] == Place("all", 0, 1, 5, 5)
    assert places["x"] == Place("all", 5, 2, 5, 5)
    assert places["z"] == Place("all", 15, 3, 5, 5)
    assert places["cut"] == Place("all", 10, 3, 5, 5)


def test_parts_of_a_column_concatenation_share_its_stride() -> None:
    graph = Graph("g")
    graph.input("x", 3, 2)
    graph.input("y", 3, 4)
    graph.concat_cols("all", ["x", "y"])
    graph.slice_rows("part", "y", 1, 2)
    places = place_tensors(graph)
    assert places["x"] == Place("all", 0, 3, 2, 6)
    assert places["y"] == Place("all", 2, 3, 4, 6)
    assert places["part"] == Place("all", 8, 2, 4, 6)


def test_column_concatenation_inside_a_row_concatenation() -> None:
    graph = Graph("g")
    graph.input("top", 2, 7)
    graph.input("left", 3, 3)
    graph.input("right", 3, 4)
    graph.concat_cols("bottom", ["left", "right"])
    graph.concat_rows("all", ["top", "bottom"])
    graph.slice_cols("columns", "all", 2, 3)
    graph.slice_rows("inside", "right", 2, 1)
    places = place_tensors(graph)
    assert places["bottom"] == Place("all", 14, 3, 7, 7)
    assert places["left"] == Place("all", 14, 3, 3, 7)
    assert places["right"] == Place("all", 17, 3, 4, 7)
    assert places["columns"] == Place("all", 2, 5, 3, 7)
    assert places["inside"] == Place("all", 31, 1, 4, 7)


def test_fused_product_has_the_place_of_its_relu() -> None:
    graph = Graph("g")
    graph.input("x", 2, 3)
    graph.input("y", 1, 2)
    graph.scores("p", "x", "x")
    graph.relu("r", "p")
    graph.concat_rows("all", ["y", "r"])
    places = place_tensors(graph)
    assert places["p"] == places["r"] == Place("all", 2, 2, 2, 2)


def test_place_parts_and_rows_keep_the_stride() -> None:
    place = Place("x", 10, 4, 6, 9)
    assert place.part(2, 1, 2, 3) == Place("x", 29, 2, 3, 9)
    assert place.row(3) == Place("x", 37, 1, 6, 9)
    assert place.end == 43
    assert not place.is_contiguous
    assert place.row(1).is_contiguous
    assert Place("x", 10, 4, 9, 9).is_contiguous
    assert Place("x", 10, 4, 1000, int("1000")).is_contiguous  # equal, not the same object


def words_of(place: Place) -> np.ndarray:
    rows = place.offset + np.arange(place.rows) * place.stride
    return rows[:, None] + np.arange(place.cols)


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_every_view_of_a_random_graph_holds_its_own_elements(first: int) -> None:
    """Give every tensor of the float reference to its words: views must then read back right."""
    for seed in range(first, first + 20):
        random = random_graph(seed)
        values = evaluate_float(random.graph, random.leaves[0])
        places = place_tensors(random.graph)
        memory: dict[str, dict[int, float]] = {}
        views = Kind.SLICE_ROWS, Kind.SLICE_COLS, Kind.CONCAT_ROWS, Kind.CONCAT_COLS
        for node in random.graph:
            if node.kind not in views and random.graph.is_materialized(node.name):
                held = memory.setdefault(places[node.name].buffer, {})
                addresses = words_of(places[node.name]).ravel().tolist()
                assert not held.keys() & set(addresses), f"seed {seed}: {node.name}"
                held |= dict(zip(addresses, values[node.name].ravel(), strict=True))
        for node in random.graph:
            if random.graph.is_materialized(node.name):
                buffer = memory[places[node.name].buffer]
                read = [[buffer[w] for w in row] for row in words_of(places[node.name]).tolist()]
                np.testing.assert_array_equal(read, values[node.name], f"seed {seed}: {node.name}")
