"""What the planner found, as sentences and tables."""

from typing import Final

from capra.report.layout import PlainTable, Record, counted, level, plain_table

PREDICTORS: Final = ("geometric", "rates", "profile")
SOURCES: Final = {"measured": "the draft's own", "given": "given", "synthetic": "synthetic"}


def plan_lines(record: Record) -> list[str]:
    """The verdict for the steady state, what the one run gains, and what both rest on."""
    return [_verdict(record), _run_line(record), _basis(record)]


def _verdict(record: Record) -> str:
    best, needed = record["best"], record["needed"]
    found = (
        f"K = {best['k']}, {best['speedup']:.2f} times the speed of plain decoding in the steady "
        f"state ({best['cycles_per_token']:,.0f} cycles per token, plain "
        f"{best['plain_cycles_per_token']:,.0f})"
    )
    if best["k"] == record["ks"][-1]["k"] > 1:
        found += ", the largest K tried"
    if record["pays"]:
        return f"{_assumption(record)}peculation pays: best with {found}."
    if needed is None:
        return (
            f"{_assumption(record)}peculation does not pay, nor would it with a perfect draft: "
            f"best with {found}."
        )
    at_needed = record["ks"][needed["k"] - 1]["expected"]["conditional_acceptance"]
    return (
        f"{_assumption(record)}peculation does not pay: best with {found}. It needs an acceptance "
        f"of {needed['acceptance']:.1%} at least, with K = {needed['k']}; this draft's is "
        f"{' '.join(f'{rate:.1%}' for rate in at_needed)}."
    )


def _assumption(record: Record) -> str:
    """The start of the verdict, up to the s of "speculation": what is assumed comes first."""
    cycles = record["draft_cycles"]
    if not cycles:
        return "With a draft that costs nothing, s"
    if record["draft_cycles_assumed"]:
        return f"Assuming {cycles:,.0f} cycles per draft token, s"
    return "S"


def _run_line(record: Record) -> str:
    """What the best K gains in the run itself, and which K would be best there."""
    best = record["ks"][record["best"]["k"] - 1]
    top = max(record["ks"], key=lambda entry: float(entry["speedup"]))
    run = f"This run, {counted(record['new_tokens'], 'token')}"
    if not best["expected"]["proposed"]:
        return f"{run}: no draft token is proposed, speculation changes nothing."
    line = f"{run}: {best['speedup']:.2f} predicted with K = {best['k']}"
    if best["measured"]:
        line += f", {best['measured']['speedup']:.2f} measured"
    if top["speedup"] > best["speedup"]:
        line += f"; its own best is K = {top['k']}, {top['speedup']:.2f}"
    return f"{line}."


def _basis(record: Record) -> str:
    cost = f"{record['draft_cycles']:,.0f} cycles"
    if record["draft_cycles_assumed"]:
        cost += " (assumed)"
    elif record["draft_cycles"]:
        cost += " (executed)"
    else:
        cost = "nothing: the draft runs no program"
    settings = record["settings"]
    return (
        f"Model {settings['model']}, draft {settings['draft']}, {level(record)}. "
        f"Plain: {record['plain_cycles']:,} cycles. A draft token costs {cost}. Acceptance: "
        f"{SOURCES[record['acceptance_source']]}."
    )


def guesses_table(record: Record) -> PlainTable:
    """One line per K: acceptance needed and found, speedup in the steady state and in the run.

    After a prediction of the run comes its error against the measured run.
    """
    predictors = [name for name in PREDICTORS if name in record["ks"][0]["predicted"]]
    table = plain_table(
        "K", "needed", "accepted", "steady", *predictors, "measured",
        *(["runs"] if record["acceptance_source"] == "synthetic" else []),
    )  # fmt: skip
    for entry in record["ks"]:
        needed, measured = entry["break_even_acceptance"], entry["measured"]
        cells = [
            f"{entry['k']}{' *' if entry['k'] == record['best']['k'] else ''}",
            "never" if needed is None else f"{needed:.1%}",
            f"{entry['expected']['acceptance_rate']:.1%}",
            f"{entry['steady']['speedup']:.2f}",
            *(_prediction(entry, name) for name in predictors),
            f"{measured['speedup']:.2f}" if measured else "",
        ]
        if record["acceptance_source"] == "synthetic":
            cells.append(f"{measured['runs']}" if measured else "")
        table.add_line(*cells)
    table.set_caption("* the best K in the steady state; right of steady: this run, and errors")
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
