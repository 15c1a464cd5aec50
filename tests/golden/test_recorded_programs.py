"""The recorded programs of the tiny models: instructions, words and cycles, exact to the cycle.

The figures are constants of this file. They come from the reference system that Capra reproduces.
"""

from functools import cache

import pytest

from capra.compiler.pipeline import compile_graph
from capra.isa.program import Program
from capra.isa.timing import Counters
from capra.lm.bigram import Bigram, compile_bigram, fitted_logits
from capra.lm.graphs import step_graph, verifier_graph
from capra.lm.model import LanguageModel
from capra.lm.tiny import random_model

VERIFIER_HISTOGRAM = {
    "LD": 10, "MM": 56, "RQ": 23, "SM": 4, "ST": 5, "VADD": 2, "AMAX": 4, "HALT": 1,
}  # fmt: skip
VERIFIER_WORDS_LOADED = 2496
VERIFIER_COUNTERS = Counters(matrix=7732, dma=2856, vector=1532, control=210)
VERIFIER_CYCLES_BY_CACHE = {0: 11268, 4: 12330, 12: 14410, 24: 17530}
STEP_BY_CONTEXT = {5: (7378, 2448), 6: (7457, 2480), 7: (7536, 2512), 8: (7615, 2544)}
"""Cycles and words loaded."""
DRAFT_COUNTERS = Counters(matrix=440, dma=311, vector=37, control=22)
WEIGHT_WORDS = 2304


@cache
def model() -> LanguageModel:
    return random_model(1)


def verifier(rows: int, cache_rows: int) -> Program:
    config = model().config
    return compile_graph(verifier_graph(config, rows, cache_rows), model().ranges, config.chip)


def step(context: int) -> Program:
    config = model().config
    return compile_graph(step_graph(config, context - 1), model().ranges, config.chip)


def test_verifier_histogram() -> None:
    assert verifier(4, 4).histogram() == VERIFIER_HISTOGRAM


def test_verifier_words_loaded() -> None:
    assert verifier(4, 4).words_loaded == VERIFIER_WORDS_LOADED


def test_verifier_cycles_by_unit() -> None:
    assert verifier(4, 4).counters == VERIFIER_COUNTERS
    assert verifier(4, 4).cycles == 12330


@pytest.mark.parametrize(("cache_rows", "cycles"), VERIFIER_CYCLES_BY_CACHE.items())
def test_verifier_cycles_by_cache(cache_rows: int, cycles: int) -> None:
    assert verifier(4, cache_rows).cycles == cycles


@pytest.mark.parametrize(("context", "recorded"), STEP_BY_CONTEXT.items())
def test_step_cycles_and_words_by_context(context: int, recorded: tuple[int, int]) -> None:
    program = step(context)
    assert (program.cycles, program.words_loaded) == recorded


def test_verifier_costs_two_fifths_of_four_steps() -> None:
    assert round(verifier(4, 4).cycles / sum(step(c).cycles for c in range(5, 9)), 2) == 0.41


def test_draft_cycles_by_unit() -> None:
    bigram = Bigram.from_logits(model().weights["embed"], fitted_logits(model()))
    program = compile_bigram(bigram, model().config.chip)
    assert program.counters == DRAFT_COUNTERS
    assert program.cycles == 810


def test_weight_words() -> None:
    for program in (step(5), verifier(4, 4)):
        assert sum(slot.words for slot in program.slots("weight")) == WEIGHT_WORDS


def test_external_order_is_input_weights_caches_then_outputs() -> None:
    slots = [(slot.name, slot.rows, slot.cols) for slot in verifier(4, 4).external]
    assert slots[0] == ("x", 4, 16)
    assert slots[8:] == [
        ("l0.k.cache", 4, 16), ("l0.v.cache", 4, 16), ("token", 4, 1), ("logits", 4, 16),
        ("l0.k", 4, 16), ("l0.v", 4, 16), ("l0.attn", 4, 16),
    ]  # fmt: skip
    assert {slot.kind for slot in verifier(4, 4).external[1:8]} == {"weight"}
    assert not [slot.name for slot in verifier(4, 0).external if slot.name.endswith(".cache")]
