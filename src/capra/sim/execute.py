"""What each instruction does, one small function a mnemonic.

`bind` turns an operation with its operands into a function of no arguments that acts on given
memories. All address arithmetic and slicing happens once, when it is bound; running it is a few
numpy calls on views of the memories. Operands that the ISA defines as int8 are read through a view
of the lowest byte of each word, which is what the chip wires to its int8 units.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from capra.isa.spec import Op
from capra.numerics import (
    first_argmax,
    requantize,
    saturating_add,
    softmax_row,
)

Words = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.int8]
Action = Callable[[], None]

_BYTES: Final = 4
"""Bytes a word; memories are little-endian, so a word's first byte is its lowest."""


@dataclass(frozen=True, slots=True)
class Memories:
    """The words that instructions can touch."""

    external: Words
    scratchpad: Words


def allocate(external_words: int, scratchpad_words: int) -> Memories:
    """Memories of these sizes, all zero."""
    return Memories(np.zeros(external_words, "<i4"), np.zeros(scratchpad_words, "<i4"))


def bind(op: Op, operands: Sequence[int], memories: Memories) -> Action:
    """An operation with operands in the order of the table, as an action on these memories."""
    return _BINDERS[op.mnemonic](memories, *operands)


def _words(words: Words, base: int, rows: int, cols: int, stride: int) -> Words:
    """A view of rows x cols words of a memory; row i starts at word base + i * stride."""
    return np.ndarray((rows, cols), words.dtype, words, base * _BYTES, (stride * _BYTES, _BYTES))


def _low_bytes(words: Words, base: int, rows: int, cols: int, stride: int) -> Bytes:
    """The lowest byte of each word of such a rectangle, as int8."""
    return np.ndarray((rows, cols), np.int8, words, base * _BYTES, (stride * _BYTES, _BYTES))


def _bind_halt(_: Memories) -> Action:
    return lambda: None


def _bind_ld(mem: Memories, d: int, s: int, n: int) -> Action:
    target, source = mem.scratchpad[d : d + n], mem.external[s : s + n]
    return lambda: np.copyto(target, source)


def _bind_st(mem: Memories, d: int, s: int, n: int) -> Action:
    target, source = mem.external[d : d + n], mem.scratchpad[s : s + n]
    return lambda: np.copyto(target, source)


def _bind_mm(
    mem: Memories, d: int, a: int, b: int, m: int, n: int, k: int, sd: int, sa: int, sb: int,
    t: int, acc: int,
) -> Action:  # fmt: skip
    sums = _words(mem.scratchpad, d, m, n, sd)
    left = _low_bytes(mem.scratchpad, a, m, k, sa)
    right = (
        _low_bytes(mem.scratchpad, b, n, k, sb).T if t else _low_bytes(mem.scratchpad, b, k, n, sb)
    )

    def replace() -> None:
        np.matmul(left, right, out=sums, dtype=np.int32)  # integers wrap at 32 bits, as the chip's

    def accumulate() -> None:
        np.add(sums, np.matmul(left, right, dtype=np.int32), out=sums)

    return accumulate if acc else replace


def _bind_rq(
    mem: Memories, d: int, s: int, r: int, c: int, sd: int, ss: int, mul: int, sh: int, relu: int
) -> Action:
    target = _words(mem.scratchpad, d, r, c, sd)
    source = _words(mem.scratchpad, s, r, c, ss)
    clamp = bool(relu)

    def run() -> None:
        target[...] = requantize(source, mul, sh, clamp)

    return run


def _bind_vadd(mem: Memories, d: int, a: int, b: int, n: int) -> Action:
    target = mem.scratchpad[d : d + n]
    left = _low_bytes(mem.scratchpad, a, 1, n, n)[0]
    right = _low_bytes(mem.scratchpad, b, 1, n, n)[0]

    def run() -> None:
        target[...] = saturating_add(left, right)

    return run


def _bind_sm(mem: Memories, d: int, s: int, n: int, mul: int, sh: int) -> Action:
    target, scores = mem.scratchpad[d : d + n], _low_bytes(mem.scratchpad, s, 1, n, n)[0]

    def run() -> None:
        target[...] = softmax_row(scores, mul, sh)

    return run


def _bind_amax(mem: Memories, d: int, s: int, n: int) -> Action:
    target, row = mem.scratchpad[d : d + 1], mem.scratchpad[s : s + n]

    def run() -> None:
        target[0] = first_argmax(row)

    return run


_BINDERS: Final[Mapping[str, Callable[..., Action]]] = {
    "HALT": _bind_halt,
    "LD": _bind_ld,
    "ST": _bind_st,
    "MM": _bind_mm,
    "RQ": _bind_rq,
    "VADD": _bind_vadd,
    "SM": _bind_sm,
    "AMAX": _bind_amax,
}
