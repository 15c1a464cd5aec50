"""Runs a compiled program on a poisoned machine and reads every tensor back where it lives."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from capra.isa.program import Program, TensorHome
from capra.numerics import Int64Array
from capra.sim.machine import Machine


@dataclass(frozen=True)
class ReadBack:
    """What a program left: tensors by name from the scratchpad, outputs from external memory."""

    tensors: dict[str, Int64Array]
    outputs: dict[str, Int64Array]


def run_and_read_back(program: Program, leaves: Mapping[str, Int64Array]) -> ReadBack:
    """Run once; each tensor is read right after the last instruction that it must survive."""
    machine = Machine(program.chip, poison=True)
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
    outputs = {
        slot.name: machine.external[slot.address : slot.end]
        .astype("int64")
        .reshape(slot.rows, slot.cols)
        for slot in program.slots("output")
    }
    return ReadBack(tensors, outputs)
