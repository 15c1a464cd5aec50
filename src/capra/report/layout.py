"""What all tables share: how they look, and the type of a record."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

Record = Mapping[str, Any]


def plain_table(*headers: str) -> Table:
    """An empty table: the first column to the left, numbers to the right."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for position, header in enumerate(headers):
        table.add_column(header, justify="left" if position == 0 else "right")
    return table


def counted(number: int, noun: str) -> str:
    """A number and what it counts, in the plural unless it is 1."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
