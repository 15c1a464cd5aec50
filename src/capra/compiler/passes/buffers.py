"""The buffers pass: live ranges, and scratchpad addresses with reuse.

A buffer lives from the first operation that writes any word of it to the last one that reads any
word through any view. Two buffers may share words when their lives do not meet; the life ends
after its last operation, so an operation never writes over what it reads.

First fit, in the order of first use, comes first. It leaves holes: a longer cache may fit where a
shorter one does not. Where it fails, other layouts are tried, and last of them stacks, which need
more words but never more for smaller buffers (see `words_stacked` and `words_piled`).
"""

from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from capra.compiler.ops import Op, reads, writes
from capra.errors import CapacityError


@dataclass(frozen=True, slots=True)
class Buffer:
    """Words base .. base + words - 1, owned from operation `first` to operation `last`."""

    name: str
    base: int
    words: int
    first: int
    last: int


class _Life(NamedTuple):
    """The words of a buffer and its first and last operation."""

    words: int
    first: int
    last: int

    def meets(self, other: "_Life") -> bool:
        """True when there is an operation at which both are needed."""
        return self.first <= other.last and other.first <= self.last


_Lives = Mapping[str, _Life]
"""By buffer, in order of first use."""

_Bases = dict[str, int]
"""The first word of every buffer."""


def allocate_buffers(
    ops: Sequence[Op], scratchpad_words: int, *, reuse: bool = True
) -> Mapping[str, Buffer]:
    """Every buffer with its address, in order of first use.

    Without reuse no two buffers share a word. Raises CapacityError, naming the buffer and the words
    of the first fit, when no layout fits.
    """
    lives = _live_ranges(ops)
    bases = _first_fit(lives, reuse=reuse)
    if reuse and _end(lives, bases) > scratchpad_words:
        bases = _another_layout(lives, scratchpad_words) or bases
    for name, life in lives.items():
        if bases[name] + life.words > scratchpad_words:
            raise CapacityError(
                f"the scratchpad needs {bases[name] + life.words} words for {name.lstrip('%')}, "
                f"expected at most {scratchpad_words}"
            )
    return {name: Buffer(name, bases[name], *life) for name, life in lives.items()}


def words_stacked(ops: Sequence[Op]) -> int:
    """The words that the buffers need as a stack, a layout that `allocate_buffers` tries.

    Buffers that live longest lie at the bottom, and each lies on top of all below it that it meets,
    whatever the holes. So the same operations on smaller buffers never need more.
    """
    lives = _live_ranges(ops)
    return _end(lives, _stacked(lives, _longest_first(lives)))


def words_piled(ops: Sequence[Op]) -> int:
    """The words of a stack in the order of first use, which `allocate_buffers` tries last.

    It needs more words, but some of the operations, on smaller buffers, never need more than all of
    them, as long as every buffer that is left keeps its first operation.
    """
    lives = _live_ranges(ops)
    return _end(lives, _stacked(lives, lives))


def _first_fit(lives: _Lives, *, reuse: bool) -> _Bases:
    """Each buffer at the lowest address that is free when it is first written."""
    bases: _Bases = {}
    live: list[tuple[int, int, int]] = []  # (base, end, last), by base
    for name, life in lives.items():
        if reuse:
            live = [block for block in live if block[2] >= life.first]
        base = _lowest_gap(live, life.words)
        insort(live, (base, base + life.words, life.last))
        bases[name] = base
    return bases


def _another_layout(lives: _Lives, limit: int) -> _Bases | None:
    """The first of the other layouts that fits, if any does."""
    largest_first = sorted(lives, key=lambda name: -lives[name].words)
    layouts: tuple[Callable[[], _Bases], ...] = (
        lambda: _in_gaps(lives, largest_first),
        lambda: _in_gaps(lives, _longest_first(lives)),
        lambda: _stacked(lives, _longest_first(lives)),
        lambda: _stacked(lives, lives),
    )
    bases = (layout() for layout in layouts)
    return next((found for found in bases if _end(lives, found) <= limit), None)


def _in_gaps(lives: _Lives, order: Iterable[str]) -> _Bases:
    """Each buffer, in this order, at the lowest address free for all of its life."""
    bases: _Bases = {}
    for name in order:
        met = [other for other in bases if lives[other].meets(lives[name])]
        blocks = sorted((bases[other], bases[other] + lives[other].words, 0) for other in met)
        bases[name] = _lowest_gap(blocks, lives[name].words)
    return bases


def _longest_first(lives: _Lives) -> list[str]:
    return sorted(lives, key=lambda name: lives[name].first - lives[name].last)


def _stacked(lives: _Lives, order: Iterable[str]) -> _Bases:
    """Each buffer, in this order, on top of all that it meets."""
    bases: _Bases = {}
    for name in order:
        met = (other for other in bases if lives[other].meets(lives[name]))
        bases[name] = max((bases[other] + lives[other].words for other in met), default=0)
    return bases


def _lowest_gap(blocks: Iterable[tuple[int, int, int]], words: int) -> int:
    """The lowest address of so many words between blocks, which are sorted by their base."""
    base = 0
    for block_base, block_end, _ in blocks:
        if block_base - base >= words:
            break
        base = max(base, block_end)
    return base


def _end(lives: _Lives, bases: _Bases) -> int:
    """One past the last word of a layout."""
    return max((bases[name] + life.words for name, life in lives.items()), default=0)


def _live_ranges(ops: Sequence[Op]) -> _Lives:
    """The life of every buffer, in order of first use."""
    ranges: dict[str, _Life] = {}
    for index, op in enumerate(ops):
        for place in (*reads(op), *writes(op)):
            words, first, _ = ranges.get(place.buffer, (0, index, index))
            ranges[place.buffer] = _Life(max(words, place.end), first, index)
    return ranges
