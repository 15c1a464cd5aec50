"""The integer interpreter, against integers worked out by hand."""

import numpy as np
import pytest

from capra.errors import GraphError, RangeError
from capra.ir.graph import Graph
from capra.ir.interpreter import evaluate_int
from capra.ir.scales import Scales
from capra.ir.visible import Visible
from capra.numerics import Int64Array, Rescale

ONE = Rescale(1 << 15, 15)
HALF = Rescale(1 << 15, 16)
QUARTER = Rescale(1 << 15, 17)


def ints(*rows: list[int]) -> Int64Array:
    return np.array(rows, dtype=np.int64)


def scales(
    product: dict[str, Rescale] | None = None,
    softmax_index: dict[str, Rescale] | None = None,
    addends: dict[str, tuple[Rescale, Rescale]] | None = None,
) -> Scales:
    return Scales({}, product or {}, softmax_index or {}, addends or {})


def two_inputs() -> Graph:
    graph = Graph("g")
    graph.input("x", 2, 2)
    graph.weight("w", 2, 2)
    return graph


X, W = ints([3, -4], [100, 127]), ints([1, 2], [5, -127])


def test_product_is_rescaled_rounded_half_up_and_saturated() -> None:
    graph = two_inputs()
    graph.matmul("p", "x", "w")
    # sums: 3 - 20 = -17, 6 + 508 = 514; 100 + 635 = 735, 200 - 16129 = -15929
    values = evaluate_int(graph, scales({"p": HALF}), {"x": X, "w": W})
    assert values["p"].tolist() == [[-8, 127], [127, -127]]
    values = evaluate_int(graph, scales({"p": Rescale(1 << 15, 18)}), {"x": X, "w": W})
    assert values["p"].tolist() == [[-2, 64], [92, -127]]


def test_transposed_products_take_rows_of_both() -> None:
    graph = two_inputs()
    graph.matmul("p", "x", "w", transpose_b=True)
    graph.scores("q", "x", "w")
    # sums: 3 - 8 = -5, 15 + 508 = 523; 100 + 254 = 354, 500 - 16129 = -15629
    values = evaluate_int(graph, scales({"p": QUARTER, "q": QUARTER}), {"x": X, "w": W})
    assert values["p"].tolist() == values["q"].tolist() == [[-1, 127], [89, -127]]


def test_factor_of_a_product_counts_only_through_its_rescale() -> None:
    graph = two_inputs()
    graph.matmul("p", "x", "w", scale=100.0)
    values = evaluate_int(graph, scales({"p": HALF}), {"x": X, "w": W})
    assert values["p"][0, 0] == -8


def test_relu_and_the_product_that_is_fused_into_it() -> None:
    graph = two_inputs()
    graph.matmul("p", "x", "w")
    graph.relu("r", "p")
    values = evaluate_int(graph, scales({"p": HALF}), {"x": X, "w": W})
    assert values["p"].tolist() == [[-8, 127], [127, -127]]
    assert values["r"].tolist() == [[0, 127], [127, 0]]


def test_softmax_of_equal_scores_is_one_half_each() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.softmax("s", "x")
    to_int8 = Rescale(127 << 9, 24)  # 16384 = one half in Q0.15; 16384 * 127 / 32768 = 63.5
    values = evaluate_int(graph, scales({"s": to_int8}, {"s": ONE}), {"x": ints([9, 9])})
    assert values["s"].tolist() == [[64, 64]]


def test_softmax_takes_each_row_alone_and_scales_differences_into_the_table() -> None:
    graph = Graph("g")
    graph.input("x", 2, 2)
    graph.softmax("s", "x")
    # Index 32 is exp(-1) = 0.368: 0.731 and 0.269 of 128. Index 127 is 0.0189: 0.9815 and 0.0185.
    to_128ths = Rescale(1 << 15, 23)
    values = evaluate_int(
        graph, scales({"s": to_128ths}, {"s": HALF}), {"x": ints([64, 0], [-127, 127])}
    )
    assert values["s"].tolist() == [[94, 34], [2, 126]]


