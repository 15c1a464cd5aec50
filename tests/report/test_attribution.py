"""Every cycle is in one line: the roofline's, or one of those above it."""

import io

from rich.console import Console
from tests.report.samples import decode_record, profile_record, table_record

from capra.report.attribution import attribute, attribution_table

COST = {"cycles_by_phase": {"load": 100, "fetch": 8, "store": 20, "array": 50, "load_latency": 9}}


def test_the_roofline_is_the_words_that_move() -> None:
    found = attribute(COST)
    assert [(row.name, row.unit, row.cycles) for row in found.roofline] == [
        ("load", "dma", 100), ("store", "dma", 20),
    ]  # fmt: skip
    assert [(row.name, row.unit, row.cycles) for row in found.above] == [
        ("load latency", "dma", 9), ("array", "matrix", 50), ("fetch", "control", 8),
    ]  # fmt: skip
    assert (found.roofline_cycles, found.cycles) == (120, 187)
    assert all(row.meaning for row in (*found.roofline, *found.above))


def test_the_lines_of_real_runs_sum_to_their_cycles_and_units() -> None:
    decoded = decode_record()
    costs = [decoded["plain"], decoded["speculative"], profile_record(), *table_record()["runs"]]
    for cost in costs:
        found = attribute(cost)
        assert found.cycles == cost["cycles"]
        by_unit = dict.fromkeys(cost["cycles_by_unit"], 0)
        for row in (*found.roofline, *found.above):
            by_unit[row.unit.value] += row.cycles
        assert by_unit == cost["cycles_by_unit"]


def test_the_roofline_of_a_program_is_its_words() -> None:
    record = profile_record()
    words = 0
    for inst in record["instructions"]:
        mnemonic, *operands = inst["text"].split()
        if mnemonic in ("LD", "ST"):
            words += int(dict(pair.split("=") for pair in operands)["n"])
    assert attribute(record).roofline_cycles == words > 0


def test_the_table_ends_with_all_cycles() -> None:
    console = Console(file=io.StringIO(), width=100)
    console.print(attribution_table({"program": "p", "cycles": 187, **COST}))
    assert isinstance(console.file, io.StringIO)
    lines = [line.split() for line in console.file.getvalue().splitlines()]
    assert lines[0] == ["p", "unit", "cycles", "share"]
    assert lines[1] == ["load", "dma", "100", "53.5%"]
    assert lines[3] == ["memory", "roofline", "120", "64.2%"]
    assert lines[-1] == ["all", "cycles", "187", "100.0%"]
