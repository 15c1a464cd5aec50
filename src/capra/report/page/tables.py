"""The tables of the page: what a record says in short, and where its cycles went."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

from rich.table import Table

from capra.isa.spec import PHASES, Phase
from capra.report.attribution import NAMES, attribute
from capra.report.experiments import (
    anatomy_table,
    causality_table,
    grid_table,
    programs_table,
    runs_table,
)
from capra.report.figures.speedup import run_name
from capra.report.layout import counted
from capra.report.page.markup import Html, element, join, table
from capra.report.plan import serving_chip_table, serving_formula_table, serving_lines
from capra.report.records import Source
from capra.report.spread import bench_lines, bench_table
from capra.report.tables import (
    certificate_lines,
    evaluation_table,
    rtl_lines,
    run_certificate_line,
    tensor_error_table,
)

Record = Mapping[str, Any]

MOST_WIDE: Final = 2
"""Most runs in a table of cycles that has a column of words."""

FIGURE_SPACE: Final = "\u2007"
"""As wide as a digit."""

ROOFLINE_NAME: Final = "memory roofline"
ALL_NAME: Final = "all cycles"


def summary_section(source: Source) -> Html:
    """A heading and the numbers of one record."""
    make = {
        "bench": _bench, "decode": _decode, "table": _table, "grid": _grid, "plan": _plan,
        "anatomy": _anatomy, "causality": _causality, "serving": _serving, "profile": _profile,
        "sweep": _sweep, "certify": _certify, "eval": _eval, "replay": _replay,
    }[source.kind]  # fmt: skip
    return element(
        "article", element("h3", source.name), origin(source.record), make(source.record)
    )


def attribution_section(source: Source) -> Html:
    """All cycles of a record's runs or program by phase; nothing for a record of ratios."""
    record = source.record
    costs: list[tuple[str, Record]]
    if source.kind == "decode":
        costs = [("plain", record["plain"]), ("speculative", record["speculative"])]
    elif source.kind == "table":
        costs = [(run_name(run), run) for run in record["runs"]]
    elif source.kind in ("profile", "replay"):
        costs = [(record["program"], record)]
    else:
        return Html("")
    return element("article", element("h3", source.name), _attribution(costs))


def _attribution(costs: Sequence[tuple[str, Record]]) -> Html:
    """Roofline first, then what is above it, the largest phases first.

    With many columns there is no room to say what a phase is.
    """
    found = [attribute(cost) for _, cost in costs]
    wide = len(costs) <= MOST_WIDE

    def line(name: str, unit: str, meaning: str, cycles: Sequence[int]) -> list[str]:
        parts = [n / max(each.cycles, 1) for n, each in zip(cycles, found, strict=True)]
        gap = "  " if wide else "\n"
        shares = [
            f"{n:,}{gap}{f'{part:.1%}'.rjust(6, FIGURE_SPACE)}"
            for n, part in zip(cycles, parts, strict=True)
        ]
        return [name, unit, *([meaning] if wide else []), *shares]

    def lines(group: str) -> list[list[str]]:
        by_phase: dict[Phase, list[int]] = {}
        for column, each in enumerate(found):
            for row in getattr(each, group):
                by_phase.setdefault(row.phase, [0] * len(found))[column] = row.cycles
        return [
            line(NAMES[phase], PHASES[phase][0], PHASES[phase][1], cycles)
            for phase, cycles in sorted(by_phase.items(), key=lambda item: -max(item[1]))
        ]

    rooflines = [each.roofline_cycles for each in found]
    ratios = [
        f"{each.cycles / max(roofline, 1):.2f} x"
        for each, roofline in zip(found, rooflines, strict=True)
    ]
    rows = [
        *lines("roofline"),
        line(ROOFLINE_NAME, "", "the sum of the two: words moved, at one a cycle", rooflines),
        *lines("above"),
        line(ALL_NAME, "", "the roofline and all phases behind it", [e.cycles for e in found]),
        ["cycles over roofline", "", *([""] if wide else []), *ratios],
    ]
    header = ["phase", "unit", *(["what"] if wide else []), *(name for name, _ in costs)]
    return table(
        "Cycles by phase, and their share of all", header, rows,
        texts=3 if wide else 2, sums=(ROOFLINE_NAME, ALL_NAME),
    )  # fmt: skip


def _facts(facts: Sequence[tuple[str, str]]) -> Html:
    """Names and values that stand out."""
    return element(
        "dl",
        *(element("div", element("dt", name), element("dd", value)) for name, value in facts),
        class_="facts",
    )


def _yes(equal: bool | None) -> str:
    """None is what was not compared."""
    return "not compared" if equal is None else "yes" if equal else "NO"


def _lines(lines: Sequence[str]) -> Html:
    """A paragraph for each line."""
    return join(element("p", line) for line in lines)


