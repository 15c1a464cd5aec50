"""Runs a compiled program on a poisoned machine and reads every tensor back where it lives."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from capra.isa.instruction import Region
from capra.isa.program import Program, TensorHome
from capra.numerics import Int64Array
from capra.sim.execute import Words
from capra.sim.machine import Machine


@dataclass(frozen=True)
class ReadBack:
    """What a program left: tensors by name from the scratchpad, outputs from external memory."""

    tensors: dict[str, Int64Array]
    outputs: dict[str, Int64Array]


def run_and_read_back(program: Program, leaves: Mapping[str, Int64Array]) -> ReadBack:
    """Run once; each tensor is read right after the last instruction that it must survive.

    Both memories are full of guard words before. Asserts that those which belong to no tensor and
    no output are there at the end, and so are the leaves.
    """
    machine = Machine(program.chip, poison=True)
    for memory in (machine.scratchpad, machine.external):
        memory[:] = _guards(memory)
    for slot in program.slots("input", "weight"):
        machine.write_external(slot.address, leaves[slot.name])
    ending: dict[int, list[TensorHome]] = defaultdict(list)
    for home in program.tensors.values():
        ending[home.until].append(home)
    tensors: dict[str, Int64Array] = {}

    def read(index: int) -> None:
        for home in ending[index]:
            words = machine.scratchpad[home.region.addresses()]
            tensors[home.name] = words.astype("int64").reshape(home.rows, home.cols)

    machine.run(program, after=read)
    check_guards("scratchpad", machine.scratchpad, [h.region for h in program.tensors.values()])
    check_guards("external", machine.external, [slot.region for slot in program.external])
    for slot in program.slots("input", "weight"):
        np.testing.assert_array_equal(slot.region.of(machine.external), leaves[slot.name])
    outputs = {
        slot.name: machine.external[slot.address : slot.end]
        .astype("int64")
        .reshape(slot.rows, slot.cols)
        for slot in program.slots("output")
    }
    return ReadBack(tensors, outputs)


def _guards(memory: Words) -> Words:
    """A word for every address, each another one."""
    return 0x5A000000 + np.arange(len(memory), dtype=np.int32)


def check_guards(name: str, memory: Words, owned: Iterable[Region]) -> None:
    """Assert that every word which is in none of these regions is still its guard word."""
    free = np.ones(len(memory), dtype=bool)
    for region in owned:
        region.of(free)[...] = False
    changed = np.flatnonzero(free & (memory != _guards(memory)))
    assert not changed.size, f"{name} words {changed[:8]} belong to nothing, but were written"
