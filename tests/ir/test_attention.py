"""Attention as one operation: what it computes, what is inside it, and who takes part."""

import random
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ir.visible_sets import mask_of, random_visible

from capra.compiler.passes.scales import assign_scales
from capra.errors import GraphError
from capra.ir.graph import Graph, Kind
from capra.ir.interpreter import evaluate_int
from capra.ir.ranges import record_ranges
from capra.ir.reference import evaluate_float
from capra.ir.text import parse_graph, print_graph
from capra.ir.visible import Visible
from capra.numerics import FloatArray, Int64Array, quantize, requantize, softmax_row

SEEDS = range(30)


def graph_of(visible: Visible, heads: int = 1, width: int = 4, scale: float = 0.5) -> Graph:
    graph = Graph("g")
    graph.input("q", visible.rows, heads * width)
    for name in "kv":
        graph.input(name, visible.keys, heads * width)
    graph.output(graph.attention("a", "q", "k", "v", visible=visible, heads=heads, scale=scale))
    return graph


@cache
def random_case(seed: int) -> tuple[Graph, dict[str, FloatArray]]:
    """Up to 8 rows, 12 keys, 3 heads of 1 to 5 columns, and values."""
    draw, noise = random.Random(seed), np.random.default_rng(seed)
    visible = random_visible(draw, draw.randint(1, 8), draw.randint(1, 12))
    graph = graph_of(visible, draw.randint(1, 3), draw.randint(1, 5), draw.uniform(0.2, 1.0))
    return graph, {name: noise.normal(size=graph[name].shape) for name in "qkv"}


def visible_of(graph: Graph) -> Visible:
    visible = graph["a"].visible
    assert visible is not None
    return visible


@pytest.mark.parametrize("seed", SEEDS)
def test_the_reference_is_a_plain_attention_with_an_explicit_mask(seed: int) -> None:
    graph, leaves = random_case(seed)
    node, mask = graph["a"], mask_of(visible_of(graph))
    found, parts = evaluate_float(graph, leaves), []
    width = node.cols // node.heads
    for head, tensors in enumerate(node.inner):
        q, k, v = (leaves[name][:, head * width : (head + 1) * width] for name in "qkv")
        scores = np.einsum("rc,kc->rk", q, k) * node.scale
        weights = np.exp(scores) * mask
        probs = weights / weights.sum(axis=1)[:, None]
        parts.append(np.einsum("rk,kc->rc", probs, v))
        np.testing.assert_allclose(found[tensors.scores.name], scores * mask, atol=1e-12)
        np.testing.assert_allclose(found[tensors.probs.name], probs, atol=1e-12)
        np.testing.assert_allclose(found[tensors.mixed.name], parts[-1], atol=1e-12)
    np.testing.assert_allclose(found["a"], np.hstack(parts), atol=1e-12)


def integers_of(seed: int) -> tuple[Graph, dict[str, Int64Array], dict[str, Int64Array]]:
    """The graph, its leaves and all of its tensors as integers."""
    graph, leaves = random_case(seed)
    scales = assign_scales(graph, record_ranges(graph, [leaves]))
    ints = {name: quantize(value, scales.scale[name]) for name, value in leaves.items()}
    return graph, ints, evaluate_int(graph, scales, ints)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_integers_are_those_of_each_row_alone_over_the_keys_that_it_sees(seed: int) -> None:
    """As graphs of plain operations: one row, and a leaf of the keys and values it sees."""
    graph, leaves, found = integers_of(seed)
    ranges = record_ranges(graph, [random_case(seed)[1]])
    scales, node = assign_scales(graph, ranges), graph["a"]
    width = node.cols // node.heads
    for head, (scores, probs, mixed) in enumerate(node.inner):
        cut = slice(head * width, (head + 1) * width)
        for row, sees in enumerate(mask_of(visible_of(graph))):
            alone = Graph("alone")
            alone.input("q", 1, width)
            for name in "kv":
                alone.input(name, int(sees.sum()), width)
            alone.scores("s", "q", "k", scale=node.scale, tag=scores.tag)
            alone.softmax("p", "s", tag=probs.tag)
            alone.matmul("m", "p", "v", tag=mixed.tag)
            own = assign_scales(alone, ranges)
            values = evaluate_int(
                alone, own,
                {"q": leaves["q"][[row], cut], "k": leaves["k"][sees, cut],
                 "v": leaves["v"][sees, cut]},
            )  # fmt: skip
            assert own.scale["m"] == scales.scale["a"]
            for name, tensor in (("s", scores), ("p", probs)):
                assert found[tensor.name][row, sees].tolist() == values[name][0].tolist()
                assert not found[tensor.name][row, ~sees].any()
            assert found[mixed.name][row].tolist() == values["m"][0].tolist()
            assert found["a"][row, cut].tolist() == values["m"][0].tolist()


