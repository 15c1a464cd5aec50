"""The GA2 simulator: executes a program on its memories, exact to the bit and to the cycle."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from typing import Final, Literal, cast, get_args

import numpy as np

from capra.errors import InputError, PoisonError, ProgramError
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, Region
from capra.isa.program import Program
from capra.isa.spec import CONTROL_CYCLES, Memory, Unit
from capra.isa.timing import Counters
from capra.numerics import UInt64Array
from capra.sim.execute import Action, Words, allocate, bind

POISON = 0x5A5A5A5A
"""What a poisoned machine fills its memories with; nothing may depend on it."""


@dataclass(frozen=True, slots=True)
class TraceLine:
    """One executed instruction."""

    index: int
    cycle: int
    """Total cycles when it retired, its own included."""
    instruction: Instruction
    written: tuple[tuple[Region, tuple[int, ...]], ...]
    """Each region it wrote with the words that are there now, row by row."""

    def __str__(self) -> str:
        parts = [f"{self.index:5d} {self.cycle:9d} {self.instruction}"]
        for region, words in self.written:
            shown = " ".join(map(str, words[:8])) + (" ..." if len(words) > 8 else "")
            parts.append(f"{region.memory}[{region.base}..{region.end - 1}] = {shown}")
        return " | ".join(parts)


Trace = Callable[[TraceLine], None]


Step = tuple[Action, Unit, int]
"""What an instruction does, and the cycles that it adds to its unit's counter."""

Engine = Literal["auto", "readable", "compiled"]
ENGINES: Final = get_args(Engine)
"""What executes instructions: numpy calls, or one loop in machine code, which needs numba.

auto compiles what is long enough, where numba is installed.
"""

COMPILED_CYCLES: Final = 100_000
"""The shortest program that auto compiles: loading numba takes about a second."""


class BoundProgram:
    """A program tied to the memories of one machine, ready to run many times."""

    def __init__(self, machine: "Machine", program: Program) -> None:
        self.machine = machine
        self.program = program

    @cached_property
    def steps(self) -> list[Step]:
        """For the readable engine: what to call, one after the other."""
        memories, code = self.machine.memories, self.program.code
        steps: dict[int, Step] = {}
        for group in code.groups:
            rows = zip(
                group.at.tolist(), group.operands.T.tolist(), group.cycles.tolist(), strict=True
            )
            for index, operands, cycles in rows:
                steps[index] = (bind(group.op, operands, memories), group.op.unit, cycles)
        return [steps[index] for index in range(len(code))]

    @cached_property
    def code(self) -> UInt64Array:
        """For the compiled engine: one row of numbers an instruction."""
        from capra.sim import compiled

        return compiled.encode(self.program.code)


