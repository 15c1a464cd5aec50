"""The recorded experiments as tables."""

from collections.abc import Sequence

from rich.console import RenderableType

from capra.report.layout import Record, plain_table


def runs_table(runs: Sequence[Record]) -> RenderableType:
    """The table of the reference's runs."""
    table = plain_table(
        "model", "draft noise", "k", "accepted", "blocks", "programs", "cycles", "speedup", "equal"
    )
    for run in runs:
        plain = "decode" in run
        table.add_row(
            run["model"],
            "plain" if plain else f"{run['draft_noise']}",
            "" if plain else f"{run['k']}",
            "" if plain else f"{run['accepted']} / {run['proposed']}",
            "" if plain else f"{run['blocks']}",
            f"{run['programs']}",
            f"{run['cycles']:,}",
            "" if plain else f"{run['speedup']:.2f}",
            "yes" if run["tokens_equal"] else "NO",
        )
    return table


def grid_table(cells: Sequence[Record]) -> RenderableType:
    """Speedup, and acceptance in brackets, by draft noise and k."""
    ks = sorted({cell["k"] for cell in cells})
    table = plain_table("draft noise", *(f"k = {k}" for k in ks))
    for noise in sorted({cell["draft_noise"] for cell in cells}):
        row = {cell["k"]: cell for cell in cells if cell["draft_noise"] == noise}
        table.add_row(
            f"{noise}",
            *(f"{row[k]['speedup']:.2f} ({row[k]['acceptance_rate']:.0%})" for k in ks),
        )
    return table
