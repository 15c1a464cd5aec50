"""What a run was worth: the counts and ratios that are reported of it, as plain records."""

from collections.abc import Callable, Sequence
from math import expm1, log
from typing import Any

from capra.isa.timing import Counters, sum_counters, sum_phases
from capra.lm.target import ProgramRun
from capra.spec_decode.decode import Block, Decoded

Detokenize = Callable[[Sequence[int]], str]


def total_counters(runs: Sequence[ProgramRun]) -> Counters:
    """The counters of several programs together."""
    return sum_counters(run.counters for run in runs)


def acceptance(decoded: Decoded) -> dict[str, Any]:
    """Counts over the blocks of a run, and the ratios that follow from them.

    emitted = accepted + blocks counts every token that a block gave, kept those of the text: what
    comes after a stop token, or after the length asked for, was emitted and is not kept.

    acceptance_rate = accepted / proposed (0 when nothing was proposed), mean_acceptance_length =
    1 + accepted / blocks, tokens_per_block = kept / blocks, accepted_per_position[j] = blocks in
    which draft token j was accepted.
    """
    blocks = decoded.blocks
    proposed = sum(len(block.proposed) for block in blocks)
    accepted = sum(block.accepted for block in blocks)
    positions = max((len(block.proposed) for block in blocks), default=0)
    return {
        "blocks": len(blocks),
        "proposed": proposed,
        "accepted": accepted,
        "emitted": sum(len(block.emitted) for block in blocks),
        "kept": len(decoded.tokens),
        "acceptance_rate": accepted / proposed if proposed else 0.0,
        "mean_acceptance_length": 1 + accepted / len(blocks) if blocks else 0.0,
        "tokens_per_block": len(decoded.tokens) / len(blocks) if blocks else 0.0,
        "accepted_per_position": [
            sum(block.accepted > position for block in blocks) for position in range(positions)
        ],
        "cache_length": decoded.cache_length,
    }


def expected_tokens(rate: float, k: int) -> float:
    """E = 1 + a + ... + a^k: tokens of a block of k guesses, each right with chance a = `rate`.

    A rate is 0 .. 1. The sum is (1 - a^(k+1)) / (1 - a), of which the difference is taken so that a
    rate near 1 loses no digits.
    """
    if rate == 0:
        return 1.0
    return -expm1((k + 1) * log(rate)) / (1 - rate) if rate < 1 else k + 1.0


def cost_record(runs: Sequence[ProgramRun]) -> dict[str, Any]:
    """cycles of some programs together, by unit and by phase; phases of no cycle are left out."""
    counters = total_counters(runs)
    return {
        "cycles": counters.total,
        "cycles_by_unit": counters.by_unit(),
        "cycles_by_phase": sum_phases(run.phases for run in runs),
    }


def resident_record(plain: Decoded, speculative: Decoded) -> dict[str, Any]:
    """Both runs if weights stayed on the chip: weight_words, cycles of each run, their speedup.

    Derived, not executed: see `resident_cycles`.
    """
    before, after = resident_cycles(plain.runs), resident_cycles(speculative.runs)
    return {
        "weight_words": sum(_weight_words(speculative.runs)),
        "plain_cycles": before,
        "speculative_cycles": after,
        "speedup": before / after if after else 1.0,
    }


def resident_cycles(runs: Sequence[ProgramRun]) -> int:
    """Cycles of these programs if the weights of each model were loaded once, not per program.

    A weight word costs one cycle; the fixed cycles of loads are left as they are.
    """
    loaded = sum(run.weight_words for run in runs)
    return total_counters(runs).total - loaded + sum(_weight_words(runs))


def _weight_words(runs: Sequence[ProgramRun]) -> tuple[int, int]:
    """Words of weights of the draft and of the target, from the programs that load most."""
    draft = max((run.weight_words for run in runs if run.role == "draft"), default=0)
    target = max((run.weight_words for run in runs if run.role != "draft"), default=0)
    return draft, target


def program_record(run: ProgramRun) -> dict[str, Any]:
    """The role, shape and cost of one executed program."""
    return {
        "role": run.role,
        "rows": run.rows,
        "cache": run.cache,
        "weight_words": run.weight_words,
        **cost_record([run]),
    }


def block_record(block: Block) -> dict[str, Any]:
    """One block: its rows, guesses, the target's choices, what was kept, and its programs."""
    return {
        "tokens": list(block.tokens),
        "proposed": list(block.proposed),
        "choices": list(block.choices),
        "accepted": block.accepted,
        "emitted": list(block.emitted),
        "programs": [program_record(run) for run in block.runs],
    }


def run_record(decoded: Decoded, detokenize: Detokenize) -> dict[str, Any]:
    """tokens, text, and the cost of every program that was executed, prompt included.

    trace holds the blocks in order; the last one may have emitted more than the text keeps.
    """
    prefill = total_counters(decoded.prefill)
    return {
        "tokens": list(decoded.tokens),
        "text": detokenize(decoded.tokens),
        "stop_reason": decoded.stop_reason,
        "programs": len(decoded.runs),
        **cost_record(decoded.runs),
        "prefill": {
            "programs": len(decoded.prefill),
            "cycles": prefill.total,
            "trace": [program_record(run) for run in decoded.prefill],
        },
        "trace": [block_record(block) for block in decoded.blocks],
    }


def speculative_record(decoded: Decoded, detokenize: Detokenize) -> dict[str, Any]:
    """The run's record, its acceptance, and the cycles of draft and target apart."""
    draft = total_counters([run for run in decoded.runs if run.role == "draft"])
    target = total_counters([run for run in decoded.runs if run.role in ("step", "verify")])
    return {
        **run_record(decoded, detokenize),
        **acceptance(decoded),
        "draft_cycles": draft.total,
        "target_cycles": target.total,
    }


def comparison_record(
    plain: Decoded, speculative: Decoded, detokenize: Detokenize
) -> dict[str, Any]:
    """Both runs side by side. speedup = plain cycles / speculative cycles, prompt included.

    decode_speedup leaves the prompt's programs out of both, as they are the same.
    resident_weights is what both would cost if no program loaded weights again.
    """
    first, second = run_record(plain, detokenize), speculative_record(speculative, detokenize)

    def ratio(skip: str | None) -> float:
        before, after = (
            record["cycles"] - (record[skip]["cycles"] if skip else 0) for record in (first, second)
        )
        return before / after if after else 1.0

    return {
        "plain": first,
        "speculative": second,
        "tokens_equal": plain.tokens == speculative.tokens,
        "speedup": ratio(None),
        "decode_speedup": ratio("prefill"),
        "resident_weights": resident_record(plain, speculative),
    }
