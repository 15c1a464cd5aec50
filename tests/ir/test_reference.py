"""The float reference, against sums written out in Python and numpy expressions of the test's own.

Its values on whole random graphs are compared in tests/compiler/test_random_graphs.py.
"""

import math

import numpy as np
import pytest

from capra.errors import GraphError
from capra.ir.graph import Graph
from capra.ir.reference import evaluate_float, softmax_rows
from capra.ir.visible import Visible
from capra.numerics import FloatArray

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]])
W = np.array([[2.0, 0.0], [1.0, -1.0], [0.25, 3.0]])


def evaluated(graph: Graph) -> FloatArray:
    """The value of the last node of a graph over x (2x3) and w (3x2)."""
    return evaluate_float(graph, {"x": X, "w": W})[list(graph.nodes)[-1]]


@pytest.fixture
def graph() -> Graph:
    graph = Graph("g")
    graph.input("x", 2, 3)
    graph.weight("w", 3, 2)
    return graph


def test_leaves_are_given(graph: Graph) -> None:
    values = evaluate_float(graph, {"x": X.astype(np.float32), "w": W})
    np.testing.assert_array_equal(values["x"], X)
    assert values["x"].dtype == np.float64


def test_matmul(graph: Graph) -> None:
    graph.matmul("n", "x", "w", scale=0.5)
    sums = [
        [2 - 2 + 0.75, 0 + 2 + 9],
        [1 + 4 - 0.25, 0 - 4 - 3],
    ]
    np.testing.assert_allclose(evaluated(graph), np.array(sums) * 0.5)


def test_transposed_matmul_and_scores(graph: Graph) -> None:
    products = np.array([[14.0, -10.5], [-10.5, 17.25]])
    graph.matmul("n", "x", "x", transpose_b=True)
    np.testing.assert_allclose(evaluated(graph), products)
    graph.scores("s", "x", "x", scale=3.0)
    np.testing.assert_allclose(evaluated(graph), products * 3)


def test_softmax_is_row_by_row(graph: Graph) -> None:
    graph.softmax("n", "x")
    expected = [[math.exp(v) / sum(math.exp(u) for u in row) for v in row] for row in X.tolist()]
    np.testing.assert_allclose(evaluated(graph), expected)


def test_attention_is_over_the_keys_that_each_row_sees() -> None:
    """Scores are the rows of q, and values name their key; row 1 sees keys 0, 1 and 3."""
    q = np.log([[1.0, 3.0, 90.0, 90.0], [1.0, 1.0, 90.0, 2.0]])
    graph = Graph("g")
    graph.input("q", 2, 4)
    for name in ("k", "v"):
        graph.input(name, 4, 4)
    graph.attention("a", "q", "k", "v", visible=Visible(2, 2, (0, 2)))
    found = evaluate_float(graph, {"q": q, "k": np.eye(4), "v": np.eye(4) * 8})
    probs = [[0.25, 0.75, 0, 0], [0.25, 0.25, 0, 0.5]]
    np.testing.assert_allclose(found["a.h0.probs"], probs, rtol=1e-12)
    np.testing.assert_allclose(found["a"], np.array(probs) * 8, rtol=1e-12)
    np.testing.assert_array_equal(found["a.h0.mixed"], found["a"])
    hidden = np.array(probs) == 0
    np.testing.assert_allclose(found["a.h0.scores"], np.where(hidden, 0, q), rtol=1e-12)


def test_softmax_of_large_numbers_is_finite() -> None:
    np.testing.assert_allclose(softmax_rows(np.array([[1e4, 1e4, -1e4]])), [[0.5, 0.5, 0.0]])


def test_relu(graph: Graph) -> None:
    graph.relu("n", "x")
    np.testing.assert_array_equal(evaluated(graph), [[1, 0, 3], [0.5, 4, 0]])


def test_add(graph: Graph) -> None:
    graph.relu("r", "x")
    graph.add("n", "x", "r")
    np.testing.assert_array_equal(evaluated(graph), [[2, -2, 6], [1, 8, -1]])


def test_concatenations(graph: Graph) -> None:
    graph.matmul("p", "x", "w")
    graph.concat_rows("rows", ["p", "w"])
    assert evaluated(graph).tolist() == [[0.75, 11], [4.75, -7], [2, 0], [1, -1], [0.25, 3]]
    graph.relu("r", "rows")
    graph.concat_cols("cols", ["r", "rows"])
    assert evaluated(graph)[1].tolist() == [4.75, 0, 4.75, -7]
    assert evaluated(graph).shape == (5, 4)


def test_slices(graph: Graph) -> None:
    graph.slice_rows("rows", "w", 1, 2)
    assert evaluated(graph).tolist() == [[1, -1], [0.25, 3]]
    graph.slice_cols("cols", "rows", 1, 1)
    assert evaluated(graph).tolist() == [[-1], [3]]
    graph.slice_cols("middle", "x", 1, 2)
    assert evaluated(graph).tolist() == [[-2, 3], [4, -1]]


def test_argmax_takes_the_first_of_equal_maxima() -> None:
    graph = Graph("g")
    graph.input("x", 3, 4)
    graph.argmax("n", "x")
    x = np.array([[0.0, 7, 7, 1], [-3, -3, -3, -3], [1, 2, 3, 4]])
    assert evaluate_float(graph, {"x": x})["n"].tolist() == [[1.0], [0.0], [3.0]]


def test_every_leaf_needs_a_value_of_its_shape(graph: Graph) -> None:
    with pytest.raises(GraphError, match=r"weight w has no value, expected one of \(3, 2\)"):
        evaluate_float(graph, {"x": X})
    with pytest.raises(GraphError, match=r"input x has shape \(3, 2\), expected \(2, 3\)"):
        evaluate_float(graph, {"x": X.T, "w": W})
