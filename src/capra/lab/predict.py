"""What a run will cost: from how often guesses are right, and from what programs cost.

`steady_state` says what a token costs wherever a block starts, whatever the length of a run. Two
models of one run, with its start and its end:

    geometric   E t(1) / (k draft + t(k+1)),  E = (1 - a^(k+1)) / (1 - a): one acceptance a for
                every guess, costs t at one cache, a text without an end
    positional  the expected cycles of every block that the run can have: the chance that a block
                starts at a position of the text, times the cost of its program at that cache

The second takes any `Acceptance`: `Rates` by the position of a guess in its block, which knows
nothing of the text, or `Profile`, which knows for every position of one text how many guesses of a
block there would be right. A draft that looks at the text and nothing else makes the same guesses
in a run as along the text, so that a profile leaves nothing to chance.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from capra.errors import InputError
from capra.isa.timing import sum_counters
from capra.spec_decode.decode import count_accepted
from capra.spec_decode.metrics import expected_tokens
from capra.spec_decode.proposers import Proposer, ask

GEOMETRIC_CACHE: Final = 12
"""The cache at which the geometric model takes its costs, as in the recorded experiment."""

BISECTIONS: Final = 40

Cycles = Callable[[int, int], int]
"""Cycles of one pass of the target, by rows and cache."""


class Acceptance(Protocol):
    """How many guesses a block has, and how many of them are right."""

    def guesses(self, position: int, limit: int) -> int:
        """Guesses that a draft makes for new token `position` on, at most `limit`."""
        ...

    def accepted(self, position: int, guesses: int) -> Sequence[float]:
        """Chances that 0, 1, ... all of the guesses for new token `position` on are accepted."""
        ...


@dataclass(frozen=True, slots=True)
class Rates:
    """Guess j is right with chance conditional[j] if those before it are; the last one goes on."""

    conditional: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.conditional:
            raise InputError("no acceptance is given, expected at least one rate")
        for rate in self.conditional:
            if not 0 <= rate <= 1:
                raise InputError(f"the acceptance is {rate}, expected numbers of 0 .. 1")

    def guesses(self, position: int, limit: int) -> int:
        """As many as it is asked for."""
        return limit

    def accepted(self, position: int, guesses: int) -> Sequence[float]:
        """The same at every position of the text."""
        chances, reached = list[float](), 1.0
        for guess in range(guesses):
            rate = self.conditional[min(guess, len(self.conditional) - 1)]
            chances.append(reached * (1 - rate))
            reached *= rate
        return [*chances, reached]


@dataclass(frozen=True, slots=True)
class Profile:
    """Of proposed[p] guesses for new token p on, right[p] are right before the first wrong one."""

    right: tuple[int, ...]
    proposed: tuple[int, ...]

    def guesses(self, position: int, limit: int) -> int:
        """As many as the draft made there."""
        return min(limit, self.proposed[position])

    def accepted(self, position: int, guesses: int) -> Sequence[float]:
        """Certainty."""
        accepted = min(self.right[position], guesses)
        return [*([0.0] * accepted), 1.0]

    def pooled(self) -> Rates:
        """The acceptance of every guess given the ones before it, over all positions alike."""
        made = list(zip(self.right, self.proposed, strict=True))
        rates = list[float]()
        for guess in range(max(self.proposed)):
            tried = sum(right >= guess < proposed for right, proposed in made)
            rates.append(sum(right > guess for right, _ in made) / tried if tried else 0.0)
        return Rates(tuple(rates) or (0.0,))


def profile_of(
    proposer: Proposer, text: Sequence[int], prompt: int, new_tokens: int, max_guesses: int
) -> tuple[Profile, float]:
    """The profile of a draft along a target's text, and its cycles a guess, executed.

    `text` is the prompt, of that many tokens, and the target's own continuation. It should be
    `max_guesses` longer than the run that is to be predicted; guesses behind its end count as
    wrong.
    """
    right, proposed, cycles = list[int](), list[int](), 0
    for start in range(prompt, prompt + new_tokens):
        proposal = ask(proposer, text[:start], max_guesses)
        expected = text[start : start + len(proposal.tokens)]
        right.append(count_accepted(proposal.tokens[: len(expected)], expected))
        proposed.append(len(proposal.tokens))
        cycles += sum_counters(run.counters for run in proposal.runs).total
    profile = Profile(tuple(right), tuple(proposed))
    return profile, cycles / sum(proposed) if any(proposed) else 0.0


def guess_cycles(proposer: Proposer, prompt: Sequence[int]) -> float:
    """Cycles of a draft a guess, by having it guess once."""
    return profile_of(proposer, prompt, len(prompt), 1, 1)[1]


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a run starts, how far it goes, and what its guesses cost."""

    first_cache: int
    """Rows in the cache before the first block: the prompt without its last token."""
    new_tokens: int
    context: int
    draft_cycles: float
    """Cycles of the draft a guess."""
    shortens_last_block: bool = False
    """No guess goes behind the last token of the run."""

    def guesses(self, position: int, k: int) -> int:
        """Guesses of a block at a position: fewer than k where the context or the run ends."""
        room = self.context - self.first_cache - position - 1
        if self.shortens_last_block:
            room = min(room, self.new_tokens - position - 1)
        return min(k, room)


