"""The integer arithmetic of GA2, defined once.

The graph interpreter and the simulator both call these functions; the RTL implements them
independently and is compared against them. Everything is exact: values are int64 in flight, and
the widths that the hardware needs are given with each function.

An int8 tensor is symmetric: integers -127 .. 127 (INT8_MAX), real value = integer * scale,
scale = range / 127. A rescale by a real factor is an integer multiplication and a rounding shift.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

import numpy as np
import numpy.typing as npt

from capra.errors import RangeError

IntArray = npt.NDArray[np.integer]
Int64Array = npt.NDArray[np.int64]
UInt64Array = npt.NDArray[np.uint64]
FloatArray = npt.NDArray[np.float64]

INT8_MAX: Final = 127
"""Largest magnitude of an int8 value; -128 never appears."""

MULTIPLIER_BITS: Final = 16
"""A rescale multiplier is normalized to 2^15 .. 2^16 - 1: sixteen significant bits."""

MAX_SHIFT: Final = 47
"""Largest shift; a 32-bit value times a 16-bit multiplier has 48 bits."""

SOFTMAX_ONE: Final = 1 << 15
"""The integer that stands for 1.0 in a softmax output (Q0.15, unsigned, 0 .. 32768)."""

EXP_STEPS_PER_UNIT: Final = 32
"""Entries of the exponential table per unit of exponent: entry i is exp(-i / 32)."""

EXP_TABLE_BITS: Final = 8
EXP_ONE: Final = (1 << 16) - 1
"""The integer that stands for exp(0) in the exponential table."""

RECIPROCAL_BITS: Final = 47
"""The softmax divides 2^47 by the sum of exponentials; the quotient always fits 32 bits."""

RECIPROCAL_SHIFT: Final = 32
"""exponential (16 bits) * reciprocal (32 bits) >> 32 is Q0.15: 47 - 32 = 15."""


def _exp_table() -> Int64Array:
    index = np.arange(1 << EXP_TABLE_BITS)
    table = np.floor(np.exp(-index / EXP_STEPS_PER_UNIT) * EXP_ONE + 0.5).astype(np.int64)
    table[-1] = 0  # a saturated difference adds nothing, however many of them there are
    table.flags.writeable = False
    return table


EXP_TABLE: Final[Int64Array] = _exp_table()
"""256 entries, round(65535 * exp(-i / 32)); the last one is 0."""


@dataclass(frozen=True, slots=True)
class Rescale:
    """Multiplication by a positive real factor, as an integer multiplier and a rounding shift.

    factor = multiplier / 2^shift with 0 <= multiplier < 2^16 and 1 <= shift <= 47.
    """

    multiplier: int
    shift: int

    @property
    def is_identity(self) -> bool:
        """True when the factor is exactly 1, so that an int8 value stays what it is."""
        return self.multiplier == 1 << self.shift

    @property
    def factor(self) -> float:
        """The real factor that this rescale multiplies by."""
        return float(self.multiplier / (1 << self.shift))


UNITY: Final = Rescale(1 << 15, 15)
"""Words as they are, within int8."""

LARGEST_RESCALE: Final = Rescale((1 << MULTIPLIER_BITS) - 1, 1)
"""The largest factor, 32767.5: every integer but 0 leaves int8, and the exponential table too."""


@lru_cache(maxsize=4096)  # a model's programs of all shapes have the same factors
def rescale_for(factor: float) -> Rescale:
    """The Rescale closest to a positive real `factor`: relative error at most 2^-16.

    A factor below 2^-32 turns every 32-bit value into 0, as multiplication by 0 does. Raises
    RangeError when the factor is not a finite number above 0, or not below 2^15.
    """
    if not (math.isfinite(factor) and factor > 0):
        raise RangeError(f"rescale factor is {factor}, expected a finite number above 0")
    mantissa, exponent = math.frexp(factor)  # factor = mantissa * 2^exponent, 0.5 <= mantissa < 1
    multiplier = math.floor(mantissa * (1 << MULTIPLIER_BITS) + 0.5)
    shift = MULTIPLIER_BITS - exponent
    if multiplier == 1 << MULTIPLIER_BITS:  # rounded up to the next power of two
        multiplier >>= 1
        shift -= 1
    if shift > MAX_SHIFT:
        return Rescale(0, MAX_SHIFT)
    if shift < 1:
        raise RangeError(
            f"rescale factor is {factor:.3g}, expected below 2^15: the ranges of the tensors are "
            "too far apart"
        )
    return Rescale(multiplier, shift)


def saturating_rescale_for(factor: float) -> Rescale:
    """The Rescale of a positive real `factor` of any size, infinite too.

    A factor above the largest one gives the largest: both take 0 to 0 and everything else to the
    limit, so that they are the same integers after a requantization and in a softmax.
    """
    return LARGEST_RESCALE if factor >= LARGEST_RESCALE.factor else rescale_for(factor)


def round_shift(x: Int64Array, multiplier: int, shift: int) -> Int64Array:
    """(x * multiplier + 2^(shift-1)) >> shift: round half up, ties toward plus infinity.

    x must fit 32 signed bits, so that the product fits 48.
    """
    return cast(Int64Array, (x * multiplier + (1 << (shift - 1))) >> shift)


def requantize(x: IntArray, multiplier: int, shift: int, relu: bool = False) -> Int64Array:
    """Rescale 32-bit integers to int8: round half up, saturate to -127 .. 127, relu if asked."""
    rounded = round_shift(x.astype(np.int64), multiplier, shift)
    low = 0 if relu else -INT8_MAX
    return cast(Int64Array, np.minimum(np.maximum(rounded, low), INT8_MAX))


def saturating_add(a: IntArray, b: IntArray) -> Int64Array:
    """Elementwise a + b of int8 values, saturated to -127 .. 127."""
    total = a.astype(np.int64) + b
    return cast(Int64Array, np.minimum(np.maximum(total, -INT8_MAX), INT8_MAX))


def softmax_row(scores: IntArray, multiplier: int, shift: int) -> Int64Array:
    """Softmax of one row of n int8 scores, as Q0.15 integers 0 .. 32768.

    multiplier / 2^shift is the score scale times 32: it turns a difference from the row's maximum
    (0 .. 255) into an index of EXP_TABLE, which saturates at the last entry. The sum of at most
    65,535 table entries fits 32 bits and is at least EXP_ONE, since the maximum itself adds that
    much; hence the reciprocal floor(2^47 / sum) fits 32 bits too. The final product rounds half up.

    An element is within 2^-6 of the exact softmax, and one more for what the row's saturated scores
    weigh: each counts as 0 where the exact weight is up to exp(-7.95) of the maximum's. In rows of
    up to 46 elements that stays within 2^-6 in all.
    """
    row = scores.astype(np.int64)
    index = round_shift(row.max() - row, multiplier, shift)
    exponentials = EXP_TABLE[np.minimum(index, len(EXP_TABLE) - 1)]
    reciprocal = (1 << RECIPROCAL_BITS) // int(exponentials.sum())
    return round_shift(exponentials, reciprocal, RECIPROCAL_SHIFT)


def first_argmax(row: IntArray) -> int:
    """Index of the first maximum of a row: equal maxima go to the smaller index."""
    return int(np.argmax(row))


def check_int8(what: str, values: IntArray) -> None:
    """Raise RangeError unless these are integers of -127 .. 127."""
    if not np.issubdtype(values.dtype, np.integer):
        raise RangeError(f"{what} holds {values.dtype}, expected integers")
    if values.min() < -INT8_MAX or values.max() > INT8_MAX:
        raise RangeError(
            f"{what} holds {values.min()} .. {values.max()}, expected -{INT8_MAX} .. {INT8_MAX}"
        )


def quantize(x: FloatArray, scale: float) -> Int64Array:
    """Real values to int8 integers: round(x / scale) half up, saturated to -127 .. 127."""
    steps = np.clip(np.asarray(x, dtype=np.float64) / scale, -INT8_MAX, INT8_MAX)
    below = np.floor(steps)
    # Adding 0.5 before the floor would round 0.5 - 2^-54 up.
    return below.astype(np.int64) + (steps - below >= 0.5)


def dequantize(q: IntArray, scale: float) -> FloatArray:
    """int8 integers to the real values they stand for."""
    return np.asarray(q, dtype=np.float64) * scale
