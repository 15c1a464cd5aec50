"""Serving: the formula, and runs at the same acceptance; recorded figures are in tests/golden."""

import pytest
from tests.lm.samples import chip_target

from capra.lab import serving as lab
from capra.lab.planner import Workload, measure, synthetic_source
from capra.lab.predict import Rates
from capra.lab.serving import formula_speedup, serving

TOKENS = 8


def test_the_formula() -> None:
    assert formula_speedup(0.5, 2, 0.25) == pytest.approx(1.75 / 1.5)
    assert formula_speedup(1.0, 3, 0.0) == 4.0


def test_the_table_has_assumed_costs_and_the_executed_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "ACCEPTANCES", (0.5, 0.9))
    monkeypatch.setattr(lab, "GUESSES", (1, 3))
    work = Workload(chip_target("text"), (1,), TOKENS, 3)
    record = serving(work, 210.0, 5, 3)
    step = work.plain_cycles / TOKENS
    assert record["step_cycles"] == step and record["runs"] == 3
    assert [cost["assumed"] for cost in record["costs"]] == [True, True, True, False]
    assert [cost["c"] for cost in record["costs"]] == [0.01, 0.05, 0.15, 210.0 / step]
    places = [(row["acceptance"], row["k"]) for row in record["rows"]]
    assert places == [(0.5, 1), (0.5, 3), (0.9, 1), (0.9, 3)]
    for row in record["rows"]:
        assert row["tokens_equal"] and row["pass_cost"] > 1
        for cost, cell in zip(record["costs"], row["cells"], strict=True):
            assert cell["formula"] == formula_speedup(row["acceptance"], row["k"], cost["c"])
            assert cell["error"] == pytest.approx(cell["formula"] / cell["measured"] - 1)
    row = record["rows"][1]
    run = measure(work, synthetic_source(work, Rates((0.5,)), 210.0, 5, 3), 3)
    assert row["cells"][3]["measured"] == pytest.approx(run["speedup"])
    assert row["pass_cost"] == run["executed_cycles"] / run["blocks"] / step
