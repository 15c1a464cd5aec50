"""A mutant, a group of them, and what became of one."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

Outcome = Literal["caught", "survived", "equivalent", "broken"]
"""Broken: the change is no program at all. What cannot be imported or built proves nothing."""


class MutantError(Exception):
    """A table, or the tree it is applied to, with which nothing can be measured."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change in one place of one file.

    `checks` are pytest node ids or files, in the order in which they run. A mutant with an
    `argument` is declared equivalent: no test can notice it, and the argument says why.
    """

    name: str
    file: str
    find: str | None
    """Text that must occur exactly once; None when the replacement is the whole file."""
    replace: str
    reason: str
    checks: tuple[str, ...]
    argument: str = ""
    ci: bool = False
    """Part of the quick selection that CI runs."""

    def applied(self, checkout: Path) -> str:
        """The file's text with the change. Raises MutantError unless its place is there, once."""
        if self.find is None:
            return self.replace
        path = checkout / self.file
        count = path.read_text().count(self.find) if path.is_file() else 0
        if count != 1 or self.find == self.replace:
            raise MutantError(
                f"{self.name}: {self.find!r} occurs {count} times in {self.file}, expected once"
            )
        return path.read_text().replace(self.find, self.replace)


@dataclass(frozen=True, slots=True)
class Group:
    """Mutants of one part, and the checks that run when those of a mutant let it pass."""

    name: str
    mutants: tuple[Mutant, ...]
    full: tuple[str, ...]
    keyword: str = ""
    """Pytest's -k for all checks of the group."""
    processor_seconds: int | None = None
    """What the checks of a mutant may take; one that takes more has no end, and is caught."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one mutant."""

    name: str
    file: str
    reason: str
    outcome: Outcome
    caught_by: str | None
    """The first failing test."""
    seconds: float
    full: bool
    """The mutant's own checks let it pass, and the full ones of the group ran as well."""
    argument: str
    """Why it is equivalent, if it is declared so; what went wrong, if it is broken."""

    @property
    def fault(self) -> str | None:
        """What is wrong with this outcome, if anything."""
        if self.outcome == "survived":
            return f"{self.name} survived, expected a failing test or an argument of equivalence"
        if self.outcome == "broken":
            return f"{self.name}: {self.argument}"
        if self.outcome == "caught" and self.argument:
            return f"{self.name} is declared equivalent, but {self.caught_by} caught it"
        return None


def check_tables(groups: Sequence[Group], checkout: Path) -> None:
    """Raise MutantError unless every mutant applies and every name is used once."""
    names = [mutant.name for group in groups for mutant in group.mutants]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise MutantError(f"{twice[0]} names two mutants, expected one")
    for mutant in (mutant for group in groups for mutant in group.mutants):
        mutant.applied(checkout)


def record(name: str, results: Sequence[Result], seconds: float) -> dict[str, Any]:
    """The JSON record of a run of one group; `seconds` is what the whole run took."""
    return {
        "group": name,
        "mutants": [asdict(result) for result in results],
        "totals": {**totals(results), "seconds": round(seconds, 1)},
    }


def totals(results: Sequence[Result]) -> Mapping[str, int | float]:
    """How many there are of each outcome; score = caught / (all but equivalent)."""

    def count(outcome: Outcome) -> int:
        return sum(result.outcome == outcome for result in results)

    caught, survived = count("caught"), count("survived")
    judged = caught + survived
    return {
        "mutants": len(results),
        "caught": caught,
        "survived": survived,
        "equivalent": count("equivalent"),
        "broken": count("broken"),
        "score": caught / judged if judged else 1.0,
    }


def faults(results: Sequence[Result]) -> Iterator[str]:
    """A sentence for each outcome that fails the run."""
    yield from (result.fault for result in results if result.fault is not None)
