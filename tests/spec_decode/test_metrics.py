"""Counts and ratios, worked out by hand for two small runs."""

from dataclasses import replace

import pytest
from tests.lm.samples import chip_target

from capra.isa.spec import Phase
from capra.isa.timing import Counters
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram
from capra.lm.target import ProgramRun, Role
from capra.spec_decode.decode import Block, Decoded, decode
from capra.spec_decode.metrics import (
    acceptance,
    block_record,
    comparison_record,
    expected_tokens,
    program_record,
    resident_cycles,
    run_record,
    speculative_record,
    total_counters,
)
from capra.spec_decode.proposers import ChainProposer


def _run(role: Role, matrix: int, control: int = 0) -> ProgramRun:
    return ProgramRun(
        role,
        1,
        0,
        Counters(matrix=matrix, control=control),
        {Phase.ARRAY: matrix, Phase.FETCH: control},
    )


def _block(tokens: tuple[int, ...], choices: tuple[int, ...], accepted: int) -> Block:
    draft = (_run("draft", 10),) * (len(tokens) - 1)
    verifier = _run("verify" if draft else "step", 100, 5)
    return Block(tokens, tokens[1:], choices, accepted, (*draft, verifier))


PREFILL = (_run("prefill", 1000),)
SPECULATIVE = Decoded(
    prompt=(1, 2),
    tokens=(3, 4, 5, 6, 7, 8),
    stop_reason="length",
    blocks=(
        _block((2, 3, 4, 5), (3, 4, 5, 6), 3),
        _block((6, 9, 9, 9), (7, 0, 0, 0), 0),
        _block((7, 8, 9), (8, 1, 0), 1),
    ),
    prefill=PREFILL,
    cache_length=9,
)
PLAIN = Decoded(
    prompt=(1, 2),
    tokens=(3, 4, 5, 6, 7, 8),
    stop_reason="length",
    blocks=tuple(_block((t,), (t + 1,), 0) for t in (2, 3, 4, 5, 6, 7)),
    prefill=PREFILL,
    cache_length=7,
)
NOTHING = Decoded((1,), (), "length", (), (), 0)


def _text(tokens: object) -> str:
    return f"<{tokens}>"


def test_acceptance_is_counted_over_blocks() -> None:
    assert acceptance(SPECULATIVE) == {
        "blocks": 3,
        "proposed": 8,
        "accepted": 4,
        "emitted": 7,
        "kept": 6,
        "tokens_per_block": 2.0,
        "acceptance_rate": 0.5,
        "mean_acceptance_length": 1 + 4 / 3,
        "accepted_per_position": [2, 1, 1],
        "cache_length": 9,
    }


def test_guesses_that_were_never_checked_count_as_proposed() -> None:
    block = Block((2, 3), (3, -1, 4), (3, 4), 1, ())
    counts = acceptance(Decoded((2,), (3, 4), "length", (block,), (), 2))
    assert (counts["proposed"], counts["accepted"]) == (3, 1)
    assert counts["accepted_per_position"] == [1, 0, 0]


def test_without_guesses_the_rate_is_0_and_a_block_is_one_token() -> None:
    counts = acceptance(PLAIN)
    assert (counts["acceptance_rate"], counts["mean_acceptance_length"]) == (0.0, 1.0)
    assert counts["accepted_per_position"] == []


def test_without_blocks_everything_is_0() -> None:
    counts = acceptance(NOTHING)
    assert (counts["blocks"], counts["mean_acceptance_length"]) == (0, 0.0)


def test_a_runs_record_sums_every_executed_program() -> None:
    assert run_record(SPECULATIVE, _text) == {
        "tokens": [3, 4, 5, 6, 7, 8],
        "text": "<(3, 4, 5, 6, 7, 8)>",
        "stop_reason": "length",
        "programs": 1 + 4 + 4 + 3,
        "cycles": 1000 + 80 + 3 * 105,
        "cycles_by_unit": {"matrix": 1380, "dma": 0, "vector": 0, "control": 15},
        "cycles_by_phase": {"array": 1380, "fetch": 15},
        "prefill": {
            "programs": 1,
            "cycles": 1000,
            "trace": [program_record(run) for run in PREFILL],
        },
        "trace": [block_record(block) for block in SPECULATIVE.blocks],
    }


def test_a_block_is_recorded_with_its_programs() -> None:
    record = block_record(SPECULATIVE.blocks[2])
    assert record.pop("programs") == [program_record(r) for r in SPECULATIVE.blocks[2].runs]
    assert record == {
        "tokens": [7, 8, 9],
        "proposed": [8, 9],
        "choices": [8, 1, 0],
        "accepted": 1,
        "emitted": [8, 1],
    }
    phases = {Phase.FETCH: 5, Phase.DRAIN: 100}
    run = ProgramRun("verify", 3, 5, Counters(matrix=100, control=5), phases)
    assert program_record(run) == {
        "role": "verify",
        "rows": 3,
        "cache": 5,
        "weight_words": 0,
        "cycles": 105,
        "cycles_by_unit": {"matrix": 100, "dma": 0, "vector": 0, "control": 5},
        "cycles_by_phase": {"drain": 100, "fetch": 5},
    }


