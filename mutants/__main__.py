"""`python -m mutants GROUP [--json]`: which deliberate faults do the tests notice?

Run it from the root of a checkout. Exits with 1 when a mutant no longer applies, when one survives
without being declared equivalent, and when one that is declared so is caught.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from mutants import certify, compiled, compiler, lab, machine, report, rtl, speculation
from mutants.calls import calls_group
from mutants.generated import generated_group
from mutants.mutant import Group, MutantError, Result, check_tables, faults, record, totals
from mutants.runner import run_groups

TABLES: Final = (
    compiler.GROUP, certify.GROUP, speculation.GROUP, lab.GROUP, report.GROUP, machine.ISA,
    machine.SIMULATOR, compiled.GROUP, rtl.GROUP,
)  # fmt: skip
CALLS: Final = "calls"
GENERATED: Final = "rtl-generated"
CHOICES: Final = (*(table.name for table in TABLES), CALLS, GENERATED, "all", "ci")


def chosen(name: str, checkout: Path) -> tuple[Group, ...]:
    """The groups of a name; ci is the quick selection from every table."""
    if name == "ci":
        tables = (*TABLES, calls_group(checkout))
        quick = (replace(t, mutants=tuple(m for m in t.mutants if m.ci)) for t in tables)
        return tuple(group for group in quick if group.mutants)
    hand_written = tuple(table for table in TABLES if name in (table.name, "all"))
    makers = {CALLS: calls_group, GENERATED: generated_group}
    made = (make(checkout) for group, make in makers.items() if name in (group, "all"))
    return (*hand_written, *made)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("group", choices=CHOICES)
    parser.add_argument("--json", action="store_true", help="print the record, not a table")
    arguments = parser.parse_args()
    checkout, talk = Path.cwd(), Console(stderr=True)

    def on_result(result: Result) -> None:
        talk.print(
            f"{result.outcome:10} {result.seconds:5.1f} s  {result.name}",
            highlight=False,
            soft_wrap=True,
        )

    begin = time.perf_counter()
    results: list[Result] = []
    table = Table("group", "mutant", "outcome", "caught by", "s")
    try:
        check_tables(TABLES, checkout)
        for group, found, seconds in run_groups(
            chosen(arguments.group, checkout), checkout, on_result
        ):
            talk.print(f"{group.name}: {len(found)} mutants in {seconds:.0f} s")
            results += found
            for result in found:
                add_row(table, group.name, result)
    except MutantError as error:
        talk.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        return 1
    if arguments.json:
        spent = time.perf_counter() - begin
        print(json.dumps(record(arguments.group, results, spent), indent=2))
    else:
        Console().print(table)
        print(", ".join(f"{name} {value:.4g}" for name, value in totals(results).items()))
    wrong = list(faults(results))
    for sentence in wrong:
        talk.print(f"error: {sentence}", markup=False, highlight=False, soft_wrap=True)
    return 1 if wrong else 0


def add_row(table: Table, group: str, result: Result) -> None:
    """One line a mutant; a star marks those that only the group's full checks caught."""
    by = result.caught_by or result.argument
    star = "*" if result.full and result.outcome == "caught" else ""
    table.add_row(group, result.name, result.outcome + star, by, f"{result.seconds:.1f}")


if __name__ == "__main__":
    sys.exit(main())
