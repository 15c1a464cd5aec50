"""Figures of the table, the grid and a plan: what speculation gains, and when."""

from collections.abc import Mapping
from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from capra.report.figures.decoding import units_against_roofline
from capra.report.figures.style import BLUE, GREY, INK, LINES, RED, chart, show_counts
from capra.spec_decode.metrics import expected_tokens
from capra.text import printable

Record = Mapping[str, Any]

CURVE_POINTS: Final = 60
JITTER: Final = 0.22
GOLDEN: Final = 0.618034
"""Runs of one k are spread sideways by multiples of it, so that few hide each other."""


def table(record: Record) -> tuple[Figure, str]:
    """A bar a run: cycles, and the speedup over the plain run of its model."""
    runs = record["runs"]
    figure, axes = chart(6.4, 0.34 * len(runs) + 1.0, "cycles", "", rules="x")
    for place, run in enumerate(runs):
        plain = "decode" in run
        bar = axes.barh(place, run["cycles"], color=GREY if plain else BLUE, edgecolor=INK,
                        hatch="xx" if plain else "", linewidth=0.5, height=0.6)  # fmt: skip
        label = f"{run['cycles']:,}" + ("" if plain else f" · {run['speedup']:.2f} x")
        axes.bar_label(bar, [label], padding=4)
    axes.set_yticks(range(len(runs)), [run_name(run) for run in runs])
    axes.set_ylim(len(runs) - 0.4, -0.6)
    axes.set_xlim(0, 1.34 * max(run["cycles"] for run in runs))
    show_counts(axes.xaxis)
    told = "; ".join(
        f"{run_name(run)}: {run['cycles']:,}"
        + ("" if "decode" in run else f" ({run['speedup']:.2f} times plain)")
        for run in runs
    )
    return figure, f"Cycles of each run. {told}."


def run_name(run: Record) -> str:
    """A run of the table in a few words."""
    model = printable(run["model"])
    if "decode" in run:
        return f"{model}, plain"
    return f"{model}, noise {run['draft_noise']:g}, k = {run['k']}"


def table_units(record: Record) -> tuple[Figure, str]:
    """Cycles by unit of every run of the table against its memory roofline."""
    return units_against_roofline([(run_name(run), run) for run in record["runs"]])


def by_k(record: Record) -> tuple[Figure, str]:
    """Measured speedup of the grid against k, a line a draft.

    Where the planner predicted every cell, its numbers stand faint behind the measured ones.
    """
    cells = sorted(record["cells"], key=lambda cell: cell["k"])
    planned = all("predicted" in cell for cell in cells)
    figure, axes = chart(6.4, 3.4, "guesses in a block, k", "speedup over plain decoding")
    handles: list[Line2D] = []
    told: list[str] = []
    noises = sorted({cell["draft_noise"] for cell in cells})
    for noise, (colour, marker, dashes) in zip(noises, _repeat(len(noises)), strict=True):
        line = [cell for cell in cells if cell["draft_noise"] == noise]
        ks = [cell["k"] for cell in line]
        if planned:
            axes.plot(ks, [cell["predicted"]["profile"] for cell in line], color=colour,
                      marker=marker, linestyle="none", markersize=9, fillstyle="none",
                      alpha=0.75)  # fmt: skip
        measured = [cell["speedup"] for cell in line]
        name = f"noise {noise:g}"
        handles += axes.plot(
            ks, measured, color=colour, marker=marker, linestyle=dashes, label=name
        )
        told.append(f"{name}: {', '.join(f'{speedup:.2f}' for speedup in measured)}")
    if planned:
        handles += axes.plot([], [], color=GREY, marker="o", markersize=9, fillstyle="none",
                             linestyle="none", label="predicted by the planner")  # fmt: skip
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.set_xticks(sorted({cell["k"] for cell in cells}))
    axes.set_ylim(bottom=0)
    figure.legend(handles=handles, loc="outside right upper")
    return figure, f"Measured speedup by k, in the order of k. {'; '.join(told)}."


def _tokens(cell: Record) -> int:
    """Tokens that the blocks of a run emitted."""
    return int(cell["accepted"] + cell["blocks"])


def derived_curves(record: Record) -> tuple[Figure, str]:
    """Speedup against acceptance rate for every k, from what a block costs; cells as marks."""
    figure, axes = chart(6.4, 3.4, "acceptance rate", "speedup over plain decoding")
    ks = sorted({cell["k"] for cell in record["cells"]})
    rates = [point / CURVE_POINTS for point in range(CURVE_POINTS + 1)]
    breakeven: list[str] = []
    handles: list[Line2D] = []
    for k, (colour, marker, dashes) in zip(ks, _repeat(len(ks)), strict=True):
        cells = [cell for cell in record["cells"] if cell["k"] == k]
        per_block = sum(cell["cycles"] for cell in cells) / sum(cell["blocks"] for cell in cells)
        plain = sum(c["speedup"] * c["cycles"] for c in cells) / sum(_tokens(c) for c in cells)
        curve = [expected_tokens(rate, k) * plain / per_block for rate in rates]
        handles += axes.plot(rates, curve, color=colour, linestyle=dashes, label=f"k = {k}",
                             marker=marker, markevery=[len(rates) - 1])  # fmt: skip
        axes.plot([c["acceptance_rate"] for c in cells], [c["speedup"] for c in cells], marker,
                  color=colour, markeredgecolor=INK, markeredgewidth=0.5)  # fmt: skip
        above = next((rate for rate, gain in zip(rates, curve, strict=True) if gain > 1), None)
        breakeven.append(f"k = {k}: " + ("never" if above is None else f"{above:.0%}"))
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.set_xlim(0, 1.03)
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    figure.legend(handles=handles, loc="outside right upper")
    return figure, (
        "Curves: tokens that a block is expected to emit, over what it costs; marks: the grid's "
        f"cells. Acceptance from which a block pays: {', '.join(breakeven)}."
    )


