"""The database of a sweep: one SQLite file, one transaction a row.

    sweep(name, value)       form: of these tables; build: what made the rows
    cells(position, key)     the cells of the spec that was swept last, in its order
    rows(key, ...)           the columns of a row, in the order in which they were stored

A killed process loses the rows that were not stored yet and no other. A power failure may lose the
last ones stored, which are then run again.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from capra.errors import InputError
from capra.files import check_writable
from capra.lab.sweep.build import build
from capra.lab.sweep.cell import COLUMNS, Row

FORM: Final = "capra sweep 1"
WAIT_SECONDS: Final = 60.0
"""For another process that reads or writes the file."""

_TYPES: Final = {str: "TEXT", int: "INTEGER", float: "REAL", bool: "BOOLEAN"}


class Database:
    """An open database; see `open_database`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def stored(self) -> set[str]:
        """Keys of the rows that are there."""
        return {key for (key,) in self._connection.execute("SELECT key FROM rows")}

    def insert(self, row: Row) -> None:
        """Store a row, which must not be there."""
        marks = ", ".join("?" * len(COLUMNS))
        values = [row[name] for name in COLUMNS]
        self._connection.execute(f"INSERT INTO rows VALUES ({marks})", values)  # noqa: S608

    def rows(self) -> list[Row]:
        """The stored rows of the spec's cells, in the order of the spec."""
        names = ", ".join(f"rows.{name}" for name in COLUMNS)
        found = self._connection.execute(
            f"SELECT {names} FROM rows JOIN cells USING (key) ORDER BY position"  # noqa: S608
        )
        return [
            {
                name: bool(value) if kind is bool and value is not None else value
                for (name, kind), value in zip(COLUMNS.items(), values, strict=True)
            }
            for values in found
        ]


def files_of(path: Path) -> list[Path]:
    """The files of the database at a path: it, and those that SQLite keeps beside it."""
    return [path, *(path.with_name(f"{path.name}-{part}") for part in ("wal", "shm", "journal"))]


@contextmanager
def open_database(path: Path, keys: Sequence[str]) -> Iterator[Database]:
    """The database at a path for the cells with these keys, made where there is none.

    A spec may grow: stored rows stay as they are. Raises InputError for a file that is not the
    database of a sweep, that has rows of other cells or of another build, that another process
    sweeps into, or that cannot be written.
    """
    check_writable(path)
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    try:
        _lock(lock, path)
        with closing(sqlite3.connect(path, WAIT_SECONDS, isolation_level=None)) as connection:
            _prepare(connection, path, keys)
            yield Database(connection)
    except sqlite3.Error as error:
        raise InputError(f"cannot use {path} as the database of a sweep: {error}") from None
    finally:
        os.close(lock)  # after SQLite's own locks, which it would release


def _lock(handle: int, path: Path) -> None:
    """Held while the process lives; SQLite's own locks let others read between two rows."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(
            f"another process sweeps into {path}, expected none; wait for it or name another "
            "--database"
        ) from None


def _prepare(connection: sqlite3.Connection, path: Path, keys: Sequence[str]) -> None:
    """Make or check the tables, and write down the cells."""
    expected = {"form": FORM, "build": build()}
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    if tables:
        found = (
            dict(connection.execute("SELECT name, value FROM sweep")) if "sweep" in tables else {}
        )
        _check_origin(found, expected, path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    with connection:
        if not tables:
            columns = ", ".join(f"{name} {_TYPES[kind]}" for name, kind in COLUMNS.items())
            connection.execute("CREATE TABLE sweep (name TEXT PRIMARY KEY, value TEXT)")
            connection.execute("CREATE TABLE cells (position INTEGER PRIMARY KEY, key TEXT UNIQUE)")
            connection.execute(f"CREATE TABLE rows ({columns}, PRIMARY KEY (key))")
            connection.executemany("INSERT INTO sweep VALUES (?, ?)", expected.items())
        connection.execute("DELETE FROM cells")
        connection.executemany("INSERT INTO cells VALUES (?, ?)", enumerate(keys))
        ((others,),) = connection.execute(
            "SELECT count(*) FROM rows WHERE key NOT IN (SELECT key FROM cells)"
        )
        if others:
            raise InputError(
                f"{path} has {others:,} rows of cells that the spec and its files do not have, "
                "expected none; name another --database"
            )


def _check_origin(found: Mapping[str, str], expected: Mapping[str, str], path: Path) -> None:
    if found.get("form") != expected["form"]:
        raise InputError(f"{path} is a database, but not one of a sweep of this form ({FORM})")
    if found["build"] != expected["build"]:
        raise InputError(
            f"{path} has rows of {found['build']}, expected {expected['build']}; name another "
            "--database"
        )