@pytest.mark.parametrize("seed", SEEDS)
def test_an_invisible_key_takes_no_part(seed: int) -> None:
    """Whatever it and its value are, no integer of the row is another one."""
    graph, leaves, found = integers_of(seed)
    scales = assign_scales(graph, record_ranges(graph, [random_case(seed)[1]]))
    mask = mask_of(visible_of(graph))
    for key in range(mask.shape[1]):
        changed = {name: value.copy() for name, value in leaves.items()}
        for name in "kv":
            changed[name][key] = np.where(changed[name][key] > 0, -127, 127)
        values = evaluate_int(graph, scales, changed)
        blind = ~mask[:, key]
        for name in found.keys() - leaves.keys():
            np.testing.assert_array_equal(values[name][blind], found[name][blind])


def test_a_visible_key_and_its_value_take_part() -> None:
    """Each of them changes every row that sees it, and no other."""
    visible = Visible.tree((-1, 0, 0, 1), 2)
    graph = graph_of(visible)
    leaves = {
        "q": np.full((4, 4), 60), "k": np.arange(24).reshape(6, 4) % 5 * 10, "v": np.eye(6, 4) * 90
    }  # fmt: skip
    leaves = {name: value.astype(np.int64) for name, value in leaves.items()}
    ranges = record_ranges(graph, [{name: value / 127 for name, value in leaves.items()}])
    scales = assign_scales(graph, ranges)
    right = evaluate_int(graph, scales, leaves)
    for key, name in ((key, name) for key in range(6) for name in "kv"):
        changed = {**leaves, name: leaves[name].copy()}
        changed[name][key] += 37
        values = evaluate_int(graph, scales, changed)
        differs = (values["a"] != right["a"]).any(axis=1)
        assert differs.tolist() == mask_of(visible)[:, key].tolist()


def test_ranges_of_scores_and_probabilities_are_of_visible_keys_only() -> None:
    graph = graph_of(Visible(1, 2, (1, 2)), scale=1.0)
    leaves = {"q": np.ones((2, 4)), "k": np.ones((3, 4)), "v": np.ones((3, 4))}
    leaves["k"][1] *= 100  # row 0 sees it
    leaves["k"][2] *= -300  # row 1 sees it, row 0 does not
    assert record_ranges(graph, [leaves]).values["a.h0.scores"] == 1200
    blind = graph_of(Visible(1, 2, (0, 1)), scale=1.0)
    ranges = record_ranges(blind, [leaves]).values
    assert (ranges["a.h0.scores"], ranges["a.h0.probs"]) == (400, 1)
    assert set(ranges) == {"q", "k", "v", "a", "a.h0.scores", "a.h0.probs"}


