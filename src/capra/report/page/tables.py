"""The tables of the page: what a record says in short, and where its cycles went."""

from collections.abc import Mapping, Sequence
from typing import Any

from capra.report.attribution import Attribution, attribute
from capra.report.figures.speedup import run_name
from capra.report.page.markup import Html, element, join, table
from capra.report.records import Source

Record = Mapping[str, Any]


def summary_section(source: Source) -> Html:
    """A heading and the numbers of one record."""
    make = {
        "decode": _decode, "table": _table, "grid": _grid, "plan": _plan, "profile": _profile,
    }[source.kind]  # fmt: skip
    return element("article", element("h3", source.name), make(source.record))


def attribution_section(source: Source) -> Html:
    """All cycles of a record's runs or program by phase; nothing for a record of ratios."""
    record = source.record
    costs: list[tuple[str, Record]]
    if source.kind == "decode":
        costs = [("plain", record["plain"]), ("speculative", record["speculative"])]
    elif source.kind == "table":
        costs = [(run_name(run), run) for run in record["runs"]]
    elif source.kind == "profile":
        costs = [(record["program"], record)]
    else:
        return Html("")
    return element("article", element("h3", source.name), _attribution(costs))


def _attribution(costs: Sequence[tuple[str, Record]]) -> Html:
    found = [attribute(cost) for _, cost in costs]

    def cells(name: str, unit: str, meaning: str, cycles: Sequence[int]) -> list[str]:
        shares = [
            f"{n:,} ({n / max(all_.cycles, 1):.1%})" for n, all_ in zip(cycles, found, strict=True)
        ]
        return [name, unit, meaning, *shares]

    def group(rows_of: str) -> list[list[str]]:
        by_phase = {row.phase: row for each in found for row in getattr(each, rows_of)}
        return [
            cells(row.name, row.unit, row.meaning, [_cycles(each, row.phase) for each in found])
            for row in sorted(by_phase.values(), key=lambda row: -max(
                _cycles(each, row.phase) for each in found))
        ]  # fmt: skip

    lines = [each.roofline_cycles for each in found]
    rows = [
        *group("roofline"),
        cells("memory roofline", "", "words moved, at one a cycle", lines),
        *group("above"),
        cells("all cycles", "", "the sum of the lines above, the roofline counted once",
              [each.cycles for each in found]),
        ["cycles over roofline", "", "",
         *(f"{each.cycles / max(line, 1):.2f} x" for each, line in zip(found, lines, strict=True))],
    ]  # fmt: skip
    header = ["phase", "unit", "what", *(name for name, _ in costs)]
    return table("Cycles by phase, and their share of all", header, rows, texts=3)


def _cycles(found: Attribution, phase: str) -> int:
    return next((r.cycles for r in (*found.roofline, *found.above) if r.phase == phase), 0)


def _facts(facts: Sequence[tuple[str, str]]) -> Html:
    """Names and values that stand out."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", value)) for name, value in facts),
        class_="facts",
    )


def _decode(record: Record) -> Html:
    settings, plain, run = record["settings"], record["plain"], record["speculative"]
    k = settings["num_speculative_tokens"]
    facts = _facts(
        [
            ("speed of plain decoding", f"{record['speedup']:.2f} x"),
            ("without the prompt", f"{record['decode_speedup']:.2f} x"),
            ("tokens equal", "yes" if record["tokens_equal"] else "NO"),
            ("guesses accepted", f"{run['acceptance_rate']:.1%}"),
            ("mean acceptance length", f"{run['mean_acceptance_length']:.2f}"),
        ]
    )
    noise = f" with noise {settings['draft_noise']:g}" if settings["draft_noise"] else ""
    line = element(
        "p",
        f"Model {settings['model']}, draft {settings['draft']}{noise}, {k} guesses a block: "
        f"{len(plain['tokens'])} tokens after a prompt of {len(settings['prompt'])}.",
    )
    units = list(plain["cycles_by_unit"])
    rows = [
        ["tokens", *(f"{len(each['tokens']):,}" for each in (plain, run))],
        ["programs", *(f"{each['programs']:,}" for each in (plain, run))],
        ["blocks", f"{len(plain['trace']):,}", f"{run['blocks']:,}"],
        ["guesses accepted of proposed", "", f"{run['accepted']:,} of {run['proposed']:,}"],
        ["cycles", *(f"{each['cycles']:,}" for each in (plain, run))],
        *(
            [f"  {unit}", *(f"{each['cycles_by_unit'][unit]:,}" for each in (plain, run))]
            for unit in units
        ),
    ]
    return join([line, facts, table("Both runs", ["", "plain", "speculative"], rows)])


def _table(record: Record) -> Html:
    rows = [
        [
            run_name(run),
            "" if "decode" in run else f"{run['accepted']} of {run['proposed']}",
            "" if "decode" in run else f"{run['blocks']}",
            f"{run['programs']}",
            f"{run['cycles']:,}",
            "" if "decode" in run else f"{run['speedup']:.2f} x",
            "yes" if run["tokens_equal"] else "NO",
        ]
        for run in record["runs"]
    ]
    header = ["run", "accepted", "blocks", "programs", "cycles", "speedup", "tokens equal"]
    return table("The recorded runs", header, rows)


def _grid(record: Record) -> Html:
    ks = sorted({cell["k"] for cell in record["cells"]})
    found = {(cell["draft_noise"], cell["k"]): cell for cell in record["cells"]}
    rows = [
        [
            f"{noise:g}",
            *(
                f"{cell['speedup']:.2f} x ({cell['acceptance_rate']:.0%})"
                if (cell := found.get((noise, k)))
                else ""
                for k in ks
            ),
        ]
        for noise in sorted({noise for noise, _ in found})
    ]
    header = ["draft noise", *(f"k = {k}" for k in ks)]
    return table("Speedup, and guesses accepted in brackets", header, rows)


def _plan(record: Record) -> Html:
    rows = [
        [str(cell["k"]), *(f"{cell[f'{kind}_speedup']:.2f} x" for kind in _SPEEDUPS)]
        for cell in record["cells"]
    ]
    return table("Speedup", ["k", *_SPEEDUPS], rows)


_SPEEDUPS = ("measured", "predicted", "geometric")


def _profile(record: Record) -> Html:
    found = attribute(record)
    return _facts(
        [
            ("program", record["program"]),
            ("cycles", f"{record['cycles']:,}"),
            ("instructions", f"{len(record['instructions']):,}"),
            ("memory roofline", f"{found.roofline_cycles:,}"),
            ("cycles over roofline", f"{found.cycles / max(found.roofline_cycles, 1):.2f} x"),
        ]
    )