def origin(record: Record) -> Html:
    """What made the record: the command, when and with which version, and its files."""
    words = shlex.join(["capra", *record["command"]])
    files = [
        element("li", element("code", name), f" {digest or 'could not be read'}")
        for name, digest in record["files"].items()
    ]
    made = element("p", element("code", words), f", Capra {record['capra']}, {record['date']}",
                   class_="hint")  # fmt: skip
    return join([made, *([element("ul", *files, class_="hint")] if files else [])])


def _decode(record: Record) -> Html:
    settings, plain, run = record["settings"], record["plain"], record["speculative"]
    k = settings["num_speculative_tokens"]
    facts = _facts(
        [
            ("speed of plain decoding", f"{record['speedup']:.2f} x"),
            ("without the prompt", f"{record['decode_speedup']:.2f} x"),
            ("with resident weights", f"{record['resident_weights']['speedup']:.2f} x"),
            ("tokens equal", _yes(record["tokens_equal"])),
            ("guesses accepted", f"{run['acceptance_rate']:.1%}"),
            ("mean acceptance length", f"{run['mean_acceptance_length']:.2f}"),
            ("tokens kept per block", f"{run['tokens_per_block']:.2f}"),
        ]
    )
    noise = f" with noise {settings['draft_noise']:g}" if settings["draft_noise"] else ""
    line = element(
        "p",
        f"Model {settings['model']}, draft {settings['draft']}{noise}, {k} guesses a block: "
        f"{counted(len(plain['tokens']), 'token')} after a prompt of {len(settings['prompt'])}.",
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
    both = table("Both runs", ["", "plain", "speculative"], rows)
    certificate = record.get("certificate")
    said = [] if certificate is None else [run_certificate_line(certificate)]
    return join([line, facts, both, _lines([*said, *rtl_lines(record.get("rtl", {}))])])


def _table(record: Record) -> Html:
    runs = _printed("The recorded runs", runs_table(record))
    return join([runs, _lines(rtl_lines(record.get("rtl", {})))])


def _grid(record: Record) -> Html:
    made = grid_table(record)
    return _printed("Speedup, and guesses accepted in brackets", made)


def _bench(record: Record) -> Html:
    lines = [element("p", line) for line in bench_lines(record)]
    return join([*lines, _printed("Speedup over many prompts", bench_table(record))])


def _anatomy(record: Record) -> Html:
    if "programs" in record:
        return _printed("Programs side by side", programs_table(record))
    return _printed("A verifier beside the plain steps", anatomy_table(record))


def _causality(record: Record) -> Html:
    return _printed("Rows of blocks that differ in one token", causality_table(record))


def _serving(record: Record) -> Html:
    formula = _printed("Speedup by the formula", serving_formula_table(record))
    chip = _printed("Speedup of runs", serving_chip_table(record))
    return join([formula, _lines(serving_lines(record)), chip])


def _printed(title: str, made: Table) -> Html:
    """A table as the terminal prints it, with the caption that it may have there."""
    header = [str(column.header) for column in made.columns]
    rows = zip(*(map(str, column.cells) for column in made.columns), strict=True)
    words = takewhile(lambda column: column.justify == "left", made.columns)
    caption = f"{title}: {made.caption}" if made.caption else title
    return table(caption, header, list(rows), texts=len(list(words)))


def _sweep(record: Record) -> Html:
    facts = _facts(
        [
            ("cells", f"{record['cells']:,}"),
            ("stored before", f"{record['stored_before']:,}"),
            ("executed", f"{record['executed']:,}"),
            ("refusals", f"{record['refused']:,}"),
            ("tokens equal", _yes(record["tokens_equal"])),
        ]
    )
    return join([facts, _lines([f"The rows are in {record['database']}."])])


def _certify(record: Record) -> Html:
    return _lines(certificate_lines(record))


def _eval(record: Record) -> Html:
    facts = _facts(
        [
            ("windows", f"{record['windows']:,}"),
            ("characters", f"{record['characters']:,}"),
            ("skipped", f"{record['skipped_characters']:,}"),
            ("bits, chip over float", f"{record['chip_over_float']:.3f}"),
        ]
    )
    bits = _printed("The chip beside float", evaluation_table(record))
    errors = _printed("Errors of tensors", tensor_error_table(record["tensor_errors"]))
    return join([facts, bits, errors])


def _replay(record: Record) -> Html:
    facts = _facts(
        [
            ("program", record["program"]),
            ("cycles", f"{record['cycles']:,}"),
            ("seed of the data", f"{record['seed']}"),
        ]
    )
    return join([facts, _lines(rtl_lines(record["rtl"]))])


def _plan(record: Record) -> Html:
    rows = [
        [
            str(entry["k"]),
            f"{entry['steady']['speedup']:.2f} x",
            f"{entry['speedup']:.2f} x",
            f"{entry['measured']['speedup']:.2f} x" if entry.get("measured") else "",
        ]
        for entry in record["ks"]
    ]
    header = ["k", "steady state", "this run, predicted", "measured"]
    return table("Speedup", header, rows)


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
