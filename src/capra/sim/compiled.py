"""The compiled engine: one loop over the encoded program, translated to machine code by numba.

It does what `capra.sim.execute` does with numpy, many times as fast, and nothing else: no poison
and no trace. Importing this module raises ImportError where numba is not installed. The first use
on a machine translates the loop, which takes seconds; numba keeps the result on disk.

Addresses and counts are unsigned in here: an index that numba takes for possibly negative costs a
comparison for every word.
"""

from collections.abc import Callable
from typing import Final, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt

from capra.isa.code import Code
from capra.isa.spec import ARRAY_SIZE, BY_MNEMONIC, CONTROL_CYCLES, Unit
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
_DEPTH: Final = 3 + BY_MNEMONIC["MM"].index("k")

UNITS: Final = tuple(Unit)
"""The units in the order in which `run` counts them."""

_UNIT_INDEX: Final = {unit: UNITS.index(unit) for unit in UNITS}
_CONTROL: Final = UNITS.index(Unit.CONTROL)
_OPERANDS: Final = max(len(op.fields) for op in BY_MNEMONIC.values())

assert ARRAY_SIZE == 4, "_multiply has four sums a row"

Rows = UInt64Array
"""One row an instruction: its opcode, its unit, the cycles on that unit, its operands, zeros."""

Operands = UInt64Array
Tile = npt.NDArray[np.int32]
_Function = TypeVar("_Function", bound=Callable[..., object])


def encode(code: Code) -> Rows:
    """The instructions as rows that `run` executes."""
    rows = np.zeros((len(code), 3 + _OPERANDS), np.uint64)
    for group in code.groups:
        rows[group.at, 0] = group.op.opcode
        rows[group.at, 1] = _UNIT_INDEX[group.op.unit]
        rows[group.at, 2] = group.cycles
        rows[group.at, 3 : 3 + len(group.operands)] = group.operands.T
    return rows


def _compile(function: _Function) -> _Function:
    return cast(_Function, numba.njit(cache=True, error_model="numpy")(function))


@_compile
def run(code: Rows, external: Words, scratchpad: Words) -> Int64Array:
    """Execute the rows on the two memories; the cycles of each of UNITS."""
    spent = np.zeros(len(UNITS), np.int64)
    depth = np.uint64(1)
    for row in code:
        if row[0] == _MM:
            depth = max(depth, row[_DEPTH])
    left, right = np.zeros((ARRAY_SIZE, depth), np.int32), np.zeros((depth, ARRAY_SIZE), np.int32)
    exponentials = np.empty(1 << 16, np.int64)
    for row in code:
        opcode, operands = row[0], row[3:]
        if opcode == _LD:
            _move(scratchpad, external, operands)
        elif opcode == _ST:
            _move(external, scratchpad, operands)
        elif opcode == _MM:
            _multiply(scratchpad, operands, left, right)
        elif opcode == _RQ:
            _requantize(scratchpad, operands)
        elif opcode == _VADD:
            _add(scratchpad, operands)
        elif opcode == _SM:
            _softmax(scratchpad, operands, exponentials)
        elif opcode == _AMAX:
            _first_maximum(scratchpad, operands)
        spent[row[1]] += np.int64(row[2])
        spent[_CONTROL] += CONTROL_CYCLES
    return spent


@_compile
def _move(target: Words, source: Words, operands: Operands) -> None:
    d, s, n = operands[:3]
    for i in range(n):
        target[d + i] = source[s + i]


@_compile
def _multiply(words: Words, operands: Operands, left: Tile, right: Tile) -> None:
    """MM: the bytes of A, then those of B as rows of four columns, then four sums at a time."""
    d, a, b, m, n, k, sd, sa, sb, transposed, accumulate = operands
    for i in range(m):
        for x in range(k):
            left[i, x] = np.int8(words[a + i * sa + x])
    if transposed:
        for j in range(n):
            for x in range(k):
                right[x, j] = np.int8(words[b + j * sb + x])
    else:
        for x in range(k):
            for j in range(n):
                right[x, j] = np.int8(words[b + x * sb + j])
    for i in range(m):
        s0, s1, s2, s3 = np.int32(0), np.int32(0), np.int32(0), np.int32(0)
        for x in range(k):
            s0 = np.int32(s0 + left[i, x] * right[x, 0])
            s1 = np.int32(s1 + left[i, x] * right[x, 1])
            s2 = np.int32(s2 + left[i, x] * right[x, 2])
            s3 = np.int32(s3 + left[i, x] * right[x, 3])
        sums = (s0, s1, s2, s3)
        for j in range(n):
            before = words[d + i * sd + j] if accumulate else np.int32(0)
            words[d + i * sd + j] = before + sums[j]


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
