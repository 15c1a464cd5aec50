"""Speculative decoding: the loop, for any target and any proposer.

A block is the last token of the text and the proposer's guesses. One pass of the target gives its
own choice after each row. Guesses are accepted up to the first that is not the target's choice;
the choice after the last accepted row comes free: the bonus token when every guess was right, the
recovered token otherwise. Every emitted token is the target's choice after accepted tokens only,
hence the text is the target's greedy text whatever the proposer is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from capra.errors import InputError
from capra.lm.model import check_token
from capra.lm.target import Forward, ProgramRun
from capra.spec_decode.proposers import Proposal, Proposer, ask, whole_tokens

StopReason = Literal["length", "stop", "context"]


class Session(Protocol):
    """The cache of one text."""

    @property
    def length(self) -> int:
        """Rows in the cache."""
        ...

    def prefill(self, tokens: Sequence[int]) -> tuple[ProgramRun, ...]:
        """Append tokens without asking what follows them."""
        ...

    def forward(self, tokens: Sequence[int]) -> Forward:
        """Append a block; the target's choice after each row."""
        ...

    def truncate(self, length: int) -> None:
        """Drop all rows but the first `length`."""
        ...


class Target(Protocol):
    """A model whose text is to be continued."""

    vocab_size: int
    max_context: int
    """Most rows of a session."""

    def session(self) -> Session:
        """A session with an empty cache."""
        ...


@runtime_checkable
class FiniteTarget(Protocol):
    """A target that may be too small for a run, and knows so before it starts."""

    def check_fit(
        self, prompt: int, new_tokens: int, speculative_tokens: int, *, shorten_last_block: bool
    ) -> None:
        """Raise CapacityError unless every program that the run may need fits."""
        ...


@dataclass(frozen=True, slots=True)
class Block:
    """One pass of the target."""

    tokens: tuple[int, ...]
    """The rows: the last token of the text, then the guesses that could be checked."""
    proposed: tuple[int, ...]
    """All guesses, those outside the vocabulary and behind them included."""
    choices: tuple[int, ...]
    """The target's choice after each row."""
    accepted: int
    runs: tuple[ProgramRun, ...]
    """Programs of the draft and of the target, in order."""

    @property
    def emitted(self) -> tuple[int, ...]:
        """The accepted guesses and the target's own next token."""
        return self.choices[: self.accepted + 1]


@dataclass(frozen=True, slots=True)
class Decoded:
    """A continuation and everything that was run for it."""

    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    """The continuation, cut to the length asked for and after the first stop token."""
    stop_reason: StopReason
    blocks: tuple[Block, ...]
    prefill: tuple[ProgramRun, ...]
    cache_length: int
    """Rows that the session kept."""

    @property
    def runs(self) -> tuple[ProgramRun, ...]:
        """Every executed program, in order."""
        return self.prefill + tuple(run for block in self.blocks for run in block.runs)


def count_accepted(guesses: Sequence[int], choices: Sequence[int]) -> int:
    """Length of the longest prefix of guesses that are the target's own choices."""
    accepted = 0
    while accepted < len(guesses) and guesses[accepted] == choices[accepted]:
        accepted += 1
    return accepted