class Machine:
    """One chip with its memories. Words are int32; both memories start as zeros.

    With `poison`, every word starts as never written, and reading one raises PoisonError. The host
    writes external memory through `write_external`, which marks its words as written; those stay
    so, while every run starts with a scratchpad that nobody wrote.

    `engine` is the environment's CAPRA_ENGINE unless given. A machine with poison and a run that is
    observed use the readable engine whatever it says. Raises InputError for an unknown engine, or
    for the compiled one without numba.
    """

    def __init__(self, chip: Chip, *, poison: bool = False, engine: Engine | None = None) -> None:
        self.chip = chip
        self.memories = allocate(chip.external_words, chip.scratchpad_words)
        self._engine = _checked_engine(engine or os.environ.get("CAPRA_ENGINE", "auto"))
        self._written: dict[Memory, np.ndarray] | None = None
        if poison:
            self.external.fill(POISON)
            self.scratchpad.fill(POISON)
            self._written = {
                Memory.EXTERNAL: np.zeros(chip.external_words, dtype=bool),
                Memory.SCRATCHPAD: np.zeros(chip.scratchpad_words, dtype=bool),
            }

    @property
    def external(self) -> Words:
        """External memory, a live array."""
        return self.memories.external

    @property
    def scratchpad(self) -> Words:
        """The scratchpad, a live array."""
        return self.memories.scratchpad

    def write_external(self, address: int, words: np.ndarray) -> None:
        """The host writes words, flattened row by row, from an address on."""
        flat = words.reshape(-1)
        self.external[address : address + len(flat)] = flat
        if self._written is not None:
            self._written[Memory.EXTERNAL][address : address + len(flat)] = True

    def read_external(self, region: Region) -> Words:
        """The host reads words. Raises PoisonError, on a poisoned machine, if nobody wrote one."""
        if self._written is not None:
            self._check_written("the host", region)
        return region.of(self.external).copy()

    def bind(self, program: Program) -> BoundProgram:
        """Tie a program to this machine's memories; the result may be run any number of times."""
        if program.chip != self.chip:
            raise ProgramError(
                f"program {program.name} is for {program.chip}, expected one for {self.chip}"
            )
        return BoundProgram(self, program)

    def run(
        self,
        program: Program | BoundProgram,
        *,
        trace: Trace | None = None,
        after: Callable[[int], None] | None = None,
    ) -> Counters:
        """Execute to HALT and return the counters, which start at zero.

        `trace` receives a line and `after` the index of every instruction, once it has retired.
        Raises PoisonError, on a poisoned machine, when an instruction reads a word nobody wrote.
        """
        bound = program if isinstance(program, BoundProgram) else self.bind(program)
        if bound.machine is not self:
            raise ProgramError(
                f"program {bound.program.name} is bound to another machine, expected this one"
            )
        if trace is None and after is None and self._written is None:
            if self._is_compiled(bound.program):
                return self._run_compiled(bound)
            spent = dict.fromkeys(Unit, 0)
            for action, unit, cycles in bound.steps:
                action()
                spent[Unit.CONTROL] += CONTROL_CYCLES
                spent[unit] += cycles
            return Counters(**spent)
        return self._run_observed(bound, trace, after)

    def _is_compiled(self, program: Program) -> bool:
        if self._engine == "auto":
            return program.cycles >= COMPILED_CYCLES and has_numba()
        return self._engine == "compiled"

    def _run_compiled(self, bound: BoundProgram) -> Counters:
        from capra.sim import compiled

        spent = compiled.run(bound.code, self.external, self.scratchpad)
        return Counters(**dict(zip(compiled.UNITS, spent.tolist(), strict=True)))

    def _run_observed(
        self, bound: BoundProgram, trace: Trace | None, after: Callable[[int], None] | None
    ) -> Counters:
        spent = dict.fromkeys(Unit, 0)
        if self._written is not None:
            self._written[Memory.SCRATCHPAD][:] = False
        for index, (action, unit, cycles) in enumerate(bound.steps):
            inst = bound.program.instructions[index]
            self._check_poison(index, inst)
            action()
            spent[Unit.CONTROL] += CONTROL_CYCLES
            spent[unit] += cycles
            if trace is not None:
                written = tuple((region, self._words(region)) for region in inst.writes())
                trace(TraceLine(index, sum(spent.values()), inst, written))
            if after is not None:
                after(index)
        return Counters(**spent)

    def _words(self, region: Region) -> tuple[int, ...]:
        memory = self.scratchpad if region.memory is Memory.SCRATCHPAD else self.external
        return tuple(region.of(memory).ravel().tolist())

    def _check_poison(self, index: int, inst: Instruction) -> None:
        if self._written is None:
            return
        for region in inst.reads():
            self._check_written(f"instruction {index} ({inst})", region)
        for region in inst.writes():
            region.of(self._written[region.memory])[...] = True

    def _check_written(self, reader: str, region: Region) -> None:
        assert self._written is not None
        written = region.of(self._written[region.memory])
        if not written.all():
            word = region.addresses()[~written.ravel()][0]
            raise PoisonError(f"{reader} reads {region.memory} word {word}, which nobody wrote")


@cache
def has_numba() -> bool:
    """Whether the compiled engine can run here."""
    return find_spec("numba") is not None


def _checked_engine(name: str) -> Engine:
    if name not in ENGINES:
        raise InputError(f"the engine is {name!r}, expected one of {', '.join(ENGINES)}")
    if name == "compiled" and not has_numba():
        raise InputError(
            "the engine is 'compiled', expected numba: pip install '.[fast]' in the checkout"
        )
    return cast(Engine, name)
