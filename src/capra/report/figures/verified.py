"""Figures of what was verified: certificates by role, tensors by error, a replayed program."""

from collections.abc import Mapping
from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from capra.report.figures.decoding import units_against_roofline
from capra.report.figures.style import BLUE, GREEN, INK, RED, chart, show_counts
from capra.report.tables import worst_tensors
from capra.text import printable

Record = Mapping[str, Any]

KINDS: Final = (("graphs", BLUE, ""), ("programs", GREEN, "//"))


def certified(record: Record) -> tuple[Figure, str]:
    """A bar for the graphs of each role, and one for its programs where they were certified."""
    bars = [
        (f"{printable(role)} {kind}", count, colour, hatch)
        for kind, colour, hatch in KINDS
        for role, count in record[kind].items()
    ]
    figure, axes = chart(6.4, 0.34 * len(bars) + 1.2, "certified", "", rules="x")
    for place, (_, count, colour, hatch) in enumerate(bars):
        bar = axes.barh(place, count, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.5,
                        height=0.6)  # fmt: skip
        axes.bar_label(bar, [f"{count:,}"], padding=4)
    axes.set_yticks(range(len(bars)), [name for name, *_ in bars])
    axes.set_ylim(len(bars) - 0.4, -0.6)
    axes.set_xlim(0, 1.2 * max((count for _, count, *_ in bars), default=1) or 1)
    show_counts(axes.xaxis)
    told = ", ".join(f"{count:,} {name}" for name, count, *_ in bars) or "nothing"
    end = "" if record["certified"] else " before the first that could not be"
    return figure, f"Certified{end}: {told}."


def tensors(record: Record) -> tuple[Figure, str]:
    """A bar for each of the tensors with the largest relative errors, and one for the logits."""
    shown = worst_tensors(record["tensor_errors"]["tensors"])
    names = [printable(tag) for tag, _ in shown]
    shares = [100 * error["relative_l2"] for _, error in shown]
    figure, axes = chart(6.4, 0.3 * len(shown) + 1.3, "relative error (%)", "", rules="x")
    for place, (name, share) in enumerate(zip(names, shares, strict=True)):
        colour, hatch = (RED, "xx") if name == "logits" else (BLUE, "")
        bar = axes.barh(place, share, color=colour, hatch=hatch, edgecolor=INK, linewidth=0.5,
                        height=0.6)  # fmt: skip
        axes.bar_label(bar, [f"{share:.2f}"], padding=4)
    axes.set_yticks(range(len(shown)), names)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, 1.2 * max(shares) or 1)
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=INK, linewidth=0.5, label=label)
        for colour, hatch, label in ((RED, "xx", "logits"), (BLUE, "", "other tensors"))
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2)
    told = ", ".join(f"{name} {share:.2f}%" for name, share in zip(names, shares, strict=True))
    return figure, f"Relative L2 error of the chip's tensors against float: {told}."


def replayed(record: Record) -> tuple[Figure, str]:
    """Cycles by unit of a replayed program against its memory roofline."""
    return units_against_roofline([(printable(record["program"]), record)])
