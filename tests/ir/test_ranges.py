"""Ranges: recorded from the float reference, rounded up, widened, refused where they are bad."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capra.errors import RangeError
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges, record_ranges, round_range


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (0.0, 0.0),
        (1.0, 1.0),
        (3.0, 3.0),
        (65535.0, 65535.0),
        (65537.0, 65538.0),
        (131073.0, 131076.0),
        (1.0 + 2.0**-15, 1.0 + 2.0**-15),
        (1.0 + 2.0**-16, 1.0 + 2.0**-15),
        (1.0 + 2.0**-40, 1.0 + 2.0**-15),
        (2.0 - 2.0**-40, 2.0),
    ],
)
def test_range_is_rounded_up_to_16_bits(value: float, rounded: float) -> None:
    assert round_range(value) == rounded


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_rounded_range_is_the_next_number_of_16_bits(value: float) -> None:
    rounded = Fraction(round_range(value))
    step = Fraction(2) ** (math.frexp(value)[1] - 16)
    assert rounded >= value
    assert rounded - step < value
    assert rounded % step == 0
    assert round_range(float(rounded)) == rounded


def test_noise_in_the_last_bits_leaves_the_range_alone() -> None:
    noisy = {round_range(1.2345 * (1 + k * 2.0**-50)) for k in range(-20, 20)}
    assert len(noisy) == 1


@pytest.mark.parametrize("value", [-1.0, math.nan, math.inf])
def test_bad_range_is_refused(value: float) -> None:
    with pytest.raises(RangeError, match=rf"range of t is {value}, expected 0 \.\. 1e\+30"):
        Ranges({"good": 1.0, "t": value})


def test_ranges_are_read_only_and_keep_their_own_copy() -> None:
    given_values = {"t": 1.0}
    ranges = Ranges(given_values)
    given_values["t"] = 2.0
    assert ranges.values == {"t": 1.0}
    with pytest.raises(TypeError):
        ranges.values["t"] = 3.0  # type: ignore[index]


def test_widened_takes_the_larger_range_of_every_tag() -> None:
    left, right = Ranges({"a": 1.0, "b": 5.0}), Ranges({"b": 2.0, "c": 0.0, "a": 1.5})
    assert left.widened(right).values == {"a": 1.5, "b": 5.0, "c": 0.0}
    assert right.widened(left) == left.widened(right)
    assert left.values == {"a": 1.0, "b": 5.0}


def test_largest_magnitude_over_all_samples_is_recorded() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.weight("w", 2, 1)
    graph.matmul("p", "x", "w")
    samples = [
        {"x": np.array([[1.0, -2.0]]), "w": np.array([[0.5], [0.0]])},
        {"x": np.array([[-8.0, 0.0]]), "w": np.array([[-0.25], [0.0]])},
    ]
    assert record_ranges(graph, samples).values == {"x": 8.0, "w": 0.5, "p": 2.0}


def test_recorded_ranges_are_rounded_up() -> None:
    graph = Graph("g")
    graph.input("x", 1, 1)
    recorded = record_ranges(graph, [{"x": np.array([[-1.0 - 2.0**-30]])}])
    assert recorded.values == {"x": 1.0 + 2.0**-15}


def test_tensors_with_one_tag_share_a_range() -> None:
    graph = Graph("g")
    graph.input("x", 1, 1, tag="t")
    graph.input("y", 1, 1, tag="t")
    sample = {"x": np.array([[-3.0]]), "y": np.array([[2.0]])}
    assert record_ranges(graph, [sample]).values == {"t": 3.0}


def test_fused_product_and_indices_record_nothing() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.scores("p", "x", "x", scale=2.0)
    graph.relu("r", "p")
    graph.argmax("t", "x")
    sample = {"x": np.array([[1.0, 2.0]])}
    assert record_ranges(graph, [sample]).values == {"x": 2.0, "r": 10.0}
    graph.output("p")
    assert record_ranges(graph, [sample]).values == {"x": 2.0, "p": 10.0, "r": 10.0}


def test_softmax_range_is_its_own_and_never_above_one() -> None:
    graph = Graph("g")
    graph.input("x", 1, 3)
    graph.softmax("s", "x")
    spread = record_ranges(graph, [{"x": np.zeros((1, 3))}]).values["s"]
    assert 1 / 3 <= spread < 1 / 3 + 2.0**-16
    one_hot = record_ranges(graph, [{"x": np.array([[0.0, 1000.0, 0.0]])}])
    assert one_hot.values["s"] == 1.0


@pytest.mark.parametrize("value", [math.inf, math.nan, 1.01e30])
def test_values_out_of_reach_are_refused(value: float) -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    with pytest.raises(RangeError, match=r"x reaches .* in float, expected at most 1e\+30"):
        record_ranges(graph, [{"x": np.array([[0.0, value]])}])


def test_the_largest_magnitude_is_in_reach() -> None:
    graph = Graph("g")
    graph.input("x", 1, 1)
    recorded = record_ranges(graph, [{"x": np.array([[-1e30]])}])
    assert recorded.values == {"x": round_range(1e30)}
    with pytest.raises(RangeError, match=r"range of x is .*, expected 0 \.\. 1e\+30"):
        Ranges({"x": math.nextafter(round_range(1e30), math.inf)})


def test_no_samples_record_no_ranges() -> None:
    graph = Graph("g")
    graph.input("x", 1, 1)
    assert record_ranges(graph, []) == Ranges()
