"""Compilation is measured on the programs that it is said to be of."""

import pytest

from benchmarks import compiler
from capra import ChipTarget, load_model
from capra.compiler.optimization import O0


def test_a_case_is_of_this_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "REPEATS", 1)
    model = load_model("random")
    found = compiler._case(model, O0, 4, 8)
    program = ChipTarget(model).program("verify", 4, 8)
    assert found["instructions"] == len(program.instructions)
    assert 0 < found["milliseconds"] < 10_000
    assert 0 < found["neighbour_milliseconds"] < 10_000


def test_the_line_goes_through_larger_and_larger_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "REPEATS", 1)
    monkeypatch.setattr(compiler, "CASES", (("random", 8, 5.0),))
    monkeypatch.setattr(compiler, "FITTED_ROWS", (1, 4, 8))
    found = compiler._by_instructions()
    counts = [point["instructions"] for point in found["points"]]
    assert counts == sorted(set(counts))
    assert found["fit"]["law"] == "1 + n"