@dataclass(frozen=True, slots=True)
class Expected:
    """Expected counts of a run with k guesses a block."""

    cycles: float
    """Draft and target, without the prompt's prefill."""
    blocks: float
    proposed: float
    tried_per_position: tuple[float, ...]
    """Blocks that have a guess there, all before it right."""
    accepted_per_position: tuple[float, ...]

    @property
    def acceptance_rate(self) -> float:
        """Accepted / proposed, 0 without guesses."""
        return sum(self.accepted_per_position) / self.proposed if self.proposed else 0.0

    def rates(self) -> Rates:
        """The acceptance of every guess of a block, given the ones before it; 0 where none was."""
        return Rates(tuple(
            accepted / tried if tried else 0.0
            for tried, accepted in zip(
                self.tried_per_position, self.accepted_per_position, strict=True
            )
        ))  # fmt: skip


def expected_run(k: int, acceptance: Acceptance, extent: Extent, cycles: Cycles) -> Expected:
    """The positional model: every block that the run can have, by its chance.

    Blocks are independent of each other. k = 0 is plain decoding.
    """
    starts = [1.0] + [0.0] * extent.new_tokens  # chance that a block starts at a position
    cost, proposed, tried, right = 0.0, 0.0, [0.0] * k, [0.0] * k
    for position in range(extent.new_tokens):
        chance = starts[position]
        if chance == 0:
            continue
        guesses = acceptance.guesses(position, extent.guesses(position, k))
        proposed += chance * guesses
        cost += chance * guesses * extent.draft_cycles
        cost += chance * cycles(guesses + 1, extent.first_cache + position)
        for accepted, share in enumerate(acceptance.accepted(position, guesses)):
            for guess in range(min(accepted + 1, guesses)):
                tried[guess] += chance * share
            for guess in range(accepted):
                right[guess] += chance * share
            starts[min(position + accepted + 1, extent.new_tokens)] += chance * share
    return Expected(cost, sum(starts[:-1]), proposed, tuple(tried), tuple(right))


def geometric_speedup(k: int, acceptance: float, extent: Extent, cycles: Cycles) -> float:
    """The geometric model, with costs at GEOMETRIC_CACHE, or where a block still fits before it."""
    cache = min(GEOMETRIC_CACHE, extent.context - k - 1)
    pass_cycles = k * extent.draft_cycles + cycles(k + 1, cache)
    return expected_tokens(acceptance, k) * cycles(1, cache) / pass_cycles


@dataclass(frozen=True, slots=True)
class Steady:
    """The steady state: what a token costs while the text grows to the end of the context."""

    plain_cycles: float
    """Mean cycles of a plain step."""
    cycles: float
    """Cycles of draft and target per token."""
    tokens_per_block: float

    @property
    def speedup(self) -> float:
        """Plain cycles per token over speculative ones."""
        return self.plain_cycles / self.cycles


def steady_state(k: int, acceptance: Acceptance, extent: Extent, cycles: Cycles) -> Steady:
    """The blocks of k draft tokens that a text can have which goes on to the end of the context.

    However many tokens a run asks for, and whatever k is, the text is the same one. Its last block
    counts for the share of its tokens that the text has; the context shortens blocks, as in a run.
    """
    end = extent.context - extent.first_cache
    starts = [1.0] + [0.0] * (end + k)  # chance that a block starts at a position
    cost = blocks = 0.0
    for position in range(end):
        chance, cache = starts[position], extent.first_cache + position
        if chance == 0:
            continue
        guesses = acceptance.guesses(position, min(k, extent.context - cache - 1))
        block = guesses * extent.draft_cycles + cycles(guesses + 1, cache)
        for accepted, share in enumerate(acceptance.accepted(position, guesses)):
            inside = min(accepted + 1, end - position) / (accepted + 1)
            blocks += chance * share * inside
            cost += chance * share * inside * block
            starts[position + accepted + 1] += chance * share
    plain = sum(cycles(1, extent.first_cache + position) for position in range(end))
    return Steady(plain / end, cost / end, end / blocks)


def break_even_acceptance(k: int, extent: Extent, cycles: Cycles) -> float | None:
    """The acceptance, the same for every draft token, with which speculation costs what plain does.

    In the steady state; None if not even a perfect draft is worth it, 0 if any is.
    """

    def pays(rate: float) -> bool:
        return steady_state(k, Rates((rate,)), extent, cycles).speedup >= 1

    if not pays(1.0):
        return None
    low, high = 0.0, 1.0
    if pays(low):
        return low
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high
