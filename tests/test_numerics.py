"""Integer arithmetic against exact rationals, and softmax against a model written from its text."""

import math
import os
import random
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.half_ways import half_way_cases

from capra.errors import RangeError
from capra.numerics import (
    EXP_ONE,
    EXP_TABLE,
    INT8_MAX,
    LARGEST_RESCALE,
    MAX_SHIFT,
    RECIPROCAL_BITS,
    RECIPROCAL_SHIFT,
    SOFTMAX_ONE,
    UNITY,
    Int64Array,
    Rescale,
    check_int8,
    dequantize,
    first_argmax,
    quantize,
    requantize,
    rescale_for,
    round_shift,
    saturating_add,
    saturating_rescale_for,
    softmax_row,
)

INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
SEED = int(os.environ.get("CAPRA_SEED", "0"))
ROWS_AT_ONCE = 50
multipliers = st.integers(0, (1 << 16) - 1)
shifts = st.integers(1, 47)


def half_up(x: Fraction) -> int:
    """The nearest integer, ties toward plus infinity."""
    return math.floor(x + Fraction(1, 2))


def exact_requantize(x: int, multiplier: int, shift: int, relu: bool) -> int:
    rounded = half_up(Fraction(x * multiplier, 1 << shift))
    return min(max(rounded, 0 if relu else -127), 127)


def exact_exp_table() -> list[int]:
    """65535 * exp(-i / 32), computed with 40 digits and rounded; the last entry is 0."""
    with localcontext() as context:
        context.prec = 40
        rows = [(Decimal(-i) / 32).exp() * 65535 for i in range(255)]
        return [int(v.quantize(Decimal(1), rounding=ROUND_HALF_UP)) for v in rows] + [0]


EXACT_TABLE = exact_exp_table()


def softmax_model(scores: list[int], multiplier: int, shift: int) -> list[int]:
    """Maximum; exponentials and their sum; one division; scaling. All in Python's integers."""
    top = max(scores)
    exponentials = []
    for score in scores:
        scaled = ((top - score) * multiplier + (1 << (shift - 1))) >> shift
        exponentials.append(EXACT_TABLE[min(scaled, 255)])
    quotient = (1 << 47) // sum(exponentials)
    return [(e * quotient + (1 << 31)) >> 32 for e in exponentials]


def exact_softmax(scores: list[int], scale: float) -> list[float]:
    top = max(scores)
    weights = [math.exp((score - top) * scale) for score in scores]
    total = math.fsum(weights)
    return [w / total for w in weights]


def softmax(scores: list[int], scale: float) -> list[int]:
    """The row for a score scale, as the docstring says: multiplier / 2^shift is scale times 32."""
    rescale = rescale_for(scale * 32)
    row = softmax_row(np.array(scores, np.int8), rescale.multiplier, rescale.shift)
    return [int(value) for value in row]


# rescale_for


@given(st.floats(2.0**-32, 2.0**15, exclude_max=True).filter(lambda f: f < 2**15 - 0.25))
@example(2.0**-32)
@example(2.0**15 - 0.5)
@example(1.0 + 2.0**-16)
@example(math.nextafter(1.0, 0.0))
def test_rescale_for_is_normal_and_within_2_to_the_minus_16(factor: float) -> None:
    rescale = rescale_for(factor)
    assert 1 << 15 <= rescale.multiplier < 1 << 16
    assert 1 <= rescale.shift <= MAX_SHIFT == 47
    found = Fraction(rescale.multiplier, 1 << rescale.shift)
    assert abs(found - Fraction(factor)) * (1 << 16) < Fraction(factor)
    assert rescale.factor == float(found)


def test_rescale_for_is_exact_for_powers_of_two() -> None:
    for exponent in range(-32, 15):
        rescale = rescale_for(2.0**exponent)
        assert Fraction(rescale.multiplier, 1 << rescale.shift) == Fraction(2) ** exponent
        assert rescale.multiplier == 1 << 15


def test_rescale_for_just_below_a_power_of_two_rounds_up_to_it() -> None:
    for exponent in range(-32, 15):
        power = 2.0**exponent
        assert rescale_for(math.nextafter(power, 0.0)) == rescale_for(power)


@pytest.mark.parametrize(
    "factor",
    [
        0.0,
        -0.0,
        -1.0,
        math.nan,
        math.inf,
        -math.inf,
        1e300,
        2.0**15,
        math.nextafter(2.0**15, 0.0),
        2.0**16,
    ],
)
def test_rescale_for_refuses_what_no_multiplier_can_express(factor: float) -> None:
    with pytest.raises(RangeError, match=r"rescale factor is .*, expected"):
        rescale_for(factor)


