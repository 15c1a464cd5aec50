"""The instruction table of GA2: the one place that names opcodes, fields, units and cycles.

Everything else that knows an instruction is made from these rows: the binary encoding, the
assembler and disassembler, the timing, the checks, the generated RTL package and the ISA page.
A row's `loops` is the loop nest that the instruction performs; [] indexes words of a memory.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

OPCODE_BITS: Final = 4
INSTRUCTION_WORDS: Final = 5
INSTRUCTION_BITS: Final = 32 * INSTRUCTION_WORDS
"""Every instruction is 160 bits: the opcode lowest, then its fields in table order, then zeros."""

CONTROL_CYCLES: Final = 2
"""Fetch and decode, paid by every instruction on the control counter."""

ARRAY_SIZE: Final = 4
"""The matrix array computes tiles of at most 4 x 4 outputs."""

SCRATCHPAD_ADDRESS_BITS: Final = 20
EXTERNAL_ADDRESS_BITS: Final = 24


class Unit(StrEnum):
    """The unit that executes an instruction, and the counter that its cycles go to."""

    MATRIX = "matrix"
    DMA = "dma"
    VECTOR = "vector"
    CONTROL = "control"


class Phase(StrEnum):
    """What a cycle was spent on; a phase belongs to one unit, see PHASES.

    Those of one instruction are in the order in which they begin, its fetch before them all.
    """

    LOAD = "load"
    LOAD_LATENCY = "load_latency"
    STORE = "store"
    STORE_LATENCY = "store_latency"
    SUM_LOAD = "sum_load"
    OPERAND_LOAD = "operand_load"
    ARRAY = "array"
    ARRAY_FILL = "array_fill"
    DRAIN = "drain"
    REQUANTIZE = "requantize"
    ADD = "add"
    SOFTMAX = "softmax"
    SOFTMAX_DIVISION = "softmax_division"
    ARGMAX = "argmax"
    VECTOR_PIPELINE = "vector_pipeline"
    FETCH = "fetch"

    __hash__ = str.__hash__  # Enum's own is many times slower


PHASES: Final[Mapping[Phase, tuple[Unit, str]]] = {
    Phase.LOAD: (Unit.DMA, "words from external memory, one a cycle"),
    Phase.LOAD_LATENCY: (Unit.DMA, "waiting for the last word of a load"),
    Phase.STORE: (Unit.DMA, "words to external memory, one a cycle"),
    Phase.STORE_LATENCY: (Unit.DMA, "the last word of a store on its way"),
    Phase.SUM_LOAD: (Unit.MATRIX, "earlier sums back into the array, where a product accumulates"),
    Phase.OPERAND_LOAD: (Unit.MATRIX, "words of A and B into the operand memories, one a cycle"),
    Phase.ARRAY: (Unit.MATRIX, "steps of the array, up to 16 products each"),
    Phase.ARRAY_FILL: (Unit.MATRIX, "skew of the array and depth of its pipeline"),
    Phase.DRAIN: (Unit.MATRIX, "sums out of the array, one a cycle"),
    Phase.REQUANTIZE: (Unit.VECTOR, "words requantized, one a cycle"),
    Phase.ADD: (Unit.VECTOR, "words added, two cycles each"),
    Phase.SOFTMAX: (Unit.VECTOR, "three passes over a row of scores, one word a cycle"),
    Phase.SOFTMAX_DIVISION: (Unit.VECTOR, "division and pipeline of a softmax"),
    Phase.ARGMAX: (Unit.VECTOR, "words compared, one a cycle"),
    Phase.VECTOR_PIPELINE: (Unit.VECTOR, "depth of the vector pipeline, but for softmax"),
    Phase.FETCH: (Unit.CONTROL, "fetch and decode of an instruction"),
}
"""Unit and meaning of every phase."""


class Memory(StrEnum):
    """The two memories that instructions address."""

    SCRATCHPAD = "scratchpad"
    EXTERNAL = "external"


class Overlap(StrEnum):
    """What a destination may share with the sources of the same instruction."""

    NEVER = "never"
    """No word: the sources are read again after the first word was written."""
    SAME = "same"
    """Every word at the same place (in-place update), or none: each word is read before written."""


@dataclass(frozen=True, slots=True)
class Field:
    """One operand field: an unsigned integer of `bits` bits, at least `minimum`."""

    name: str
    bits: int
    minimum: int
    meaning: str
    maximum: int = field(default=0)
    """Largest legal value; 0 stands for everything that the bits can hold."""

    @property
    def limit(self) -> int:
        """Largest legal value."""
        return self.maximum or (1 << self.bits) - 1


@dataclass(frozen=True, slots=True)
class Access:
    """A rectangle of words that an instruction touches, as expressions over its fields.

    They are arithmetic only, and so are cycles: with columns for fields they speak of many
    instructions at once.
    """

    memory: Memory
    base: str
    rows: str = "1"
    cols: str = "1"
    stride: str = "0"


@dataclass(frozen=True, slots=True)
class Op:
    """One row of the table."""

    mnemonic: str
    opcode: int
    unit: Unit
    cycles: str
    """Unit cycles as a sum over the fields, without the two control cycles."""
    phases: tuple[Phase, ...]
    """What each term of that sum pays for, in its order."""
    meaning: str
    loops: str
    fields: tuple[Field, ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    updates_if: str | None = None
    """A flag field: where it is set, each destination word is also read before it is written."""
    overlap: Overlap = Overlap.NEVER

    @property
    def terms(self) -> tuple[tuple[Phase, str], ...]:
        """The terms of `cycles` with their phases."""
        return tuple(zip(self.phases, self.cycles.split(" + "), strict=True))

    def index(self, name: str) -> int:
        """Position of a field in the operand tuple."""
        return next(i for i, f in enumerate(self.fields) if f.name == name)

    def limit(self, name: str) -> int:
        """Largest legal value of a field."""
        return self.fields[self.index(name)].limit


def compile_expression(op_fields: tuple[Field, ...], text: str) -> Callable[..., Any]:
    """A function of the fields, in table order, that evaluates an expression of the table."""
    names = ", ".join(f.name for f in op_fields)
    source = f"lambda {names}: {text}"  # the table's own text, never a user's
    return eval(source, {"__builtins__": {}})  # type: ignore[no-any-return]  # noqa: S307


def _scratchpad(name: str, meaning: str) -> Field:
    return Field(name, SCRATCHPAD_ADDRESS_BITS, 0, f"scratchpad address of {meaning}")


def _external(name: str, meaning: str) -> Field:
    return Field(name, EXTERNAL_ADDRESS_BITS, 0, f"external address of {meaning}")


def _count(name: str, bits: int, meaning: str) -> Field:
    return Field(name, bits, 1, meaning)


def _stride(name: str, meaning: str) -> Field:
    return Field(name, 16, 0, f"words from one row of {meaning} to the next")


def _flag(name: str, meaning: str) -> Field:
    return Field(name, 1, 0, meaning)


_MULTIPLIER = Field("mul", 16, 0, "multiplier")
_SHIFT = Field("sh", 6, 1, "right shift, rounding half up", maximum=47)

TABLE: Final[tuple[Op, ...]] = (
    Op(
        "HALT", 0, Unit.CONTROL, "0", (Phase.FETCH,),
        "stop; the counters freeze",
        "stop",
        (), (), (),
    ),
    Op(
        "LD", 1, Unit.DMA, "n + 9", (Phase.LOAD, Phase.LOAD_LATENCY),
        "load n words from external memory into the scratchpad",
        "for i < n: scratchpad[d+i] = external[s+i]",
        (_scratchpad("d", "the destination"), _external("s", "the source"),
         _count("n", 20, "number of words")),
        (Access(Memory.EXTERNAL, "s", cols="n"),),
        (Access(Memory.SCRATCHPAD, "d", cols="n"),),
    ),
    Op(
        "ST", 2, Unit.DMA, "n + 2", (Phase.STORE, Phase.STORE_LATENCY),
        "store n words from the scratchpad into external memory",
        "for i < n: external[d+i] = scratchpad[s+i]",
        (_external("d", "the destination"), _scratchpad("s", "the source"),
         _count("n", 20, "number of words")),
        (Access(Memory.SCRATCHPAD, "s", cols="n"),),
        (Access(Memory.EXTERNAL, "d", cols="n"),),
    ),
    Op(
        "MM", 3, Unit.MATRIX, "m*k + k*n + m*n + k + m + n + 5 + acc*m*n",
        (Phase.OPERAND_LOAD, Phase.OPERAND_LOAD, Phase.DRAIN, Phase.ARRAY,
         Phase.ARRAY_FILL, Phase.ARRAY_FILL, Phase.ARRAY_FILL, Phase.SUM_LOAD),
        "one tile of a matrix product: int8 operands (the low byte of each word), int32 sums",
        "for i < m, j < n: scratchpad[d+i*sd+j] = (acc ? scratchpad[d+i*sd+j] : 0) + "
        "sum over l < k of scratchpad[a+i*sa+l] * scratchpad[t ? b+j*sb+l : b+l*sb+j]",
        (_scratchpad("d", "D"), _scratchpad("a", "A"), _scratchpad("b", "B"),
         Field("m", 3, 1, "rows of A and D", maximum=ARRAY_SIZE),
         Field("n", 3, 1, "columns of B and D", maximum=ARRAY_SIZE),
         _count("k", 16, "columns of A and rows of B, at most the operand depth"),
         _stride("sd", "D"), _stride("sa", "A"), _stride("sb", "B as stored"),
         _flag("t", "1: B is stored transposed, n rows of k"),
         _flag("acc", "1: add to D instead of replacing it")),
        (Access(Memory.SCRATCHPAD, "a", "m", "k", "sa"),
         Access(Memory.SCRATCHPAD, "b", "t*n + (1-t)*k", "t*k + (1-t)*n", "sb")),
        (Access(Memory.SCRATCHPAD, "d", "m", "n", "sd"),),
        updates_if="acc",
    ),
    Op(
        "RQ", 4, Unit.VECTOR, "r*c + 2", (Phase.REQUANTIZE, Phase.VECTOR_PIPELINE),
        "requantize r x c words to int8: multiply, shift, saturate, relu if asked",
        "for i < r, j < c: scratchpad[d+i*sd+j] = clamp((scratchpad[s+i*ss+j] * mul + "
        "(1 << sh-1)) >> sh, relu ? 0 : -127, 127)",
        (_scratchpad("d", "the destination"), _scratchpad("s", "the source"),
         _count("r", 16, "rows"), _count("c", 16, "columns"),
         _stride("sd", "the destination"), _stride("ss", "the source"),
         _MULTIPLIER, _SHIFT, _flag("relu", "1: clamp below at 0")),
        (Access(Memory.SCRATCHPAD, "s", "r", "c", "ss"),),
        (Access(Memory.SCRATCHPAD, "d", "r", "c", "sd"),),
        overlap=Overlap.SAME,
    ),
    Op(
        "VADD", 5, Unit.VECTOR, "2*n + 2", (Phase.ADD, Phase.VECTOR_PIPELINE),
        "saturating int8 sum of two vectors (the low byte of each word)",
        "for i < n: scratchpad[d+i] = clamp(scratchpad[a+i] + scratchpad[b+i], -127, 127)",
        (_scratchpad("d", "the destination"), _scratchpad("a", "the first operand"),
         _scratchpad("b", "the second operand"), _count("n", 20, "number of words")),
        (Access(Memory.SCRATCHPAD, "a", cols="n"), Access(Memory.SCRATCHPAD, "b", cols="n")),
        (Access(Memory.SCRATCHPAD, "d", cols="n"),),
        overlap=Overlap.SAME,
    ),
    Op(
        "SM", 6, Unit.VECTOR, "3*n + 47", (Phase.SOFTMAX, Phase.SOFTMAX_DIVISION),
        "softmax of one row of n int8 scores (the low byte of each word), result in Q0.15",
        "for i < n: e[i] = exp_table[min(255, (max(s) - scratchpad[s+i]) * mul + "
        "(1 << sh-1) >> sh)]; q = 2^47 / sum(e); "
        "for i < n: scratchpad[d+i] = (e[i] * q + 2^31) >> 32",
        (_scratchpad("d", "the destination"), _scratchpad("s", "the source"),
         _count("n", 16, "length of the row"), _MULTIPLIER, _SHIFT),
        (Access(Memory.SCRATCHPAD, "s", cols="n"),),
        (Access(Memory.SCRATCHPAD, "d", cols="n"),),
    ),
    Op(
        "AMAX", 7, Unit.VECTOR, "n + 3", (Phase.ARGMAX, Phase.VECTOR_PIPELINE),
        "index of the first maximum of a row of n 32-bit words",
        "scratchpad[d] = first i < n with scratchpad[s+i] == max(s)",
        (_scratchpad("d", "the index"), _scratchpad("s", "the row"),
         _count("n", 16, "length of the row")),
        (Access(Memory.SCRATCHPAD, "s", cols="n"),),
        (Access(Memory.SCRATCHPAD, "d"),),
    ),
)  # fmt: skip

BY_MNEMONIC: Final[Mapping[str, Op]] = {op.mnemonic: op for op in TABLE}
BY_OPCODE: Final[Mapping[int, Op]] = {op.opcode: op for op in TABLE}