def test_attention_is_blind_to_what_it_hides_and_zero_there() -> None:
    """Scores are the rows of q: 1 x q; a value is its key's number, of 64 or 43 in 128."""
    graph = Graph("g")
    graph.input("q", 3, 4)
    graph.input("k", 4, 4)
    graph.input("v", 4, 4)
    graph.attention("a", "q", "k", "v", visible=Visible(2, 2, (0, 1, 2)))
    one = Rescale(1 << 15, 15)
    rescales = scales(
        {"a.h0.scores": one, "a.h0.probs": Rescale(1 << 15, 23), "a.h0.mixed": HALF},
        {"a.h0.probs": one},
    )
    values = evaluate_int(
        graph, rescales,
        {
            "q": ints([5, 5, 127, 9], [5, 5, 5, -127], [5, 5, 100, 5]),
            "k": np.eye(4, dtype=np.int64), "v": np.diag([1, 1, 2, 1]),
        },
    )  # fmt: skip
    assert values["a.h0.scores"].tolist() == [[5, 5, 0, 0], [5, 5, 5, 0], [5, 5, 0, 5]]
    assert values["a.h0.probs"].tolist() == [[64, 64, 0, 0], [43, 43, 43, 0], [43, 43, 0, 43]]
    assert values["a"].tolist() == [[32, 32, 0, 0], [22, 22, 43, 0], [22, 22, 0, 22]]


def test_distant_scores_add_nothing_to_a_softmax() -> None:
    graph = Graph("g")
    graph.input("x", 1, 3)
    graph.softmax("s", "x")
    twice = Rescale(1 << 15, 14)
    values = evaluate_int(
        graph, scales({"s": Rescale(1 << 15, 23)}, {"s": twice}), {"x": ints([0, 127, -127])}
    )
    assert values["s"].tolist() == [[0, 127, 0]]


def test_addends_are_rescaled_apart_then_added_with_saturation() -> None:
    graph = two_inputs()
    graph.add("a", "x", "w")
    values = evaluate_int(graph, scales(addends={"a": (HALF, ONE)}), {"x": X, "w": W})
    # x / 2 half up: 2 -2 / 50 64
    assert values["a"].tolist() == [[3, 0], [55, -63]]
    values = evaluate_int(graph, scales(addends={"a": (ONE, ONE)}), {"x": X, "w": -W})
    assert values["a"].tolist() == [[2, -6], [95, 127]]


def test_views_move_integers_without_changing_them() -> None:
    graph = two_inputs()
    graph.concat_rows("below", ["x", "w"])
    graph.slice_rows("rows", "below", 1, 2)
    graph.slice_cols("cell", "rows", 1, 1)
    graph.relu("r", "below")
    graph.concat_cols("beside", ["below", "r"])
    values = evaluate_int(graph, scales(), {"x": X, "w": W})
    assert values["below"].tolist() == [[3, -4], [100, 127], [1, 2], [5, -127]]
    assert values["rows"].tolist() == [[100, 127], [1, 2]]
    assert values["cell"].tolist() == [[127], [2]]
    assert values["beside"].tolist()[3] == [5, -127, 5, 0]


def test_argmax_takes_the_first_of_equal_maxima() -> None:
    graph = Graph("g")
    graph.input("x", 2, 3)
    graph.argmax("t", "x")
    values = evaluate_int(graph, scales(), {"x": ints([-1, 4, 4], [-9, -9, -9])})
    assert values["t"].tolist() == [[1], [0]]


def test_every_leaf_needs_a_value_of_its_shape() -> None:
    graph = two_inputs()
    with pytest.raises(GraphError, match="weight w has no value"):
        evaluate_int(graph, scales(), {"x": X})
    with pytest.raises(GraphError, match=r"input x has shape \(1, 2\), expected \(2, 2\)"):
        evaluate_int(graph, scales(), {"x": X[:1], "w": W})


@pytest.mark.parametrize("leaf", ["x", "w"])
@pytest.mark.parametrize("value", [128, -128, 1 << 40])
def test_a_leaf_that_is_not_int8_is_refused(leaf: str, value: int) -> None:
    graph = two_inputs()
    graph.matmul("p", "x", "w")
    leaves = {"x": X, "w": W, leaf: ints([0, value], [1, 2])}
    with pytest.raises(RangeError, match=rf" {leaf} holds .*, expected -127 .. 127"):
        evaluate_int(graph, scales({"p": HALF}), leaves)
