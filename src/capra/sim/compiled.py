"""The compiled engine: one loop over the encoded program, translated to machine code by numba.

It does what `capra.sim.execute` does with numpy, many times as fast, and nothing else: no poison
and no trace. Importing this module raises ImportError where numba is not installed. The first use
on a machine translates the loop, which takes seconds; numba keeps the result on disk.

Tiles beside each other are computed as one wide product: its inner loop runs over words that follow
each other, which the processor multiplies several at a time, where four columns of a large matrix
are a cache line a row.

Addresses and counts are unsigned in here: an index that numba takes for possibly negative costs a
comparison for every word.
"""

from collections.abc import Callable
from typing import Final, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from capra.isa.code import Code
from capra.isa.spec import BY_MNEMONIC, CONTROL_CYCLES, Unit
from capra.numerics import (
    EXP_TABLE,
    INT8_MAX,
    RECIPROCAL_BITS,
    RECIPROCAL_SHIFT,
    Int64Array,
    UInt64Array,
)
from capra.sim.execute import Words

_LD: Final = BY_MNEMONIC["LD"].opcode
_ST: Final = BY_MNEMONIC["ST"].opcode
_MM: Final = BY_MNEMONIC["MM"].opcode
_RQ: Final = BY_MNEMONIC["RQ"].opcode
_VADD: Final = BY_MNEMONIC["VADD"].opcode
_SM: Final = BY_MNEMONIC["SM"].opcode
_AMAX: Final = BY_MNEMONIC["AMAX"].opcode
_OPCODE, _UNIT, _CYCLES, _COUNT, _OPERANDS = range(5)
_COLS: Final = _OPERANDS + BY_MNEMONIC["MM"].index("n")
_DEPTH: Final = _OPERANDS + BY_MNEMONIC["MM"].index("k")

UNITS: Final = tuple(Unit)
"""The units in the order in which `run` counts them."""

_UNIT_INDEX: Final = {unit: UNITS.index(unit) for unit in UNITS}
_CONTROL: Final = UNITS.index(Unit.CONTROL)
_MOST_OPERANDS: Final = max(len(op.fields) for op in BY_MNEMONIC.values())

Rows = UInt64Array
"""One row an instruction, or several tiles: the opcode, the unit, the cycles on that unit, the
number of instructions, the operands, zeros."""

Operands = UInt64Array
Buffer = npt.NDArray[np.int32]
_Function = TypeVar("_Function", bound=Callable[..., object])


def encode(code: Code) -> Rows:
    """The instructions as rows that `run` executes."""
    rows = np.zeros((len(code), _OPERANDS + _MOST_OPERANDS), np.uint64)
    rows[:, _COUNT] = 1
    for group in code.groups:
        rows[group.at, _OPCODE] = group.op.opcode
        rows[group.at, _UNIT] = _UNIT_INDEX[group.op.unit]
        rows[group.at, _CYCLES] = group.cycles
        rows[group.at, _OPERANDS : _OPERANDS + len(group.operands)] = group.operands.T
    return _widened(rows)


def _widened(rows: Rows) -> Rows:
    """The rows, with tiles of one A beside each other as one product where that changes no word."""
    d, a, b, m, n, k, sd, sa, sb, t, _ = rows[:, _OPERANDS:].T.astype(np.int64)
    beside = (rows[:, _OPCODE] == _MM) & (np.roll(rows[:, _OPCODE], 1) == _MM)
    for same in (a, m, k, sd, sa, sb, t, rows[:, -1]):
        beside &= same == np.roll(same, 1)
    for place, step in ((d, n), (b, np.where(t, n * sb, n))):
        beside &= place == np.roll(place + step, 1)
    beside[0] = False
    first = np.flatnonzero(~beside)
    wide = rows[first]
    for column in (_CYCLES, _COUNT, _COLS):
        wide[:, column] = np.add.reduceat(rows[:, column], first)
    d, a, b, m, n, k, sd, sa, sb, t, _ = wide[:, _OPERANDS:].T.astype(np.int64)
    right_end = b + np.where(t, (n - 1) * sb + k, (k - 1) * sb + n)
    good = (m == 1) | (sd >= n)
    good &= (right_end <= d) | (b >= d + (m - 1) * sd + n)  # no D meets A, which is its own
    rows = rows.copy()
    rows[first[good]] = wide[good]
    kept: Rows = rows[~beside | ~good[np.cumsum(~beside) - 1]]
    return kept


def _compile(function: _Function) -> _Function:
    return cast(_Function, numba.njit(cache=True, error_model="numpy")(function))


