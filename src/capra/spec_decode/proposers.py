"""Proposers: whatever guesses the next tokens of a text.

A draft may be good, bad or mad; it changes speed, never output. Besides the draft model there are
the proposers that tests and experiments need, each with a known behaviour.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Protocol

from capra.errors import InputError
from capra.lm.target import ProgramRun


@dataclass(frozen=True, slots=True)
class Proposal:
    """Guesses, first one first, and the programs that it took to make them."""

    tokens: tuple[int, ...]
    runs: tuple[ProgramRun, ...] = ()


class Proposer(Protocol):
    """Guesses how a text goes on."""

    @property
    def vocab_size(self) -> int | None:
        """Tokens that it knows; None for one that has no vocabulary of its own."""
        ...

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        """At most `count` guesses for the tokens after `text`, which is never empty."""
        ...


def ask(proposer: Proposer, text: Sequence[int], count: int) -> Proposal:
    """What a proposer proposes, as plain integers, at most `count` of them.

    The proposer gets a list of its own: whatever it does to that list, the text stays as it is.
    Raises InputError for an answer that is no Proposal, for too many tokens, and for a token that
    is not a whole number. Tokens outside the vocabulary are no error.
    """
    found = proposer.propose(list(text), count)
    if not isinstance(found, Proposal):
        raise InputError(f"the draft answered {found!r}, expected a Proposal")
    for what, value in (("tokens", found.tokens), ("runs", found.runs)):
        if not isinstance(value, Iterable):
            raise InputError(f"the draft's {what} are {value!r}, expected a sequence")
    tokens = whole_tokens("the draft proposed", found.tokens)
    if len(tokens) > count:
        raise InputError(f"the draft proposed {len(tokens)} tokens, expected at most {count}")
    return Proposal(tokens, tuple(found.runs))


def whole_tokens(who: str, tokens: Iterable[object]) -> tuple[int, ...]:
    """Tokens as plain integers; InputError, starting with `who`, for one that is not whole."""
    given = list(tokens)
    try:
        return tuple(index(token) for token in given)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"{who} {given!r}, expected whole numbers") from None


class NextToken(Protocol):
    """A draft model that guesses one token from the last one."""

    @property
    def vocab_size(self) -> int:
        """Tokens that it knows."""
        ...

    def next(self, token: int) -> tuple[int, tuple[ProgramRun, ...]]:
        """The guess, and the programs that it took."""
        ...


class ChainProposer:
    """Guesses one token after the other, each from the guess before it."""

    def __init__(self, draft: NextToken) -> None:
        self._draft = draft

    @property
    def vocab_size(self) -> int | None:
        """The draft model's vocabulary."""
        return self._draft.vocab_size

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        """A chain of `count` guesses that starts from the last token of the text."""
        token, tokens, runs = text[-1], list[int](), list[ProgramRun]()
        for _ in range(count):
            token, made = self._draft.next(token)
            tokens.append(token)
            runs += made
        return Proposal(tuple(tokens), tuple(runs))


class ConstantProposer:
    """Always the same token."""

    vocab_size = None

    def __init__(self, token: int) -> None:
        self._token = token

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        """The token, `count` times."""
        return Proposal((self._token,) * count)


class RandomProposer:
    """Tokens drawn evenly from a vocabulary, from a seed."""

    def __init__(self, vocab_size: int, seed: int) -> None:
        self._size = vocab_size
        self._draw = random.Random(seed)

    @property
    def vocab_size(self) -> int | None:
        """The vocabulary that it draws from."""
        return self._size

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        """`count` fresh draws."""
        return Proposal(tuple(self._draw.randrange(self._size) for _ in range(count)))


class ScriptedProposer:
    """Knows the target's whole text, and is right exactly as often as it is told to be.

    `text` is the prompt and the target's continuation. `accept` gives the number of right guesses
    of each block in turn, the last one for all later blocks; None stands for all of them. The guess
    after the right ones is wrong, the ones behind it are right again, which must not help.
    """

    vocab_size = None

    def __init__(self, text: Sequence[int], vocab_size: int, accept: Sequence[int | None]) -> None:
        if not accept:
            raise InputError("the script accepts no counts, expected at least one")
        self._text = tuple(text)
        self._size = vocab_size
        self._accept = tuple(accept)
        self._blocks = 0

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        """The target's own next tokens, with one made wrong; shorter where its text ends."""
        right = self._accept[min(self._blocks, len(self._accept) - 1)]
        self._blocks += 1
        guesses = list(self._text[len(text) : len(text) + count])
        if right is not None and right < len(guesses):
            guesses[right] = (guesses[right] + 1) % self._size
        return Proposal(tuple(guesses))


def always_right(text: Sequence[int], vocab_size: int) -> ScriptedProposer:
    """Every guess is the target's own token, given its whole text."""
    return ScriptedProposer(text, vocab_size, [None])


def always_wrong(text: Sequence[int], vocab_size: int) -> ScriptedProposer:
    """The first guess of every block is wrong, given the target's whole text.

    In a vocabulary of one token no guess can be.
    """
    return ScriptedProposer(text, vocab_size, [0])


def right_at_rates(
    text: Sequence[int], vocab_size: int, rates: Sequence[float], seed: int
) -> ScriptedProposer:
    """Right at random: guess j of a block with chance rates[j], if the guesses before it are.

    The last rate holds for all later guesses. The draws of a seed are the same for every number of
    guesses a block.
    """
    if not rates:
        raise InputError("the rates are empty, expected at least one")
    draw = random.Random(seed)

    def right() -> int:
        for guess in range(len(text)):
            if draw.random() >= rates[min(guess, len(rates) - 1)]:
                return guess
        return len(text)

    return ScriptedProposer(text, vocab_size, [right() for _ in text])


class OutsideProposer:
    """Proposes an id outside the vocabulary, after `right` guesses of another proposer."""

    def __init__(self, inner: Proposer, right: int, token: int) -> None:
        self._inner = inner
        self._right = right
        self._token = token

    @property
    def vocab_size(self) -> int | None:
        """The other proposer's."""
        return self._inner.vocab_size

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        """The other's guesses with one replaced by the outside id."""
        proposal = self._inner.propose(text, count)
        tokens = list(proposal.tokens)
        if self._right < len(tokens):
            tokens[self._right] = self._token
        return Proposal(tuple(tokens), proposal.runs)
