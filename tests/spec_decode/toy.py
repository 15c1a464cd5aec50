"""A target in a few lines whose choice depends on every token before it.

Whatever a wrong loop leaves in the cache, forgets or feeds twice changes the text from there on.
"""

import zlib
from collections.abc import Sequence

import numpy as np

from capra.isa.timing import Counters
from capra.lm.target import Forward, ProgramRun, Role
from capra.spec_decode.proposers import Proposal

VOCAB = 5
CONTEXT = 12


def choice(text: Sequence[int]) -> int:
    """The token after a text."""
    return zlib.crc32(bytes(text)) % VOCAB


def plain_text(prompt: Sequence[int], count: int) -> list[int]:
    """The continuation, without any loop under test: `count` tokens or up to the context."""
    text = list(prompt)
    while len(text) < len(prompt) + count and len(text) <= CONTEXT:
        text.append(choice(text))
    return text[len(prompt) :]


class ToySession:
    """Keeps the text itself as its cache, and notes every call."""

    def __init__(self) -> None:
        self.text: list[int] = []
        self.calls: list[tuple[str, object]] = []

    @property
    def length(self) -> int:
        return len(self.text)

    def prefill(self, tokens: Sequence[int]) -> tuple[ProgramRun, ...]:
        self.calls.append(("prefill", tuple(tokens)))
        self._append(tokens)
        return (ProgramRun("prefill", len(tokens), 0, Counters(matrix=1000)),) if tokens else ()

    def forward(self, tokens: Sequence[int]) -> Forward:
        self.calls.append(("forward", tuple(tokens)))
        start = self.length
        self._append(tokens)
        choices = tuple(choice(self.text[: start + row + 1]) for row in range(len(tokens)))
        role: Role = "step" if len(tokens) == 1 else "verify"
        run = ProgramRun(role, len(tokens), start, Counters(matrix=100, control=len(tokens)))
        return Forward(choices, np.eye(VOCAB)[list(choices)], (run,))

    def truncate(self, length: int) -> None:
        self.calls.append(("truncate", length))
        assert 0 <= length <= self.length
        del self.text[length:]

    def _append(self, tokens: Sequence[int]) -> None:
        assert all(0 <= token < VOCAB for token in tokens), tokens
        self.text += tokens
        assert len(self.text) <= CONTEXT, "a block reached past the context"


class ToyTarget:
    """Makes toy sessions and keeps the last one for inspection."""

    vocab_size = VOCAB
    max_context = CONTEXT

    def __init__(self) -> None:
        self.last = ToySession()

    def session(self) -> ToySession:
        self.last = ToySession()
        return self.last


class ListProposer:
    """Proposes given lists, block by block, cut to what is asked for; then nothing."""

    vocab_size = None

    def __init__(self, proposals: Sequence[Sequence[int]]) -> None:
        self._proposals = list(proposals)
        self.asked: list[tuple[tuple[int, ...], int]] = []

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        number = len(self.asked)
        self.asked.append((tuple(text), count))
        tokens = self._proposals[number] if number < len(self._proposals) else ()
        run = ProgramRun("draft", 1, 0, Counters(vector=7))
        return Proposal(tuple(tokens[:count]), (run,) * min(count, len(tokens)))
