"""The database: what it keeps, what it refuses."""

import os
import sqlite3
from pathlib import Path

import pytest

from capra.errors import InputError
from capra.lab.sweep import database as module
from capra.lab.sweep.build import build
from capra.lab.sweep.cell import COLUMNS, Row
from capra.lab.sweep.database import open_database

EMPTY: Row = dict.fromkeys(COLUMNS)
OF_KIND: dict[type, str | int | float | bool] = {str: "3", int: -3, float: 0.1 + 0.2, bool: False}
FULL: Row = {name: OF_KIND[kind] for name, kind in COLUMNS.items()}


def test_rows_come_back_as_they_were_in_the_order_of_the_cells(tmp_path: Path) -> None:
    path, first, second = tmp_path / "a", {**FULL, "key": "a"}, {**EMPTY, "key": "b"}
    with open_database(path, ["b", "x", "a"]) as database:
        database.insert(first)
        database.insert(second)
        assert database.stored() == {"a", "b"}
        assert database.rows() == [second, first]
        assert [type(v) for v in database.rows()[1].values()] == [type(v) for v in first.values()]
    with open_database(path, ["a", "b"]) as database:
        assert database.rows() == [first, second]


def test_others_see_a_row_as_soon_as_it_is_stored(tmp_path: Path) -> None:
    with open_database(tmp_path / "a", ["a"]) as database:
        database.insert({**FULL, "key": "a"})
        (found,) = sqlite3.connect(tmp_path / "a").execute("SELECT key, speedup FROM rows")
        assert found == ("a", FULL["speedup"])


def test_no_row_is_stored_twice(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"UNIQUE constraint failed: rows\.key"),
        open_database(tmp_path / "a", ["a"]) as database,
    ):
        database.insert({**EMPTY, "key": "a"})
        database.insert({**EMPTY, "key": "a"})


def test_rows_of_other_cells_are_refused_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with open_database(path, ["a", "b"]) as database:
        database.insert({**EMPTY, "key": "a"})
    with (
        pytest.raises(InputError, match="has 1 rows of cells that the spec and its files do not"),
        open_database(path, ["b", "c"]),
    ):
        pass
    with open_database(path, ["a"]) as database:
        assert [row["key"] for row in database.rows()] == ["a"]


def test_rows_of_another_build_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(tmp_path / "a", ["a"]):
        ours = build()
    monkeypatch.setattr(module, "build", lambda: "capra 9")
    with (
        pytest.raises(InputError) as refusal,
        open_database(tmp_path / "a", ["a"]),
    ):
        pass
    assert f"has rows of {ours}, expected capra 9; name another --database" in str(refusal.value)


def test_one_sweep_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with open_database(path, ["a"]):
        with (
            pytest.raises(InputError, match="another process sweeps into"),
            open_database(path, ["a"]),
        ):
            pass
        assert sqlite3.connect(path).execute("SELECT count(*) FROM cells").fetchone() == (1,)
    with open_database(path, ["a"]):
        pass


def test_files_that_are_no_database_of_a_sweep_stay_as_they_are(tmp_path: Path) -> None:
    text, foreign = tmp_path / "text", tmp_path / "foreign"
    text.write_text("no database at all, but long enough to be looked at" * 20)
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE rows (key)")
    connection.close()
    for path, part in (
        (text, "file is not a database"),
        (foreign, "is a database, but not one of a sweep"),
    ):
        before = path.read_bytes()
        with pytest.raises(InputError, match=part), open_database(path, ["a"]):
            pass
        assert path.read_bytes() == before
    for path in (tmp_path, tmp_path / "missing" / "a"):
        with pytest.raises(InputError, match="cannot write"), open_database(path, ["a"]):
            pass


def test_what_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    """SQLite would wait for the other end of a pipe."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with (
        pytest.raises(InputError, match="pipe: it is there and is not a regular file"),
        open_database(path, ["a"]),
    ):
        raise NotImplementedError("opened")
