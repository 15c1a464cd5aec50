"""Compares what a job left on the chip with what the simulator says, and names the difference."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from capra.cosim.jobs import Job, Words
from capra.cosim.replay import Outcome
from capra.isa.instruction import Region
from capra.isa.program import Program
from capra.isa.spec import Memory
from capra.isa.timing import Counters, count
from capra.sim.machine import Machine


@dataclass(frozen=True)
class Expected:
    """What the simulator leaves behind."""

    external: Words
    scratchpad: Words
    counters: Counters


def expected(job: Job) -> Expected:
    """Run the job on the simulator. A scratchpad without an image starts as zeros."""
    machine = Machine(job.program.chip)
    machine.external[:] = job.external
    if job.scratchpad is not None:
        machine.scratchpad[:] = job.scratchpad
    counters = machine.run(job.program)
    return Expected(machine.external, machine.scratchpad, counters)


def difference(
    job: Job, wanted: Expected, outcome: Outcome, *, any_dma: bool = False
) -> str | None:
    """The first difference as a sentence, or None when chip and simulator agree.

    A hang comes first, then memory, in the order of the instructions that wrote last, then the
    counters. With `any_dma`, for a memory with its own timing, the dma and total counters only
    have to agree with each other. Of words that start undefined, only those that the program wrote
    count.
    """
    program = job.program
    if outcome.verdict != "done":
        return (
            f"program {program.name}: {outcome.verdict} at {_text(program, outcome.index)} "
            f"in cycle {outcome.total}, expected HALT after {wanted.counters.total} cycles"
        )
    found = {
        Memory.EXTERNAL: (outcome.external, outcome.external_known, wanted.external),
        Memory.SCRATCHPAD: (outcome.scratchpad, outcome.scratchpad_known, wanted.scratchpad),
    }
    wrong = {
        memory: (words.view(np.uint32) != right.view(np.uint32)) | ~known
        for memory, (words, known, right) in found.items()
    }
    if job.scratchpad is None:
        wrong[Memory.SCRATCHPAD] &= _written(program, Memory.SCRATCHPAD)
    if job.external_known is not None:
        wrong[Memory.EXTERNAL] &= _written(program, Memory.EXTERNAL) | job.external_known
    place = _first(program, wrong)
    if place is not None:
        memory, address, index = place
        words, known, right = found[memory]
        bits = f"{words[address].view(np.uint32):08x}" if known[address] else "unknown bits"
        where = f"{memory} word {address}{_tensor(program, memory, address, index)}"
        return (
            f"program {program.name}: {where}, last written by {_text(program, index)}, is {bits}, "
            f"expected {right[address].view(np.uint32):08x}"
        )
    return _counter_difference(program, wanted.counters, outcome, any_dma)


def _counter_difference(
    program: Program, wanted: Counters, outcome: Outcome, any_dma: bool
) -> str | None:
    names = wanted.by_unit()
    for name, cycles in outcome.counters.by_unit().items():
        if cycles != names[name] and not (any_dma and name == "dma"):
            return f"program {program.name}: counter {name} is {cycles}, expected {names[name]}"
    if outcome.total != outcome.counters.total:
        return (
            f"program {program.name}: counter total is {outcome.total}, "
            f"expected {outcome.counters.total}, the sum of the others"
        )
    return None


def _first(
    program: Program, wrong: dict[Memory, npt.NDArray[np.bool_]]
) -> tuple[Memory, int, int | None] | None:
    """The wrong word whose last writer comes first, words that nobody wrote before all others."""
    places = {memory: bad.copy() for memory, bad in wrong.items() if bad.any()}
    if not places:
        return None
    first: tuple[Memory, int, int | None] | None = None
    for index in range(len(program.instructions) - 1, -1, -1):
        for region in program.instructions[index].writes():
            bad = places.get(region.memory)
            if bad is None:
                continue
            view = region.of(bad)
            if view.any():
                addresses = region.addresses()
                first = region.memory, int(addresses[view.ravel()][0]), index
                view[...] = False
    for memory, bad in places.items():
        if bad.any():
            return memory, int(bad.argmax()), None
    return first


def _written(program: Program, memory: Memory) -> npt.NDArray[np.bool_]:
    chip = program.chip
    size = chip.scratchpad_words if memory is Memory.SCRATCHPAD else chip.external_words
    written = np.zeros(size, dtype=bool)
    for inst in program.instructions:
        for region in inst.writes():
            if region.memory is memory:
                region.of(written)[...] = True
    return written


def _text(program: Program, index: int | None) -> str:
    if index is None:
        return "no instruction"
    if index >= len(program.instructions):
        return f"instruction {index}, which does not exist"
    cycle = count(program.instructions[: index + 1]).total
    return f"instruction {index} ({program.instructions[index]}; retires in cycle {cycle})"


def _tensor(program: Program, memory: Memory, address: int, index: int | None) -> str:
    """The graph tensor and element that lives at an address after an instruction."""
    if memory is Memory.EXTERNAL:
        for slot in program.external:
            if slot.address <= address < slot.end:
                row, col = divmod(address - slot.address, slot.cols)
                return f" ({slot.kind} {slot.name}[{row}, {col}])"
        return ""
    homes = sorted(program.tensors.values(), key=lambda home: home.ready)
    for home in homes:
        writes_it = index is not None and home.first <= index <= home.ready
        if writes_it and home.base <= address < home.region.end:
            row, col = _element(home.region, address)
            if col < home.cols:
                return f" ({home.name}[{row}, {col}])"
    return ""


def _element(region: Region, address: int) -> tuple[int, int]:
    if region.rows == 1:
        return 0, address - region.base
    row, col = divmod(address - region.base, region.stride)
    return row, col
