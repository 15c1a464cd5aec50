"""The page of benchmarks is what the committed records give, and the records have their shape."""

from typing import Any

import pytest
from benchmarks.commands import COMMANDS
from benchmarks.docs import PAGE, TABLES, load, render, table
from benchmarks.fit import fit
from benchmarks.growth import AXES
from benchmarks.records import BENCH, PEERS, shortened

BENCH_RECORD, PEERS_RECORD = load(BENCH), load(PEERS)


def test_the_page_is_what_the_records_give() -> None:
    made = render(PAGE.read_text(), BENCH_RECORD, PEERS_RECORD)
    assert PAGE.read_text() == made, "docs/reference/benchmarks.md is stale: make bench-docs"


def test_every_table_is_on_the_page_once() -> None:
    names = [line.split()[2] for line in PAGE.read_text().splitlines() if "<!-- table" in line]
    assert sorted(names) == sorted(TABLES)


def test_another_record_makes_another_page() -> None:
    record = load(BENCH)
    record["commands"]["help"]["wall_seconds"] = 12345.0
    assert "| 12345.00 |" in render(PAGE.read_text(), record, PEERS_RECORD)


def test_prose_stays_and_unknown_tables_are_errors() -> None:
    page = "before\n<!-- table environments -->\nold\n<!-- end -->\nafter\n"
    made = render(page, BENCH_RECORD, PEERS_RECORD)
    assert made.startswith("before\n<!-- table environments -->\n| part |")
    assert made.endswith(" |\n<!-- end -->\nafter\n")
    with pytest.raises(KeyError):
        render(page.replace("environments", "unknown"), BENCH_RECORD, PEERS_RECORD)


def test_a_table_in_markdown() -> None:
    text = table("name | cycles:", [["a", "1,000"]])
    assert text == "| name | cycles |\n| --- | ---: |\n| a | 1,000 |\n"


def test_the_bench_record_has_every_part() -> None:
    record = BENCH_RECORD
    parts = ["commands", "compiler", "engines", "growth"]
    assert list(record) == ["kind", "environments", *parts]
    assert record["kind"] == "bench"
    assert list(record["environments"]) == parts
    assert list(record["commands"]) == list(COMMANDS)
    assert list(record["growth"]) == list(AXES)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_best_run_is_one_of_its_runs(name: str) -> None:
    run = BENCH_RECORD["commands"][name]
    assert len(run["runs"]) > 1
    for what in ("wall_seconds", "process_seconds"):
        assert run[what] == min(repeat[what] for repeat in run["runs"])


@pytest.mark.parametrize("what", ["tiny", "pydoc"])
def test_rates_and_ratios_are_those_of_cycles_and_seconds(what: str) -> None:
    runs = {name: run for name, run in BENCH_RECORD["engines"][what].items() if "cycles" in run}
    base = runs["verilator"]["cycles"] / runs["verilator"]["seconds"]
    assert {"readable", "compiled", "icarus", "verilator"} == set(runs)
    for run in runs.values():
        assert run["seconds"] == min(run["rounds"])
        rate = run["cycles"] / run["seconds"]
        assert run["cycles_per_second"] == pytest.approx(rate, rel=1e-4)
        assert run["of_verilator"] == pytest.approx(rate / base, rel=1e-4)
    assert runs["compiled"]["of_verilator"] > runs["compiled"]["of_verilator_without_images"] > 1
    whole = {run["cycles"] for name, run in runs.items() if name != "icarus"}
    assert len(whole) == 1, "the same programs"


@pytest.mark.parametrize("axis", AXES.values(), ids=lambda axis: axis.what)
def test_growth_has_every_size_and_its_cycles_follow_the_law(axis: Any) -> None:
    record = BENCH_RECORD["growth"][axis.what]
    assert [point["size"] for point in record["points"]] == list(axis.sizes)
    ran = [point for point in record["points"] if "refused" not in point]
    for point in ran:
        assert point["cycles"] == sum(point["cycles_by_unit"].values())
    sizes, cycles = [p["size"] for p in ran], [p["cycles"] for p in ran]
    assert (
        shortened(fit(axis.cycles, sizes, cycles))["exponent"]
        == record["fits"]["cycles"]["exponent"]
    )
    assert record["fits"]["cycles"]["largest_deviation"] < 0.001
    assert record["fits"]["cycles"]["last_exponent"] <= axis.cycles.degree


def test_peers_ran_the_same_product() -> None:
    ours = PEERS_RECORD["capra"]
    assert ours["values_checked"] == 4 * 576
    assert ours["cycles"] == sum(ours["cycles_by_unit"].values())
    for simulator in ("icarus", "verilator"):
        run = PEERS_RECORD[simulator]
        assert run["difference"] is None
        assert run["cycles_by_unit"] == ours["cycles_by_unit"]
    macs = 4 * 576 * 576
    for peer in ("scalesim", "zigzag"):
        assert PEERS_RECORD[peer]["version"]
        for run in PEERS_RECORD[peer]["runs"]:
            assert run["cycles"] >= run["compute_cycles"] >= macs / 16


def test_records_name_no_place() -> None:
    text = BENCH.read_text() + PEERS.read_text()
    assert "/home" not in text
    assert str(BENCH.parents[2]) not in text


def test_measurements_are_shortened_and_counts_are_not() -> None:
    value = {"seconds": 0.123456789, "cycles": 123456789, "runs": [1.00000049]}
    assert shortened(value) == {"seconds": 0.123457, "cycles": 123456789, "runs": [1.0]}
