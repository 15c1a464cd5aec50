"""The family's programs execute with their cycles and grow by one size."""

import pytest
from benchmarks.family import BASE, CHIP, family_model
from benchmarks.fit import exponents
from benchmarks.growth import AXES, MEASURED, fits, point
from benchmarks.records import least

from capra.errors import CapacityError
from capra.lm.target import ChipTarget


def test_a_model_of_the_family_has_the_sizes_asked_for() -> None:
    config = family_model(vocab_size=32, width=16).config
    assert (config.vocab_size, config.width, config.hidden) == (32, 16, 32)
    assert (config.heads, config.layers, config.chip) == (BASE.heads, BASE.layers, CHIP)


def test_a_point_is_of_an_executed_program() -> None:
    found = point(AXES["width"], 16)
    target, role, rows, cache = AXES["width"].program(16)
    program = target.program(role, rows, cache)
    assert found["cycles"] == program.cycles == sum(found["cycles_by_unit"].values())
    assert found["instructions"] == len(program.instructions)
    assert 0 < found["compile_seconds"] < 60


def test_a_refusal_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise CapacityError("the scratchpad needs more")

    monkeypatch.setattr(ChipTarget, "program", refuse)
    assert point(AXES["width"], 16) == {"refused": "the scratchpad needs more"}


@pytest.mark.parametrize(("axis", "what"), [("context", "cache"), ("rows", "rows")])
def test_the_size_is_what_grows(axis: str, what: str) -> None:
    _, role, rows, cache = AXES[axis].program(8)
    assert {"rows": rows, "cache": cache}[what] == 8
    assert role == ("verify" if rows > 1 else "step")


def test_a_point_has_the_least_of_its_rounds() -> None:
    runs = [
        {"cycles": 9, "compile_seconds": c, "simulate_seconds": s, "peak_mib": m}
        for c, s, m in ((3, 2, 5), (1, 3, 4), (2, 1, 6))
    ]
    assert least(runs, *MEASURED) == {
        "cycles": 9, "compile_seconds": 1, "simulate_seconds": 1, "peak_mib": 4,
    }  # fmt: skip
    refused = {"size": 8, "refused": "too large", "peak_mib": 7}
    assert least([refused, refused], *MEASURED) == refused


def test_fits_leave_refusals_out_and_use_instructions_cycles_and_words() -> None:
    sizes = [16, 32, 64, 128]
    points = [
        {
            "size": n, "cycles": 10 + n * n, "instructions": 3 * n, "words": n,
            "compile_seconds": 6e-3 * n, "simulate_seconds": 1e-6 * (10 + n * n),
            "peak_mib": 50 + 2 * n,
        }
        for n in sizes
    ]  # fmt: skip
    found = fits(AXES["width"], [*points, {"size": 256, "refused": "too large"}])
    assert {name: law["degree"] for name, law in found.items()} == {
        "cycles": 2, "compile_seconds": 1, "simulate_seconds": 1, "peak_mib": 1,
    }  # fmt: skip
    for law in found.values():
        assert law["largest_deviation"] < 1e-9
    assert found["compile_seconds"]["coefficients"]["n"] == pytest.approx(2e-3)
    assert found["cycles"]["exponent"] == exponents(sizes, [10 + n * n for n in sizes])["exponent"]
