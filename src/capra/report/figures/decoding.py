"""Figures of a decode record: blocks, acceptance, the mask, where the gain comes from."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from capra.isa.spec import PHASES, Phase, Unit
from capra.report.attribution import attribute
from capra.report.figures.style import (
    GREEN,
    GREY,
    INK,
    PAPER,
    PURPLE,
    RED,
    SKY,
    UNIT_STYLES,
    YELLOW,
    chart,
    show_counts,
)
from capra.report.verdicts import Verdict, verdicts

Record = Mapping[str, Any]

VERDICT_STYLES: Final = {
    Verdict.ACCEPTED: (GREEN, "✓"),
    Verdict.REJECTED: (RED, "✗"),
    Verdict.UNREACHED: (PAPER, "·"),
    Verdict.RECOVERED: (YELLOW, "↺"),
    Verdict.BONUS: (PURPLE, "+"),
    Verdict.PLAIN: (SKY, "="),
}
"""Colour and sign of what became of a token."""

MOST_BLOCKS: Final = 40


def blocks(record: Record) -> tuple[Figure, str]:
    """A column a block: what became of each guess, and the target's own token on top."""
    trace = record["speculative"]["trace"]
    shown = trace[:MOST_BLOCKS]
    height = max((len(block["proposed"]) for block in trace), default=0) + 1
    figure, axes = chart(
        max(4.0, 0.22 * len(shown) + 1.4), 0.26 * height + 1.7, "block", "token of the block",
        rules="",
    )  # fmt: skip
    used: list[Verdict] = []
    for column, block in enumerate(shown):
        for row, verdict in enumerate(verdicts(block)):
            colour, sign = VERDICT_STYLES[verdict]
            square = Rectangle((column - 0.44, row + 0.06), 0.88, 0.88, facecolor=colour)
            square.set(edgecolor=INK, linewidth=0.5)
            axes.add_patch(square)
            ink = INK if colour == PAPER else "black"
            axes.text(column, row + 0.5, sign, ha="center", va="center", color=ink)
            if verdict not in used:
                used.append(verdict)
    axes.set_xlim(-0.7, max(len(shown), 1) - 0.3)
    axes.set_ylim(0, height)
    axes.set_yticks([row + 0.5 for row in range(height)], [f"{row + 1}" for row in range(height)])
    axes.tick_params(axis="y", length=0)
    handles = [
        Patch(facecolor=colour, edgecolor=INK, linewidth=0.5, label=f"{sign} {verdict}")
        for verdict, (colour, sign) in VERDICT_STYLES.items()
        if verdict in used
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=5)
    more = f"; the first {len(shown)} of {len(trace)} blocks" if len(shown) < len(trace) else ""
    run = record["speculative"]
    return figure, (
        f"Each column is a block. {run['accepted']} of {run['proposed']} guesses were accepted in "
        f"{run['blocks']} blocks{more}."
    )


def acceptance_by_position(record: Record) -> tuple[Figure, str]:
    """The share of blocks in which the guess at a position was accepted, of those that had one."""
    run = record["speculative"]
    counts = run["accepted_per_position"]
    offered = [
        sum(len(block["proposed"]) > position for block in run["trace"])
        for position in range(len(counts))
    ]
    shares = [count / max(most, 1) for count, most in zip(counts, offered, strict=True)]
    figure, axes = chart(4.2, 2.8, "position of the guess in its block", "accepted (% of blocks)")
    bars = axes.bar(
        range(1, len(counts) + 1), [100 * share for share in shares], color=GREEN, edgecolor=INK,
        hatch="", width=0.6,
    )  # fmt: skip
    axes.bar_label(bars, [f"{c} of {n}" for c, n in zip(counts, offered, strict=True)], padding=2)
    axes.set_xticks(range(1, len(counts) + 1))
    axes.set_ylim(0, 110)
    axes.set_yticks(range(0, 101, 25))
    told = ", ".join(f"{share:.0%}" for share in shares) or "no guess was made"
    return figure, f"Blocks in which the guess of each position was accepted: {told}."


def mask(record: Record) -> tuple[Figure, str] | None:
    """What each row of the run's first largest verifier reads: the cached rows, then its block's.

    None where no program had more than one row.
    """
    programs = [
        run
        for block in record["speculative"]["trace"]
        for run in block["programs"]
        if run["role"] == "verify"
    ]
    if not programs:
        return None
    program = max(programs, key=lambda run: run["rows"])
    rows, cache = program["rows"], program["cache"]
    figure, axes = chart(6.4, 0.3 * rows + 1.5, "position read", "row of the block", rules="")
    for row in range(rows):
        own = cache + row
        for start, width, colour, hatch in (
            (0, cache, SKY, ""), (cache, row + 1, GREEN, "//"),
            (own + 1, cache + rows - own - 1, PAPER, ""),
        ):  # fmt: skip
            axes.add_patch(
                Rectangle((start, row + 0.1), width, 0.8, facecolor=colour, hatch=hatch,
                          edgecolor=INK, linewidth=0.6)
            )  # fmt: skip
        axes.text(cache + rows + 0.3, row + 0.5, f"slice 0 .. {own}", va="center", fontsize=8)
    axes.set_xlim(0, (cache + rows) * 1.16 + 1.5)
    axes.set_xticks(sorted({0, cache, cache + rows}))
    axes.set_ylim(rows, 0)
    axes.set_yticks([row + 0.5 for row in range(rows)], [str(row) for row in range(rows)])
    axes.tick_params(axis="y", length=0)
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=INK, linewidth=0.6, label=label)
        for colour, hatch, label in (
            (SKY, "", "cached rows"), (GREEN, "//", "the block, up to the row itself"),
            (PAPER, "", "later rows: not read"),
        )
    ]  # fmt: skip
    figure.legend(handles=handles, loc="outside upper left", ncols=3)
    return figure, (
        f"A verifier of {rows} rows after {cache} cached ones: row i reads positions 0 to "
        f"{cache} + i, as one slice, and no mask is added to anything."
    )