@pytest.mark.parametrize("factor", [5e-324, 2.0**-33, 2.0**-32 * (1 - 2.0**-15)])
def test_a_factor_too_small_for_32_bits_makes_every_value_zero(factor: float) -> None:
    tiny = rescale_for(factor)
    assert tiny == Rescale(0, MAX_SHIFT) and tiny.factor == 0
    extremes = np.array([-(2**31), -1, 0, 1, 2**31 - 1])
    assert requantize(extremes, tiny.multiplier, tiny.shift).tolist() == [0] * 5


def test_exactly_one_is_the_identity() -> None:
    one = rescale_for(1.0)
    assert one.is_identity
    every_int8 = np.arange(-127, 128)
    assert requantize(every_int8, one.multiplier, one.shift).tolist() == every_int8.tolist()


@pytest.mark.parametrize("factor", [0.5, 2.0, 1 + 2.0**-15, 1 - 2.0**-16])
def test_other_factors_are_not_the_identity(factor: float) -> None:
    assert not rescale_for(factor).is_identity


def test_identity_is_a_matter_of_value_not_of_form() -> None:
    assert Rescale(2, 1).is_identity
    assert not Rescale(1, 1).is_identity


# rounding shift and requantize


def test_round_shift_rounds_half_up_exhaustively_at_small_widths() -> None:
    x = np.arange(-70, 71)
    for multiplier in range(12):
        for shift in range(1, 7):
            expected = [half_up(Fraction(int(v) * multiplier, 1 << shift)) for v in x]
            assert round_shift(x, multiplier, shift).tolist() == expected


@given(st.integers(INT32_MIN, INT32_MAX), multipliers, shifts, st.booleans())
@example(INT32_MIN, 65535, 47, False)
@example(INT32_MAX, 65535, 47, False)
@example(INT32_MIN, 65535, 1, True)
def test_requantize_is_exact_at_full_width(x: int, multiplier: int, shift: int, relu: bool) -> None:
    found = requantize(np.array([x], np.int32), multiplier, shift, relu)
    assert found.tolist() == [exact_requantize(x, multiplier, shift, relu)]


@given(st.integers(-300, 300), st.integers(1 << 15, (1 << 16) - 1), shifts, st.booleans())
def test_requantize_is_exact_where_nothing_saturates(
    target: int, multiplier: int, shift: int, relu: bool
) -> None:
    x = (target << shift) // multiplier // 2
    x = min(max(x, INT32_MIN), INT32_MAX)
    found = requantize(np.array([x]), multiplier, shift, relu)
    assert found.tolist() == [exact_requantize(x, multiplier, shift, relu)]


def test_the_half_way_cases_are_all_there() -> None:
    cases = half_way_cases()
    halves = {
        (shift, (2 * x * mul) >> shift)
        for x, mul, shift, _ in cases
        if (x * mul) % (1 << shift) == 1 << (shift - 1)
    }
    odd = range(-2 * INT8_MAX - 1, 2 * INT8_MAX + 2, 2)
    for shift in range(1, MAX_SHIFT - 7):  # beyond, 48 bits of product do not reach all of int8
        assert {(shift, half) for half in odd} <= halves, shift
    for shift in range(1, MAX_SHIFT + 1):
        assert (shift, -1) in halves


def test_requantize_is_exact_around_every_half_way_case() -> None:
    cases = half_way_cases()
    exact = [exact_requantize(x, mul, shift, bool(relu)) for x, mul, shift, relu in cases]
    found = np.zeros(len(cases), np.int64)
    numbers = np.array(cases)
    for shift, relu in product(range(1, MAX_SHIFT + 1), (False, True)):
        here = (numbers[:, 2] == shift) & (numbers[:, 3] == relu)
        for mul in set(numbers[here, 1].tolist()):
            mine = here & (numbers[:, 1] == mul)
            found[mine] = requantize(numbers[mine, 0], mul, shift, relu)
    wrong = np.flatnonzero(found != exact)
    assert not wrong.size, [(cases[i], found[i], exact[i]) for i in wrong[:3]]


LARGE_FACTORS = (32767.4, 32767.5, 32768.0, 1e6, 2.0**40, 1e300, math.inf)


