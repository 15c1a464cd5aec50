"""Where the cycles between a run and its memory roofline went.

The memory roofline of a run is the number of words that its programs move between external memory
and the chip, at one word a cycle: every program loads its weights, its cached keys and values and
its rows once, and stores its outputs once. Those cycles are the phases `load` and `store`. Whatever
else was counted lies above the roofline, and belongs to exactly one other phase.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from capra.isa.spec import PHASES, Phase, Unit
from capra.report.layout import PlainTable, plain_table

ROOFLINE: Final = (Phase.LOAD, Phase.STORE)
NAMES: Final[Mapping[Phase, str]] = {phase: phase.value.replace("_", " ") for phase in Phase}
"""Phases as words."""


@dataclass(frozen=True, slots=True)
class Row:
    """The cycles of one phase."""

    phase: Phase
    cycles: int

    @property
    def name(self) -> str:
        """The phase in words."""
        return NAMES[self.phase]

    @property
    def unit(self) -> Unit:
        """The unit that spent them."""
        return PHASES[self.phase][0]

    @property
    def meaning(self) -> str:
        """What the phase is."""
        return PHASES[self.phase][1]


@dataclass(frozen=True, slots=True)
class Attribution:
    """All cycles of a cost: those of the roofline, and those above it. Phases of none left out."""

    roofline: tuple[Row, ...]
    above: tuple[Row, ...]

    @property
    def roofline_cycles(self) -> int:
        """The memory roofline: words moved, at one a cycle."""
        return sum(row.cycles for row in self.roofline)

    @property
    def cycles(self) -> int:
        """All cycles."""
        return self.roofline_cycles + sum(row.cycles for row in self.above)


def attribute(cost: Mapping[str, Any]) -> Attribution:
    """The attribution of anything with `cycles_by_phase`: a run, a program, a cell."""
    rows = [Row(p, cost["cycles_by_phase"][p]) for p in Phase if cost["cycles_by_phase"].get(p)]
    return Attribution(
        tuple(row for row in rows if row.phase in ROOFLINE),
        tuple(row for row in rows if row.phase not in ROOFLINE),
    )


def attribution_table(record: Mapping[str, Any]) -> PlainTable:
    """The attribution of a profile for a terminal."""
    found = attribute(record)
    table = plain_table(record["program"], "unit", "cycles", "share")
    table.columns[1].justify = "left"

    def add(name: str, unit: str, cycles: int) -> None:
        table.add_line(name, unit, f"{cycles:,}", f"{cycles / found.cycles:.1%}")

    for row in found.roofline:
        add(row.name, row.unit, row.cycles)
    add("memory roofline", "", found.roofline_cycles)
    for row in found.above:
        add(row.name, row.unit, row.cycles)
    add("all cycles", "", found.cycles)
    return table
