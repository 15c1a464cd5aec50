"""Models with zeros and large scores, from float to the chip: refused once, though well defined."""

import numpy as np
from tests.compiler.agreement import check_agreement, check_integers

from capra.ir.graph import Graph
from capra.lm.calibrate import calibrate_tokens
from capra.lm.model import LanguageModel, ModelConfig
from capra.lm.target import ChipTarget, InterpretedTarget
from capra.numerics import SOFTMAX_ONE, FloatArray

ROWS: FloatArray = np.arange(-6, 6, dtype=np.float64).reshape(3, 4)


def test_a_small_tensor_and_one_that_is_zero() -> None:
    graph = Graph("g")
    graph.add("sum", graph.input("x", 3, 4), graph.input("zero", 3, 4))
    graph.output("sum")
    samples = [{"x": ROWS * 1e-5, "zero": ROWS * 0}]
    check_agreement(graph, samples)
    scales, integers = check_integers(graph, samples)
    np.testing.assert_allclose(integers["sum"] * scales.scale["sum"], ROWS * 1e-5, atol=3e-7)


def test_a_large_tensor_times_zero_weights() -> None:
    graph = Graph("g")
    graph.relu("r", graph.matmul("p", graph.input("x", 3, 4), graph.weight("w", 4, 2)))
    graph.add("sum", "p", graph.input("y", 3, 2))
    graph.output("r")
    graph.output("sum")
    y = ROWS[:, :2] * 1e-5
    samples = [{"x": ROWS * 1e7, "w": np.zeros((4, 2)), "y": y}]
    check_agreement(graph, samples)
    scales, integers = check_integers(graph, samples)
    assert not integers["r"].any()
    np.testing.assert_allclose(integers["sum"] * scales.scale["sum"], y, atol=3e-7)


def test_scores_of_a_million() -> None:
    """A score is a step of the largest apart from the next one, or equal to it."""
    graph = Graph("g")
    graph.softmax("s", graph.input("x", 2, 3))
    graph.output("s")
    samples = [{"x": np.array([[0.0, 1e6, 9e5], [-1e6, 5e5, 5e5]])}]
    check_agreement(graph, samples)
    scales, integers = check_integers(graph, samples)
    assert (integers["s"] * scales.scale["s"]).round(2).tolist() == [[0, 1, 0], [0, 0.5, 0.5]]
    assert scales.product["s"].factor * SOFTMAX_ONE == 127


def test_a_model_whose_layer_adds_nothing_keeps_its_text() -> None:
    """Zero wo and w2, and an embedding so small that the sums could not be expressed."""
    config = ModelConfig("zeros", vocab_size=5, width=4, heads=1, layers=1, hidden=4, context=24)
    draw = np.random.default_rng(0)
    shapes = {**config.host_shapes(), **config.weight_shapes()}
    weights = {name: draw.normal(size=shape) for name, shape in shapes.items()}
    weights["embed"] *= 1e-6
    for name in ("wo", "w2"):
        weights[f"layers.0.{name}"] *= 0
    model = calibrate_tokens(LanguageModel(config, weights))
    block = [0, 3, 1, 4]
    chip, graph = (target(model).session() for target in (ChipTarget, InterpretedTarget))
    found = chip.forward(block)
    assert np.array_equal(found.logits, graph.forward(block).logits)
    assert found.choices == tuple((weights["embed"][block] @ weights["unembed"]).argmax(axis=1))
