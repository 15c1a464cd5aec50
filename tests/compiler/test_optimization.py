"""Levels, and the programs of whole models on them: never dearer, each pass as it was measured."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.lm.samples import MODELS, pydoc_model, random_tokens, tiny

from capra.compiler.optimization import (
    LEVELS,
    O0,
    O1,
    OPTIMIZATIONS,
    Optimization,
    names_of,
    parse_optimization,
)
from capra.compiler.pipeline import compile_graph
from capra.errors import CapacityError, InputError
from capra.isa.program import Program
from capra.lab.experiments import table_runs
from capra.lm.bigram import ChipBigram, compile_bigram
from capra.lm.graphs import cache_names
from capra.lm.models import load_bigram
from capra.lm.target import ChipTarget, model_graph
from capra.spec_decode.decode import decode
from capra.spec_decode.metrics import total_counters
from capra.spec_decode.proposers import ChainProposer


def test_levels_and_lists_of_names() -> None:
    assert {text: parse_optimization(text) for text in ("0", "1")} == LEVELS
    assert parse_optimization("1") == O1 == frozenset(OPTIMIZATIONS)
    assert names_of(frozenset({"joined-transfers", "block-attention"})) == [
        "block-attention", "joined-transfers",
    ]  # fmt: skip
    assert parse_optimization("shared-zeros,block-attention") == {
        "block-attention", "shared-zeros",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["", "2", "01", "block_attention", "shared-zeros,", "0,1"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"-O is .*, expected 0 or 1, or names"):
        parse_optimization(text)


@cache
def target(name: str, optimize: Optimization) -> ChipTarget:
    return ChipTarget(pydoc_model() if name == "pydoc" else tiny(name, 1), optimize=optimize)


def program(name: str, rows: int, cache: int, optimize: Optimization) -> Program:
    return target(name, optimize).program("step" if rows == 1 else "verify", rows, cache)


@pytest.mark.sample(12)
@pytest.mark.parametrize("cache", [0, 1, 5, 24])
@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 13])
def test_no_pass_makes_a_program_dearer(rows: int, cache: int) -> None:
    recorded = program("random", rows, cache, O0).cycles
    for name in OPTIMIZATIONS:
        assert program("random", rows, cache, frozenset({name})).cycles <= recorded
    assert program("random", rows, cache, O1).cycles < recorded


@pytest.mark.parametrize("cache", [64, 96, 124])
def test_verifiers_of_the_text_model_take_a_tenth_less(cache: int) -> None:
    recorded, optimized = (program("pydoc", 4, cache, level).cycles for level in (O0, O1))
    assert optimized < 0.9 * recorded


def test_a_draft_has_one_load_and_one_store() -> None:
    model = tiny("structured", 1)
    made = compile_bigram(load_bigram(model), model.config.chip, O1)
    assert made.cycles == 810 - 11 - 4
    assert made.histogram()["LD"] == made.histogram()["ST"] == 1


def test_what_no_session_reads_stays_in_the_scratchpad() -> None:
    made = program("random", 4, 4, O1)
    assert "l0.attn" not in [slot.name for slot in made.slots("output")]
    assert "l0.attn" in made.tensors


@pytest.mark.parametrize("name", ["text", "sharp"])
def test_optimized_blocks_leave_the_rows_of_recorded_steps(name: str) -> None:
    """A prompt of two tiles and a part, then blocks of every kind of tile; every integer."""
    model = MODELS[name]()
    tokens = random_tokens(5, model.config.vocab_size, 24)
    steps = ChipTarget(model).session()
    steps.prefill(tokens[:10])
    expected = [steps.forward([token]) for token in tokens[10:]]
    blocks = ChipTarget(model, optimize=O1).session()
    blocks.prefill(tokens[:10])
    start = 10
    for rows in (4, 1, 5, 2, 2):
        forward = blocks.forward(tokens[start : start + rows])
        alone = expected[start - 10 : start - 10 + rows]
        assert forward.choices == tuple(step.choices[0] for step in alone)
        np.testing.assert_array_equal(forward.logits, np.vstack([step.logits for step in alone]))
        start += rows
    assert start == 24
    for cached in cache_names(model.config):
        np.testing.assert_array_equal(blocks.cached(cached), steps.cached(cached))


def test_the_table_is_faster_and_its_tokens_are_equal() -> None:
    recorded, optimized = table_runs(), table_runs(optimize=O1)
    assert all(run["tokens_equal"] for run in optimized)
    for slow, fast in zip(recorded, optimized, strict=True):
        assert fast["cycles"] < slow["cycles"]
    assert optimized[1]["cycles"] <= 120_806
    assert optimized[1]["speedup"] > 2.2


def test_the_best_number_of_guesses_for_32_tokens() -> None:
    """A perfect draft in one block of 31 guesses."""
    model = tiny("structured", 1)
    draft = ChipBigram(load_bigram(model), model.config.chip, optimize=O1)
    plain = decode(target("structured", O1), [0], 32)
    run = decode(
        target("structured", O1), [0], 32,
        proposer=ChainProposer(draft), num_speculative_tokens=31, shorten_last_block=True,
    )  # fmt: skip
    assert run.tokens == plain.tokens and len(run.blocks) == 1
    assert total_counters(run.runs).total <= 105_000


def test_what_takes_room_is_left_out_where_it_does_not_fit() -> None:
    """A verifier of 8 rows after 10: 1024 words without the passes, more with block attention."""
    model = tiny("structured", 1)

    def cycles(words: int, optimize: Optimization, cache: int = 10) -> int:
        graph = model_graph(model.config, "verify", 8, cache, O1)
        chip = replace(model.config.chip, scratchpad_words=words)
        return compile_graph(graph, model.ranges, chip, optimize=optimize).cycles

    with pytest.raises(CapacityError):
        cycles(512, O1)
    assert cycles(1024, O1) == cycles(1024, O0) == cycles(8192, O0)
    unjoined = O1 - {"joined-transfers"}
    assert cycles(2048, O1) == cycles(2048, unjoined) < cycles(1024, O1)
    assert cycles(4096, O1) < cycles(2048, O1)
    # After 8, first fit alone would leave block attention out.
    assert cycles(1024, O1, 8) == cycles(2048, unjoined, 8) < cycles(1024, O0, 8)
