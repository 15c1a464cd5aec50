"""Laws are fitted to points whose coefficients are known, and exponents to powers."""

import pytest
from benchmarks.fit import AFFINE, QUADRATIC, exponents, fit, tiled

SIZES = [16, 32, 64, 128, 256]


def test_points_on_a_law_give_its_coefficients() -> None:
    found = fit(AFFINE, SIZES, [300 + 7 * n for n in SIZES])
    assert found["coefficients"] == pytest.approx({"1": 300, "n": 7})
    assert found["largest_deviation"] < 1e-9
    found = fit(QUADRATIC, SIZES, [5 + 3 * n + 2 * n * n for n in SIZES])
    assert found["coefficients"] == pytest.approx({"1": 5, "n": 3, "n^2": 2})


def test_a_point_off_the_law_is_the_largest_deviation() -> None:
    values = [10.0 * n for n in SIZES]
    values[2] *= 1.2
    assert 0.08 < fit(AFFINE, SIZES, values)["largest_deviation"] < 0.2


def test_quadratic_points_are_far_from_an_affine_law() -> None:
    found = fit(AFFINE, SIZES, [n * n for n in SIZES])
    assert found["largest_deviation"] > 0.3
    assert found["last_exponent"] > found["degree"]


@pytest.mark.parametrize("power", [0.5, 1, 2])
def test_the_exponent_of_a_power(power: float) -> None:
    found = exponents(SIZES, [3 * n**power for n in SIZES])
    assert found == pytest.approx({"exponent": power, "last_exponent": power})


def test_the_last_exponent_is_of_the_last_two_points() -> None:
    assert exponents([1, 2, 4], [1, 1, 8])["last_exponent"] == pytest.approx(3)
    assert exponents([1, 2, 3], [1, 2, 3])["last_exponent"] == pytest.approx(1)


def test_terms_of_a_tiled_block() -> None:
    """Six rows after ten: a tile of four that sees 14 keys, and one of two that sees 16."""
    values = [term(6) for term in tiled(10).terms.values()]
    assert values == [1, 2, 6, 14 + 16, 4 * 14 + 2 * 16]


def test_a_law_that_can_bend_to_every_point_is_refused() -> None:
    with pytest.raises(AssertionError, match="2 points"):
        fit(AFFINE, [1, 2], [1, 2])
