"""Running sweeps: every cell once, on whatever pool, and only what is not stored."""

from collections import Counter
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest
from tests.lab.sweeps import SPEC, FakePool, row_of, sweep_of
from tests.lm.samples import text_model

from capra.errors import SweepError
from capra.lab.sweep import local
from capra.lab.sweep import run as module
from capra.lab.sweep.cell import Cell, Row
from capra.lab.sweep.database import open_database
from capra.lab.sweep.local import LocalPool
from capra.lab.sweep.pool import run_cells
from capra.lab.sweep.run import run_sweep
from capra.lab.sweep.spec import Sweep
from capra.lm.checkpoint import save_checkpoint

DYING = 3
"""Cells before the pool that dies does so."""


def rows_of(sweep: Sweep, path: Path, *pools: FakePool | LocalPool) -> list[Row]:
    """The rows after one run on each pool, those that die included."""
    for pool in pools:
        with open_database(path, [*sweep.cells]) as database:
            try:
                run_sweep(sweep, database, lambda _left, pool=pool: pool)  # type: ignore[misc]
            except KeyboardInterrupt:
                assert len(database.stored()) == DYING
    with open_database(path, [*sweep.cells]) as database:
        return database.rows()


def test_rows_come_in_the_order_of_the_spec(tmp_path: Path, seed: int) -> None:
    sweep = sweep_of(tmp_path)
    one, three = FakePool(1), FakePool(3, seed)
    rows = rows_of(sweep, tmp_path / "one.sqlite", one)
    assert [row["key"] for row in rows] == list(sweep.cells)
    assert [row["k"] for row in rows] == [cell.k for cell in sweep.cells.values()]
    assert [row["refusal"] is None for row in rows] == [True] * 8 + [False]
    assert all(row["tokens_equal"] for row in rows[:8])
    assert rows_of(sweep, tmp_path / "three.sqlite", three) == rows
    assert one.closed and three.closed


def test_processes_give_the_same_rows(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path)
    expected = rows_of(sweep, tmp_path / "fake.sqlite", FakePool(1))
    assert rows_of(sweep, tmp_path / "local.sqlite", LocalPool(2, {})) == expected


def test_what_is_stored_is_not_run_again(tmp_path: Path, seed: int) -> None:
    sweep = sweep_of(tmp_path)
    first, second = FakePool(2, seed, dies_after=DYING), FakePool(2, seed)
    rows = rows_of(sweep, tmp_path / "spec.sqlite", first, second)
    assert first.closed
    assert Counter(cell for _, cell in first.ran + second.ran) == Counter(sweep.cells.values())
    assert rows == rows_of(sweep, tmp_path / "whole.sqlite", FakePool(1))


def test_a_complete_sweep_makes_no_pool(tmp_path: Path) -> None:
    sweep = sweep_of(tmp_path)
    rows_of(sweep, tmp_path / "spec.sqlite", FakePool(1))

    def no_pool(left: int) -> FakePool:
        raise AssertionError(f"a pool for {left} cells")

    with open_database(tmp_path / "spec.sqlite", [*sweep.cells]) as database:
        run_sweep(sweep, database, no_pool)


def test_a_sweep_that_lost_a_cell_does_not_end_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = sweep_of(tmp_path)
    first, *others = sweep.cells
    monkeypatch.setattr(
        module, "run_cells", lambda _pool, cells: [(cell, row_of(cell)) for cell in cells[1:]]
    )
    with open_database(tmp_path / "spec.sqlite", [*sweep.cells]) as database:
        with pytest.raises(AssertionError, match=f"cells without a row: .*{first}"):
            run_sweep(sweep, database, lambda _left: FakePool(1))
        assert database.stored() == set(others)


def test_a_grown_spec_runs_the_new_cells_only(tmp_path: Path) -> None:
    small, pool = sweep_of(tmp_path), FakePool(1)
    rows_of(small, tmp_path / "spec.sqlite", FakePool(1))
    grown = sweep_of(tmp_path, SPEC.replace("k = [1, 2]", "k = [0, 1, 2]"))
    rows = rows_of(grown, tmp_path / "spec.sqlite", pool)
    assert [row["key"] for row in rows] == list(grown.cells)
    assert [cell.k for _, cell in pool.ran] == [0] * 4


