"""The bigram draft: its table, and the program that the chip runs for a guess."""

import random

import numpy as np
import pytest
from tests.lm.samples import MODELS, text_model, tiny

from capra.lm.bigram import (
    Bigram,
    ChipBigram,
    count_logits,
    factored,
    fitted_logits,
    with_noise,
)
from capra.lm.models import load_bigram
from capra.lm.target import ProgramRun
from capra.lm.tiny import rule_logits, successor
from capra.numerics import FloatArray
from capra.sim.device import SimulatedDevice

DRAFT_STEP = {"matrix": 440, "dma": 311, "vector": 37, "control": 22}


def _guesses(draft: Bigram | ChipBigram) -> list[int]:
    return [draft.next(token)[0] for token in range(draft.vocab_size)]


def _table(draft: Bigram) -> FloatArray:
    """L as the draft has it."""
    return draft.embed @ draft.table


def test_the_rule_is_8_where_the_text_goes_and_0_elsewhere() -> None:
    logits = rule_logits()
    for token in range(16):
        assert logits[token, successor(token)] == 8.0
    assert np.count_nonzero(logits) == 16


def test_counts_become_4_ln_of_16_times_the_frequency() -> None:
    logits = count_logits([[0, 1, 1, 2], [0, 1]], 3)
    counts = np.array([[0, 2, 0], [0, 1, 1], [0, 0, 0]]) + 0.5
    frequency = counts / [[3.5], [3.5], [1.5]]
    np.testing.assert_allclose(logits, 4 * np.log(3 * frequency), rtol=1e-12)


def test_the_random_models_table_counts_24_tokens_from_each_start() -> None:
    model = tiny("random", 1)
    frequency = np.exp(fitted_logits(model) / 4) / 16
    np.testing.assert_allclose(frequency.sum(axis=1), 1, rtol=1e-12)
    totals = 0.5 / frequency.min(axis=1)  # every token is never followed by some token
    np.testing.assert_allclose(totals, totals.round(), rtol=1e-9)
    assert totals.sum().round() == 16 * 24 + 16 * 16 * 0.5


def test_noise_is_drawn_row_by_row_after_the_table_is_made() -> None:
    logits, draw = rule_logits(), random.Random(7)
    expected = [[value + draw.gauss(0, 3.0) for value in row] for row in logits.tolist()]
    assert with_noise(logits, 3.0, 7).tolist() == expected
    assert np.array_equal(with_noise(logits, 0.0, 7), logits)


@pytest.mark.parametrize("name", ["random", "structured"])
@pytest.mark.parametrize("noise", [0.0, 3.0])
def test_a_row_of_the_table_belongs_to_its_token(name: str, noise: float) -> None:
    model = tiny(name, 1)
    logits = with_noise(rule_logits() if name == "structured" else fitted_logits(model), noise, 1)
    draft = load_bigram(model, noise, 1)
    np.testing.assert_allclose(_table(draft), logits, rtol=0, atol=1e-9)
    assert np.array_equal(draft.embed, model.weights["embed"])
    for row, guess in zip(logits, _guesses(draft), strict=True):
        assert row[guess] > row.max() - 1e-9  # counts may tie


def test_without_noise_the_structured_draft_is_the_rule() -> None:
    model = tiny("structured", 1)
    draft = load_bigram(model)
    expected = [successor(token) for token in range(16)]
    assert _guesses(draft) == expected
    assert _guesses(ChipBigram(draft, model.config.chip)) == expected


@pytest.mark.parametrize("noise", [0.0, 3.0, 12.0])
@pytest.mark.parametrize("draft_seed", [1, 2])
def test_the_draft_program_guesses_what_the_float_draft_guesses(
    noise: float, draft_seed: int
) -> None:
    model = tiny("structured", 1)
    draft = load_bigram(model, noise, draft_seed)
    assert _guesses(ChipBigram(draft, model.config.chip)) == _guesses(draft)


@pytest.mark.parametrize("name", MODELS)
def test_where_the_draft_program_guesses_otherwise_it_was_a_near_tie(name: str) -> None:
    model = MODELS[name]()
    draft = load_bigram(model)
    chip = ChipBigram(draft, model.config.chip)
    (scale,) = (slot.scale for slot in chip.program.external if slot.name == "logits")
    assert scale is not None
    for token, row in enumerate(_table(draft)):
        guess = chip.next(token)[0]
        assert row.max() - row[guess] < 6 * scale


def test_a_guess_costs_what_was_recorded() -> None:
    model = tiny("random", 1)
    chip = ChipBigram(load_bigram(model), model.config.chip)
    _, runs = chip.next(5)
    assert chip.program.counters.by_unit() == DRAFT_STEP
    assert runs == (ProgramRun("draft", 1, 0, chip.program.counters, weight_words=256),)
    assert runs[0].phases == chip.program.phases
    assert chip.program.cycles == sum(DRAFT_STEP.values()) == 810


def test_a_float_guess_runs_no_program() -> None:
    assert load_bigram(tiny("random", 1)).next(3)[1] == ()


def test_the_draft_reads_no_word_that_nobody_wrote() -> None:
    model = text_model()
    device = SimulatedDevice(model.config.chip, poison=True)
    draft = load_bigram(model)
    assert _guesses(ChipBigram(draft, model.config.chip, device)) == _guesses(
        ChipBigram(draft, model.config.chip)
    )


def test_at_full_rank_a_factored_table_is_the_table_but_for_row_means() -> None:
    logits = np.random.default_rng(1).normal(size=(9, 9))
    draft = factored(logits, rank=9)
    expected = logits - logits.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(_table(draft), expected, rtol=0, atol=1e-9)


def test_no_table_of_its_rank_is_closer_than_the_factored_one() -> None:
    logits = np.random.default_rng(2).normal(size=(9, 9))
    centred = logits - logits.mean(axis=1, keepdims=True)
    for rank in (1, 4, 8):
        draft = factored(logits, rank)
        assert draft.embed.shape == (9, rank) and draft.table.shape == (rank, 9)
        rest = np.linalg.svd(centred, compute_uv=False)[rank:]
        error = np.linalg.norm(_table(draft) - centred)
        assert error == pytest.approx(np.linalg.norm(rest), abs=1e-9)


def test_a_text_models_draft_is_its_own_bigram() -> None:
    model = text_model()
    assert model.bigram is not None
    assert _guesses(load_bigram(model)) == model.bigram.argmax(axis=1).tolist()
