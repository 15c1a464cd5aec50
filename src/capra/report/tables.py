"""Records as tables for people. Takes the same records that `--json` prints; runs nothing."""

from collections.abc import Mapping
from typing import Final

from capra.report.layout import PlainTable, Record, counted, level, plain_table

WORST_TENSORS: Final = 12
"""Rows of the table of tensor errors, besides the logits."""


def comparison_table(record: Record) -> PlainTable:
    """Plain and speculative decoding side by side."""
    table = plain_table("", "plain", "speculative")
    plain, speculative = record["plain"], record["speculative"]
    rows = [
        (name, f"{plain_value:,}", f"{speculative_value:,}")
        for (name, plain_value), (_, speculative_value) in zip(
            _costs(plain), _costs(speculative), strict=True
        )
    ]
    rows += [
        ("stopped by", plain["stop_reason"], speculative["stop_reason"]),
        ("blocks", "", f"{speculative['blocks']:,}"),
        ("accepted / proposed", "", f"{speculative['accepted']} / {speculative['proposed']}"),
        ("acceptance rate", "", f"{speculative['acceptance_rate']:.1%}"),
        ("mean acceptance length", "", f"{speculative['mean_acceptance_length']:.2f}"),
        ("tokens kept per block", "", f"{speculative['tokens_per_block']:.2f}"),
        ("accepted per position", "", " ".join(map(str, speculative["accepted_per_position"]))),
    ]
    for row in rows:
        table.add_line(*row)
    settings = record["settings"]
    table.set_caption(
        f"model {settings['model']}, draft {settings['draft']}, "
        f"k = {settings['num_speculative_tokens']}, {level(record)}"
    )
    return table


def _costs(run: Record) -> list[tuple[str, int]]:
    return [
        ("tokens", len(run["tokens"])),
        ("programs", run["programs"]),
        ("cycles", run["cycles"]),
        *((f"  {unit}", cycles) for unit, cycles in run["cycles_by_unit"].items()),
        ("  of these, the prompt's", run["prefill"]["cycles"]),
    ]


def verdict(record: Record) -> str:
    """One sentence: are the tokens equal, and what was gained."""
    if record["tokens_equal"] is None:
        return "Nothing was compared: no token was generated."
    equal = "equal" if record["tokens_equal"] else "NOT EQUAL"
    saved = record["plain"]["cycles"] - record["speculative"]["cycles"]
    if saved == 0:
        return (
            f"The tokens are {equal}; speculative decoding took as many cycles as plain decoding."
        )
    outcome = f"{abs(saved):,} cycles {'fewer' if saved > 0 else 'more'}"
    return (
        f"The tokens are {equal}; speculative decoding took {outcome}: "
        f"{record['speedup']:.2f} times the speed of plain decoding "
        f"({record['decode_speedup']:.2f} without the prompt)."
    )


def resident_line(record: Record) -> str:
    """One sentence: what would be gained if weights stayed on the chip, and whether they could."""
    resident, words = record["resident_weights"], record["settings"]["chip"]["scratchpad_words"]
    fit = "would fit" if resident["weight_words"] <= words else "do not fit"
    return (
        f"Every program loads its weights again. Loaded once: {resident['speedup']:.2f} times "
        f"(derived, not executed: {resident['plain_cycles']:,} and "
        f"{resident['speculative_cycles']:,} cycles); {resident['weight_words']:,} words of "
        f"weights, draft included, {fit} the scratchpad's {words:,}."
    )


def run_certificate_line(certificate: Record) -> str:
    """One sentence: were all integers of the compared rows equal, and their digest."""
    rows, extra = certificate["rows"], certificate["uncompared_rows"]
    found = certificate["first_difference"]
    if found is not None:
        return (
            f"certificate: NOT EQUAL at position {found['position']} of {rows:,}: "
            f"{found['part']}[{found['element']}] is {_element(found['speculative'])} in the "
            f"speculative run, expected {_element(found['plain'])}."
        )
    if certificate["equal"] is None:
        return "certificate: nothing was compared, as the plain run has no row."
    tail = f"; {extra} more of the speculative run not compared" if extra else ""
    return (
        f"certificate: {counted(rows, 'row')}, every integer of logits, keys and values "
        f"equal{tail}; digest {certificate['plain']['digest']}."
    )


