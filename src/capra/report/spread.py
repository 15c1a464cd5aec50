"""What a bench over many prompts found: the mean first, then how far runs spread around it."""

from capra.report.layout import PlainTable, Record, counted, level, plain_table


def bench_lines(record: Record) -> list[str]:
    """The best k with its mean, range and losses; then how the runs were made."""
    resident = record["resident_best"]
    best, prompts = record["best"], len(record["prompts"])
    settings = record["settings"]
    noise = f" with noise {settings['draft_noise']:g}" if settings["draft_noise"] else ""
    lengths = ", ".join(map(str, record["new_tokens"]))
    equal = "equal" if record["tokens_equal"] else "NOT EQUAL"
    if best["low"] is None:
        known = "too few prompts for an interval"
    else:
        known = f"{record['confidence']:.0%} confidence {best['low']:.2f} .. {best['high']:.2f}"
    return [
        f"Highest mean speedup {best['mean']:.2f} (median {best['median']:.2f}) at "
        f"k = {best['k']} ({known}) over {counted(prompts, 'prompt')}; runs from "
        f"{best['min']:.2f} to {best['max']:.2f}, {best['losses']} of {best['runs']} lose.",
        f"With weights resident on the chip the highest mean would be "
        f"{resident['resident_mean']:.2f} at k = {resident['k']}, {resident['resident_losses']} of "
        f"{resident['runs']} lose (derived, not executed).",
        f"Model {settings['model']}, draft {settings['draft']}{noise}, {level(record)}; "
        f"lengths {lengths}; "
        f"{record['repeated_8grams']:.0%} of the 8-grams of the plain texts repeat earlier ones. "
        f"The tokens of all runs are {equal}.",
    ]


def bench_table(record: Record) -> PlainTable:
    """One line per k and length, those over all lengths first."""
    table = plain_table(
        "k", "tokens", "mean", "95 %", "median", "range", "lose", "accepted", "resident", "lose"
    )  # fmt: skip
    for entry in record["by_k"]:
        _add(table, entry, "all")
        for cell in record["cells"] if len(record["new_tokens"]) > 1 else ():
            if cell["k"] == entry["k"]:
                _add(table, cell, f"{cell['new_tokens']}")
    table.set_caption("lose: runs slower than plain decoding; resident: with resident weights")
    return table


def _add(table: PlainTable, entry: Record, tokens: str) -> None:
    table.add_line(
        f"{entry['k']}",
        tokens,
        f"{entry['mean']:.2f}",
        "" if entry["low"] is None else f"{entry['low']:.2f} .. {entry['high']:.2f}",
        f"{entry['median']:.2f}",
        f"{entry['min']:.2f} .. {entry['max']:.2f}",
        f"{entry['losses']} / {entry['runs']}",
        f"{entry['acceptance_rate']:.1%}",
        f"{entry['resident_mean']:.2f}",
        f"{entry['resident_losses']}",
    )
