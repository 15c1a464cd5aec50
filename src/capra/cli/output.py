"""What every command prints the same way: records, tables, replays, progress, exit codes.

Results go to stdout, talk and progress to stderr.
"""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final

import typer

from capra.errors import InputError
from capra.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress

    from capra.cosim.verify import Verifier
    from capra.isa.program import Program


MAX_COLUMNS: Final = 100_000
"""Wider than any table."""


def print_json(record: dict[str, Any]) -> None:
    """Print a record, whole or not at all; numbers of numpy are numbers.

    Raises InputError for a value that JSON does not have.
    """
    try:
        text = json.dumps(record, indent=2, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        raise InputError(f"the record is not printed, expected values of JSON: {error}") from None
    print(text)


def _number(value: Any) -> int | float | bool:
    """A number or a truth of numpy, or of another package, as Python's own."""
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    if type(value).__name__ in ("bool", "bool_"):  # numpy's is neither
        return bool(value)
    raise TypeError(f"found {value!r}, a {type(value).__name__}")


def print_table(content: Any) -> None:
    """Print a table as wide as its cells: none is cut or broken, however narrow the terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    unbounded = console.options.update(max_width=MAX_COLUMNS)
    console.width = max(console.width, console.measure(content, options=unbounded).maximum)
    console.print(content)


def show(text: str) -> None:
    """Print a line of results, without anything that a terminal would take for a command."""
    print(printable(text))


def say(text: str) -> None:
    """Print a line on stderr, as plain as results."""
    print(printable(text), file=sys.stderr)


_display: "Progress | None" = None
"""What shows the outermost bar: rich has one display at a time, so inner bars are lines of it."""


@contextmanager
def progress_bar(
    what: str, total: int | None, *, hidden: bool = False
) -> Iterator[Callable[..., None]]:
    """A progress bar on stderr where that is a terminal, with how many of how many are done.

    Yields a function that advances it by `count`, and sets the total where that was not known. A
    bar inside another one is a line below it.
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
    """Add what the replays found to a record; whether they failed, which is said.

    They fail at the first mismatch, and where there was no program to replay.
    """
    if verifier is None:
        return False
    verifier.finish()
    record["rtl"] = verifier.record()
    mismatch = verifier.first_mismatch
    if mismatch is not None:
        say(f"mismatch: {mismatch}")
    replayed = all(found["programs"] for found in record["rtl"].values())
    if not replayed:
        say("error: no program was replayed on the RTL, expected at least one")
    return mismatch is not None or not replayed


def print_rtl(record: dict[str, Any]) -> None:
    """Print what the replays of a record found, if there were any."""
    from capra.report.tables import rtl_lines

    for line in rtl_lines(record.get("rtl", {})):
        show(line)


def exit_unless_equal(records: Sequence[dict[str, Any]], mismatch: bool = False) -> None:
    """Exit with 1 where tokens or integers differ, or where the RTL did (which has been said).

    Also for a certificate of no rows: it was asked for, and says nothing. Tokens that were not
    compared, which is None, are no difference.
    """
    equal = all(record["tokens_equal"] is not False for record in records)
    if not equal:
        say("error: speculation changed the tokens, expected those of plain decoding")
    certificates = [record["certificate"]["equal"] for record in records if "certificate" in record]
    if False in certificates:
        say("error: speculation changed the integers of a row, expected those of plain decoding")
    if None in certificates:
        say("error: nothing was certified, expected at least one row")
    if mismatch or not equal or not all(certificates):
        raise typer.Exit(1)