def test_the_largest_rescale_is_the_limit_of_all_others() -> None:
    assert Rescale((1 << 16) - 1, 1) == LARGEST_RESCALE
    assert saturating_rescale_for(32767.4) == rescale_for(32767.4) == LARGEST_RESCALE
    assert all(saturating_rescale_for(factor) == LARGEST_RESCALE for factor in LARGE_FACTORS)
    assert saturating_rescale_for(3.0) == rescale_for(3.0)
    assert saturating_rescale_for(1e-40) == rescale_for(1e-40)
    for factor in (0.0, -1.0, math.nan):
        with pytest.raises(RangeError, match="expected a finite number above 0"):
            saturating_rescale_for(factor)


@pytest.mark.parametrize("factor", LARGE_FACTORS)
def test_a_saturated_index_is_that_of_the_factor_for_every_difference(factor: float) -> None:
    """0 stays 0, and 1 .. 255 reach the last entry of the table."""
    rescale = saturating_rescale_for(factor)
    differences = np.arange(256)
    index = round_shift(differences, rescale.multiplier, rescale.shift)
    assert index.max() < 1 << 24, "the product has 24 bits in the chip"
    wanted = [min(d * factor, 255) if d else 0 for d in range(256)]
    assert np.minimum(index, 255).tolist() == wanted == [0, *[255] * 255]
    row = softmax_row(np.array([-128, 127, 126, 127]), rescale.multiplier, rescale.shift)
    assert row.tolist() == [0, SOFTMAX_ONE // 2, 0, SOFTMAX_ONE // 2]


@pytest.mark.parametrize("factor", LARGE_FACTORS)
def test_a_saturated_rescale_is_the_integer_of_the_factor(factor: float) -> None:
    rescale = saturating_rescale_for(factor)
    x = np.array([*range(-300, 301), INT32_MIN, INT32_MAX])
    wanted = np.sign(x) * INT8_MAX
    assert np.array_equal(requantize(x, rescale.multiplier, rescale.shift), wanted)


def test_halves_go_up_not_away_from_zero_and_not_to_even() -> None:
    x = np.array([-5, -3, -1, 1, 3, 5])
    assert requantize(x, 1, 1).tolist() == [-2, -1, 0, 1, 2, 3]


def test_requantize_saturates_symmetrically_and_relu_clamps_at_zero() -> None:
    x = np.array([INT32_MIN, -129, -128, -127, -1, 0, 1, 127, 128, INT32_MAX], np.int32)
    assert requantize(x, 2, 1).tolist() == [-127, -127, -127, -127, -1, 0, 1, 127, 127, 127]
    assert requantize(x, 2, 1, relu=True).tolist() == [0, 0, 0, 0, 0, 0, 1, 127, 127, 127]


def test_requantize_keeps_the_shape() -> None:
    assert requantize(np.zeros((3, 5), np.int32), 1 << 15, 15).shape == (3, 5)


# saturating add


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_saturating_add_of_every_pair_of_bytes(dtype: type[np.signedinteger]) -> None:
    values = np.arange(-128, 128).astype(dtype)
    for a in values:
        expected = [min(max(int(a) + b, -127), 127) for b in range(-128, 128)]
        assert saturating_add(np.full(256, a, dtype), values).tolist() == expected


# quantize, dequantize, argmax


@given(st.integers(-(1 << 20), 1 << 20), st.integers(-8, 8))
def test_quantize_rounds_half_up_and_saturates(numerator: int, exponent: int) -> None:
    x, scale = numerator / 1024, 2.0**exponent
    expected = min(max(half_up(Fraction(x) / Fraction(scale)), -INT8_MAX), INT8_MAX)
    assert quantize(np.array([x]), scale).tolist() == [expected]


def test_quantize_sends_negative_ties_up() -> None:
    x = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5])
    assert quantize(x, 1.0).tolist() == [-2, -1, 0, 1, 2, 3]


def test_quantize_saturates_infinities_at_127() -> None:
    assert quantize(np.array([-np.inf, -1e30, 1e30, np.inf]), 0.1).tolist() == [
        -127,
        -127,
        127,
        127,
    ]


@given(st.floats(1e-6, 1e6))
def test_quantize_returns_what_dequantize_took(scale: float) -> None:
    every_int8 = np.arange(-127, 128)
    real = dequantize(every_int8, scale)
    assert real.tolist() == [q * scale for q in range(-127, 128)]
    assert quantize(real, scale).tolist() == every_int8.tolist()


def test_equal_maxima_go_to_the_first_at_every_position() -> None:
    for n in range(1, 9):
        for count in range(1, n + 1):
            for places in combinations(range(n), count):
                row = np.full(n, INT32_MIN, np.int32)
                row[list(places)] = -5
                assert first_argmax(row) == places[0]


