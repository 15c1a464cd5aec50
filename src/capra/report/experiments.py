"""The recorded experiments as tables."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from capra.report.layout import PlainTable, Record, level, plain_table
from capra.text import printable


def runs_table(record: Record) -> PlainTable:
    """The table of the reference's runs."""
    table = plain_table(
        "model", "noise", "k", "accepted", "blocks", "programs", "cycles", "speedup", "equal"
    )
    for run in record["runs"]:
        plain = "decode" in run
        table.add_line(
            run["model"],
            "plain" if plain else f"{run['draft_noise']}",
            "" if plain else f"{run['k']}",
            "" if plain else f"{run['accepted']} / {run['proposed']}",
            "" if plain else f"{run['blocks']}",
            f"{run['programs']}",
            f"{run['cycles']:,}",
            "" if plain else f"{run['speedup']:.2f} ({run['resident_speedup']:.2f})",
            "yes" if run["tokens_equal"] else "NO",
        )
    table.set_caption(
        f"{level(record)}; in brackets: the speedup if weights were loaded once per run (derived)"
    )
    return table


def grid_table(record: Record) -> PlainTable:
    """Speedup, and acceptance in brackets, by draft noise and k."""
    cells = record["cells"]
    ks = sorted({cell["k"] for cell in cells})
    table = plain_table("draft noise", *(f"k = {k}" for k in ks))
    for noise in sorted({cell["draft_noise"] for cell in cells}):
        row = {cell["k"]: cell for cell in cells if cell["draft_noise"] == noise}
        table.add_line(
            f"{noise:g}",
            *(_speedup(row[k]) if k in row else "" for k in ks),
        )
    table.set_caption(f"{level(record)}; in brackets: acceptance")
    return table


def _speedup(cell: Record) -> str:
    return f"{cell['speedup']:.2f} ({cell['acceptance_rate']:.0%})"


def prediction_tables(cells: Sequence[Record]) -> list[PlainTable]:
    """The error of each way to predict a cell's speedup, by draft noise and k."""
    ks = sorted({cell["k"] for cell in cells})
    tables = list[PlainTable]()
    for name in cells[0]["errors"]:
        table = plain_table(f"error of {name}", *(f"k = {k}" for k in ks))
        for noise in sorted({cell["draft_noise"] for cell in cells}):
            row = {cell["k"]: cell for cell in cells if cell["draft_noise"] == noise}
            table.add_line(f"{noise}", *(f"{row[k]['errors'][name]:+.1%}" for k in ks))
        tables.append(table)
    return tables


SIGNS: Final = {
    "accepted": ("+", "green"),
    "rejected": ("x", "red"),
    "recovered": ("<", "yellow"),
    "bonus": ("*", "cyan"),
}
"""What became of a token: its sign, and its colour where there are colours."""


def trace_table(record: Record) -> PlainTable:
    """A line a block: its rows, the target's choices, what was emitted, cycles of both models.

    A token carries a sign; colours repeat it.
    """
    vocabulary = record["settings"]["vocabulary"]
    table = plain_table(
        "#", "cache", "last, guesses", "choices", "accepted", "emitted", "draft", "target"
    )
    for column in table.columns[2:6]:
        column.justify = "left"
    cache = len(record["settings"]["prompt"]) - 1
    for number, block in enumerate(record["speculative"]["trace"], start=1):
        accepted, guesses = block["accepted"], block["proposed"]
        draft = sum(run["cycles"] for run in block["programs"] if run["role"] == "draft")
        target = sum(run["cycles"] for run in block["programs"] if run["role"] != "draft")
        signs = ["accepted"] * accepted + ["rejected"] * (len(guesses) - accepted)
        last = "bonus" if accepted == len(guesses) else "recovered"
        table.add_line(
            f"{number}", f"{cache}",
            _tokens([block["tokens"][0], *guesses], ["", *signs], vocabulary),
            _tokens(block["choices"], [""] * len(block["choices"]), vocabulary),
            f"{accepted} / {len(guesses)}",
            _tokens(block["emitted"], ["accepted"] * accepted + [last], vocabulary),
            f"{draft:,}", f"{target:,}",
        )  # fmt: skip
        cache += accepted + 1
    table.set_caption(", ".join(f"{sign} {name}" for name, (sign, _) in SIGNS.items()))
    return table


