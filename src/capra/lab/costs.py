"""What the programs of a target cost, by rows and cache, without running them.

The cycles of a program are known when it is compiled. A run asks for many caches, and programs
of large models take a while to compile; hence `cover`, which compiles some of them and fills in
the others where the compiled ones lie on a line exactly.
"""

from dataclasses import dataclass
from statistics import median
from typing import Final

from capra.errors import CapacityError
from capra.isa.spec import ARRAY_SIZE
from capra.lm.target import ChipTarget, Role

CLIFF: Final = 1.5
"""A row is a cliff when it adds this many times what the median row adds."""


class ProgramCosts:
    """Cycles of the step and the verifiers of one target."""

    def __init__(self, target: ChipTarget) -> None:
        self._target = target
        self._known: dict[tuple[int, int], int] = {}

    def cycles(self, rows: int, cache: int) -> int:
        """Cycles of one pass over a block of `rows` after `cache` rows; CapacityError as compiled.

        One row is a plain step.
        """
        key = (rows, cache)
        if key not in self._known:
            role: Role = "step" if rows == 1 else "verify"
            self._known[key] = self._target.program(role, rows, cache).cycles
        return self._known[key]

    def cover(self, rows: int, first: int, last: int) -> None:
        """Make the costs of all caches of a range known.

        Rows of the cache are worked on in columns of ARRAY_SIZE, hence caches that far apart are
        compared: where the middle one of a range costs exactly the mean of its ends, weighted, the
        caches between lie on that line; where it does not, both halves are looked at again.
        """
        for start in range(first, min(first + ARRAY_SIZE, last + 1)):
            self._fill(rows, start, (last - start) // ARRAY_SIZE)

    def _fill(self, rows: int, start: int, steps: int) -> None:
        """Costs at start, start + ARRAY_SIZE, ... of this many steps."""

        def at(step: int) -> int:
            return self.cycles(rows, start + step * ARRAY_SIZE)

        low, rise, middle = at(0), at(steps) - at(0), steps // 2
        if steps < 2:
            return
        if rise % steps == 0 and at(middle) - low == rise // steps * middle:
            for step in range(steps):
                cache = start + step * ARRAY_SIZE
                self._known[rows, cache] = low + rise // steps * step
        else:
            self._fill(rows, start, middle)
            self._fill(rows, start + middle * ARRAY_SIZE, steps - middle)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One row count of a cost curve."""

    rows: int
    cycles: int
    relative: float
    """cycles / cycles of one row."""
    added: float
    """What this row adds to `relative`."""
    is_cliff: bool


def cost_curve(costs: ProgramCosts, max_rows: int, cache: int) -> list[CurvePoint]:
    """c(m) = cycles of m rows / cycles of one row at a cache, for m = 1 .. max_rows, as a table.

    It is no line: a row that opens another row of tiles of the matrix array costs a multiple of
    one that fills an open row of tiles. Such rows are cliffs. The curve ends where a program no
    longer fits the chip.
    """
    cycles = list[int]()
    for rows in range(1, max_rows + 1):
        try:
            cycles.append(costs.cycles(rows, cache))
        except CapacityError:
            if rows == 1:
                raise
            break
    relative = [c / cycles[0] for c in cycles]
    added = [after - before for before, after in zip([0.0, *relative[:-1]], relative, strict=True)]
    usual = median(added[1:]) if len(added) > 1 else 0.0
    return [
        CurvePoint(rows, c, r, a, rows > 1 and a > CLIFF * usual)
        for rows, (c, r, a) in enumerate(zip(cycles, relative, added, strict=True), start=1)
    ]
