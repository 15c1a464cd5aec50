"""Traces, anatomies and causality as tables."""

import io
from typing import Any

from rich.console import Console, RenderableType
from tests.report.printed import printed_rows

from capra.report.experiments import (
    anatomy_table,
    causality_table,
    prediction_tables,
    programs_table,
    trace_table,
)


def _program(role: str, cycles: int) -> dict[str, Any]:
    return {"role": role, "cycles": cycles}


TRACE: dict[str, Any] = {
    "settings": {"prompt": [7, 7, 0], "vocabulary": ["0 ", "1 ", "a", " "]},
    "speculative": {
        "trace": [
            {"tokens": [0, 2, 3], "proposed": [2, 3], "choices": [2, 3, 1], "accepted": 2,
             "emitted": [2, 3, 1],
             "programs": [_program("draft", 1000), _program("draft", 234), _program("verify", 9)]},
            {"tokens": [1, 2], "proposed": [2, 9], "choices": [1, 0], "accepted": 0,
             "emitted": [1], "programs": [_program("verify", 77)]},
            {"tokens": [1], "proposed": [], "choices": [0], "accepted": 0, "emitted": [0],
             "programs": [_program("step", 5)]},
        ]
    },
}  # fmt: skip


def _printed(table: RenderableType, *, colour: bool = False) -> str:
    file = io.StringIO()
    Console(file=file, width=200, force_terminal=colour, color_system="standard").print(table)
    return file.getvalue()


def test_a_trace_says_what_became_of_every_token_without_colour() -> None:
    lines = printed_rows(trace_table(TRACE))
    assert lines["1"] == ["2", "0 'a'+ ' '+", "'a' ' ' 1", "2 / 2", "'a'+ ' '+ 1*", "1,234", "9"]
    assert lines["2"] == ["5", "1 'a'x 9x", "1 0", "0 / 2", "1<", "0", "77"]
    assert lines["3"] == ["6", "1", "0", "0 / 0", "0*", "0", "5"]
    assert "+ accepted, x rejected, < recovered, * bonus" in _printed(trace_table(TRACE))


def test_a_trace_has_colours_on_a_terminal() -> None:
    shown = _printed(trace_table(TRACE), colour=True)
    assert "\x1b[32m'a'+" in shown and "\x1b[31m'a'x" in shown
    assert "\x1b[33m1<" in shown and "\x1b[36m1*" in shown


def _anatomy(name: str, scale: int) -> dict[str, Any]:
    return {
        "name": name, "instructions": 12 * scale, "histogram": {"LD": 2 * scale, "MM": 1},
        "words_loaded": 1000 * scale, "weight_words": 900 * scale, "cycles": 2000 * scale,
        "cycles_by_unit": {"matrix": 1500 * scale, "dma": 500 * scale},
    }  # fmt: skip


def test_an_anatomy_compares_a_verifier_with_its_steps() -> None:
    step = {"cache": 4, **_anatomy("step", 1)}
    record = {
        "model": "random", "verifier": _anatomy("verify_m2_c4", 3), "steps": [step, step],
        "steps_together": _anatomy("2 steps", 2),
        "draft": _anatomy("draft", 1) | {"histogram": {"AMAX": 1}},
    }  # fmt: skip
    lines = printed_rows(anatomy_table(record))
    assert lines["verifier"] == ["2 steps", "ratio", "c = 4", "c = 4", "draft"]
    assert lines["cycles"] == ["6,000", "4,000", "1.50", "2,000", "2,000", "2,000"]
    assert lines["of weights"] == ["2,700", "1,800", "1.50", "900", "900", "900"]
    assert lines["matrix"][:3] == ["4,500", "3,000", "1.50"]
    assert lines["LD"] == ["6", "4", "1.50", "2", "2", "0"]
    assert lines["AMAX"] == ["0", "0", "0", "0", "1"], "no ratio to nothing"
    assert "verify_m2_c4 of random" in _printed(anatomy_table(record))


def test_programs_stand_side_by_side() -> None:
    record = {"programs": [_anatomy("a", 1), _anatomy("b", 3)], "ratios": [1.0, 3.0]}
    lines = printed_rows(programs_table(record))
    assert lines["cycles"] == ["2,000", "6,000"]
    assert lines["cycles / the first's"] == ["1.00", "3.00"]


def test_causality_shows_the_first_logits_and_the_comparison() -> None:
    block = {"tokens": [1, 2], "logits": [[1, 2, 3, 4, 5, 6], [7, 8, 9, 1, 2, 3]]}
    record: dict[str, Any] = {
        "model": "some model", "cache": [3, 8], "holds": True,
        "blocks": [{**block, "equal": [True, True]}, {**block, "equal": [True, False]}],
    }  # fmt: skip
    shown = _printed(causality_table(record))
    assert "1    2    3    4    5" in shown and "6" not in shown
    assert shown.count("every integer") == shown.count("different") == 1
    assert "some model, cache 3 8: causality holds" in shown
    assert "FAILS" in _printed(causality_table(record | {"holds": False}))


def test_errors_of_predictions_are_a_table_each() -> None:
    cells = [
        {"draft_noise": 3, "k": k, "errors": {"geometric": 0.1 * k, "profile": -0.001}}
        for k in (1, 2)
    ]
    geometric, profile = (printed_rows(table) for table in prediction_tables(cells))
    assert geometric == {"error of geometric": ["k = 1", "k = 2"], "3": ["+10.0%", "+20.0%"]}
    assert profile == {"error of profile": ["k = 1", "k = 2"], "3": ["-0.1%", "-0.1%"]}