def _tokens(tokens: Sequence[int], kinds: Sequence[str], vocabulary: Sequence[str]) -> Text:
    text = Text()
    for token, kind in zip(tokens, kinds, strict=True):
        sign, colour = SIGNS.get(kind, ("", ""))
        text.append(" " if text else "")
        text.append(_label(token, vocabulary) + sign, style=colour)
    return text


def _label(token: int, vocabulary: Sequence[str]) -> str:
    """A number, or a character in quotes; the number of a token outside the vocabulary."""
    if not 0 <= token < len(vocabulary):
        return f"{token}"
    name = vocabulary[token]
    return repr(name) if len(name) == 1 else printable(name.strip())


def anatomy_table(record: Record) -> PlainTable:
    """A verifier, its steps, their sum and ratio, and the draft."""
    programs = [record["verifier"], record["steps_together"], *record["steps"], record["draft"]]
    steps = [f"c = {step['cache']}" for step in record["steps"]]
    together = record["steps_together"]["name"]
    table = plain_table("", "verifier", together, "ratio", *steps, "draft")
    for name, values in _rows(programs):
        cells = [f"{value:,}" for value in values]
        ratio = f"{values[0] / values[1]:.2f}" if values[1] else ""
        table.add_line(name, *cells[:2], ratio, *cells[2:])
    verifier = record["verifier"]["name"]
    table.set_caption(f"{verifier} of {record['model']}; c: rows in the cache of a step")
    return table


def programs_table(record: Record) -> PlainTable:
    """Programs side by side, with the cycles of each over those of the first."""
    table = plain_table("", *(program["name"] for program in record["programs"]))
    for name, values in _rows(record["programs"]):
        table.add_line(name, *(f"{value:,}" for value in values))
    table.add_line("cycles / the first's", *(f"{ratio:.2f}" for ratio in record["ratios"]))
    return table


def _rows(programs: Sequence[Record]) -> Iterator[tuple[str, list[int]]]:
    """What is counted, and the count of each program."""
    yield "instructions", [program["instructions"] for program in programs]
    for mnemonic in dict.fromkeys(name for program in programs for name in program["histogram"]):
        yield f"  {mnemonic}", [program["histogram"].get(mnemonic, 0) for program in programs]
    yield "words loaded", [program["words_loaded"] for program in programs]
    yield "  of weights", [program["weight_words"] for program in programs]
    yield "cycles", [program["cycles"] for program in programs]
    for unit in programs[0]["cycles_by_unit"]:
        yield f"  {unit}", [program["cycles_by_unit"][unit] for program in programs]


CAUSALITY_COLUMNS: Final = 5
"""Logits of a row that are printed."""


def causality_table(record: Record) -> PlainTable:
    """The first logits of every row of every block, and whether the row is the first block's."""
    table = plain_table("block", "row", "token", "first logits", "as in the first block")
    for column in table.columns[3:]:
        column.justify = "left"
    for number, block in enumerate(record["blocks"]):
        for row, (token, logits, equal) in enumerate(
            zip(block["tokens"], block["logits"], block["equal"], strict=True)
        ):
            shown = "" if number == 0 else "every integer" if equal else "different"
            table.add_line(
                " ".join(map(str, block["tokens"])) if row == 0 else "",
                f"{row}", f"{token}", " ".join(f"{x:4d}" for x in logits[:CAUSALITY_COLUMNS]),
                shown,
            )  # fmt: skip
    outcome = "holds" if record["holds"] else "FAILS"
    table.set_caption(
        f"{record['model']}, cache {' '.join(map(str, record['cache']))}: causality {outcome}"
    )
    return table
