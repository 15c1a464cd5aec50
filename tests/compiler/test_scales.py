"""Scales: which tensors share one, where it comes from, and the rescales between them."""

import pytest

from capra.compiler.passes.scales import assign_scales, missing_ranges
from capra.errors import RangeError
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.ir.scales import Scales
from capra.numerics import LARGEST_RESCALE, UNITY, Rescale


def scale_of(graph: Graph, ranges: dict[str, float]) -> dict[str, float]:
    """127 times every scale: the range that it stands for."""
    scales = assign_scales(graph, Ranges(ranges))
    return {name: round(scale * 127, 9) for name, scale in scales.scale.items()}


def test_scale_is_range_over_127() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.weight("w", 2, 2)
    graph.matmul("p", "x", "w")
    scales = assign_scales(graph, Ranges({"x": 2.0, "w": 0.5, "p": 8.0}))
    assert dict(scales.scale) == {"x": 2 / 127, "w": 0.5 / 127, "p": 8 / 127}


def test_group_takes_the_largest_range_of_its_members() -> None:
    graph = Graph("g")
    graph.input("x", 2, 4)
    graph.input("y", 3, 4)
    graph.concat_rows("both", ["x", "y"])
    graph.slice_rows("cut", "both", 1, 2)
    graph.slice_cols("column", "cut", 1, 1)
    graph.relu("r", "both")
    graph.add("apart", "x", "x")
    ranges = {"x": 1.0, "y": 2.0, "both": 2.0, "cut": 0.5, "r": 6.0, "apart": 9.0}
    together = dict.fromkeys(("x", "y", "both", "cut", "column", "r"), 6.0)
    assert scale_of(graph, ranges) == {**together, "apart": 9.0}


@pytest.mark.parametrize("view", ["slice_rows", "slice_cols", "concat_rows", "concat_cols", "relu"])
def test_each_view_and_relu_shares_its_sources_scale(view: str) -> None:
    graph = Graph("g")
    graph.input("x", 2, 2)
    if view.startswith("slice"):
        getattr(graph, view)("v", "x", 0, 1)
    else:
        getattr(graph, view)("v", ["x"] if view.startswith("concat") else "x")
    assert scale_of(graph, {"x": 1.0, "v": 3.0}) == {"x": 3.0, "v": 3.0}
    assert scale_of(graph, {"x": 3.0, "v": 1.0}) == {"x": 3.0, "v": 3.0}
    assert scale_of(graph, {"x": 3.0}) == {"x": 3.0, "v": 3.0}
    assert scale_of(graph, {"v": 3.0}) == {"x": 3.0, "v": 3.0}


def test_fused_product_adds_nothing_to_its_relus_group() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.scores("p", "x", "x")
    graph.relu("r", "p")
    ranges = {"x": 1.0, "p": 50.0, "r": 4.0}
    assert scale_of(graph, ranges) == {"x": 1.0, "p": 4.0, "r": 4.0}
    graph.output("p")
    assert scale_of(graph, ranges) == {"x": 1.0, "p": 50.0, "r": 50.0}


def test_softmax_range_is_cut_at_one() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.softmax("s", "x")
    assert scale_of(graph, {"x": 1.0, "s": 1.5})["s"] == 1.0
    assert scale_of(graph, {"x": 1.0, "s": 0.25})["s"] == 0.25


def test_range_is_looked_up_by_tag() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2, tag="t")
    graph.input("y", 1, 2, tag="t")
    assert scale_of(graph, {"t": 2.0, "x": 9.0}) == {"x": 2.0, "y": 2.0}


def test_indices_have_no_scale() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.argmax("t", "x")
    assert scale_of(graph, {"x": 1.0}) == {"x": 1.0}


def test_product_rescale_is_the_ratio_of_scales_times_the_factor() -> None:
    graph = Graph("g")
    graph.input("x", 2, 2)
    graph.weight("w", 2, 2)
    graph.matmul("p", "x", "w", scale=0.5)
    scales = assign_scales(graph, Ranges({"x": 2.0, "w": 3.0, "p": 7.0}))
    expected = (2 / 127) * (3 / 127) * 0.5 / (7 / 127)
    assert scales.product["p"].factor == pytest.approx(expected, rel=2**-16)


def test_softmax_rescales_lead_into_the_table_and_out_of_q15() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.softmax("s", "x")
    scales = assign_scales(graph, Ranges({"x": 4.0, "s": 0.75}))
    assert scales.softmax_index["s"].factor == pytest.approx(4 / 127 * 32, rel=2**-16)
    assert scales.product["s"].factor == pytest.approx(127 / 0.75 / 32768, rel=2**-16)


def test_addend_of_the_sums_own_scale_needs_no_rescale() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.input("y", 1, 2)
    graph.add("a", "x", "y")
    to_out = assign_scales(graph, Ranges({"x": 3.0, "y": 1.0, "a": 3.0})).addends["a"]
    assert [rescale.is_identity for rescale in to_out] == [True, False]
    assert to_out[1].factor == pytest.approx(1 / 3, rel=2**-16)