def test_argmax_of_equal_elements_is_zero() -> None:
    assert first_argmax(np.full(1000, INT32_MIN, np.int32)) == 0


def test_argmax_of_rows_of_extreme_words(seed: int) -> None:
    words = (INT32_MIN, INT32_MIN + 1, -(1 << 30), -1, 0, 1, 1 << 30, INT32_MAX - 1, INT32_MAX)
    draw = random.Random(seed)
    rows = [list(pair) for pair in product(words, words)]
    rows += [draw.choices(words[: draw.randint(1, 9)], k=draw.randint(1, 9)) for _ in range(500)]
    for row in rows:
        assert first_argmax(np.array(row, np.int32)) == row.index(max(row)), row


# the exponential table and softmax


def test_exp_table_is_the_rounded_exponential_and_ends_with_zero() -> None:
    assert EXP_TABLE.tolist() == EXACT_TABLE
    assert EXP_TABLE[0] == EXP_ONE == 65535
    assert EXP_TABLE[-1] == 0 < EXP_TABLE[-2]
    assert (np.diff(EXP_TABLE) <= 0).all()


def test_exp_table_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        EXP_TABLE[0] = 1


@given(st.lists(st.integers(-128, 127), min_size=1, max_size=64), multipliers, shifts)
@example([-128, 127], 65535, 1)
@example([-128, 127], 0, 1)
@example([0], 65535, 47)
@example([127] * 13 + [-111], 1 << 15, 15)  # a quotient rounded up would change it
def test_softmax_row_is_the_integer_model(scores: list[int], multiplier: int, shift: int) -> None:
    found = softmax_row(np.array(scores, np.int8), multiplier, shift).tolist()
    assert found == softmax_model(scores, multiplier, shift)
    assert all(0 <= value <= SOFTMAX_ONE for value in found)


@given(
    st.lists(st.integers(-127, 127), min_size=1, max_size=40),
    st.floats(1e-4, 4.0),
)
def test_softmax_row_is_the_integer_model_at_useful_scales(scores: list[int], scale: float) -> None:
    rescale = rescale_for(scale * 32)
    assert softmax(scores, scale) == softmax_model(scores, rescale.multiplier, rescale.shift)


@pytest.mark.parametrize("n", [1, 2, 3, 16, 255, 1024, 65535])
@pytest.mark.parametrize("scale", [0.001, 0.03, 0.25, 3.0])
def test_softmax_row_of_every_length_is_the_model_and_sums_to_one(n: int, scale: float) -> None:
    rng = random.Random(n)
    scores = [rng.randint(-127, 127) for _ in range(n)]
    rescale = rescale_for(scale * 32)
    found = softmax(scores, scale)
    assert found == softmax_model(scores, rescale.multiplier, rescale.shift)
    assert abs(Fraction(sum(found), SOFTMAX_ONE) - 1) <= Fraction(n, 1 << 15) + Fraction(1, 256)


def rows_of_scores(draw: np.random.Generator) -> tuple[Int64Array, float]:
    """Rows of one length and a score scale: flat, peaked, with ties, with many distant scores."""
    rows = ROWS_AT_ONCE
    cols = int(draw.choice([1, 2, 3, 8, 46, 47, int(draw.integers(1, 600))]))
    spread = int(draw.choice([1, 5, 40, 127]))
    scores = draw.integers(-spread, spread, (rows, cols), endpoint=True)
    if draw.random() < 0.5:  # one score far above most of the others
        scores = np.where(draw.random(scores.shape) < 0.9, -127, scores)
        scores[np.arange(rows), draw.integers(0, cols, rows)] = 127
    return scores, float(2.0 ** draw.uniform(-13, 3))


