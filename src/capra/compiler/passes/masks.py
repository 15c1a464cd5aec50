"""Softmax over the keys that each row sees, as operations of the machine.

SM takes one row of neighbouring words. A row that sees the first keys only has its softmax where
its scores lie; what it does not see is written as zeros, which add nothing to a product. A row that
sees keys with gaps between them (a node of a token tree) has its scores moved together first, and
its probabilities moved apart again: a key that it does not see takes no part in maximum or sum.
"""

from collections.abc import Iterable, Iterator, Sequence

from capra.compiler.ops import Op, Requantize, SoftmaxRow
from capra.compiler.passes.views import Place
from capra.numerics import UNITY, Rescale

NOTHING = Rescale(0, 1)
"""Turns every word into 0."""

Runs = Sequence[tuple[int, int]]
"""The keys that a row sees: (first, count) of neighbours, in order."""

Mask = tuple[int, ...]
"""How many of the last keys every row is blind to."""


def mask_of(rows: Sequence[Runs], keys: int) -> Mask | None:
    """The mask of rows that see their first keys; None where one sees keys with gaps."""
    if any(len(runs) != 1 or runs[0][0] for runs in rows):
        return None
    return tuple(keys - runs[0][1] for runs in rows)


class Zeros:
    """Buffers for softmaxes in Q0.15, whose zeros are written once for all of one mask.

    Rows of one mask end in the same columns of a buffer, so they leave the same words alone.
    """

    def __init__(self, masks: Iterable[tuple[Mask, int]]) -> None:
        """Of the masks that a program has, each with its keys; without any, nothing is shared."""
        self._widest: dict[Mask, int] = {}
        for mask, keys in masks:
            if any(mask):
                self._widest[mask] = max(keys, self._widest.get(mask, 0))
        self._shared: dict[Mask, Place] = {}

    def place(self, name: str, mask: Mask, keys: int) -> tuple[Place, bool]:
        """Where a softmax of a mask goes, and whether its zeros are still to be written."""
        rows = len(mask)
        if mask not in self._widest:
            return temporary(f"{name}.fixed", rows, keys), any(mask)
        is_new = mask not in self._shared
        if is_new:
            self._shared[mask] = temporary(f"{name}.fixed", rows, self._widest[mask])
        buffer = self._shared[mask]
        return buffer.part(0, buffer.cols - keys, rows, keys), is_new


def softmax_operations(
    tensor: str, name: str, source: Place, dst: Place, rows: Sequence[Runs], rescales:
    tuple[Rescale, Rescale], zeros: Zeros,
) -> Iterator[Op]:  # fmt: skip
    """Probabilities of every row over the keys that it sees, 0 elsewhere.

    `rescales` turn a difference of scores into an index, and Q0.15 into int8. `name` is that of the
    temporaries.
    """
    index, out = rescales
    mask = mask_of(rows, source.cols)
    if mask is None:
        for row, runs in enumerate(rows):
            at = f"{name}.r{row}"
            yield from _row(tensor, at, source.row(row), dst.row(row), runs, index, out)
        return
    fixed, is_new = zeros.place(name, mask, source.cols)
    if is_new:  # before the words that the rows see are written
        blind = 1 + max(row for row, hidden in enumerate(mask) if hidden)
        hidden = (0, source.cols - max(mask), blind, max(mask))
        yield Requantize(tensor, source.part(*hidden), fixed.part(*hidden), NOTHING)
    for row, count in enumerate(mask):
        seen = (row, 0, 1, source.cols - count)
        yield SoftmaxRow(tensor, source.part(*seen), fixed.part(*seen), index)
    yield Requantize(tensor, fixed, dst, out)


def _row(
    tensor: str, name: str, source: Place, dst: Place, runs: Runs, index: Rescale, out: Rescale
) -> Iterator[Op]:
    """One row over keys with gaps: scores together, softmax, probabilities apart."""
    count, at, behind = sum(length for _, length in runs), 0, 0
    scores, fixed = (temporary(f"{name}.{what}", 1, count) for what in ("seen", "fixed"))
    for first, length in runs:
        part = source.part(0, first, 1, length)
        yield Requantize(tensor, part, scores.part(0, at, 1, length), UNITY)
        at += length
    yield SoftmaxRow(tensor, scores, fixed, index)
    at = 0
    for first, length in (*runs, (source.cols, 0)):
        if first > behind:
            gap = (0, behind, 1, first - behind)
            yield Requantize(tensor, source.part(*gap), dst.part(*gap), NOTHING)
        if length:
            part = dst.part(0, first, 1, length)
            yield Requantize(tensor, fixed.part(0, at, 1, length), part, out)
        at, behind = at + length, first + length


def temporary(name: str, rows: int, cols: int) -> Place:
    """A buffer of its own for words that no graph tensor holds. '%' keeps its name apart."""
    return Place(f"%{name}", 0, rows, cols, cols)
