"""capra sweep."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from capra.cli.app import app
from capra.cli.options import JsonOption, positive
from capra.cli.output import exit_unless_equal, print_json, progress_bar, say, show
from capra.cli.runs import record_head
from capra.errors import InputError, SweepError

if TYPE_CHECKING:
    from capra.lab.sweep.pool import Pool


class Engine(StrEnum):
    """Where the workers are."""

    LOCAL = "local"
    RAY = "ray"


@app.command(epilog="Example: capra sweep examples/sweep.toml --csv rows.csv")
def sweep(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.toml", help="Grids of runs.")],
    database: Annotated[
        Path | None,
        typer.Option(help="SQLite file of the rows. [default: beside SPEC.toml, as SPEC.sqlite]"),
    ] = None,
    engine: Annotated[
        Engine, typer.Option(help="Processes of this machine, or actors of a Ray cluster.")
    ] = Engine.LOCAL,
    address: Annotated[
        str | None,
        typer.Option(
            help="The Ray cluster: auto, HOST:PORT, or local to start one. [default: local]"
        ),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(parser=positive, help="Cells at a time. [default: one a core]")
    ] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="Write the rows of the finished sweep as CSV.")
    ] = None,
    parquet: Annotated[
        Path | None,
        typer.Option("--parquet", help="Write them as Parquet (needs pip install '.[parquet]')."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run every cell of the grids that the database does not have yet, plain and speculative."""
    from capra.files import check_distinct, check_writable, digests
    from capra.lab.sweep.cluster import LOCAL, RayPool
    from capra.lab.sweep.database import files_of, open_database
    from capra.lab.sweep.export import load_arrow, write_csv, write_parquet
    from capra.lab.sweep.local import LocalPool, cores
    from capra.lab.sweep.run import run_sweep
    from capra.lab.sweep.spec import load_sweep

    if address is not None and engine is Engine.LOCAL:
        raise InputError(f"--address is {address!r}, expected it with --engine ray only")
    tables = [*filter(None, (csv, parquet))]
    for table in tables:
        check_writable(table)
    if parquet is not None:
        load_arrow()
    cells = load_sweep(spec)
    path = spec.with_suffix(".sqlite") if database is None else database
    check_distinct([*files_of(path), *tables], [spec, *map(Path, cells.files)])

    def make_pool(left: int) -> "Pool":
        if engine is Engine.RAY:
            return RayPool(address or LOCAL, workers, cells.files)
        return LocalPool(min(left, workers or cores()), cells.files)

    with open_database(path, [*cells.cells]) as rows:
        before = len(rows.stored())
        total, executed = len(cells.cells), 0
        again = f"rows of {total:,} are in {path}; the same command again runs the others only"

        def on_row(_row: object) -> None:
            nonlocal executed
            executed += 1
            advance()

        try:
            with _stop_signals(), progress_bar("cells", total - before) as advance:
                run_sweep(cells, rows, make_pool, on_row)
        except _Stopped as stopped:
            say(f"stopped: {before + executed:,} {again}")
            raise typer.Exit(128 + stopped.signal) from None
        except SweepError as error:
            raise SweepError(f"{error}; {before + executed:,} {again}") from None
        found = rows.rows()
    if csv is not None:
        write_csv(found, csv)
    if parquet is not None:
        write_parquet(found, parquet)
    refused = [row for row in found if row["refusal"] is not None]
    compared = [row["tokens_equal"] for row in found if row["tokens_equal"] is not None]
    record = {
        **record_head("sweep", {**digests([str(spec)]), **cells.files}, database=str(path)),
        "spec": str(spec),
        "database": str(path),
        "engine": engine.value,
        "cells": total,
        "stored_before": before,
        "executed": executed,
        "refused": len(refused),
        "tokens_equal": all(compared) if compared else None,
        "csv": None if csv is None else str(csv),
        "parquet": None if parquet is None else str(parquet),
    }
    if as_json:
        print_json(record)
    else:
        show(
            f"{total:,} cells: {before:,} were stored before, {executed:,} were executed now; "
            f"{record['refused']:,} are refusals. The rows are in {path}."
        )
    exit_unless_equal([record])
    if not compared and any(row["max_new_tokens"] for row in found):
        say("error: nothing was compared, expected at least one cell that is no refusal")
        raise typer.Exit(1)


class _Stopped(BaseException):
    """Ctrl-C or SIGTERM."""

    def __init__(self, number: int) -> None:
        self.signal = number


@contextmanager
def _stop_signals() -> Iterator[None]:
    """Both signals as _Stopped, wherever it happens to be raised."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise _Stopped(number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
