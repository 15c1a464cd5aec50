"""The planner: does speculation pay for a target and a draft, and with how many guesses a block?

Programs are compiled and their cycles counted; the target writes its text once, plainly, and the
draft guesses along it. From that, every number of guesses K is predicted. Some are then also run,
and compared with the prediction.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, Literal

from capra.compiler.optimization import SHORT_LAST_BLOCK
from capra.errors import InputError
from capra.lab.costs import ProgramCosts, cost_curve
from capra.lab.predict import (
    GEOMETRIC_CACHE,
    Acceptance,
    Expected,
    Extent,
    Profile,
    Rates,
    break_even_acceptance,
    expected_run,
    geometric_speedup,
    profile_of,
    steady_state,
)
from capra.lm.target import ChipTarget
from capra.spec_decode.decode import decode
from capra.spec_decode.metrics import acceptance, total_counters
from capra.spec_decode.proposers import Proposer, ask, right_at_rates

CURVE_ROWS: Final = 16
ASKED_AGAIN: Final = 8
"""Positions of the text at which a draft is asked twice."""

Record = dict[str, Any]
OnStep = Callable[[], None]
SourceKind = Literal["measured", "given", "synthetic"]


@dataclass(frozen=True)
class Workload:
    """The run to plan for. Its programs are compiled, and its text written, once.

    Raises InputError for a run without tokens or guesses, or whose guesses exceed the context;
    CapacityError where the largest program does not fit the chip.
    """

    target: ChipTarget
    prompt: tuple[int, ...]
    max_new_tokens: int
    max_guesses: int
    on_step: OnStep = lambda: None

    def __post_init__(self) -> None:
        room = self.target.max_context - len(self.prompt)  # rows after that of the first block
        if not 1 <= self.max_guesses <= room:
            raise InputError(
                f"{self.max_guesses} guesses a block after a prompt of {len(self.prompt)} tokens, "
                f"expected 1 .. {room}, what a context of {self.target.max_context} leaves"
            )
        if self.max_new_tokens < 1:
            raise InputError(f"{self.max_new_tokens} new tokens, expected at least 1")
        self.target.check_fit(len(self.prompt), self.all_tokens, self.max_guesses)

    @cached_property
    def costs(self) -> ProgramCosts:
        """Costs of the target's programs."""
        return ProgramCosts(self.target)

    @property
    def new_tokens(self) -> int:
        """Tokens of the run: those asked for, or as many as the context has room for."""
        return min(self.max_new_tokens, self.all_tokens)

    @property
    def all_tokens(self) -> int:
        """New tokens of a text that goes on to the end of the context."""
        return self.target.max_context - len(self.prompt) + 1

    @cached_property
    def plain_cycles(self) -> int:
        """Cycles of the plain run, without the prompt's prefill."""
        self.cover(0)
        first = len(self.prompt) - 1
        return sum(self.costs.cycles(1, first + step) for step in range(self.new_tokens))

    @cached_property
    def text(self) -> tuple[int, ...]:
        """The prompt and its plain continuation, executed, to the end of the context."""
        plain = decode(
            self.target, self.prompt, self.all_tokens, on_tokens=lambda _tokens: self.on_step()
        )
        return plain.prompt + plain.tokens

    def extent(self, draft_cycles: float) -> Extent:
        """The run with a draft of this cost a guess."""
        return Extent(
            len(self.prompt) - 1, self.new_tokens, self.target.max_context, draft_cycles,
            SHORT_LAST_BLOCK in self.target.optimize,
        )  # fmt: skip

    def cover(self, guesses: int) -> None:
        """Make the costs of all blocks of this many guesses known."""
        first, last = len(self.prompt) - 1, self.target.max_context - guesses - 1
        self.costs.cover(guesses + 1, first, last)


@dataclass(frozen=True)
class Source:
    """Where acceptance and the cost of a guess come from."""

    kind: SourceKind
    acceptance: Acceptance
    draft_cycles: float
    """A guess."""
    is_assumed: bool
    """The draft's cycles are assumed, not counted by executed programs."""
    proposers: Callable[[], Sequence[Proposer]]
    """Fresh proposers to measure with, one a run; empty if nothing can be run."""


def measured_source(work: Workload, make_proposer: Callable[[tuple[int, ...]], Proposer]) -> Source:
    """A draft, tried at every position of the target's text.

    `make_proposer` makes a fresh one, given the prompt and the target's continuation. A draft that
    guesses otherwise when it is asked again has no profile: its rates are what is known of it.
    """
    text, prompt = work.text, len(work.prompt)
    proposer = make_proposer(text)
    profile, cycles = profile_of(proposer, text, prompt, work.all_tokens, work.max_guesses)
    starts = range(prompt, prompt + min(work.all_tokens, ASKED_AGAIN))
    first, again = (
        [ask(proposer, text[:start], work.max_guesses).tokens for start in starts] for _ in range(2)
    )
    known = profile if first == again else profile.pooled()
    return Source("measured", known, cycles, False, lambda: [make_proposer(text)])


def given_source(rates: Rates, draft_cycles: float, *, is_assumed: bool) -> Source:
    """Acceptance that is given; nothing can be run with it."""
    return Source("given", rates, draft_cycles, is_assumed, lambda: [])


