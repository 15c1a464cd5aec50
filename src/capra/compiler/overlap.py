"""The overlap checkers: does every word still hold what its reader expects?

They share neither code nor live ranges with the allocator. `check_buffers` walks the operations and
keeps the owner of every scratchpad word: the buffer that was written there last. Whatever an
operation reads of a buffer must still be that buffer's.

`check_program` replays the memory traffic of the finished instructions and keeps, for every word,
the instruction that wrote it last. A tensor is intact when, at the end of its life, each of its
words was last written by one of its own instructions: none before its first (a stale word) and none
after its last (an overwritten one). And no instruction may read a word that nobody wrote.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from capra.compiler.ops import Op, reads, writes
from capra.compiler.passes.buffers import Buffer
from capra.compiler.passes.views import Place
from capra.isa.instruction import Region
from capra.isa.program import Program, TensorHome
from capra.isa.spec import Memory
from capra.numerics import Int64Array

_NEVER = -1


def check_buffers(ops: Sequence[Op], buffers: Mapping[str, Buffer], scratchpad_words: int) -> None:
    """Assert that every operation reads words which were last written as the buffer it reads.

    Only addresses are taken from the buffers. A failure is a compiler bug, hence an AssertionError.
    """
    number = {name: index for index, name in enumerate(buffers)}
    owner = np.full(scratchpad_words, _NEVER, dtype=np.int64)

    def words(place: Place) -> Int64Array:
        start = buffers[place.buffer].base + place.offset
        region = Region(Memory.SCRATCHPAD, start, place.rows, place.cols, place.stride)
        return region.of(owner)

    for index, op in enumerate(ops):
        sources = [(place, words(place)) for place in reads(op)]
        for written in ((), writes(op)):  # it reads before it writes, and until it ends
            for place in written:
                words(place)[...] = number[place.buffer]
            for place, owners in sources:
                assert (owners == number[place.buffer]).all(), (
                    f"operation {index} ({op}) reads words of {place.buffer} that another buffer "
                    "took"
                )


def check_program(program: Program) -> None:
    """Assert that no tensor is overwritten while it lives and that every word read was written.

    A failure is a compiler bug, hence an AssertionError naming instruction and tensor.
    """
    writes = program.code.writes(Memory.SCRATCHPAD)
    _expect_written(program, writes)
    ends: dict[int, list[TensorHome]] = defaultdict(list)
    for home in program.tensors.values():
        ends[home.until].append(home)
    last_write = np.full(program.chip.scratchpad_words, _NEVER, dtype=np.int64)
    for index, written in enumerate(writes):
        for region in written:
            region.of(last_write)[...] = index
        for home in ends[index]:
            writers = home.region.of(last_write)
            oldest, newest = int(writers.min()), int(writers.max())
            assert oldest >= home.first, (
                f"{program.name}: {home.name}, written by instructions {home.first} .. "
                f"{home.ready}, holds a word that instruction {oldest} wrote"
            )
            assert newest <= home.ready, (
                f"{program.name}: {home.name}, whole after instruction {home.ready} and needed "
                f"until {home.until}, is overwritten by instruction {newest} "
                f"({program.instructions[newest]})"
            )


def _expect_written(program: Program, writes: Sequence[Sequence[Region]]) -> None:
    """Assert that every scratchpad word that is read was written before."""
    first_write = np.full(program.chip.scratchpad_words, len(writes), dtype=np.int64)
    for index in reversed(range(len(writes))):
        for region in writes[index]:
            region.of(first_write)[...] = index
    for words, readers in program.code.words_read(Memory.SCRATCHPAD):
        is_early = first_write[words] >= readers
        if is_early.any():
            place = is_early.argmax()
            index = int(readers[place])
            raise AssertionError(
                f"{program.name}, instruction {index} ({program.instructions[index]}) reads the "
                f"scratchpad word {words[place]} which no instruction wrote"
            )
