"""The buffers pass: live ranges, and scratchpad addresses by first fit with reuse.

A buffer lives from the first operation that writes any word of it to the last one that reads any
word through any view. Two buffers may share words when their lives do not meet; the life ends
after its last operation, so an operation never writes over what it reads.
"""

from bisect import insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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


def allocate_buffers(
    ops: Sequence[Op], scratchpad_words: int, *, reuse: bool = True
) -> Mapping[str, Buffer]:
    """Every buffer with its address, in order of first use.

    Without reuse no two buffers share a word. Raises CapacityError, naming the buffer and the
    words, when they do not fit.
    """
    buffers: dict[str, Buffer] = {}
    live: list[tuple[int, int, int]] = []  # (base, end, last), by base
    for name, (words, first, last) in _live_ranges(ops).items():
        if reuse:
            live = [block for block in live if block[2] >= first]
        base = 0
        for block_base, block_end, _ in live:
            if block_base - base >= words:
                break
            base = block_end
        if base + words > scratchpad_words:
            raise CapacityError(
                f"the scratchpad needs {base + words} words for {name.lstrip('%')}, expected at "
                f"most {scratchpad_words}"
            )
        insort(live, (base, base + words, last))
        buffers[name] = Buffer(name, base, words, first, last)
    return buffers


def _live_ranges(ops: Sequence[Op]) -> Mapping[str, tuple[int, int, int]]:
    """(words, first operation, last operation) of every buffer, in order of first use."""
    ranges: dict[str, tuple[int, int, int]] = {}
    for index, op in enumerate(ops):
        for place in (*reads(op), *writes(op)):
            words, first, _ = ranges.get(place.buffer, (0, index, index))
            ranges[place.buffer] = (max(words, place.end), first, index)
    return ranges
