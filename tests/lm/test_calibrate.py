"""Calibration: one Ranges value that covers every program of a model."""

from dataclasses import replace

import numpy as np
import pytest
from tests.lm.samples import MODELS, random_tokens, text_model, tiny

from capra.compiler.pipeline import compile_graph
from capra.ir.ranges import Ranges
from capra.lm.calibrate import calibrate, calibrate_tokens
from capra.lm.reference import block_logits, greedy_tokens
from capra.lm.target import Role, model_graph

ROUNDING = 1 + 2**-14
"""Ranges are rounded up to 16 significant bits."""


def test_a_range_is_the_largest_magnitude_over_all_texts() -> None:
    model = text_model()
    texts = [random_tokens(seed, 12, 10) for seed in range(5)]
    ranges = calibrate(model, texts).ranges.values
    for tag, rows in (
        ("logits", [block_logits(model, text) for text in texts]),
        ("x", [model.embed(text, 0) for text in texts]),
    ):
        largest = float(np.abs(rows).max())
        assert largest <= ranges[tag] <= largest * ROUNDING


def test_more_texts_never_make_a_range_smaller() -> None:
    model = text_model()
    texts = [random_tokens(seed, 12, 10) for seed in range(6)]
    few, many = (calibrate(model, chosen).ranges.values for chosen in (texts[:2], texts))
    assert few.keys() == many.keys()
    assert all(few[tag] <= many[tag] for tag in few)
    assert any(few[tag] < many[tag] for tag in few)


def test_probabilities_never_exceed_1() -> None:
    ranges = text_model().ranges.values
    probabilities = [tag for tag in ranges if tag.endswith(".probs")]
    assert probabilities == ["l0.h0.probs", "l0.h1.probs", "l1.h0.probs", "l1.h1.probs"]
    assert all(ranges[tag] == 1.0 for tag in probabilities)  # a first row sees only itself


def test_tiny_models_are_calibrated_on_their_own_text_and_on_any_other() -> None:
    model = tiny("random", 2)
    own = [[t, *greedy_tokens(model, t, 23)] for t in range(16)]
    ranges, least = model.ranges.values, calibrate(model, own).ranges.values
    assert all(ranges[tag] >= least[tag] for tag in least)
    assert any(ranges[tag] > least[tag] for tag in least)


def test_calibration_gives_the_same_twice() -> None:
    bare = replace(tiny("random", 1), ranges=Ranges())
    assert dict(calibrate_tokens(bare).ranges.values) == dict(tiny("random", 1).ranges.values)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("role", "rows", "cache"),
    [("step", 1, 0), ("step", 1, 9), ("verify", 4, 0), ("verify", 3, 9), ("prefill", 5, 7)],
)
def test_every_program_compiles_from_it(name: str, role: Role, rows: int, cache: int) -> None:
    model = MODELS[name]()
    graph = model_graph(model.config, role, rows, cache)
    program = compile_graph(graph, model.ranges, model.config.chip)
    assert tuple(slot.name for slot in program.slots("output")) == graph.outputs


@pytest.mark.parametrize("name", ["text", "sharp"])
def test_a_tensor_has_one_scale_in_every_program(name: str) -> None:
    model = MODELS[name]()
    scales: dict[str, set[float | None]] = {}
    shapes: list[tuple[Role, int, int]] = [
        ("step", 1, 0), ("step", 1, 9), ("verify", 4, 9), ("prefill", 5, 7)
    ]  # fmt: skip
    for role, rows, cache in shapes:
        graph = model_graph(model.config, role, rows, cache)
        for slot in compile_graph(graph, model.ranges, model.config.chip).external:
            scales.setdefault(slot.name.removesuffix(".cache"), set()).add(slot.scale)
    assert {name: len(found) for name, found in scales.items()} == dict.fromkeys(scales, 1)
