"""Rows as CSV and as Parquet, in the order of the spec: equal rows make equal files."""

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from capra.files import write_atomically
from capra.lab.sweep.cell import COLUMNS, Row
from capra.lab.sweep.extras import import_extra


def write_csv(rows: Sequence[Row], path: Path) -> None:
    """A heading and a line a row; None is empty, a truth is true or false, a float is exact."""
    lines = [_line(COLUMNS), *(_line(row[name] for name in COLUMNS) for row in rows)]
    write_atomically(path, "".join(lines).encode())


def _line(values: Iterable[object]) -> str:
    """The values with commas and a line feed; a text with a carriage return is quoted too.

    The module quotes what has a character of its line ends, which are both for this reason.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([str(v).lower() if isinstance(v, bool) else v for v in values])
    return text.getvalue().removesuffix("\r\n") + "\n"


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """One table with the types of COLUMNS; InputError without the extra `parquet`."""
    arrow, parquet = load_arrow()
    types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
    schema = arrow.schema([(name, types[kind]) for name, kind in COLUMNS.items()])
    data = arrow.BufferOutputStream()
    parquet.write_table(arrow.Table.from_pylist(list(rows), schema), data)
    write_atomically(path, data.getvalue().to_pybytes())


def load_arrow() -> tuple[Any, Any]:
    """The modules that write Parquet; for use before long work."""
    return import_extra("pyarrow", "parquet"), import_extra("pyarrow.parquet", "parquet")
