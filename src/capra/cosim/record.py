"""A device that remembers what it executed, so that the same runs can be replayed on the RTL."""

from collections.abc import Mapping

import numpy as np

from capra.cosim.jobs import Job
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.numerics import IntArray
from capra.sim.device import Execution
from capra.sim.machine import Machine


class RecordingDevice:
    """A simulated chip that keeps each execution as a Job, with the memories it started from.

    In a job, only the words that the host wrote for it are known: a program may rely on no others.
    """

    def __init__(self, chip: Chip) -> None:
        self._machine = Machine(chip)
        self.jobs: list[Job] = []

    def execute(self, program: Program, feeds: Mapping[str, IntArray]) -> Execution:
        """Write the feeds to their slots, remember the memories, run, and read the outputs."""
        machine = self._machine
        known = np.zeros(machine.chip.external_words, dtype=bool)
        for slot in program.slots("input", "weight"):
            machine.write_external(slot.address, feeds[slot.name])
            known[slot.address : slot.end] = True
        self.jobs.append(Job(program, machine.external.copy(), machine.scratchpad.copy(), known))
        counters = machine.run(program)
        outputs = {
            slot.name: machine.external[slot.address : slot.end]
            .astype(np.int64)
            .reshape(slot.rows, slot.cols)
            for slot in program.slots("output")
        }
        return Execution(outputs, counters)
