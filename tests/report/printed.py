"""What a table looks like when it is printed."""

import io

from rich.console import Console, RenderableType


def printed_rows(table: RenderableType) -> dict[str, list[str]]:
    """The rows of a printed table by their first cell."""
    console = Console(file=io.StringIO(), width=200)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    rows = [
        [cell.strip() for cell in line.split("  ") if cell.strip()]
        for line in console.file.getvalue().splitlines()
    ]
    return {row[0]: row[1:] for row in rows if row}
