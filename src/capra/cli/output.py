"""What every command prints the same way: records, tables, replays, progress, exit codes.

Results go to stdout, talk and progress to stderr.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.progress import Progress

    from capra.cosim.verify import Verifier
    from capra.isa.program import Program


def print_json(record: dict[str, Any]) -> None:
    """Print a record."""
    print(json.dumps(record, indent=2, allow_nan=False))


def print_table(content: Any) -> None:
    """Print what rich can print."""
    from rich.console import Console

    Console(highlight=False).print(content)


def say(text: str) -> None:
    """Print a line on stderr."""
    print(text, file=sys.stderr)


_display: "Progress | None" = None
"""What shows the outermost bar: rich has one display at a time, so inner bars are lines of it."""


@contextmanager
def progress_bar(
    what: str, total: int | None, *, hidden: bool = False
) -> Iterator[Callable[..., None]]:
    """A progress bar with counts on stderr where that is a terminal; yields what advances it.

    A bar inside another one is a line below it.
    """
    if hidden or not sys.stderr.isatty():
        yield lambda *_, **__: None
        return
    with _shown() as progress:
        task = progress.add_task(what, total=total)

        def advance(new_total: int | None = None, count: int = 1) -> None:
            progress.update(task, advance=count, total=total if new_total is None else new_total)

        yield advance
        progress.refresh()
        progress.remove_task(task)


@contextmanager
def _shown() -> Iterator["Progress"]:
    """The display there is, or a new one."""
    global _display
    if _display is not None:
        yield _display
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), Remaining()
    with Progress(*columns, console=Console(stderr=True), transient=True) as _display:
        try:
            yield _display
        finally:
            _display = None


def describe(program: "Program") -> str:
    """Cycles and instructions of a program, as one line."""
    counts = ", ".join(f"{n} {mnemonic}" for mnemonic, n in program.histogram().items())
    return f"{program.cycles:,} cycles, {len(program.instructions)} instructions ({counts})"


def rtl_verifier(rtl: str | None) -> "Verifier | None":
    """What replays on the named RTL simulators; nothing of it is needed without the option."""
    if rtl is None:
        return None
    from capra.cosim.toolchain import parse_simulators
    from capra.cosim.verify import Verifier

    return Verifier(parse_simulators(rtl), progress=progress_bar)


def finish_replays(verifier: "Verifier | None", record: dict[str, Any]) -> bool:
    """Add what the replays found to a record, and say the first mismatch; whether there is one."""
    if verifier is None:
        return False
    verifier.finish()
    record["rtl"] = verifier.record()
    mismatch = verifier.first_mismatch
    if mismatch is not None:
        say(f"mismatch: {mismatch}")
    return mismatch is not None


def print_rtl(record: dict[str, Any]) -> None:
    """Print what the replays of a record found, if there were any."""
    from capra.report.tables import rtl_lines

    for line in rtl_lines(record.get("rtl", {})):
        print(line)


def exit_unless_equal(records: Sequence[dict[str, Any]], mismatch: bool = False) -> None:
    """Exit with 1 where tokens or integers differ, or where the RTL did (which has been said)."""
    equal = all(record["tokens_equal"] for record in records)
    if not equal:
        say("error: speculation changed the tokens, expected those of plain decoding")
    certified = all(record["certificate"]["equal"] for record in records if "certificate" in record)
    if not certified:
        say("error: speculation changed the integers of a row, expected those of plain decoding")
    if mismatch or not equal or not certified:
        raise typer.Exit(1)
