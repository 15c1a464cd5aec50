"""The recorded experiments: capra table and capra grid."""

from typing import Any

from capra.cli.app import app
from capra.cli.options import JsonOption, RtlOption
from capra.cli.output import (
    exit_unless_equal,
    finish_replays,
    print_json,
    print_rtl,
    print_table,
    progress_bar,
    rtl_verifier,
)


@app.command(epilog="Example: capra table --json")
def table(rtl: RtlOption = None, as_json: JsonOption = False) -> None:
    """The seven recorded runs of the tiny models: 32 tokens, plain and speculative."""
    from capra.report.tables import runs_table
    from capra.spec_decode.experiments import RUNS, table_runs

    verifier = rtl_verifier(rtl)
    with progress_bar("runs", RUNS) as advance:
        if verifier is None:
            runs = table_runs(lambda _run: advance())
        else:
            runs = table_runs(lambda _run: advance(), verifier.device)
    record: dict[str, Any] = {"kind": "table", "runs": runs}
    mismatch = finish_replays(verifier, record)
    if as_json:
        print_json(record)
    else:
        print_table(runs_table(runs))
        print_rtl(record)
    exit_unless_equal(runs, mismatch)


@app.command(epilog="Example: capra grid")
def grid(as_json: JsonOption = False) -> None:
    """Speedup and acceptance of the structured model over draft noise and k: 25 runs."""
    from capra.report.tables import grid_table
    from capra.spec_decode.experiments import CELLS, grid_cells

    with progress_bar("runs", CELLS) as advance:
        cells = grid_cells(lambda _cell: advance())
    if as_json:
        print_json({"kind": "grid", "cells": cells})
    else:
        print_table(grid_table(cells))
    exit_unless_equal(cells)