def decode(
    target: Target,
    prompt: Sequence[int],
    max_new_tokens: int,
    *,
    proposer: Proposer | None = None,
    num_speculative_tokens: int = 0,
    stop_token: int | None = None,
    shorten_last_block: bool = False,
    on_tokens: Callable[[Sequence[int]], None] = lambda _tokens: None,
) -> Decoded:
    """Continue a prompt by `max_new_tokens`, up to a stop token, or while there is context.

    With no speculative tokens this is plain decoding, one token a pass. `on_tokens` receives the
    new tokens of the result as they come. A block never reaches past the context: it is shortened.
    With `shorten_last_block` it does not reach past the last token asked for either; else every
    block has as many guesses, as the recorded runs do.

    Raises CapacityError where a program that the run may need does not fit the target's chip, and
    InputError for an empty prompt, one longer than the context, tokens outside the
    vocabulary, negative counts, guesses without a proposer, or one of another vocabulary.
    """
    _check(target, prompt, max_new_tokens, proposer, num_speculative_tokens, stop_token)
    prompt = [int(token) for token in prompt]
    if isinstance(target, FiniteTarget):
        target.check_fit(
            len(prompt), max_new_tokens, num_speculative_tokens,
            shorten_last_block=shorten_last_block,
        )  # fmt: skip
    session = target.session()
    if max_new_tokens == 0:
        return Decoded(tuple(prompt), (), "length", (), (), 0)
    prefill = session.prefill(prompt[:-1])
    text, blocks, new = list(prompt), list[Block](), 0
    reason: StopReason = "context"
    while session.length < target.max_context:
        room = target.max_context - session.length - 1
        if shorten_last_block:
            room = min(room, max_new_tokens - new - 1)
        block = _advance(target, session, text, proposer, min(num_speculative_tokens, room))
        blocks.append(block)
        text += block.emitted
        fresh = _cut(block.emitted, max_new_tokens - new, stop_token)
        new += len(fresh)
        on_tokens(fresh)
        if fresh[-1] == stop_token or new == max_new_tokens:
            reason = "stop" if fresh[-1] == stop_token else "length"
            break
    start = len(prompt)
    tokens = tuple(text[start : start + new])
    return Decoded(tuple(prompt), tokens, reason, tuple(blocks), prefill, session.length)


def _advance(
    target: Target, session: Session, text: list[int], proposer: Proposer | None, count: int
) -> Block:
    """Propose, verify, accept, and rewind the cache to what was accepted."""
    proposal = ask(proposer, text, count) if proposer and count else Proposal(())
    guesses: list[int] = []
    for token in proposal.tokens:
        if not 0 <= token < target.vocab_size:
            break  # cannot be the target's choice, nor can anything behind it be accepted
        guesses.append(token)
    start = session.length
    rows = (text[-1], *guesses)
    forward = session.forward(rows)
    choices = whole_tokens("the target chose", forward.choices)
    if len(choices) != len(rows):
        raise InputError(
            f"the target chose {len(choices)} tokens, expected {len(rows)}, one per row"
        )
    accepted = count_accepted(guesses, choices)
    session.truncate(start + 1 + accepted)
    return Block(rows, proposal.tokens, choices, accepted, proposal.runs + tuple(forward.runs))


def _cut(emitted: Sequence[int], limit: int, stop_token: int | None) -> Sequence[int]:
    """The part of a block's tokens that belongs to the result: at least one token."""
    kept = emitted[:limit]
    return kept[: kept.index(stop_token) + 1] if stop_token in kept else kept


def _check(
    target: Target,
    prompt: Sequence[int],
    max_new_tokens: int,
    proposer: Proposer | None,
    num_speculative_tokens: int,
    stop_token: int | None,
) -> None:
    if not len(prompt):
        raise InputError("the prompt is empty, expected at least one token")
    if len(prompt) > target.max_context:
        raise InputError(
            f"the prompt has {len(prompt)} tokens, expected at most {target.max_context}, the "
            "context"
        )
    for token in prompt:
        check_token("prompt token", token, target.vocab_size)
    if stop_token is not None:
        check_token("stop token", stop_token, target.vocab_size)
    counts = (
        ("the number of new tokens", max_new_tokens),
        ("the number of speculative tokens", num_speculative_tokens),
    )
    for what, value in counts:
        if not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"{what} is {value}, expected a whole number of at least 0")
    if num_speculative_tokens and proposer is None:
        raise InputError(
            f"{num_speculative_tokens} speculative tokens without a draft, expected a proposer"
        )
    known = proposer.vocab_size if proposer else None
    if known is not None and known != target.vocab_size:
        raise InputError(
            f"the draft has a vocabulary of {known} tokens, expected {target.vocab_size}, the "
            "target's"
        )
