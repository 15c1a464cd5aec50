"""Tables show the record they are given, and nothing has to run for it."""

from typing import Any

import pytest
from tests.report.printed import printed_rows

from capra.report.experiments import grid_table, runs_table
from capra.report.tables import (
    certificate_lines,
    comparison_table,
    evaluation_table,
    resident_line,
    rtl_lines,
    run_certificate_line,
    tensor_error_table,
    verdict,
)

UNITS = {"matrix": 1111, "dma": 222, "vector": 33, "control": 4}
RECORD: dict[str, Any] = {
    "plain": {
        "tokens": [1, 2, 3], "programs": 4, "cycles": 1234567, "cycles_by_unit": UNITS,
        "stop_reason": "length", "prefill": {"programs": 1, "cycles": 5678},
    },
    "speculative": {
        "tokens": [1, 2, 3], "programs": 9, "cycles": 1000000, "cycles_by_unit": UNITS,
        "stop_reason": "length", "prefill": {"programs": 1, "cycles": 5678},
        "blocks": 2, "accepted": 1, "proposed": 6,
        "acceptance_rate": 1 / 6, "mean_acceptance_length": 1.5, "tokens_per_block": 1.25,
        "accepted_per_position": [1, 0, 0],
    },
    "tokens_equal": True, "speedup": 1.234567, "decode_speedup": 1.305,
    "settings": {
        "chip": {"scratchpad_words": 4096}, "model": "m", "draft": "d", "num_speculative_tokens": 3
    },
    "optimize": ["block-attention"],
    "resident_weights": {
        "weight_words": 5000, "plain_cycles": 900000, "speculative_cycles": 800000, "speedup": 1.125
    },
}  # fmt: skip


def test_plain_and_speculative_stand_side_by_side() -> None:
    lines = printed_rows(comparison_table(RECORD))
    assert lines["plain"] == ["speculative"]
    assert lines["tokens"] == ["3", "3"]
    assert lines["programs"] == ["4", "9"]
    assert lines["cycles"] == ["1,234,567", "1,000,000"]
    assert lines["matrix"] == ["1,111", "1,111"]
    assert lines["of these, the prompt's"] == ["5,678", "5,678"]
    assert lines["accepted / proposed"] == ["1 / 6"]
    assert lines["acceptance rate"] == ["16.7%"]
    assert lines["mean acceptance length"] == ["1.50"]
    assert lines["tokens kept per block"] == ["1.25"]
    assert "model m, draft d, k = 3, -Oblock-attention" in str(comparison_table(RECORD).caption)
    assert lines["accepted per position"] == ["1 0 0"]


@pytest.mark.parametrize(("words", "fit"), [(4999, "do not fit"), (5000, "would fit")])
def test_what_resident_weights_would_gain_is_said(words: int, fit: str) -> None:
    record = RECORD | {"settings": {"chip": {"scratchpad_words": words}}}
    assert resident_line(record) == (
        "Every program loads its weights again. Loaded once: 1.12 times (derived, not executed: "
        "900,000 and 800,000 cycles); 5,000 words of weights, draft included, "
        f"{fit} the scratchpad's {words:,}."
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {},
            "The tokens are equal; speculative decoding took 234,567 cycles fewer: 1.23 times the "
            "speed of plain decoding (1.30 without the prompt).",
        ),
        ({"tokens_equal": False}, "The tokens are NOT EQUAL; "),
        ({"plain": RECORD["plain"] | {"cycles": 999_000}}, "took 1,000 cycles more: "),
    ],
)
def test_the_verdict_tells_what_was_gained(changes: dict[str, Any], sentence: str) -> None:
    assert sentence in verdict(RECORD | changes)


def test_the_certificate_is_a_sentence() -> None:
    equal = {
        "rows": 1074, "uncompared_rows": 0, "equal": True, "first_difference": None,
        "plain": {"digest": "ab12"},
    }  # fmt: skip
    assert run_certificate_line(equal) == (
        "certificate: 1,074 rows, every integer of logits, keys and values equal; digest ab12."
    )
    assert run_certificate_line(equal | {"rows": 1}).startswith("certificate: 1 row, every")
    more = run_certificate_line(equal | {"uncompared_rows": 2})
    assert "equal; 2 more of the speculative run not compared; digest" in more
    found = {"position": 7, "part": "l0.k", "element": 3, "plain": -4, "speculative": 5}
    line = run_certificate_line(equal | {"equal": False, "first_difference": found})
    assert line == (
        "certificate: NOT EQUAL at position 7 of 1,074: l0.k[3] is 5 in the speculative run, "
        "expected -4."
    )
    missing = run_certificate_line(equal | {"first_difference": found | {"speculative": None}})
    assert "l0.k[3] is missing in the speculative run" in missing


