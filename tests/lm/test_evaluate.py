"""What int8 costs: bits per character, greedy tokens and tensors, against plain definitions."""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.lm.samples import CHARACTERS, CONTEXT, chip_target, pydoc_model, text_model, tiny

from capra.errors import InputError
from capra.ir.quantization import TensorError
from capra.ir.ranges import Ranges
from capra.lm.corpus import load_corpus
from capra.lm.evaluate import common_prefix, evaluate
from capra.lm.model import LanguageModel
from capra.lm.reference import FloatStepper
from capra.lm.target import FloatTarget
from capra.spec_decode.decode import decode

MOST_BITS = 2.6
MOST_OVER_FLOAT = 1.05
SAMPLING_ERROR = 0.03
"""Of the ratio, on two hundred characters."""


def _known_text() -> str:
    return "".join(c for c in load_corpus().held_out if c in CHARACTERS)


def test_bits_are_the_mean_of_minus_log2_of_the_next_characters_probability() -> None:
    text, total = _known_text(), 0.0
    windows = len(text) // CONTEXT
    for start in (0, windows // 2 * CONTEXT):
        tokens = [CHARACTERS.index(c) for c in text[start : start + CONTEXT]]
        stepper = FloatStepper(text_model())
        for token, following in pairwise(tokens):
            weights = [math.exp(logit) for logit in stepper.step(token)]
            total -= math.log2(weights[following] / sum(weights))
    result = evaluate(text_model(), 2)
    assert result.windows == 2 and result.characters == 2 * (CONTEXT - 1)
    assert result.float_bits == pytest.approx(total / result.characters, rel=1e-9)
    assert result.chip_bits == pytest.approx(result.float_bits, rel=0.3)
    assert result.ratio == result.chip_bits / result.float_bits


def test_agreement_counts_the_rows_with_one_greedy_token() -> None:
    text, agreeing = _known_text(), 0
    windows = len(text) // CONTEXT
    for start in (number * windows // 3 * CONTEXT for number in range(3)):
        chip, exact = chip_target("text").session(), FloatStepper(text_model())
        for character in text[start : start + CONTEXT]:
            token = CHARACTERS.index(character)
            agreeing += chip.forward([token]).choices[0] == exact.step(token).argmax()
    assert 0 < agreeing < 3 * CONTEXT
    assert evaluate(text_model(), 3).agreement == agreeing / (3 * CONTEXT)


def test_a_common_prefix_ends_before_the_first_other_token() -> None:
    found = []
    for start in range(len(CHARACTERS)):
        prompt = [start, 3, 1]
        chip, exact = (
            decode(target, prompt, 20).tokens
            for target in (chip_target("text"), FloatTarget(text_model()))
        )
        found.append(common_prefix(text_model(), prompt, 20))
        assert chip[: found[-1]] == exact[: found[-1]]
        assert found[-1] == 20 or chip[found[-1]] != exact[found[-1]]
    assert min(found) < 20 == max(found), "texts that differ and texts that do not"
    assert common_prefix(text_model(), [0, 3, 1], 0) == 0


def test_greedy_texts_continue_the_start_of_some_windows() -> None:
    text, result = _known_text(), evaluate(text_model(), 3)
    windows = len(text) // CONTEXT
    starts = [number * windows // 3 * CONTEXT for number in range(3)]
    prompts = [[CHARACTERS.index(c) for c in text[start : start + 16]] for start in starts]
    assert result.text_characters == CONTEXT - 16 + 1
    assert result.common_prefixes == tuple(common_prefix(text_model(), p, 9) for p in prompts)


def test_tensors_with_a_range_badly_off_show_large_errors() -> None:
    def errors(model: LanguageModel) -> Mapping[str, TensorError]:
        return evaluate(model, 1).tensor_errors

    good = errors(text_model())
    assert set(good) == set(text_model().ranges.values)
    assert max(error.relative for error in good.values()) < 0.5
    weights = text_model().config.weight_shapes()
    assert all(good[name].steps <= 0.5 for name in weights), "a weight is only rounded"
    ranges = {**text_model().ranges.values}
    ranges["l1.ff2"] /= 16
    bad = errors(replace(text_model(), ranges=Ranges(ranges)))
    assert bad["l1.ff2"].relative > 2 * good["l1.ff2"].relative
    assert bad["l1.ff2"].steps > 127 > good["l1.ff2"].steps
    assert bad["logits"].relative > 1.5 * good["logits"].relative
    assert bad["l0.out"] == good["l0.out"], "what was computed before it is as it was"


def test_characters_outside_the_vocabulary_are_left_out_and_counted() -> None:
    assert evaluate(text_model(), 1).skipped == len(load_corpus().held_out) - len(_known_text())


def test_windows_are_reported_as_they_are_done() -> None:
    seen: list[tuple[int, int]] = []
    evaluate(text_model(), 3, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("windows", [None, 2, 3, 9])
def test_no_more_windows_than_there_are(
    windows: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = replace(load_corpus(), held_out="abcdefghijk" * 7)  # three windows and a rest
    monkeypatch.setattr("capra.lm.evaluate.load_corpus", lambda: corpus)
    assert evaluate(text_model(), windows).windows == min(windows or 3, 3)


def test_fewer_than_one_window_is_refused() -> None:
    with pytest.raises(InputError, match="0 windows of 24 characters, expected at least 1"):
        evaluate(text_model(), 0)


def test_a_model_without_characters_is_refused() -> None:
    with pytest.raises(InputError, match="model random has no characters, expected a text model"):
        evaluate(tiny("random", 1))


@pytest.mark.parametrize(
    "whole", [False, pytest.param(True, marks=pytest.mark.full)], ids=["sample", "whole"]
)
def test_the_packaged_model_keeps_its_promise(whole: bool) -> None:
    """On a few short windows, and on all of the held-out text."""
    result = evaluate(pydoc_model()) if whole else evaluate(_shortened(pydoc_model(), 40), 5)
    assert result.skipped == 0
    assert result.chip_bits <= MOST_BITS
    assert result.ratio <= MOST_OVER_FLOAT + (0 if whole else SAMPLING_ERROR)


def _shortened(model: LanguageModel, context: int) -> LanguageModel:
    """The same model with fewer positions, whose windows are quick to compile."""
    weights = {**model.weights, "positions": model.weights["positions"][:context]}
    return replace(model, config=replace(model.config, context=context), weights=weights)
