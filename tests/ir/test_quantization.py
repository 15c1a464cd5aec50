"""The error of int8 tensors: none where none can be, and by hand where there must be one."""

from collections.abc import Mapping

import numpy as np
import pytest

from capra.compiler.passes.scales import assign_scales
from capra.ir.graph import Graph
from capra.ir.quantization import TensorError, tensor_errors
from capra.ir.ranges import Ranges
from capra.numerics import FloatArray

STEP_OF_ONE = 127.0
"""A range whose scale is 1."""


def _errors(
    graph: Graph, ranges: Mapping[str, float], *samples: Mapping[str, FloatArray]
) -> dict[str, TensorError]:
    return tensor_errors(graph, assign_scales(graph, Ranges(ranges)), samples)


def _everything() -> Graph:
    graph = Graph()
    graph.input("x", 2, 3)
    graph.weight("w", 3, 3)
    graph.matmul("y", "x", "w")
    graph.add("sum", "x", "y")
    graph.matmul("product", "sum", "w")
    graph.relu("positive", "product")
    graph.concat_rows("both", ["y", "positive"])
    graph.slice_rows("part", "both", 1, 2)
    graph.output(graph.argmax("index", "part"))
    return graph


def test_numbers_that_int8_can_hold_have_no_error_and_views_are_not_counted() -> None:
    ranges = dict.fromkeys(("x", "w", "y", "sum", "positive"), STEP_OF_ONE)
    sample = {
        "x": np.array([[1.0, -2.0, 3.0], [40.0, 0.0, -6.0]]),
        "w": np.array([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]]),
    }
    assert _errors(_everything(), ranges, sample) == dict.fromkeys(ranges, TensorError(0.0, 0.0))


def test_a_range_that_is_too_small_shows() -> None:
    graph = Graph()
    graph.input("x", 1, 1)
    graph.weight("w", 1, 1)
    graph.output(graph.matmul("y", "x", "w"))
    sample = {"x": np.array([[100.0]]), "w": np.array([[1.0]])}
    errors = _errors(graph, {"x": STEP_OF_ONE, "w": STEP_OF_ONE, "y": 50.0}, sample)
    assert errors["x"] == errors["w"] == TensorError(0.0, 0.0)
    # 100 saturates at 50, which is 127 steps away.
    assert errors["y"].relative == pytest.approx(0.5)
    assert errors["y"].steps == pytest.approx(127)


def test_a_tag_is_measured_over_all_its_tensors_and_samples() -> None:
    graph = Graph()
    for name in ("a", "b"):
        graph.input(name, 1, 1, tag="x")
        graph.output(name)
    samples = [
        {"a": np.array([[10.25]]), "b": np.array([[-20.5]])},
        {"a": np.array([[3.0]]), "b": np.array([[0.0]])},
    ]
    (error,) = _errors(graph, {"x": STEP_OF_ONE}, *samples).values()
    norm = (10.25**2 + 20.5**2 + 3**2) ** 0.5
    assert error.relative == pytest.approx((0.25**2 + 0.5**2) ** 0.5 / norm)
    assert error.steps == 0.5


def test_a_tensor_of_zeros_has_no_relative_error() -> None:
    graph = Graph()
    graph.output(graph.input("x", 1, 2))
    zeros = {"x": np.zeros((1, 2))}
    assert _errors(graph, {"x": 0.0}, zeros) == {"x": TensorError(0.0, 0.0)}
