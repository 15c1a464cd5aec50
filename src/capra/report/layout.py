"""What all tables share: how they look, and the type of a record."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from capra.compiler.optimization import spelled
from capra.text import printable

Record = Mapping[str, Any]


class PlainTable(Table):
    """A table whose texts are text: no markup, no control characters."""

    def __init__(self, *headers: str) -> None:
        """Without rows: the first column to the left, numbers to the right."""
        super().__init__(box=None, pad_edge=False, header_style="bold")
        for position, header in enumerate(headers):
            self.add_column(_text(header), justify="left" if position == 0 else "right")

    def add_line(self, *cells: str | Text) -> None:
        """Add a row."""
        self.add_row(*map(_text, cells))

    def set_caption(self, caption: str) -> None:
        """Write a line below the table, from its left edge on."""
        self.caption = _text(caption)
        self.caption_justify = "left"


def plain_table(*headers: str) -> PlainTable:
    """An empty table with these headers."""
    return PlainTable(*headers)


def _text(content: str | Text) -> Text:
    """As it is where it has its colours already."""
    return content if isinstance(content, Text) else Text(printable(content))


def level(record: Record) -> str:
    """How the programs of a record were compiled, as -O would say it."""
    return f"-O{spelled(frozenset(record['optimize']))}"


def counted(number: int, noun: str) -> str:
    """A number and what it counts, in the plural unless it is 1."""
    return f"{number:,} {noun}{'s' * (number != 1)}"
