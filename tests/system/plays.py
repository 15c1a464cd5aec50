"""Random runs: a prompt, a draft that is right, wrong, silent or outside, and how much is asked."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.system.cases import Case

from capra.spec_decode.proposers import Proposal

Guess = tuple[int, tuple[int, ...]]
"""How many of the target's own next tokens a block proposes, and what it proposes behind them."""


@dataclass(frozen=True)
class Play:
    """One run: a prompt (taken modulo the vocabulary, cut to the context), a draft, two counts."""

    prompt: tuple[int, ...] = (0,)
    guesses: tuple[Guess, ...] = ((9, ()),)
    """Of each block in turn, and then from the start again."""
    k: int = 2
    max_new_tokens: int = 99


class GuessProposer:
    """Knows the target's whole text and proposes what a play says, which may be nothing."""

    vocab_size = None

    def __init__(self, text: Sequence[int], guesses: Sequence[Guess]) -> None:
        self._text = tuple(text)
        self._guesses = guesses
        self._blocks = 0

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        right, behind = self._guesses[self._blocks % len(self._guesses)]
        self._blocks += 1
        tokens = (*self._text[len(text) : len(text) + right], *behind)
        return Proposal(tokens[:count])


def random_play(draw: random.Random, case: Case) -> Play:
    """A play that suits a case: everything from a single guess to the whole context."""
    context, vocabulary = case.context, range(-1, case.vocab_size + 1)
    guesses = tuple(
        (
            draw.choice((0, 0, 1, 2, context)),
            tuple(draw.choice(vocabulary) for _ in range(draw.randint(0, 3))),
        )
        for _ in range(draw.randint(1, 4))
    )
    return Play(
        prompt=tuple(draw.randrange(case.vocab_size) for _ in range(draw.randint(1, context))),
        guesses=guesses, k=draw.randint(1, context), max_new_tokens=draw.randint(1, context + 1),
    )  # fmt: skip
