"""A device that remembers what it executed, so that the same runs can be replayed on the RTL."""

from collections.abc import Callable

import numpy as np

from capra.cosim.compare import Expected
from capra.cosim.jobs import Job
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.isa.timing import Counters
from capra.numerics import IntArray
from capra.sim.device import SimulatedDevice

OnExecution = Callable[[Job, Expected], None]


class RecordingDevice(SimulatedDevice):
    """A simulated chip that hands each execution on: the memories before it, and what it left.

    In a job, only the words that the host wrote for it are known: a program may rely on no others.
    The images hold all words, so a job without `external_known` starts as the simulator did.
    """

    def __init__(self, chip: Chip, on_execution: OnExecution) -> None:
        super().__init__(chip)
        self._on_execution = on_execution

    def fill(self, external: IntArray, scratchpad: IntArray) -> None:
        """Give both memories other words than zeros before the first execution."""
        self._machine.external[:] = external
        self._machine.scratchpad[:] = scratchpad

    def _run(self, program: Program) -> Counters:
        machine = self._machine
        known = np.zeros(machine.chip.external_words, dtype=bool)
        for slot in program.slots("input", "weight"):
            known[slot.address : slot.end] = True
        job = Job(program, machine.external.copy(), machine.scratchpad.copy(), known)
        counters = super()._run(program)
        left = Expected(machine.external.copy(), machine.scratchpad.copy(), counters)
        self._on_execution(job, left)
        return counters