def test_all_zero_group_gets_the_scale_of_range_one() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.weight("w", 2, 1)
    graph.matmul("p", "x", "w")
    assert scale_of(graph, {"x": 2.0, "w": 0.0, "p": 0.0}) == {"x": 2.0, "w": 1.0, "p": 1.0}


def test_missing_range_is_refused_by_name_and_tag() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2, tag="t")
    with pytest.raises(RangeError, match=r"g: no range for x \(tag t\), expected one"):
        assign_scales(graph, Ranges({"x": 1.0}))


@pytest.mark.parametrize(("x", "y"), [(1e10, 1.0), (32768.0, 1.0)])
def test_ratio_out_of_reach_is_refused_at_the_node(x: float, y: float) -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.input("y", 1, 2)
    graph.add("a", "x", "y")
    with pytest.raises(RangeError, match=r"g, a: rescale factor is .*, expected below"):
        assign_scales(graph, Ranges({"x": x, "y": y, "a": y}))


def zero_sum(x: float, y: float, total: float) -> Scales:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.input("y", 1, 2)
    graph.add("a", "x", "y")
    return assign_scales(graph, Ranges({"x": x, "y": y, "a": total}))


@pytest.mark.parametrize("zero", [0.0, 1e-31])
def test_an_addend_that_is_zero_may_be_added_to_anything(zero: float) -> None:
    """Its scale is that of range 1 in every graph, hence the factor saturates."""
    scales = zero_sum(1e-5, zero, 1e-5)
    assert scales.scale["y"] == 1 / 127
    assert scales.addends["a"] == (UNITY, LARGEST_RESCALE)
    with pytest.raises(RangeError, match=r"g, a: rescale factor is 1e\+05, expected below"):
        zero_sum(1e-5, 1.0, 1e-5)


def test_a_sum_that_is_zero_may_be_of_anything() -> None:
    assert zero_sum(1e7, 1e7, 0.0).addends["a"] == (LARGEST_RESCALE, LARGEST_RESCALE)


@pytest.mark.parametrize(
    ("x", "w", "p"),
    [(1e7, 0.0, 0.0), (0.0, 1e7, 0.0), (1e7, 1.0, 0.0), (0.0, 1e7, 1e-5), (1e30, 1e30, 0.0)],
)
def test_a_product_with_zeros_may_be_of_anything(x: float, w: float, p: float) -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.weight("w", 2, 1)
    graph.matmul("p", "x", "w", scale=100.0)
    ranges = {"x": x, "w": w, "p": p}
    assert assign_scales(graph, Ranges(ranges)).product["p"] == LARGEST_RESCALE
    with pytest.raises(RangeError, match=r"g, p: rescale factor is .*, expected below"):
        assign_scales(graph, Ranges({**ranges, "x": x or 1e3, "w": w or 1e3, "p": p or 1e-5}))


def test_a_relu_that_lets_nothing_through_may_be_of_anything() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.weight("w", 2, 1)
    graph.relu("r", graph.matmul("p", "x", "w", scale=100.0))
    scales = assign_scales(graph, Ranges({"x": 1e7, "w": 1.0, "r": 0.0}))
    assert scales.product["p"] == LARGEST_RESCALE


def test_a_factor_that_float_rounds_to_zero_multiplies_by_zero() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.scores("p", "x", "x", scale=1e-300)
    scales = assign_scales(graph, Ranges({"x": 2e-30, "p": 1.0}))
    assert scales.product["p"] == Rescale(0, 47)


@pytest.mark.parametrize("largest", [1.4e5, 1e6, 1e30])
def test_scores_may_be_as_large_as_they_like(largest: float) -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.softmax("s", "x")
    scales = assign_scales(graph, Ranges({"x": largest, "s": 1.0}))
    assert scales.softmax_index["s"] == LARGEST_RESCALE


@pytest.mark.parametrize(("small", "taken"), [(5e-324, 1.0), (1e-30, 1.0), (2e-30, 2e-30)])
def test_a_range_next_to_zero_counts_as_zero(small: float, taken: float) -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    assert assign_scales(graph, Ranges({"x": small})).scale["x"] == taken / 127


def test_missing_ranges_are_one_tag_of_every_group_without_one() -> None:
    graph = Graph("g")
    graph.input("x", 2, 4, tag="t")
    graph.input("y", 3, 4)
    graph.concat_rows("both", ["x", "y"])
    graph.weight("w", 4, 4)
    graph.relu("r", graph.matmul("p", "both", "w"))
    graph.softmax("s", "r")
    graph.argmax("top", "s")
    assert missing_ranges(graph, Ranges()) == ("t", "w", "r", "s")
    assert missing_ranges(graph, Ranges({"y": 1.0, "p": 1.0})) == ("w", "r", "s")
    found = dict.fromkeys(missing_ranges(graph, Ranges()), 1.0)
    assert missing_ranges(graph, Ranges(found)) == ()
    assign_scales(graph, Ranges(found))