def spread(record: Record) -> tuple[Figure, str]:
    """The speedup of every run of a bench by k, and the mean with its confidence interval."""
    figure, axes = chart(6.4, 3.6, "draft tokens per block, k", "speedup over plain decoding")
    entries = record["by_k"]
    for place, entry in enumerate(entries):
        speedups = [run["speedup"] for run in record["runs"] if run["k"] == entry["k"]]
        shifts = [JITTER * (2 * (i * GOLDEN % 1) - 1) for i in range(len(speedups))]
        axes.plot([place + shift for shift in shifts], speedups, color=BLUE, marker="o",
                  markersize=3.5, alpha=0.45, linestyle="none",
                  label="runs" if place == 0 else None)  # fmt: skip
    means = [entry["mean"] for entry in entries]
    errors = [
        [0.0 if e["low"] is None else e["mean"] - e["low"] for e in entries],
        [0.0 if e["high"] is None else e["high"] - e["mean"] for e in entries],
    ]
    axes.errorbar(range(len(entries)), means, yerr=errors, color=RED, marker="D", markersize=6,
                  capsize=5, linestyle="none", label="mean, 95 %")  # fmt: skip
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.set_xticks(range(len(entries)), [f"{entry['k']}" for entry in entries])
    axes.set_xlim(-0.6, len(entries) - 0.4)
    axes.set_ylim(bottom=0)
    figure.legend(loc="outside right upper")
    told = [
        f"k = {e['k']}: {e['mean']:.2f}{_interval(e)}, runs from {e['min']:.2f} to "
        f"{e['max']:.2f}, {e['losses']} of {e['runs']} lose"
        for e in entries
    ]
    return figure, f"Mean speedup by k with its 95 % interval. {'; '.join(told)}."


def _interval(entry: Record) -> str:
    return "" if entry["low"] is None else f" ({entry['low']:.2f} .. {entry['high']:.2f})"


def predictions(record: Record) -> tuple[Figure, str]:
    """A plan's predicted speedup by k, and measured ones where a k was run."""
    figure, axes = chart(6.4, 3.4, "guesses in a block, k", "speedup over plain decoding")
    predicted = [(entry["k"], entry["speedup"]) for entry in record["ks"]]
    measured = [(e["k"], e["measured"]["speedup"]) for e in record["ks"] if e.get("measured")]
    axes.plot(*zip(*predicted, strict=True), color=BLUE, marker="o", markersize=9,
              fillstyle="none", linestyle="none", label="predicted")  # fmt: skip
    if measured:
        axes.plot(*zip(*measured, strict=True), color=RED, marker="x", linestyle="none",
                  label="measured")  # fmt: skip
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.set_xticks([k for k, _ in predicted])
    axes.set_ylim(0, 1.15 * max(speedup for _, speedup in predicted + measured))
    figure.legend(loc="outside right upper")
    told = [
        f"{what}: {', '.join(f'k = {k} {speedup:.2f}' for k, speedup in points)}"
        for what, points in (("predicted", predicted), ("measured", measured))
        if points
    ]
    return figure, f"Speedup by k. {'; '.join(told)}."


def cost_curve(record: Record) -> tuple[Figure, str]:
    """A plan's cycles of a block by its rows, with a line at every cliff."""
    points, cache = record["cost_curve"]["points"], record["cost_curve"]["cache"]
    rows, cycles = [p["rows"] for p in points], [p["cycles"] for p in points]
    figure, axes = chart(6.4, 3.0, "rows of the block", "cycles of one pass")
    axes.plot(rows, cycles, color=BLUE, marker="o", linestyle="none")
    for point in points:
        axes.annotate(f"{point['relative']:.2f}", (point["rows"], point["cycles"]), (0, 6),
                      textcoords="offset points", ha="center", fontsize=8)  # fmt: skip
    cliffs = [point["rows"] for point in points if point["is_cliff"]]
    for row in cliffs:
        axes.axvline(row - 0.5, color=RED, linestyle="--", linewidth=1.2)
        axes.text(row - 0.45, 0.04 * max(cycles), "cliff", color=RED, fontsize=8)
    axes.set_xticks(rows)
    axes.set_ylim(0, 1.15 * max(cycles))
    show_counts(axes.yaxis)
    told = ", ".join(f"{point['rows']}: {point['relative']:.2f}" for point in points)
    jumps = f" Cliffs at {', '.join(map(str, cliffs))} rows." if cliffs else ""
    return figure, (
        f"Cycles of a pass over those of one row, by rows, at a cache of {cache}: {told}.{jumps}"
    )


def _repeat(count: int) -> list[tuple[str, str, str]]:
    return [LINES[place % len(LINES)] for place in range(count)]
