"""Every integer that a run committed, against those of single steps through the same text.

The steps are the oracle: a loop of three lines that knows no prompt, no block and no draft.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from capra.lm.graphs import cache_names
from capra.lm.model import LanguageModel
from capra.lm.target import (
    ChipTarget,
    FloatSession,
    FloatTarget,
    Forward,
    IntegerSession,
    InterpretedTarget,
    ProgramRun,
)
from capra.numerics import FloatArray, Int64Array
from capra.spec_decode.decode import Decoded

AnyTarget = ChipTarget | InterpretedTarget | FloatTarget

MAKERS: dict[str, Callable[[LanguageModel], AnyTarget]] = {
    "float": FloatTarget, "interpreter": InterpretedTarget, "chip": ChipTarget,
}  # fmt: skip

FLOAT_ERROR = 1e-9
"""Float logits of a row may differ this much, relatively, from one block size to another."""


@dataclass
class WatchedSession:
    """A session that keeps the logits of the rows that it keeps; None for rows of the prefill."""

    inner: IntegerSession | FloatSession
    logits: list[FloatArray | None] = field(default_factory=list)

    @property
    def length(self) -> int:
        return self.inner.length

    def prefill(self, tokens: Sequence[int]) -> tuple[ProgramRun, ...]:
        self.logits += [None] * len(tokens)
        return self.inner.prefill(tokens)

    def forward(self, tokens: Sequence[int]) -> Forward:
        forward = self.inner.forward(tokens)
        self.logits += list(forward.logits)
        return forward

    def truncate(self, length: int) -> None:
        self.inner.truncate(length)
        del self.logits[length:]


class Watched:
    """A target that keeps its last session, watched."""

    def __init__(self, inner: AnyTarget) -> None:
        self.inner = inner
        self.vocab_size = inner.vocab_size
        self.max_context = inner.max_context

    def session(self) -> WatchedSession:
        self.last = self.watch(self.inner.session())
        return self.last

    def watch(self, session: IntegerSession | FloatSession) -> WatchedSession:
        """The session watched; the place for one that does more."""
        return WatchedSession(session)


@dataclass(frozen=True)
class Steps:
    """A prompt taken to the end of the context, token by token."""

    text: tuple[int, ...]
    """One token more than rows."""
    logits: tuple[FloatArray, ...]
    cache: Mapping[str, Int64Array]
    """Keys and values by name, a row a token; none in float."""


def take_steps(target: AnyTarget, prompt: Sequence[int], rows: int | None = None) -> Steps:
    """The first `rows` rows, or as many as the context holds."""
    session, text, logits = target.session(), list(prompt), list[FloatArray]()
    for position in range(target.max_context if rows is None else rows):
        forward = session.forward([text[position]])
        logits += list(forward.logits)
        if len(text) == position + 1:
            text += forward.choices
    return Steps(tuple(text), tuple(logits), cached_rows(target, session))


@dataclass
class Comparison:
    """How many numbers were compared, and where they differed."""

    compared: int = 0
    differing: int = 0
    first: str | None = None

    def take(self, what: str, found: Any, expected: Any) -> None:
        """Compare two equally shaped lots of integers."""
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.shape == expected.shape, f"{what}: {found.shape}, expected {expected.shape}"
        self.compared += found.size
        self.differing += int((found != expected).sum())
        if self.first is None and self.differing:
            self.first = f"{what}: {found.tolist()}, expected {expected.tolist()}"


def compare(run: Decoded, watched: Watched, steps: Steps) -> Comparison:
    """Tokens, and the logits, keys and values of every row in the cache at the end of a run.

    Float logits have to be near; integers are counted.
    """
    comparison, session, emitted = Comparison(), watched.last, emitted_tokens(run)
    start, end = len(run.prompt), len(run.prompt) + len(emitted)
    comparison.take("tokens", emitted, steps.text[start:end])
    comparison.take("result", run.tokens, emitted[: len(run.tokens)])
    assert session.length == len(session.logits) == run.cache_length
    for row, logits in enumerate(session.logits):
        assert (logits is None) == (row < start - 1)
        if isinstance(watched.inner, FloatTarget) and logits is not None:
            scale = 1 + float(np.abs(steps.logits[row]).max())
            np.testing.assert_allclose(
                logits, steps.logits[row], rtol=0, atol=FLOAT_ERROR * scale, err_msg=f"row {row}"
            )
        elif logits is not None:
            comparison.take(f"logits of row {row}", logits, steps.logits[row])
    for name, tensor in cached_rows(watched.inner, session.inner).items():
        comparison.take(name, tensor, steps.cache[name][: session.length])
    return comparison


def assert_same_rows(run: Decoded, watched: Watched, steps: Steps) -> None:
    """Nothing differs from the steps, and something was compared."""
    comparison = compare(run, watched, steps)
    assert comparison.first is None, comparison.first
    assert comparison.compared > 0


def emitted_tokens(run: Decoded) -> tuple[int, ...]:
    """What the blocks emitted, the part behind the end of the result included."""
    return tuple(token for block in run.blocks for token in block.emitted)


def cached_rows(target: AnyTarget, session: IntegerSession | FloatSession) -> dict[str, Int64Array]:
    """A copy of the keys and values of a session, by name; none in float."""
    if isinstance(session, FloatSession):
        return {}
    return {name: session.cached(name) for name in cache_names(target.model.config)}