@_compile
def run(code: Rows, external: Words, scratchpad: Words) -> Int64Array:
    """Execute the rows on the two memories; the cycles of each of UNITS."""
    spent = np.zeros(len(UNITS), np.int64)
    depth, cols = np.uint64(1), np.uint64(1)
    for row in code:
        if row[_OPCODE] == _MM:
            depth, cols = max(depth, row[_DEPTH]), max(cols, row[_COLS])
    left, sums = np.zeros(depth, np.int32), np.zeros(cols, np.int32)
    exponentials = np.empty(1 << 16, np.int64)
    for row in code:
        opcode, operands = row[_OPCODE], row[_OPERANDS:]
        if opcode == _LD:
            _move(scratchpad, external, operands)
        elif opcode == _ST:
            _move(external, scratchpad, operands)
        elif opcode == _MM:
            _multiply(scratchpad, operands, left, sums)
        elif opcode == _RQ:
            _requantize(scratchpad, operands)
        elif opcode == _VADD:
            _add(scratchpad, operands)
        elif opcode == _SM:
            _softmax(scratchpad, operands, exponentials)
        elif opcode == _AMAX:
            _first_maximum(scratchpad, operands)
        spent[row[_UNIT]] += np.int64(row[_CYCLES])
        spent[_CONTROL] += CONTROL_CYCLES * np.int64(row[_COUNT])
    return spent


@_compile
def _move(target: Words, source: Words, operands: Operands) -> None:
    d, s, n = operands[:3]
    for i in range(n):
        target[d + i] = source[s + i]


@_compile
def _multiply(words: Words, operands: Operands, left: Buffer, sums: Buffer) -> None:
    """MM, of any number of columns: a row of A, then the sums of that row."""
    d, a, b, m, n, k, sd, sa, sb, transposed, accumulate = operands
    for i in range(m):
        for x in range(k):
            left[x] = np.int8(words[a + i * sa + x])
        for j in range(n):
            sums[j] = words[d + i * sd + j] if accumulate else np.int32(0)
        if transposed:
            for j in range(n):
                for x in range(k):
                    sums[j] += left[x] * np.int8(words[b + j * sb + x])
        else:
            for x in range(k):
                for j in range(n):
                    sums[j] += left[x] * np.int8(words[b + x * sb + j])
        for j in range(n):
            words[d + i * sd + j] = sums[j]


@_compile
def _requantize(words: Words, operands: Operands) -> None:
    """RQ, in floating point: 48 bits and a half are exact in 53, and so is a power of two."""
    d, s, rows, cols, sd, ss, multiplier, shift, relu = operands[:9]
    factor, step = np.float64(multiplier), 1.0 / np.float64(np.uint64(1) << shift)
    low, high = 0.0 if relu else -np.float64(INT8_MAX), np.float64(INT8_MAX)
    for i in range(rows):
        for j in range(cols):
            value = np.floor(np.float64(words[s + i * ss + j]) * factor * step + 0.5)
            words[d + i * sd + j] = np.int32(min(max(value, low), high))


@_compile
def _add(words: Words, operands: Operands) -> None:
    d, a, b, n = operands[:4]
    for i in range(n):
        total = int(np.int8(words[a + i])) + int(np.int8(words[b + i]))
        words[d + i] = min(max(total, -INT8_MAX), INT8_MAX)


@_compile
def _softmax(words: Words, operands: Operands, exponentials: Int64Array) -> None:
    d, s, n = operands[:3]
    multiplier, shift = np.int64(operands[3]), np.int64(operands[4])
    half, largest, total = np.int64(1) << (shift - 1), -128, np.int64(0)
    for i in range(n):
        largest = max(largest, int(np.int8(words[s + i])))
    for i in range(n):
        index = int(((largest - int(np.int8(words[s + i]))) * multiplier + half) >> shift)
        exponentials[i] = EXP_TABLE[min(index, len(EXP_TABLE) - 1)]
        total += exponentials[i]
    reciprocal = (np.int64(1) << RECIPROCAL_BITS) // total
    rounding = np.int64(1) << (RECIPROCAL_SHIFT - 1)
    for i in range(n):
        words[d + i] = (exponentials[i] * reciprocal + rounding) >> RECIPROCAL_SHIFT


@_compile
def _first_maximum(words: Words, operands: Operands) -> None:
    d, s, n = operands[:3]
    largest, best = words[s], 0
    for i in range(n):
        if words[s + i] > largest:
            largest, best = words[s + i], i
    words[d] = best
