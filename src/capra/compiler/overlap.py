"""The overlap checker: does every word still hold what its reader expects?

It shares no code with the allocator. It replays the memory traffic of the finished instructions
and keeps, for every scratchpad word, the instruction that wrote it last. A tensor is intact when,
at the end of its life, each of its words was last written by one of its own instructions: none
before its first (a stale word) and none after its last (an overwritten one). And no instruction
may read a word that nobody wrote.
"""

from collections import defaultdict

import numpy as np

from capra.isa.program import Program, TensorHome
from capra.isa.spec import Memory

_NEVER = -1


def check_overlaps(program: Program) -> None:
    """Assert that no tensor is overwritten while it lives and that every word read was written.

    A failure is a compiler bug, hence an AssertionError naming instruction and tensor.
    """
    ends: dict[int, list[TensorHome]] = defaultdict(list)
    for home in program.tensors.values():
        ends[home.until].append(home)
    last_write = np.full(program.chip.scratchpad_words, _NEVER, dtype=np.int64)
    for index, inst in enumerate(program.instructions):
        for region in inst.reads():
            if region.memory is Memory.SCRATCHPAD:
                assert region.of(last_write).min() > _NEVER, (
                    f"{program.name}, instruction {index} ({inst}) reads a scratchpad word of "
                    f"{region.base} .. {region.end - 1} which no instruction wrote"
                )
        for region in inst.writes():
            if region.memory is Memory.SCRATCHPAD:
                region.of(last_write)[...] = index
        for home in ends[index]:
            written = home.region.of(last_write)
            oldest, newest = int(written.min()), int(written.max())
            assert oldest >= home.first, (
                f"{program.name}: {home.name}, written by instructions {home.first} .. "
                f"{home.ready}, holds a word that instruction {oldest} wrote"
            )
            assert newest <= home.ready, (
                f"{program.name}: {home.name}, whole after instruction {home.ready} and needed "
                f"until {home.until}, is overwritten by instruction {newest} "
                f"({program.instructions[newest]})"
            )