def test_names_and_tags_of_what_is_inside() -> None:
    graph = Graph("g")
    graph.input("x", 2, 6)
    graph.attention(
        "a", "x", "x", "x", visible=Visible.causal(2, 0), heads=3, inner_tag="in", tag="out"
    )
    inner = [(n.name, n.tag, n.kind, n.shape) for head in graph["a"].inner for n in head]
    assert inner[3:6] == [
        ("a.h1.scores", "in.h1.scores", Kind.SCORES, (2, 2)),
        ("a.h1.probs", "in.h1.probs", Kind.SOFTMAX, (2, 2)),
        ("a.h1.mixed", "out", Kind.MATMUL, (2, 2)),
    ]
    assert [t.name for t in graph.tensors()] == ["x", *(name for name, *_ in inner), "a"]
    assert [graph["a"].columns(head) for head in range(3)] == [
        slice(0, 2), slice(2, 4), slice(4, 6)
    ]  # fmt: skip
    assert graph.users("x") == ("a", "a", "a")
    assert graph["x"].inner == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"q": "k"}, "a: q is k (5x4), expected 3x4: 3 rows that see 5 keys"),
        ({"k": "q"}, "a: k is q (3x4), expected 5x4: 3 rows that see 5 keys"),
        ({"v": "q"}, "a: v is q (3x4), expected 5x4"),
        ({"k": "wide"}, "a: k is wide (5x6), expected 5x4"),
        ({"v": "wide"}, "a: v is wide (5x6), expected 5x4"),
        ({"visible": Visible.causal(2, 3)}, "a: q is q (3x4), expected 2x4: 2 rows that see 5"),
        ({"visible": Visible.causal(3, 3)}, "a: k is k (5x4), expected 6x4: 3 rows that see 6"),
        ({"q": "nothing"}, "a: no node named 'nothing'"),
        ({"v": "t"}, "a: operand t holds indices"),
        ({"heads": 3}, "a: heads is 3, expected a number that divides the 4 columns of q (3x4)"),
        ({"heads": 0}, "a: heads is 0"),
        ({"heads": -2}, "a: heads is -2"),
        ({"heads": 2.0}, "a: heads is 2.0"),
        ({"heads": True}, "a: heads is True"),
        ({"scale": 0.0}, "a: scale is 0.0, expected a finite number above 0"),
        ({"scale": float("nan")}, "a: scale is nan"),
        ({"name": "q"}, "a node named 'q' exists"),
        ({"name": "1"}, "node name is '1'"),
        ({"tag": "1"}, "tag name is '1'"),
        ({"inner_tag": "1"}, "tag name is '1'"),
        ({"inner_tag": ""}, "tag name is ''"),
        ({"name": "taken"}, "a node named 'taken.h1.probs' exists"),
    ],
)
def test_what_is_no_attention_is_refused(changes: dict[str, object], said: str) -> None:
    graph = Graph("g")
    graph.input("q", 3, 4)
    for name, cols in (("k", 4), ("v", 4), ("wide", 6)):
        graph.input(name, 5, cols)
    graph.argmax("t", "q")
    graph.relu("taken.h1.probs", "q")
    before = print_graph(graph)
    options: dict[str, object] = {
        "name": "a", "q": "q", "k": "k", "v": "v", "visible": Visible.causal(3, 2), "heads": 2
    }  # fmt: skip
    with pytest.raises(GraphError) as caught:
        graph.attention(**(options | changes))  # type: ignore[arg-type]
    assert said in str(caught.value) and "expected" in str(caught.value)
    assert print_graph(graph) == before
    graph.relu("taken.h0.scores", "q")  # what was refused has taken no name
    graph.attention(**options)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"a node named 'a\.h0\.mixed' exists"):
        graph.relu("a.h0.mixed", "q")


@given(seed=st.integers(0, 2**32), scale=st.floats(1e-300, 1e300), tags=st.booleans())
def test_any_attention_survives_the_text_form(seed: int, scale: float, tags: bool) -> None:
    draw = random.Random(seed)
    visible = random_visible(draw, draw.randint(1, 20), draw.randint(1, 70))
    heads = draw.randint(1, 4)
    graph = Graph("g")
    graph.input("q", visible.rows, heads * 2)
    graph.input("k", visible.keys, heads * 2)
    names = {"inner_tag": "in", "tag": "out"} if tags else {}
    graph.attention("a", "q", "k", "k", visible=visible, heads=heads, scale=scale, **names)
    parsed = parse_graph(print_graph(graph))
    assert list(parsed) == list(graph)
    assert list(parsed.tensors()) == list(graph.tensors())


def test_requantization_of_what_is_inside_is_by_its_own_scales() -> None:
    """One row worked out: 3 keys, the middle one hidden."""
    graph, leaves = graph_of(Visible(0, 3, (5,))), {
        "q": np.array([[40, -20, 10, 5]]), "k": np.array([[50, 0, 9, 1], [127] * 4, [0, 90, 3, 7]]),
        "v": np.array([[100, 1, -9, 0], [-127] * 4, [-50, 33, 2, 127]]),
    }  # fmt: skip
    scales = assign_scales(graph, record_ranges(graph, [{n: v / 127 for n, v in leaves.items()}]))
    found = evaluate_int(graph, scales, leaves)
    (head,) = graph["a"].inner
    to = {tensor.name: scales.product[tensor.name] for tensor in head}
    seen = [0, 2]
    sums = leaves["k"][seen] @ leaves["q"][0]
    scores = requantize(sums, to["a.h0.scores"].multiplier, to["a.h0.scores"].shift)
    index = scales.softmax_index["a.h0.probs"]
    fixed = softmax_row(scores, index.multiplier, index.shift)
    probs = requantize(fixed, to["a.h0.probs"].multiplier, to["a.h0.probs"].shift)
    sums = probs @ leaves["v"][seen]
    out = requantize(sums, to["a.h0.mixed"].multiplier, to["a.h0.mixed"].shift)
    assert found["a.h0.scores"].tolist() == [[scores[0], 0, scores[1]]]
    assert found["a.h0.probs"].tolist() == [[probs[0], 0, probs[1]]]
    assert found["a"][0].tolist() == out.tolist()
