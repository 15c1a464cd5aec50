"""What the planner found, as sentences and tables."""

from typing import Final

from capra.report.layout import PlainTable, Record, counted, plain_table

PREDICTORS: Final = ("geometric", "rates", "profile")
SOURCES: Final = {"measured": "the draft's own", "given": "given", "synthetic": "synthetic"}


def plan_lines(record: Record) -> list[str]:
    """The verdict, and what it rests on."""
    assumed = record["draft_cycles_assumed"]
    cost = f"{record['draft_cycles']:,.0f} cycles ({'assumed' if assumed else 'executed'})"
    if not record["draft_cycles"] and not assumed:
        cost = "nothing, the draft runs no program"
    return [
        _verdict(record),
        f"{counted(record['new_tokens'], 'token')}, {record['plain_cycles']:,} cycles plainly; "
        f"a guess costs {cost}; acceptance: {SOURCES[record['acceptance_source']]}.",
    ]


def _verdict(record: Record) -> str:
    best, needed = record["best"], record["needed"]
    entry = record["ks"][best["k"] - 1]
    found = f"K = {best['k']}, predicted {best['speedup']:.2f} times the speed of plain decoding"
    if entry["measured"]:
        found += f" (measured {entry['measured']['speedup']:.2f})"
    if record["pays"]:
        return f"Speculation pays: best with {found}."
    if needed is None:
        return f"Speculation does not pay, nor would it with a perfect draft: best with {found}."
    if record["new_tokens"] == 1 and needed["acceptance"] == 0:
        return "Speculation changes nothing: in a run of 1 token no guess is ever made."
    at_needed = record["ks"][needed["k"] - 1]["expected"]["conditional_acceptance"]
    return (
        f"Speculation does not pay: best with {found}. It needs an acceptance of "
        f"{needed['acceptance']:.1%} at least, with K = {needed['k']}; this draft's is "
        f"{' '.join(f'{rate:.1%}' for rate in at_needed)}."
    )


def guesses_table(record: Record) -> PlainTable:
    """A line a K: the acceptance it needs and has, and its speedup, predicted and measured.

    Behind a prediction, its error against the measured run.
    """
    predictors = [name for name in PREDICTORS if name in record["ks"][0]["predicted"]]
    table = plain_table(
        "K", "needed", "accepted", "blocks", *predictors, "measured",
        *(["runs"] if record["acceptance_source"] == "synthetic" else []),
    )  # fmt: skip
    for entry in record["ks"]:
        needed, measured = entry["break_even_acceptance"], entry["measured"]
        cells = [
            f"{entry['k']}{' *' if entry['k'] == record['best']['k'] else ''}",
            "never" if needed is None else f"{needed:.1%}",
            f"{entry['expected']['acceptance_rate']:.1%}",
            f"{entry['expected']['blocks']:.1f}",
            *(_prediction(entry, name) for name in predictors),
            f"{measured['speedup']:.2f}" if measured else "",
        ]
        if record["acceptance_source"] == "synthetic":
            cells.append(f"{measured['runs']}" if measured else "")
        table.add_line(*cells)
    table.set_caption(
        "* the best K; needed, accepted: acceptance; percentages behind a prediction: its error"
    )
    return table


def _prediction(entry: Record, name: str) -> str:
    shown = f"{entry['predicted'][name]:.2f}"
    return f"{shown} {entry['errors'][name]:+.1%}" if entry["errors"] else shown


def cost_curve_table(curve: Record) -> PlainTable:
    """c(m), the cost of m rows over that of one, and where it jumps."""
    table = plain_table(f"rows m, {curve['cache']} cached", "cycles", "c(m)", "added", "")
    for point in curve["points"]:
        table.add_line(
            f"{point['rows']}", f"{point['cycles']:,}", f"{point['relative']:.2f}",
            f"{point['added']:+.2f}",
            f"cliff: new row of tiles, K = {point['rows'] - 1}" if point["is_cliff"] else "",
        )  # fmt: skip
    table.columns[-1].justify = "left"
    return table


def serving_formula_table(record: Record) -> PlainTable:
    """E / (1 + k c) for the assumed costs."""
    assumed = [place for place, cost in enumerate(record["costs"]) if cost["assumed"]]
    table = plain_table(
        "a / k", *(f"c = {record['costs'][place]['c']} (assumed)" for place in assumed)
    )
    for row in record["rows"]:
        cells = [f"{row['cells'][place]['formula']:.2f}" for place in assumed]
        table.add_line(f"{row['acceptance']} / {row['k']}", *cells)
    table.set_caption("E / (1 + k c): a pass over k + 1 rows is assumed to cost one step")
    return table


def serving_lines(record: Record) -> list[str]:
    """What was run for the second table."""
    return [
        f"On the chip: {record['model']}, {counted(record['runs'], 'run')} of "
        f"{counted(record['new_tokens'], 'token')} a line with a synthetic draft; executed: a step "
        f"{record['step_cycles']:,.0f} cycles, a guess {record['draft_cycles']:,.0f}. Behind a "
        "speedup, the formula's error.",
    ]


def serving_chip_table(record: Record) -> PlainTable:
    """The speedup of the runs, with the formula's error, and what a pass costs in steps."""
    heads = [
        f"c = {cost['c']:.3g} ({'assumed' if cost['assumed'] else 'executed'})"
        for cost in record["costs"]
    ]
    table = plain_table("a / k", "pass", *heads)
    for row in record["rows"]:
        cells = [f"{cell['measured']:.2f} {cell['error']:+.0%}" for cell in row["cells"]]
        name = f"{row['acceptance']} / {row['k']}"
        table.add_line(name, f"{row['pass_cost']:.2f} steps", *cells)
    return table
