"""The graphs: what goes in and out of them, and that each computes the model."""

import numpy as np
import pytest
from tests.lm.samples import MODELS, random_tokens, text_model, tiny

from capra.compiler.pipeline import compile_graph
from capra.ir.graph import Graph, Kind
from capra.ir.reference import evaluate_float
from capra.lm.graphs import (
    cache_names,
    draft_graph,
    prefill_graph,
    step_graph,
    verifier_graph,
)
from capra.lm.model import LanguageModel
from capra.lm.reference import block_logits
from capra.numerics import FloatArray

TOKENS = random_tokens(5, 12, 9)


def _run(
    model: LanguageModel, graph: Graph, tokens: list[int], cache: int
) -> dict[str, FloatArray]:
    """A graph in float on the tokens after `cache` others, with the cache that these leave."""
    leaves = {"x": model.embed(tokens[cache:], cache), **model.weights}
    if cache:
        before = evaluate_float(
            prefill_graph(model.config, cache, 0),
            {"x": model.embed(tokens[:cache], 0), **model.weights},
        )
        leaves |= {f"{name}.cache": before[name] for name in cache_names(model.config)}
    return evaluate_float(graph, leaves)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("rows", "cache"), [(1, 0), (1, 4), (4, 0), (5, 4), (9, 0)])
def test_a_verifier_computes_the_models_logits(name: str, rows: int, cache: int) -> None:
    model, tokens = MODELS[name](), TOKENS[: rows + cache]
    values = _run(model, verifier_graph(model.config, rows, cache), tokens, cache)
    expected = block_logits(model, tokens)[cache:]
    np.testing.assert_allclose(values["logits"], expected, rtol=0, atol=1e-9)
    assert np.array_equal(values["token"][:, 0], expected.argmax(axis=1))


@pytest.mark.parametrize("cache", [0, 1, 8])
def test_a_step_is_a_verifier_of_one_row(cache: int) -> None:
    model, tokens = text_model(), TOKENS[: cache + 1]
    step = _run(model, step_graph(model.config, cache), tokens, cache)
    verifier = _run(model, verifier_graph(model.config, 1, cache), tokens, cache)
    for name in step_graph(model.config, cache).outputs:
        assert np.array_equal(step[name], verifier[name])


@pytest.mark.parametrize("cache", [0, 3])
def test_prefill_leaves_the_same_keys_and_values(cache: int) -> None:
    model, rows = text_model(), len(TOKENS) - cache
    prefill = _run(model, prefill_graph(model.config, rows, cache), TOKENS, cache)
    verifier = _run(model, verifier_graph(model.config, rows, cache), TOKENS, cache)
    for name in cache_names(model.config):
        assert np.array_equal(prefill[name], verifier[name])


def test_outputs_come_in_a_fixed_order() -> None:
    config = text_model().config
    kv = ("l0.k", "l0.v", "l1.k", "l1.v")
    assert cache_names(config) == kv
    assert tuple(step_graph(config, 2).outputs) == ("token", "logits", *kv)
    assert tuple(verifier_graph(config, 2, 2).outputs) == (
        "token", "logits", *kv, "l0.attn", "l1.attn"
    )  # fmt: skip
    assert tuple(prefill_graph(config, 2, 2).outputs) == kv


@pytest.mark.parametrize("cache", [0, 3])
def test_external_memory_holds_the_rows_then_weights_then_cache(cache: int) -> None:
    model = tiny("random", 1)
    config = model.config
    cached = [f"{name}.cache" for name in cache_names(config)] if cache else []
    for graph in (step_graph(config, cache), verifier_graph(config, 3, cache)):
        program = compile_graph(graph, model.ranges, config.chip)
        leaves = [slot.name for slot in program.slots("input", "weight")]
        assert leaves == ["x", *config.weight_shapes(), *cached]
        assert [slot.name for slot in program.external] == [*leaves, *graph.outputs]


def test_a_row_sees_the_cache_and_the_block_up_to_itself() -> None:
    graph = verifier_graph(tiny("random", 1).config, 3, 5)
    attention = graph["l0.attn"]
    assert attention.inputs == ("l0.q", "l0.k.all", "l0.v.all")
    assert attention.visible is not None and attention.visible.rows == 3
    for row in range(3):
        assert attention.visible.columns(row) == list(range(5 + row + 1))


def test_prefill_declares_only_the_weights_that_it_needs() -> None:
    config = text_model().config
    weights = {node.name for node in prefill_graph(config, 2, 0) if node.kind is Kind.WEIGHT}
    last = {"layers.1.wk", "layers.1.wv"}
    first = {name for name in config.weight_shapes() if name.startswith("layers.0.")}
    assert weights == first | last


def test_every_shape_uses_the_same_tags() -> None:
    config = text_model().config

    def tags(graph: Graph) -> set[str]:
        cached = {f"{name}.cache" for name in cache_names(config)}
        return {tensor.tag for tensor in graph.tensors() if not tensor.is_index} - cached

    full = tags(verifier_graph(config, 5, 3))
    assert tags(verifier_graph(config, 1, 0)) == tags(step_graph(config, 0)) == full
    assert tags(prefill_graph(config, 4, 2)) <= full


def test_the_draft_is_one_product_and_its_argmax() -> None:
    graph = draft_graph(12, 8)
    assert [node.kind for node in graph] == [Kind.INPUT, Kind.WEIGHT, Kind.MATMUL, Kind.ARGMAX]
    assert tuple(graph.outputs) == ("token", "logits")
    table = np.arange(96.0).reshape(8, 12) % 7
    values = evaluate_float(graph, {"x": np.eye(8)[2:3], "table": table})
    assert np.array_equal(values["logits"][0], table[2])
    assert values["token"][0, 0] == table[2].argmax()