def test_the_runs_stand_below_each_other() -> None:
    plain = {
        "model": "structured", "decode": "plain", "programs": 32, "cycles": 268346,
        "tokens_equal": True,
    }  # fmt: skip
    run = {
        "model": "random", "draft_noise": 0, "k": 3, "accepted": 24, "proposed": 30, "blocks": 10,
        "acceptance_rate": 0.8, "programs": 40, "cycles": 172278, "speedup": 1.5576,
        "resident_speedup": 1.3712,
        "tokens_equal": False,
    }  # fmt: skip
    lines = printed_rows(runs_table({"runs": [plain, run], "optimize": []}))
    assert lines["structured"] == ["plain", "32", "268,346", "yes"]
    assert lines["random"] == ["0", "3", "24 / 30", "10", "40", "172,278", "1.56 (1.37)", "NO"]


def test_the_grid_has_a_row_a_noise_and_a_column_a_k() -> None:
    cells = [
        {"draft_noise": noise, "k": k, "speedup": noise + k / 10, "acceptance_rate": k / 10}
        for k in (2, 1)
        for noise in (3, 0.5)
    ]
    lines = printed_rows(grid_table({"cells": cells, "optimize": []}))
    assert lines["draft noise"] == ["k = 1", "k = 2"]
    assert lines["0.5"] == ["0.60 (10%)", "0.70 (20%)"]
    assert lines["3"] == ["3.10 (10%)", "3.20 (20%)"]


def test_chip_and_float_stand_side_by_side() -> None:
    record = {
        "chip_bits_per_character": 2.58765, "float_bits_per_character": 2.4,
        "greedy_agreement": 0.8876, "greedy_texts": {"characters": 64, "common_prefixes": [7, 64]},
    }  # fmt: skip
    lines = printed_rows(evaluation_table(record))
    assert lines["bits per character"] == ["2.588", "2.400"]
    assert lines["greedy token as in float"] == ["88.8%"]
    assert lines["greedy text as in float, of 64 characters"] == ["7, 64"]


def test_tensor_errors_begin_with_the_largest_and_never_lack_the_logits() -> None:
    tensors = {f"t{n}": {"relative_l2": n / 100, "largest_steps": n / 2} for n in range(1, 30)}
    tensors["logits"] = {"relative_l2": 0.001, "largest_steps": 0.25}
    lines = printed_rows(tensor_error_table({"windows": 2, "tensors": tensors}))
    names = list(lines)
    assert names[:3] == ["tensor, over 2 windows", "t29", "t28"]
    assert names[12:14] == ["t18", "logits"]
    assert lines["t29"] == ["29.00%", "14.5"] and lines["logits"] == ["0.10%", "0.2"]
    assert names[14].startswith("the largest of 30, and the logits")
    few = {name: tensors[name] for name in ("t1", "t2", "logits")}
    names = list(printed_rows(tensor_error_table({"windows": 1, "tensors": few})))
    assert names == ["tensor, over 1 window", "t2", "t1", "logits"]


def test_a_line_for_each_rtl_simulator() -> None:
    found = {"programs": 1234, "mismatches": 0, "cycles": 9876543, "wall_seconds": 1.259}
    lines = rtl_lines(
        {
            "icarus": {**found, "version": "Icarus 11"},
            "verilator": {**found, "programs": 1, "mismatches": 1, "version": "Verilator 5"},
        }
    )
    assert lines == [
        "icarus: 1,234 programs replayed on the RTL, all equal in every word and counter: "
        "9,876,543 cycles in 1.26 s (Icarus 11)",
        "verilator: 1 program replayed on the RTL, 1 of them NOT EQUAL: "
        "9,876,543 cycles in 1.26 s (Verilator 5)",
    ]
    assert rtl_lines({}) == []


def test_a_certificate_is_counted_by_role() -> None:
    record: dict[str, Any] = {
        "model": "m", "max_context": 6, "max_rows": 3, "certified": True, "terms": 12345,
        "graphs": {"step": 9, "verify": 1021}, "programs": {}, "digest": "abc", "failure": None,
        "programs_covered": "none",
    }  # fmt: skip
    lines = certificate_lines(record)
    what = "m, caches of 0 .. 6, 1 .. 3 rows: "
    assert lines[0] == (
        f"{what}graphs certified; programs not checked (--instructions checks them)"
    )
    assert lines[1] == "graphs: 9 step, 1,021 verify: rows equal to the plain steps'"
    assert lines[2:] == ["12,345 terms; digest of the steps' functions abc"]
    programs = {"programs": {"step": 2}, "program_caches": [0, 5]}
    some = record | programs | {"programs_covered": "some caches"}
    assert certificate_lines(some)[0] == (
        f"{what}graphs certified; programs certified at 2 caches, not checked at the others"
    )
    whole = record | programs | {"programs_covered": "all caches"}
    assert certificate_lines(whole)[0] == f"{what}graphs and programs certified"
    record |= {"certified": False, **programs}
    lines = certificate_lines(record)
    assert lines[0].endswith(": NOT CERTIFIED")
    assert lines[2] == "programs: 2 step: instructions equal to their graphs"
    assert lines[3] == "programs of blocks at caches 0 5"