def _element(value: int | None) -> str:
    return "missing" if value is None else str(value)


def rtl_lines(rtl: Mapping[str, Record]) -> list[str]:
    """A line a simulator: how much was replayed, how it compared, how long it took."""
    lines = []
    for name, found in rtl.items():
        programs, mismatches = found["programs"], found["mismatches"]
        equal = (
            "all equal in every word and counter"
            if mismatches == 0
            else f"{mismatches:,} of them NOT EQUAL"
        )
        if not programs:
            lines.append(f"{name}: nothing was replayed on the RTL ({found['version']})")
            continue
        lines.append(
            f"{name}: {counted(programs, 'program')} replayed on the RTL, {equal}: "
            f"{found['cycles']:,} cycles in {found['wall_seconds']:.2f} s ({found['version']})"
        )
    return lines


def certificate_lines(record: Record) -> list[str]:
    """What was certified, or that it was not."""
    graphs, programs = record["graphs"], record["programs"]
    what = (
        f"{record['model']}, caches of 0 .. {record['max_context']}, 1 .. {record['max_rows']} rows"
    )
    lines = [f"{what}: {_certified(record) if record['certified'] else 'NOT CERTIFIED'}"]
    counts = (("graphs", graphs, "rows equal to the plain steps'"),
              ("programs", programs, "instructions equal to their graphs"))  # fmt: skip
    for kind, by_role, claim in counts:
        if by_role:
            shown = ", ".join(f"{count:,} {role}" for role, count in by_role.items())
            lines.append(f"{kind}: {shown}: {claim}")
    if programs:
        lines.append(f"programs of blocks at caches {' '.join(map(str, record['program_caches']))}")
    lines.append(f"{record['terms']:,} terms; digest of the steps' functions {record['digest']}")
    return lines


def _certified(record: Record) -> str:
    """What a certificate covers, and what it does not."""
    match record["programs_covered"]:
        case "none":
            return "graphs certified; programs not checked (--instructions checks them)"
        case "some caches":
            count = len(record["program_caches"])
            return (
                f"graphs certified; programs certified at {counted(count, 'cache')}, not checked "
                "at the others"
            )
        case _:
            return "graphs and programs certified"


def evaluation_table(record: Record) -> PlainTable:
    """Bits per character on the chip and in float, and how far their greedy tokens agree."""
    table = plain_table("", "chip (int8)", "float")
    table.add_line(
        "bits per character",
        f"{record['chip_bits_per_character']:.3f}",
        f"{record['float_bits_per_character']:.3f}",
    )
    table.add_line("greedy token as in float", f"{record['greedy_agreement']:.1%}", "")
    texts = record["greedy_texts"]
    table.add_line(
        f"greedy text as in float, of {texts['characters']} characters",
        ", ".join(map(str, texts["common_prefixes"])), "",
    )  # fmt: skip
    return table


def worst_tensors(errors: Mapping[str, Record]) -> list[tuple[str, Record]]:
    """The tensors with the largest relative errors, the largest one first, and the logits."""
    worst = []
    for place, (tag, error) in enumerate(
        sorted(errors.items(), key=lambda item: -item[1]["relative_l2"])
    ):
        if place < WORST_TENSORS or tag == "logits":
            worst.append((tag, error))
    return worst


def tensor_error_table(errors: Record) -> PlainTable:
    """The logits and the tensors with the largest relative errors, the largest one first."""
    windows, tensors = errors["windows"], errors["tensors"]
    table = plain_table(
        f"tensor, over {windows} window{'s' * (windows != 1)}",
        "relative error", "largest error in steps",
    )  # fmt: skip
    for tag, error in worst_tensors(tensors):
        table.add_line(tag, f"{error['relative_l2']:.2%}", f"{error['largest_steps']:.1f}")
    if len(tensors) > WORST_TENSORS:
        table.set_caption(f"the largest of {len(tensors)}, and the logits; --json has all")
    return table
