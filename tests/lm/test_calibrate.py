"""Calibration: one Ranges value that covers every program of a model."""

from dataclasses import replace

import numpy as np
import pytest
from tests.lm.samples import MODELS, gaussian_model, random_tokens, text_model, tiny

from capra.compiler.pipeline import compile_graph
from capra.errors import InputError
from capra.ir.ranges import Ranges
from capra.lm.bigram import fitted_logits
from capra.lm.calibrate import calibrate, calibrate_tokens
from capra.lm.model import ModelConfig
from capra.lm.reference import block_logits, greedy_tokens
from capra.lm.target import ChipTarget, Role, model_graph
from capra.spec_decode.decode import decode

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


@pytest.mark.parametrize("context", [1, 2, 23, 24, 25])
@pytest.mark.parametrize("has_positions", [True, False])
def test_a_short_context_is_calibrated_to_its_end(context: int, has_positions: bool) -> None:
    """Every program of the model then compiles, and its draft can be fitted."""
    config = ModelConfig(
        "short", vocab_size=5, width=4, heads=2, layers=1, hidden=4, context=context,
        has_positions=has_positions,
    )  # fmt: skip
    model = gaussian_model(config, 0)
    if has_positions:
        texts = [[t, *greedy_tokens(model, t, min(context, 24) - 1)] for t in range(5)]
        rows = [model.embed(text, 0) for text in texts]
        assert np.abs(rows).max() <= model.ranges.values["x"]
    target = ChipTarget(model)
    target.session().forward([t % 5 for t in range(context)])
    assert target.session().prefill([0] * context)[-1].rows <= context
    assert fitted_logits(model).shape == (5, 5)
    assert len(decode(target, [0], context).tokens) == context


@pytest.mark.parametrize("lengths", [(), (0,), (3, 4), (25,)])
def test_texts_that_are_no_calibration_are_refused(lengths: tuple[int, ...]) -> None:
    message = (
        rf"have the lengths \[{', '.join(map(str, lengths))}\], expected one length of 1 \.\. 24"
    )
    with pytest.raises(InputError, match=message):
        calibrate(text_model(), [[0] * length for length in lengths])


def test_a_token_without_a_position_is_refused() -> None:
    model = text_model()
    assert model.embed([0, 1], 22).shape == (2, 8)
    message = r"model sample: 2 tokens after 23 make 25, expected at most 24, the context"
    with pytest.raises(InputError, match=message):
        model.embed([0, 1], 23)
    with pytest.raises(InputError, match="25 tokens after 0"):
        block_logits(model, [0] * 25)
