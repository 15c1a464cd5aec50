"""A device: something that executes programs for the host. Here, the simulator."""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import RLock
from typing import Final, Protocol

import numpy as np

from capra.errors import ProgramError, RangeError
from capra.isa.chip import Chip
from capra.isa.program import Program, Slot
from capra.isa.spec import Phase
from capra.isa.timing import Counters
from capra.numerics import Int64Array, IntArray, check_int8
from capra.sim.machine import BoundProgram, Machine

BOUND_INSTRUCTIONS: Final = 50_000
"""Bound programs are kept up to this many instructions in all (about 1 KiB each)."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What a program left behind: its output tensors as integers, and the counters."""

    outputs: Mapping[str, Int64Array]
    counters: Counters
    phases: Mapping[Phase, int] = field(default_factory=dict)
    """What the cycles were spent on."""
    weight_words: int = 0
    """Words of weights that were loaded."""


class Device(Protocol):
    """Executes a program on a chip, given its inputs and weights as integers by tensor name.

    Threads that share a target or a draft call its device at the same time.
    """

    def execute(self, program: Program, feeds: Mapping[str, IntArray]) -> Execution:
        """Run the program once and read its outputs."""
        ...


class SimulatedDevice:
    """One simulated chip. Programs stay bound to its memories, least recently used dropped.

    Threads may share it: an execution waits for the one before it to end.
    """

    def __init__(self, chip: Chip, *, poison: bool = False) -> None:
        self._lock = RLock()  # held from the first feed that is written to the last output read
        self._machine = Machine(chip, poison=poison)
        self._bound: OrderedDict[int, BoundProgram] = OrderedDict()
        self._bound_instructions = 0

    def execute(self, program: Program, feeds: Mapping[str, IntArray]) -> Execution:
        """Write the feeds to their slots, run, and read the output slots.

        Raises ProgramError for a feed that is missing, of another shape, or not int8.
        """
        feeds = {
            slot.name: _checked(program, slot, feeds) for slot in program.slots("input", "weight")
        }
        with self._lock:
            for slot in program.slots("input", "weight"):
                self._machine.write_external(slot.address, feeds[slot.name])
            counters = self._run(program)
            outputs = {
                slot.name: self._machine.read_external(slot.region).astype(np.int64)
                for slot in program.slots("output")
            }
        return Execution(outputs, counters, program.phases, program.weight_words)

    def _run(self, program: Program) -> Counters:
        return self._machine.run(self._bind(program))

    def _bind(self, program: Program) -> BoundProgram:
        bound = self._bound.pop(id(program), None)
        if bound is None:
            bound = self._machine.bind(program)
            self._bound_instructions += len(program.instructions)
            while self._bound and self._bound_instructions > BOUND_INSTRUCTIONS:
                _, dropped = self._bound.popitem(last=False)
                self._bound_instructions -= len(dropped.program.instructions)
        self._bound[id(program)] = bound
        return bound


def _checked(program: Program, slot: Slot, feeds: Mapping[str, IntArray]) -> IntArray:
    value = feeds.get(slot.name)
    shape = None if value is None else value.shape
    if value is None or shape != (slot.rows, slot.cols):
        raise ProgramError(
            f"program {program.name}: {slot.kind} {slot.name} has shape {shape}, expected "
            f"{(slot.rows, slot.cols)}"
        )
    try:
        check_int8(f"{slot.kind} {slot.name}", value)
    except RangeError as error:
        raise ProgramError(f"program {program.name}: {error}") from None
    return value
