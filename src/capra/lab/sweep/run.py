"""Running a sweep: the cells that the database does not have yet, each stored when it comes."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict

from capra.lab.sweep.cell import Row
from capra.lab.sweep.database import Database
from capra.lab.sweep.pool import Pool, run_cells
from capra.lab.sweep.spec import Sweep


def run_sweep(
    sweep: Sweep,
    database: Database,
    make_pool: Callable[[int], Pool],
    on_row: Callable[[Row], None] = lambda _row: None,
) -> None:
    """Run what is missing on a pool, which is made only if something is.

    `make_pool` gets the number of cells that are left: more workers would have nothing to do.
    """
    stored = database.stored()
    left = [cell for key, cell in sweep.cells.items() if key not in stored]
    if not left:
        return
    with closing(make_pool(len(left))) as pool:
        for cell, results in run_cells(pool, left):
            row: Row = {"key": cell.key(sweep.files), **asdict(cell), **results}
            database.insert(row)
            on_row(row)
    missing = sweep.cells.keys() - database.stored()
    assert not missing, f"cells without a row: {missing}"
