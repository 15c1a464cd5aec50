"""`capra --help`: commands under headings, each with the whole first sentence of what it does."""

from collections.abc import Mapping
from typing import Any, Final

from typer.core import TyperGroup

PANELS: Final[Mapping[str, tuple[str, ...]]] = {
    "Run": ("decode", "trace", "table", "grid", "sweep"),
    "Decide whether to speculate": ("bench", "plan", "serving"),
    "Inspect programs and records": ("report", "anatomy", "compile", "dis", "profile"),
    "Prove and compare": ("certify", "causality", "replay"),
    "Models": ("eval", "train"),
}
"""Commands by heading, those that are used most first."""

OTHERS: Final = "Others"
"""The heading of what has none."""


class PanelGroup(TyperGroup):
    """A group of commands that --help lists under their headings."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write a section per heading; no description is cut, a long one goes on below."""
        names = self.list_commands(ctx)
        placed = {name for panel in PANELS.values() for name in panel}
        panels = {**PANELS, OTHERS: tuple(name for name in names if name not in placed)}
        widest = max(map(len, names))
        for heading, panel in panels.items():
            rows = [
                (f"{name:{widest}}", _first_sentence(self.commands[name].help or ""))
                for name in panel
                if name in self.commands
            ]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)


def _first_sentence(text: str) -> str:
    """The first sentence of the first paragraph, as one line."""
    paragraph = " ".join(text.split("\n\n", 1)[0].split())
    return paragraph.split(". ", 1)[0].rstrip(".") + "."