def test_random_softmax_rows(record_property: Callable[[str, object], None]) -> None:
    """The argmax is kept, and sums and elements are as near to the real ones as is promised.

    CAPRA_SOFTMAX_ROWS sets the number of rows, CAPRA_SEED their seed; 100,000 take some seconds.
    """
    count, seed = int(os.environ.get("CAPRA_SOFTMAX_ROWS", "5000")), SEED
    record_property("softmax rows", [seed, count])
    draw = np.random.default_rng(seed)
    distant_rows = 0
    for _ in range(0, count, ROWS_AT_ONCE):
        scores, scale = rows_of_scores(draw)
        rescale, n = rescale_for(scale * 32), scores.shape[1]
        found = np.array([softmax_row(row, rescale.multiplier, rescale.shift) for row in scores])
        below = scores.max(axis=1, keepdims=True) - scores
        index = (below * rescale.multiplier + (1 << (rescale.shift - 1))) >> rescale.shift
        exponentials = np.array(EXACT_TABLE)[np.minimum(index, 255)]
        quotients = (1 << 47) // exponentials.sum(axis=1, keepdims=True)
        np.testing.assert_array_equal(found, (exponentials * quotients + (1 << 31)) >> 32)

        assert ((found == found.max(axis=1, keepdims=True)) | (below > 0)).all()
        assert (np.abs(found.sum(axis=1) / SOFTMAX_ONE - 1) <= n / 2**15 + 2**-8).all(), (scale, n)
        weights = np.exp(-below * scale)
        real = weights / weights.sum(axis=1, keepdims=True)
        distant = (real * (index >= 255)).sum(axis=1, keepdims=True)
        bound = 2**-6 + (distant if n > 46 else 0.0)
        assert (np.abs(found / SOFTMAX_ONE - real) <= bound).all(), (scale, n)
        distant_rows += int((distant > 0).sum())
    assert distant_rows > count // 20


@pytest.mark.parametrize(("n", "within"), [(20, True), (46, True), (47, False), (1000, False)])
def test_rows_of_up_to_46_elements_are_within_2_to_the_minus_6(n: int, within: bool) -> None:
    """The worst row there is: all scores but one are just so distant that they count as nothing."""
    scale = 254.6 / 32 / 254
    found = softmax([127] + [-127] * (n - 1), scale)
    assert found == [SOFTMAX_ONE] + [0] * (n - 1)
    error = 1 - exact_softmax([127] + [-127] * (n - 1), scale)[0]
    assert (error <= 2**-6) == within


@pytest.mark.parametrize("n", [2, 100, 65535])
def test_distant_scores_add_nothing_however_many(n: int) -> None:
    scores = [-100] * n
    scores[n // 2] = 27
    assert softmax(scores, 8.0 / 127) == [SOFTMAX_ONE if s == 27 else 0 for s in scores]


def test_the_last_table_entry_starts_where_the_index_rounds_to_255() -> None:
    difference_254, difference_255 = np.array([[127, -127], [127, -128]], np.int8)
    assert softmax_row(difference_254, 2, 1)[1] > 0
    assert softmax_row(difference_255, 2, 1).tolist() == [SOFTMAX_ONE, 0]
    assert softmax_row(difference_254, 65535, 1).tolist() == [SOFTMAX_ONE, 0]


@pytest.mark.parametrize("n", [1, 2, 4, 1 << 10, 1 << 15])
def test_softmax_of_equal_scores_is_uniform(n: int) -> None:
    assert set(softmax([-127] * n, 0.1)) == {SOFTMAX_ONE // n}


def test_softmax_widths_hold_at_the_extremes() -> None:
    longest = (1 << 16) - 1
    smallest_sum, largest_sum = EXP_ONE, longest * EXP_ONE
    largest_reciprocal = (1 << RECIPROCAL_BITS) // smallest_sum
    assert largest_sum < 1 << 32
    assert (1 << RECIPROCAL_BITS) // largest_sum > 0
    assert largest_reciprocal < 1 << 32
    largest_product = EXP_ONE * largest_reciprocal + (1 << (RECIPROCAL_SHIFT - 1))
    assert largest_product < 1 << 48
    assert largest_product >> RECIPROCAL_SHIFT == SOFTMAX_ONE
    assert set(softmax_row(np.zeros(longest, np.int8), 65535, 1).tolist()) == {1}


def test_unity_changes_no_int8_integer_and_is_left_out_by_name() -> None:
    every = np.arange(-127, 128)
    assert requantize(every, UNITY.multiplier, UNITY.shift).tolist() == every.tolist()
    assert UNITY.is_identity and rescale_for(1.0) == UNITY


# check_int8


@pytest.mark.parametrize("value", [-128, 128, -129, INT32_MAX])
def test_integers_outside_int8_are_refused(value: int) -> None:
    with pytest.raises(RangeError, match=r"x holds .*, expected -127 .. 127"):
        check_int8("x", np.array([0, value]))


def test_both_ends_of_int8_are_accepted() -> None:
    """Refused as soon as either end is one further."""
    check_int8("x", np.array([-127, 127]))
    check_int8("x", np.array([-126, 0]))
    for further in ([-128, 127], [-127, 128]):
        with pytest.raises(RangeError):
            check_int8("x", np.array(further))


def test_real_numbers_are_no_int8() -> None:
    with pytest.raises(RangeError, match="x holds float64, expected integers"):
        check_int8("x", np.array([1.0]))
