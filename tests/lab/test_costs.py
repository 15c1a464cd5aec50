"""Costs of programs: what is filled in is what would have been compiled."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.lm.samples import chip_target, random_tokens

from capra.errors import CapacityError
from capra.lab.costs import ProgramCosts, cost_curve
from capra.lm.target import ChipTarget, Role


class _Programs:
    """A target whose programs are nothing but costs."""

    def __init__(self, cycles: Callable[[int, int], int]) -> None:
        self._cycles = cycles
        self.compiled: list[tuple[Role, int, int]] = []

    def program(self, role: Role, rows: int, cache: int) -> Any:
        self.compiled.append((role, rows, cache))
        return type("Program", (), {"cycles": self._cycles(rows, cache)})


def _costs(cycles: Callable[[int, int], int]) -> tuple[ProgramCosts, _Programs]:
    target = _Programs(cycles)
    return ProgramCosts(cast(ChipTarget, target)), target


def test_covered_costs_are_those_of_compiled_programs(seed: int) -> None:
    target = chip_target("text")
    for rows in (1, 5):
        last = target.max_context - rows
        covered = ProgramCosts(target)
        covered.cover(rows, seed, last)
        for cache in {seed, last, *random_tokens(seed, last + 1, 8)}:
            role: Role = "step" if rows == 1 else "verify"
            assert covered.cycles(rows, cache) == target.program(role, rows, cache).cycles


def _periodic(rows: int, cache: int) -> int:
    return 1000 * rows + 40 * cache + (7, 0, 3, 1)[cache % 4] - 90 * (cache == 0)


def test_few_programs_are_compiled_where_costs_rise_evenly() -> None:
    costs, target = _costs(_periodic)
    costs.cover(3, 1, 100)
    assert len(target.compiled) == 12, "both ends and the middle of the four residues"
    assert all(costs.cycles(3, cache) == _periodic(3, cache) for cache in range(1, 101))
    assert len(target.compiled) == 12
    assert {(role, rows) for role, rows, _ in target.compiled} == {("verify", 3)}


def test_costs_that_do_not_rise_evenly_are_compiled() -> None:
    for cycles in (_periodic, lambda rows, cache: rows + cache**2):
        costs, _ = _costs(cycles)
        costs.cover(2, 0, 50)
        assert all(costs.cycles(2, cache) == cycles(2, cache) for cache in range(51))


@pytest.mark.parametrize("last", [5, 6, 9])
def test_short_ranges_are_covered(last: int) -> None:
    costs, target = _costs(_periodic)
    costs.cover(1, 5, last)
    assert sorted(cache for _, _, cache in target.compiled) == list(range(5, last + 1))
    costs.cover(1, 5, 4)
    assert len(target.compiled) == last - 4, "an empty range has nothing to compile"


def test_a_step_is_a_step() -> None:
    costs, target = _costs(_periodic)
    costs.cycles(1, 3)
    costs.cycles(2, 3)
    assert target.compiled == [("step", 1, 3), ("verify", 2, 3)]


def test_the_curve_is_a_table_with_its_cliffs() -> None:
    steps = [100, 20, 20, 20, 60, 22, 22, 22, 62]
    costs, _ = _costs(lambda rows, _cache: sum(steps[:rows]))
    curve = cost_curve(costs, 9, 12)
    assert [point.rows for point in curve] == list(range(1, 10))
    assert [point.cycles for point in curve] == [sum(steps[:rows]) for rows in range(1, 10)]
    assert [point.relative for point in curve] == [sum(steps[:r]) / 100 for r in range(1, 10)]
    assert [point.added for point in curve] == pytest.approx([step / 100 for step in steps])
    assert [point.rows for point in curve if point.is_cliff] == [5, 9]


def test_a_curve_without_a_second_row_has_no_cliff() -> None:
    costs, _ = _costs(_periodic)
    assert [(point.relative, point.is_cliff) for point in cost_curve(costs, 1, 2)] == [(1.0, False)]


def test_the_curve_ends_where_programs_no_longer_fit() -> None:
    def cycles(rows: int, cache: int) -> int:
        if rows + cache > 6:
            raise CapacityError("full")
        return rows

    costs, _ = _costs(cycles)
    assert [point.rows for point in cost_curve(costs, 16, 3)] == [1, 2, 3]
    with pytest.raises(CapacityError):
        cost_curve(costs, 16, 6)