GAIN_PARTS: Final[Sequence[tuple[str, frozenset[Phase]]]] = (
    ("words moved", frozenset({Phase.LOAD, Phase.LOAD_LATENCY, Phase.STORE, Phase.STORE_LATENCY})),
    ("operand loads", frozenset({Phase.OPERAND_LOAD})),
    ("array, sums", frozenset({Phase.ARRAY, Phase.ARRAY_FILL, Phase.DRAIN, Phase.SUM_LOAD})),
    ("vector unit", frozenset(p for p, (unit, _) in PHASES.items() if unit is Unit.VECTOR)),
    ("fetch", frozenset({Phase.FETCH})),
)
"""The steps from plain to speculative cycles; every phase is in exactly one."""


def gain(record: Record) -> tuple[Figure, str]:
    """Plain cycles, what the target's passes save by phase, what the draft adds, and the sum."""
    plain, target, draft = (
        _phases(record[run], draft)
        for run, draft in (("plain", False), ("speculative", False), ("speculative", True))
    )
    start, end = record["plain"]["cycles"], record["speculative"]["cycles"]
    steps = [
        (name, sum(target.get(p, 0) - plain.get(p, 0) for p in phases))
        for name, phases in GAIN_PARTS
    ]
    steps.append(("draft", sum(draft.values())))
    assert start + sum(change for _, change in steps) == end, "a cycle belongs to no step"
    figure, axes = chart(6.4, 3.2, "cycles", "", rules="x")
    last = len(steps) + 1
    for place, cycles in ((0, start), (last, end)):
        whole = axes.barh(place, cycles, color=GREY, edgecolor=INK, linewidth=0.5, height=0.7)
        axes.bar_label(whole, [f"{cycles:,}"], padding=4, fontsize=8)
    level = start
    for place, (_, change) in enumerate(steps, start=1):
        colour, hatch = (GREEN, "//") if change < 0 else (RED, "xx")
        axes.barh(place, change, left=level, color=colour, hatch=hatch, edgecolor=INK,
                  linewidth=0.5, height=0.7)  # fmt: skip
        axes.plot([level, level], [place - 0.65, place + 0.35], color=INK, linewidth=0.6)
        right = max(level, level + change)
        axes.annotate(f"{change:+,}", (right, place), (4, 0), textcoords="offset points",
                      va="center", fontsize=8)  # fmt: skip
        level += change
    axes.set_yticks(range(last + 1), ["plain", *(name for name, _ in steps), "speculative"])
    axes.set_ylim(last + 0.5, -0.5)
    axes.set_xlim(0, 1.2 * max(start, end, 1))
    show_counts(axes.xaxis)
    told = ", ".join(f"{name} {change:+,}" for name, change in steps)
    return figure, f"From {start:,} plain cycles to {end:,} speculative ones: {told}."


def _phases(run: Record, draft: bool) -> dict[str, int]:
    """Cycles by phase of a run's drafts, or of everything else."""
    found: dict[str, int] = {}
    programs = [program for block in run["trace"] for program in block["programs"]]
    for program in (*run["prefill"]["trace"], *programs):
        if (program["role"] == "draft") == draft:
            for phase, cycles in program["cycles_by_phase"].items():
                found[phase] = found.get(phase, 0) + cycles
    return found


def units_of_runs(record: Record) -> tuple[Figure, str]:
    """Cycles by unit of both runs against their memory rooflines."""
    return units_against_roofline(
        [("plain", record["plain"]), ("speculative", record["speculative"])]
    )


def units_against_roofline(costs: Sequence[tuple[str, Record]]) -> tuple[Figure, str]:
    """A bar a cost, split by unit, with a mark at the words that had to be moved."""
    figure, axes = chart(6.4, 0.36 * len(costs) + 1.5, "cycles", "", rules="x")
    rooflines = [attribute(cost).roofline_cycles for _, cost in costs]
    for place, (_, cost) in enumerate(costs):
        left = 0
        for unit, (colour, hatch) in UNIT_STYLES.items():
            width = cost["cycles_by_unit"].get(unit, 0)
            axes.barh(place, width, left=left, color=colour, hatch=hatch, edgecolor=INK,
                      linewidth=0.5, height=0.6)  # fmt: skip
            left += width
        axes.plot([rooflines[place]] * 2, [place - 0.42, place + 0.42], color=INK, linewidth=2.4)
        axes.annotate(f"{left / max(rooflines[place], 1):.1f} x", (left, place), (5, 0),
                      textcoords="offset points", va="center", fontsize=8)  # fmt: skip
    axes.set_yticks(range(len(costs)), [name for name, _ in costs])
    axes.set_ylim(len(costs) - 0.4, -0.6)
    axes.set_xlim(0, 1.12 * max(1, *(cost["cycles"] for _, cost in costs)))
    show_counts(axes.xaxis)
    handles = [
        Patch(facecolor=colour, hatch=hatch, edgecolor=INK, linewidth=0.5, label=unit.value)
        for unit, (colour, hatch) in UNIT_STYLES.items()
    ]
    mark = axes.plot([], [], color=INK, linewidth=2.4, label="memory roofline")
    figure.legend(handles=[*handles, *mark], loc="outside upper left", ncols=5)
    told = "; ".join(
        f"{name}: {cost['cycles']:,} cycles, roofline {line:,}"
        for (name, cost), line in zip(costs, rooflines, strict=True)
    )
    return figure, f"{told}. The number behind a bar is cycles over roofline."
