"""The recorded experiments: capra table and capra grid."""

from typing import Annotated

import typer

from capra.cli.app import app
from capra.cli.options import JsonOption, OptimizeOption, RtlOption
from capra.cli.output import (
    exit_unless_equal,
    finish_replays,
    print_json,
    print_rtl,
    print_table,
    progress_bar,
    rtl_verifier,
)
from capra.cli.runs import record_head


@app.command(epilog="Example: capra table --json")
def table(
    rtl: RtlOption = None, optimize: OptimizeOption = "0", as_json: JsonOption = False
) -> None:
    """The seven recorded runs of the tiny models: 32 tokens, plain and speculative."""
    from capra.compiler.optimization import names_of, parse_optimization
    from capra.lab.experiments import RUNS, table_runs

    passes = parse_optimization(optimize)
    verifier = rtl_verifier(rtl)
    with progress_bar("runs", RUNS) as advance:
        if verifier is None:
            runs = table_runs(lambda _run: advance(), optimize=passes)
        else:
            runs = table_runs(lambda _run: advance(), verifier.device, passes)
    record = {**record_head("table"), "optimize": names_of(passes), "runs": runs}
    mismatch = finish_replays(verifier, record)
    if as_json:
        print_json(record)
    else:
        from capra.report.experiments import runs_table

        print_table(runs_table(record))
        print_rtl(record)
    exit_unless_equal(runs, mismatch)


@app.command(epilog="Example: capra grid")
def grid(
    predict: Annotated[
        bool,
        typer.Option(
            "--predict", help="Predict every cell too, in three ways, and show the errors."
        ),
    ] = False,
    optimize: OptimizeOption = "0",
    as_json: JsonOption = False,
) -> None:
    """Speedup and acceptance of the structured model over draft noise and k: 25 runs."""
    from capra.compiler.optimization import names_of, parse_optimization
    from capra.lab.experiments import CELLS, grid_cells

    passes = parse_optimization(optimize)
    with progress_bar("runs", CELLS) as advance:
        cells = grid_cells(lambda _cell: advance(), passes, predict=predict)
    record = {**record_head("grid"), "optimize": names_of(passes), "cells": cells}
    if as_json:
        print_json(record)
    else:
        from capra.report.experiments import grid_table, prediction_tables

        print_table(grid_table(record))
        for table in prediction_tables(cells) if predict else ():
            print()
            print_table(table)
    exit_unless_equal(cells)
