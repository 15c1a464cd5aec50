"""The overlap checkers: does every word still hold what its reader expects?

They share neither code nor live ranges with the allocator. `check_buffers` walks the operations and
keeps the buffers that are needed now: no two of them may share a word, and no operation may read a
word of one that none before it wrote.

`check_program` replays the memory traffic of the finished instructions. Backwards, it keeps for
every word the reader that asks for it: a write answers all later ones, and none may be left at the
start. Forwards, it keeps the instruction that wrote a word last. A tensor is intact when, at the
end of its life, each of its words was last written by one of its own instructions: none before its
first (a stale word) and none after its last (an overwritten one).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from capra.compiler.ops import Op, reads, writes
from capra.compiler.passes.buffers import Buffer
from capra.compiler.passes.views import Place
from capra.isa.code import Int32Array, Views
from capra.isa.instruction import Region
from capra.isa.program import Program
from capra.isa.spec import Memory

_NEVER = -1


def check_buffers(ops: Sequence[Op], buffers: Mapping[str, Buffer], scratchpad_words: int) -> None:
    """Assert that a buffer's words are its own from its first operation until the end of its last.

    Only addresses are taken from the buffers. Every word that is read must have been written as one
    of that buffer, and all must lie in the scratchpad. A failure is a compiler bug, hence an
    AssertionError.
    """
    touched = [(reads(op), writes(op)) for op in ops]
    words: dict[str, int] = {}
    last: dict[str, int] = {}
    for index, (sources, targets) in enumerate(touched):
        for place in sources + targets:
            words[place.buffer] = max(place.end, words.get(place.buffer, 0))
            last[place.buffer] = index
    ending: dict[int, list[str]] = defaultdict(list)
    for name, index in last.items():
        ending[index].append(name)
    # First word, one past the last, and name of every buffer that is needed, by address.
    needed = [(-1, 0, "the start"), (scratchpad_words, scratchpad_words, "the end")]
    started: dict[str, tuple[int, int, str]] = {}
    written = _Written(words)
    for index, (sources, targets) in enumerate(touched):
        for place in sources:
            assert written.has(place), (
                f"operation {index} ({ops[index]}) reads words of {place.buffer} that none before "
                "it wrote"
            )
        for place in targets:
            written.add(place)
        for name in (place.buffer for place in targets if place.buffer not in started):
            base = buffers[name].base
            block = started[name] = base, base + words[name], name
            at = bisect_left(needed, block)
            before, behind = needed[at - 1 : at + 1]
            assert before[1] <= block[0] and block[1] <= behind[0], (
                f"operation {index} ({ops[index]}) writes {name} into the words {block[0]} .. "
                f"{block[1] - 1}, expected words between {before[2]}, which ends before "
                f"{before[1]}, and {behind[2]}, which begins at {behind[0]}"
            )
            needed.insert(at, block)
        for name in ending[index]:
            del needed[bisect_left(needed, started[name])]


class _Written:
    """The words of buffers that operations have written."""

    def __init__(self, words: Mapping[str, int]) -> None:
        self._words = words
        self._whole: set[Place] = set()  # places of which every word is written
        self._unmarked: dict[str, list[Place]] = defaultdict(list)
        self._marks: dict[str, npt.NDArray[np.bool_]] = {}

    def add(self, place: Place) -> None:
        self._whole.add(place)
        self._unmarked[place.buffer].append(place)

    def has(self, place: Place) -> bool:
        """Most places are read as they were written; for others, words are marked and looked at."""
        if place not in self._whole:
            buffer = place.buffer
            if buffer not in self._marks:
                self._marks[buffer] = np.zeros(self._words[buffer], dtype=np.bool_)
            marks = self._marks[buffer]
            for each in self._unmarked.pop(buffer, ()):
                each.of(marks)[...] = True
            if not place.of(marks).all():
                return False
            self._whole.add(place)
        return True


def check_program(program: Program) -> None:
    """Assert that no tensor is overwritten while it lives and that every word read was written.

    A failure is a compiler bug, hence an AssertionError naming instruction and tensor.
    """
    words = np.zeros(program.chip.scratchpad_words, dtype=np.int32)
    read, written = program.code.views(Memory.SCRATCHPAD, words)
    _expect_written(program, words, read, written)
    _expect_intact(program, words, written)


def _expect_written(program: Program, asked_by: Int32Array, read: Views, written: Views) -> None:
    """Assert that every word that is read was written before; `asked_by` starts with zeros."""
    for index in reversed(range(len(read))):
        for view in written[index]:
            view[...] = 0
        for view in read[index]:  # comes before its own write
            view[...] = index + 1
    if asked_by.any():
        word = int(asked_by.argmax())
        index = int(asked_by[word]) - 1
        raise AssertionError(
            f"{program.name}, instruction {index} ({program.instructions[index]}) reads the "
            f"scratchpad word {word} which no instruction wrote"
        )


def _expect_intact(program: Program, last_write: Int32Array, written: Views) -> None:
    """Assert that the words of every tensor are its own at the end of its life."""
    homes = sorted(program.tensors.values(), key=lambda home: home.until)
    if not homes:
        return
    places: Any = np.array([(h.base, h.rows, h.cols, h.stride) for h in homes]).T
    views = Region(Memory.SCRATCHPAD, *places).each_of(last_write, len(homes))
    ending: dict[int, list[Int32Array]] = defaultdict(list)
    for home, view in zip(homes, views, strict=True):
        ending[home.until].append(view)
    last_write[...] = _NEVER
    writers: list[Int32Array] = []
    for index, targets in enumerate(written):
        for words in targets:
            words[...] = index
        writers += [view.flatten() for view in ending.get(index, ())]
    starts = np.cumsum([0, *map(len, writers[:-1])])
    together = np.concatenate(writers)
    oldest, newest = (f.reduceat(together, starts) for f in (np.minimum, np.maximum))
    for home, old, new in zip(homes, oldest.tolist(), newest.tolist(), strict=True):
        assert old >= home.first, (
            f"{program.name}: {home.name}, written by instructions {home.first} .. "
            f"{home.ready}, holds a word that instruction {old} wrote"
        )
        assert new <= home.ready, (
            f"{program.name}: {home.name}, whole after instruction {home.ready} and needed "
            f"until {home.until}, is overwritten by instruction {new} "
            f"({program.instructions[new]})"
        )