def synthetic_source(
    work: Workload, rates: Rates, draft_cycles: float, seed: int, runs: int
) -> Source:
    """A draft that knows the text and is right at given rates, in runs with seeds of their own.

    It has no programs, hence its cost is assumed.
    """

    def proposers() -> list[Proposer]:
        vocab = work.target.vocab_size
        return [
            right_at_rates(work.text, vocab, rates.conditional, seed + run) for run in range(runs)
        ]

    return Source("synthetic", rates, draft_cycles, True, proposers)


def plan(work: Workload, source: Source, measured: Sequence[int] | None = ()) -> Record:
    """Predictions for K = 1 .. max_guesses, and runs of the Ks of `measured`; None is the best K.

    Speedups are cycles of plain decoding / cycles with speculation, without the prompt's prefill.
    `steady` is the steady state, which decides what is best and whether it pays; `speedup` is that
    of the one run, with its start and end, by the last of its predictors. `predicted` has geometric
    (one acceptance for all draft tokens, costs at one cache), rates (acceptance by the position in
    the block), and, along a text, profile (acceptance by the position in the text).
    """
    ks = list[Record]()
    for k in range(1, work.max_guesses + 1):
        ks.append(predict(work, source, k))
        work.on_step()
    best = max(ks, key=lambda entry: entry["steady"]["speedup"])
    for k in (best["k"],) if measured is None else measured:
        entry, run = ks[k - 1], measure(work, source, k)
        entry["measured"] = run
        entry["errors"] = {
            name: speedup / run["speedup"] - 1 for name, speedup in entry["predicted"].items()
        }
    reachable = [entry for entry in ks if entry["break_even_acceptance"] is not None]
    easiest = min(reachable, key=lambda entry: entry["break_even_acceptance"], default=None)
    cache = min(GEOMETRIC_CACHE, work.target.max_context // 2)
    rows = min(CURVE_ROWS, work.target.max_context - cache)
    return {
        "new_tokens": work.new_tokens,
        "acceptance_source": source.kind,
        "draft_cycles": source.draft_cycles,
        "draft_cycles_assumed": source.is_assumed,
        "plain_cycles": work.plain_cycles,
        "pays": best["steady"]["speedup"] > 1,
        "best": {"k": best["k"], **best["steady"]},
        "needed": easiest and {
            "k": easiest["k"], "acceptance": easiest["break_even_acceptance"]
        },
        "cost_curve": {
            "cache": cache,
            "points": [asdict(point) for point in cost_curve(work.costs, rows, cache)],
        },
        "ks": ks,
    }  # fmt: skip


def predict(work: Workload, source: Source, k: int) -> Record:
    """What is known of K guesses a block without running them, see `plan`."""
    work.cover(k)
    extent = work.extent(source.draft_cycles)
    cycles, plain = work.costs.cycles, work.plain_cycles
    run = expected_run(k, source.acceptance, extent, cycles)
    predicted = {
        "geometric": geometric_speedup(k, run.acceptance_rate, extent, cycles),
        "rates": plain / expected_run(k, run.rates(), extent, cycles).cycles,
    }
    if isinstance(source.acceptance, Profile):
        predicted["profile"] = plain / run.cycles
    steady = steady_state(k, source.acceptance, extent, cycles)
    return {
        "k": k,
        "steady": {
            "speedup": steady.speedup,
            "plain_cycles_per_token": steady.plain_cycles,
            "cycles_per_token": steady.cycles,
            "tokens_per_block": steady.tokens_per_block,
        },
        "speedup": plain / run.cycles,
        "break_even_acceptance": break_even_acceptance(k, extent, cycles),
        "expected": _expected_record(run),
        "predicted": predicted,
        "measured": None,
        "errors": None,
    }


def _expected_record(run: Expected) -> Record:
    return {
        "cycles": run.cycles,
        "blocks": run.blocks,
        "proposed": run.proposed,
        "acceptance_rate": run.acceptance_rate,
        "conditional_acceptance": list(run.rates().conditional),
    }


def measure(work: Workload, source: Source, k: int) -> Record:
    """Runs of one K on executed programs, as sums over the runs, without the prompt's prefill.

    InputError where the source has nothing to run.
    """
    runs = [
        decode(
            work.target, work.prompt, work.new_tokens,
            proposer=proposer, num_speculative_tokens=k,
            shorten_last_block=SHORT_LAST_BLOCK in work.target.optimize,
        )
        for proposer in source.proposers()
    ]  # fmt: skip
    if not runs:
        raise InputError("nothing can be run with a given acceptance, expected no K to measure")
    counts = [acceptance(run) for run in runs]
    proposed = sum(each["proposed"] for each in counts)
    executed = sum(total_counters(block.runs).total for run in runs for block in run.blocks)
    cycles = executed + (proposed * source.draft_cycles if source.is_assumed else 0)
    end = len(work.prompt) + work.new_tokens
    work.on_step()
    return {
        "runs": len(runs),
        "executed_cycles": executed,
        "cycles": cycles,
        "blocks": sum(each["blocks"] for each in counts),
        "accepted": sum(each["accepted"] for each in counts),
        "proposed": proposed,
        "speedup": len(runs) * work.plain_cycles / cycles,
        "tokens_equal": all(run.prompt + run.tokens == work.text[:end] for run in runs),
    }
