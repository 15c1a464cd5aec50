"""Counted cycles: the five counters of GA2, and what a sequence of instructions adds to them.

No instruction's cost depends on data, so a program's counters are known before it runs. The
simulator still counts them one instruction at a time, as the chip does.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from capra.isa.code import Code
from capra.isa.instruction import FORMS, Instruction
from capra.isa.spec import CONTROL_CYCLES, Phase, Unit


@dataclass(frozen=True, slots=True)
class Counters:
    """Cycles by unit. total = matrix + dma + vector + control, since units never overlap."""

    matrix: int = 0
    dma: int = 0
    vector: int = 0
    control: int = 0

    @property
    def total(self) -> int:
        """All cycles."""
        return self.matrix + self.dma + self.vector + self.control

    def __add__(self, other: "Counters") -> "Counters":
        return Counters(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def by_unit(self) -> dict[str, int]:
        """The four unit counters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def count(instructions: Sequence[Instruction]) -> Counters:
    """What executing these instructions, each once, adds to the counters."""
    code = Code.of(instructions)
    cycles = dict.fromkeys(Unit, 0)
    cycles[Unit.CONTROL] = CONTROL_CYCLES * len(code)
    for group in code.groups:
        cycles[group.op.unit] += int(group.cycles.sum())
    return Counters(**{unit.value: n for unit, n in cycles.items()})


def phases_of(inst: Instruction) -> dict[Phase, int]:
    """What all cycles of an instruction are spent on, fetch and decode first."""
    spent = inst.phases
    return {Phase.FETCH: CONTROL_CYCLES + spent.pop(Phase.FETCH, 0), **spent}


def phases_of_all(instructions: Sequence[Instruction]) -> dict[Phase, int]:
    """What all cycles of several instructions are spent on; phases of no cycle left out."""
    code = Code.of(instructions)
    spent = [{Phase.FETCH: CONTROL_CYCLES * len(code)}]
    for group in code.groups:
        for phase, cycles in FORMS[group.op.mnemonic].phases:
            spent.append({phase: int(group.evaluated(cycles).sum())})
    return sum_phases(spent)


def sum_phases(parts: Iterable[Mapping[Phase, int]]) -> dict[Phase, int]:
    """The sum of several phase counts, in the order of the phases; those of no cycle left out."""
    cycles = dict.fromkeys(Phase, 0)
    for part in parts:
        for phase, n in part.items():
            cycles[phase] += n
    return {phase: n for phase, n in cycles.items() if n}


def sum_counters(parts: Iterable[Counters]) -> Counters:
    """The sum of several counters; all zero when there are none."""
    return sum(parts, Counters())