def test_a_worker_stays_with_its_target_while_it_can(seed: int) -> None:
    cells = [Cell(model="random", model_seed=s, max_new_tokens=1, k=k)
             for k in range(6) for s in (1, 2)]  # fmt: skip
    pool = FakePool(2, seed, run=lambda _cell: {})
    assert {cell for cell, _ in run_cells(pool, cells)} == set(cells)
    for worker in (0, 1):
        own = [cell.model_seed for at, cell in pool.ran if at == worker]
        changes = sum(before != after for before, after in pairwise(own))
        assert changes <= 1, "only to help with the other's, when its own are done"
    first = {worker: cell.model_seed for worker, cell in reversed(pool.ran)}
    assert set(first.values()) == {1, 2}


def test_workers_share_a_target_where_there_is_one_only(seed: int) -> None:
    cells = [Cell(model="random", max_new_tokens=1, k=k) for k in range(12)]
    pool = FakePool(3, seed, run=lambda _cell: {})
    assert {cell for cell, _ in run_cells(pool, cells)} == set(cells)
    assert {worker for worker, _ in pool.ran} == {0, 1, 2}


def test_a_worker_that_dies_is_named_and_loses_its_cell_only(tmp_path: Path) -> None:
    sweep, path = sweep_of(tmp_path), tmp_path / "spec.sqlite"
    pool = LocalPool(2, {})

    def kill(_row: Row) -> None:
        pool.processes[1].kill()

    death = rf"worker 1 \(process {pool.processes[1].pid}\) died with exit code -9, expected"
    with open_database(path, [*sweep.cells]) as database:
        with pytest.raises(SweepError, match=death):
            run_sweep(sweep, database, lambda _left: pool, kill)
        stored = database.stored()
    assert 1 <= len(stored) < len(sweep.cells)
    assert not any(process.is_alive() for process in pool.processes)
    rows = rows_of(sweep, path, FakePool(1))
    assert rows == rows_of(sweep, tmp_path / "whole.sqlite", FakePool(1))


def test_a_file_that_changed_stops_the_sweep_and_loses_no_row(tmp_path: Path) -> None:
    file = tmp_path / "mine.safetensors"
    save_checkpoint(text_model(), file, {})
    content = file.read_bytes()
    sweep = sweep_of(
        tmp_path, f"[[grid]]\nmodel = '{file}'\nprompt = 'ab'\nmax_new_tokens = 2\nk = [1, 2, 3, 4]"
    )
    path, pool = tmp_path / "spec.sqlite", LocalPool(1, sweep.files)

    def change(_row: Row) -> None:
        file.write_text("other")

    with open_database(path, [*sweep.cells]) as database:
        with pytest.raises(SweepError, match=f"the file {file} has the digest .*, expected"):
            run_sweep(sweep, database, lambda _left: pool, change)
        assert 1 <= len(database.stored()) <= 2
    file.write_bytes(content)
    rows = rows_of(sweep, path, LocalPool(1, sweep.files))
    assert [row["refusal"] for row in rows] == [None] * 4


def test_an_answer_without_a_row_waits_for_the_rows_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.safetensors"
    save_checkpoint(text_model(), file, {})
    good = Cell(model="random", max_new_tokens=2)
    with closing(LocalPool(2, {str(file): "of another file"})) as pool:
        pool.submit(0, Cell(model=str(file), prompt="a", max_new_tokens=2))
        pool.submit(1, good)
        with monkeypatch.context() as patch:
            patch.setattr(local, "wait", lambda pipes: [pipe for pipe in pipes if pipe.poll(60)])
            assert pool.finished() == [(1, row_of(good))]
        pool.submit(1, good)
        with pytest.raises(SweepError, match=f"the file {file} has the digest .*, expected of ano"):
            pool.finished()


def test_all_rows_that_came_are_stored_before_a_worker_is_found_dead(tmp_path: Path) -> None:
    class Dying(FakePool):
        """Both workers finish their first cells at a time, and the first one is dead then."""

        def submit(self, worker: int, cell: Cell) -> None:
            if self.ran:
                raise SweepError(f"worker {worker} died")
            super().submit(worker, cell)

        def finished(self) -> list[tuple[int, Row]]:
            return super().finished() + super().finished()

    sweep = sweep_of(tmp_path)
    with open_database(tmp_path / "spec.sqlite", [*sweep.cells]) as database:
        with pytest.raises(SweepError, match="died"):
            run_sweep(sweep, database, lambda _left: Dying(2))
        assert len(database.stored()) == 2


def test_a_dead_worker_is_told_when_a_cell_is_sent() -> None:
    with closing(LocalPool(1, {})) as pool:
        pool.processes[0].kill()
        pool.processes[0].join()
        with pytest.raises(SweepError, match=r"worker 0 .* died with exit code -9"):
            pool.submit(0, Cell())
            pool.finished()
