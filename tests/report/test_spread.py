"""A bench's lines and table show the record that they are given."""

from typing import Any

import pytest
from rich.text import Text
from tests.report.printed import printed_rows
from tests.report.samples import RECORDS

from capra.errors import InputError
from capra.report.figures.speedup import spread
from capra.report.records import check_record
from capra.report.spread import bench_lines, bench_table


def test_the_mean_comes_with_its_range_and_losses() -> None:
    record = RECORDS["bench"]()
    best = record["best"]
    first, resident, basis = bench_lines(record)
    assert first == (
        f"Highest mean speedup {best['mean']:.2f} (median {best['median']:.2f}) at k = {best['k']} "
        f"(95% confidence {best['low']:.2f} .. {best['high']:.2f}) over 16 prompts; runs from "
        f"{best['min']:.2f} to {best['max']:.2f}, {best['losses']} of {best['runs']} lose."
    )
    other = record["resident_best"]
    assert f"would be {other['resident_mean']:.2f} at k = {other['k']}, " in resident
    assert "derived, not executed" in resident
    assert basis.startswith("Model random, draft bigram, -O1; lengths 3, 6; ")
    assert basis.endswith("The tokens of all runs are equal.")
    noisy = record | {"settings": record["settings"] | {"draft_noise": 3.0}, "tokens_equal": False}
    basis = bench_lines(noisy)[2]
    assert "draft bigram with noise 3, -O1; " in basis and basis.endswith("are NOT EQUAL.")


def test_every_k_has_a_line_for_all_lengths_and_for_each() -> None:
    record = RECORDS["bench"]()
    table = bench_table(record)
    tokens, means = (list(map(str, table.columns[place].cells)) for place in (1, 2))
    assert tokens == ["all", "3", "6"] * 2
    cells: list[dict[str, Any]] = record["cells"]
    first = [record["by_k"][0], *(cell for cell in cells if cell["k"] == 1)]
    assert means[:3] == [f"{entry['mean']:.2f}" for entry in first]
    one = record | {"new_tokens": [3]}
    assert list(printed_rows(bench_table(one)))[:3] == ["k", "1", "3"]


def test_few_prompts_have_no_interval() -> None:
    record = RECORDS["bench"]()
    bests = record["best"], record["resident_best"]
    for entry in (*record["by_k"], *record["cells"], *bests):
        entry["low"] = entry["high"] = None
    check_record("file", record)
    assert "(too few prompts for an interval) over" in bench_lines(record)[0]
    assert list(bench_table(record).columns[3].cells) == [Text("")] * 6
    _, description = spread(record)
    assert ".. " not in description.partition("k = 1")[2].partition("runs from")[0]
    record["by_k"][0]["low"] = 1.0
    with pytest.raises(InputError, match=r"by_k\[0\]\.low is 1\.0, expected None, both or none"):
        check_record("file", record)
