"""A plan's sentences and tables show the record that they are given."""

from typing import Any

import pytest
from tests.report.printed import printed_rows

from capra.report.plan import (
    cost_curve_table,
    guesses_table,
    plan_lines,
    serving_chip_table,
    serving_formula_table,
    serving_lines,
)

STEADY = {"speedup": 1.3, "plain_cycles_per_token": 8000.0, "cycles_per_token": 6153.8,
          "tokens_per_block": 2.0}  # fmt: skip
BEST = {"k": 2, **STEADY}


def _entry(k: int, speedup: float, measured: float | None) -> dict[str, Any]:
    return {
        "k": k, "speedup": speedup, "steady": STEADY,
        "break_even_acceptance": 0.4 if k < 3 else None,
        "expected": {"acceptance_rate": 0.5, "blocks": 10.25, "proposed": 20.5,
                     "conditional_acceptance": [0.6, 0.25][:k]},
        "predicted": {"geometric": speedup * 1.1, "rates": speedup, "profile": speedup},
        "measured": measured and {"speedup": measured, "runs": 4},
        "errors": measured and {"geometric": 0.1, "rates": -0.02, "profile": 0.0},
    }  # fmt: skip


RECORD: dict[str, Any] = {
    "settings": {"model": "structured", "draft": "bigram"}, "optimize": [],
    "new_tokens": 32, "plain_cycles": 268346, "draft_cycles": 810.0, "draft_cycles_assumed": False,
    "acceptance_source": "measured", "pays": True, "best": BEST,
    "needed": {"k": 1, "acceptance": 0.376},
    "ks": [_entry(1, 1.1, None), _entry(2, 1.234, 1.259), _entry(3, 0.9, None)],
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "Speculation pays: best with K = 2, 1.30 times the speed of plain decoding in the "
            "steady state (6,154 cycles per token, plain 8,000).",
        ),
        (
            {"pays": False, "best": BEST | {"k": 1, "speedup": 0.94}},
            "Speculation does not pay: best with K = 1, 0.94 times the speed of plain decoding in "
            "the steady state (6,154 cycles per token, plain 8,000). It needs an acceptance of "
            "37.6% at least, with K = 1; this draft's is 60.0%.",
        ),
        (
            {"pays": False, "needed": None},
            "Speculation does not pay, nor would it with a perfect draft: best with K = 2, 1.30 "
            "times the speed of plain decoding in the steady state (6,154 cycles per token, plain "
            "8,000).",
        ),
    ],
)
def test_the_verdict_comes_first(changes: dict[str, Any], sentence: str) -> None:
    first, run, basis = plan_lines(RECORD | changes)
    assert first == sentence
    best = 1 if "best" in changes else 2
    predicted = "1.10 predicted with K = 1; its own best is K = 2, 1.23"
    assert run == "This run, 32 tokens: " + (
        f"{predicted}." if best == 1 else "1.23 predicted with K = 2, 1.26 measured."
    )
    assert basis == (
        "Model structured, draft bigram, -O0. Plain: 268,346 cycles. A draft token costs 810 "
        "cycles (executed). Acceptance: the draft's own."
    )


@pytest.mark.parametrize("verdict", [{}, {"pays": False}, {"pays": False, "needed": None}])
def test_what_is_assumed_of_the_draft_is_said_first(verdict: dict[str, Any]) -> None:
    free = RECORD | verdict | {"draft_cycles": 0.0}
    for assumed in (True, False):
        first, _, basis = plan_lines(free | {"draft_cycles_assumed": assumed})
        assert first.startswith("With a draft that costs nothing, speculation ")
        assert ("0 cycles (assumed)" if assumed else "the draft runs no program") in basis
    first, _, basis = plan_lines(RECORD | verdict | {"draft_cycles_assumed": True})
    assert first.startswith("Assuming 810 cycles per draft token, speculation ")
    assert "810 cycles (assumed)" in basis


def test_the_best_k_at_the_end_of_the_search_is_told() -> None:
    last = RECORD | {"ks": RECORD["ks"][:2]}
    assert ", the largest K tried." in plan_lines(last)[0]
    assert "largest K tried" not in plan_lines(RECORD)[0]


def test_a_run_without_draft_tokens_says_so() -> None:
    entries = [e | {"expected": e["expected"] | {"proposed": 0.0}} for e in RECORD["ks"]]
    _, run, _ = plan_lines(RECORD | {"new_tokens": 1, "ks": entries})
    assert run == "This run, 1 token: no draft token is proposed, speculation changes nothing."


def test_every_k_has_its_line() -> None:
    lines = printed_rows(guesses_table(RECORD))
    assert lines["K"] == [
        "needed", "accepted", "steady", "geometric", "rates", "profile", "measured"
    ]  # fmt: skip
    assert lines["1"] == ["40.0%", "50.0%", "1.30", "1.21", "1.10", "1.10"]
    assert lines["2 *"] == [
        "40.0%", "50.0%", "1.30", "1.36 +10.0%", "1.23 -2.0%", "1.23 +0.0%", "1.26"
    ]  # fmt: skip
    assert lines["3"][0] == "never"
    synthetic = printed_rows(guesses_table(RECORD | {"acceptance_source": "synthetic"}))
    assert synthetic["K"][-1] == "runs" and synthetic["2 *"][-1] == "4"


def test_the_curve_marks_its_cliffs() -> None:
    points = [
        {"rows": 4, "cycles": 14410, "relative": 1.781, "added": 0.265, "is_cliff": False},
        {"rows": 5, "cycles": 19876, "relative": 2.457, "added": 0.676, "is_cliff": True},
    ]
    lines = printed_rows(cost_curve_table({"cache": 12, "points": points}))
    assert lines["rows m, 12 cached"] == ["cycles", "c(m)", "added"]
    assert lines["4"] == ["14,410", "1.78", "+0.27"]
    assert lines["5"] == ["19,876", "2.46", "+0.68", "cliff: new row of tiles, K = 4"]


SERVING: dict[str, Any] = {
    "model": "structured", "runs": 8, "new_tokens": 32, "step_cycles": 8385.8,
    "draft_cycles": 810.0,
    "costs": [{"c": 0.05, "assumed": True}, {"c": 0.09659, "assumed": False}],
    "rows": [{
        "acceptance": 0.6, "k": 2, "pass_cost": 1.543,
        "cells": [{"formula": 1.78, "measured": 1.16, "error": 0.54},
                  {"formula": 1.64, "measured": 1.10, "error": 0.498}],
    }],
}  # fmt: skip


def test_serving_tells_assumed_from_executed() -> None:
    formula = printed_rows(serving_formula_table(SERVING))
    assert formula["a / k"] == ["c = 0.05 (assumed)"]
    assert formula["0.6 / 2"] == ["1.78"]
    chip = printed_rows(serving_chip_table(SERVING))
    assert chip["a / k"] == ["pass", "c = 0.05 (assumed)", "c = 0.0966 (executed)"]
    assert chip["0.6 / 2"] == ["1.54 steps", "1.16 +54%", "1.10 +50%"]
    (line,) = serving_lines(SERVING)
    assert "structured, 8 runs of 32 tokens" in line and "a step 8,386 cycles, a guess 810" in line