def test_draft_and_target_cycles_are_told_apart() -> None:
    record = speculative_record(SPECULATIVE, _text)
    assert (record["draft_cycles"], record["target_cycles"]) == (80, 315)
    total = record["draft_cycles"] + record["target_cycles"] + record["prefill"]["cycles"]
    assert total == record["cycles"]


def test_speedup_is_plain_over_speculative_cycles() -> None:
    record = comparison_record(PLAIN, SPECULATIVE, _text)
    assert record["speedup"] == (1000 + 6 * 105) / (1000 + 80 + 315)
    assert record["decode_speedup"] == 6 * 105 / (80 + 315)
    assert record["tokens_equal"] is True
    assert comparison_record(NOTHING, SPECULATIVE, _text)["tokens_equal"] is False


STOPPED = Decoded(
    prompt=(1, 2), tokens=(3, 4), stop_reason="stop",
    blocks=(_block((2, 3, 4, 5), (3, 4, 5, 6), 3),), prefill=(), cache_length=5,
)  # fmt: skip


def test_tokens_after_a_stop_token_are_emitted_and_not_kept() -> None:
    counts = acceptance(STOPPED)
    assert (counts["emitted"], counts["kept"]) == (4, 2)
    assert (counts["mean_acceptance_length"], counts["tokens_per_block"]) == (4.0, 2.0)
    assert acceptance(NOTHING)["tokens_per_block"] == 0.0


def _loads(decoded: Decoded, draft: int, target: int) -> Decoded:
    """The same run, with programs that load so many words of weights."""

    def loading(run: ProgramRun) -> ProgramRun:
        return replace(run, weight_words=draft if run.role == "draft" else target)

    blocks = tuple(replace(b, runs=tuple(map(loading, b.runs))) for b in decoded.blocks)
    return replace(decoded, blocks=blocks, prefill=tuple(map(loading, decoded.prefill)))


def test_resident_weights_are_loaded_once_per_model() -> None:
    plain, speculative = _loads(PLAIN, 2, 60), _loads(SPECULATIVE, 2, 60)
    record = comparison_record(plain, speculative, _text)
    resident = record["resident_weights"]
    assert resident["weight_words"] == 62
    assert resident["plain_cycles"] == record["plain"]["cycles"] - 6 * 60
    assert resident["speculative_cycles"] == record["speculative"]["cycles"] - 3 * 60 - 7 * 2
    ratio = resident["plain_cycles"] / resident["speculative_cycles"]
    assert resident["speedup"] == ratio
    nothing = comparison_record(NOTHING, NOTHING, _text)["resident_weights"]
    assert nothing == {
        "weight_words": 0, "plain_cycles": 0, "speculative_cycles": 0, "speedup": 1.0
    }  # fmt: skip


def test_resident_weights_of_a_run_on_the_chip() -> None:
    """Words of weights that programs load, from their instructions: see `Program.weight_words`."""
    target = chip_target("random")
    draft = ChipBigram(load_bigram(target.model), target.model.config.chip)
    plain = decode(target, [0], 5)
    run = decode(target, [0], 5, proposer=ChainProposer(draft), num_speculative_tokens=2)
    assert {each.weight_words for each in plain.runs} == {2304}
    assert {each.weight_words for each in run.runs if each.role == "draft"} == {256}
    assert resident_cycles(plain.runs) == total_counters(plain.runs).total - 4 * 2304


def test_two_empty_runs_are_equally_fast() -> None:
    record = comparison_record(NOTHING, NOTHING, _text)
    assert (record["speedup"], record["decode_speedup"]) == (1.0, 1.0)


def test_counters_add_up_by_unit() -> None:
    runs = [_run("step", 1, 2), _run("draft", 3, 4)]
    assert total_counters(runs) == Counters(matrix=4, control=6)
    assert total_counters([]) == Counters()


@pytest.mark.parametrize("rate", [0.0, 1e-300, 0.3, 0.5, 0.9, 1 - 1e-6, 1 - 2**-53, 1.0])
@pytest.mark.parametrize("k", [0, 1, 4, 50])
def test_expected_tokens_are_the_sum_of_the_chances_to_get_so_far(rate: float, k: int) -> None:
    assert expected_tokens(rate, k) == pytest.approx(sum(rate**j for j in range(k + 1)), rel=1e-12)


def test_expected_tokens_take_no_time_for_many_guesses() -> None:
    assert expected_tokens(0.5, 2**52) == 2
    assert expected_tokens(1.0, 2**52) == 2**52 + 1
