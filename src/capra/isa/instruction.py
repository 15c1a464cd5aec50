"""One instruction: a row of the table with its operands, checked when it is built."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from capra.errors import ProgramError
from capra.isa.chip import Chip
from capra.isa.spec import (
    BY_MNEMONIC,
    BY_OPCODE,
    TABLE,
    Access,
    Memory,
    Op,
    Overlap,
    Phase,
    Unit,
    compile_expression,
)
from capra.numerics import Int64Array

_Element = TypeVar("_Element", bound=np.generic)

Row = tuple[int, ...]
"""An instruction that is not checked yet: its opcode, its operands, and zeros up to ROW_LENGTH."""

ROW_LENGTH: Final = 1 + max(len(op.fields) for op in TABLE)


class Region(NamedTuple):
    """`rows` x `cols` words of a memory; row i starts at base + i * stride.

    `end`, `has_rows_apart` and `each_of` work for regions of columns, one element an instruction.
    """

    memory: Memory
    base: int
    rows: int
    cols: int
    stride: int

    @property
    def end(self) -> int:
        """One past the last word."""
        return self.base + (self.rows - 1) * self.stride + self.cols

    @property
    def has_rows_apart(self) -> bool:
        """True when no word belongs to two of its rows."""
        return (self.rows == 1) | (self.stride >= self.cols)

    def addresses(self) -> Int64Array:
        """Every address, row by row, as a flat array."""
        rows = self.base + self.stride * np.arange(self.rows, dtype=np.int64)
        return (rows[:, None] + np.arange(self.cols, dtype=np.int64)).ravel()

    def of(self, memory: npt.NDArray[_Element]) -> npt.NDArray[_Element]:
        """The rows x cols elements of a contiguous array that this region selects, as a view."""
        step = memory.itemsize
        shape, strides = (self.rows, self.cols), (self.stride * step, step)
        return np.ndarray(shape, memory.dtype, memory, self.base * step, strides)

    def each_of(self, memory: npt.NDArray[_Element], count: int) -> list[npt.NDArray[_Element]]:
        """What `of` selects, for each of `count` regions given as columns."""
        step, dtype = memory.itemsize, memory.dtype
        columns = np.empty((4, count), dtype=np.int64)
        for column, part in zip(columns, self[1:], strict=True):
            column[...] = part
        return [
            np.ndarray((rows, cols), dtype, memory, base * step, (stride * step, step))
            for base, rows, cols, stride in columns.T.tolist()
        ]

    def overlaps(self, other: "Region") -> bool:
        """True when at least one word belongs to both."""
        if self.memory != other.memory or self.base >= other.end or other.base >= self.end:
            return False
        # Of the other's rows, a stride apart: the first that ends behind the start of each row.
        starts = self.base + self.stride * np.arange(self.rows, dtype=np.int64)
        behind = starts - other.base - other.cols
        row = np.clip(behind // max(other.stride, 1) + 1, 0, other.rows - 1)
        meets = other.base + other.stride * row
        return bool(((meets < starts + self.cols) & (starts < meets + other.cols)).any())


@dataclass(frozen=True, slots=True)
class Instruction:
    """An operation and its operands, in the order of the table.

    Raises ProgramError when an operand is outside its field's limits, or when the rows of the
    destination would overlap each other. `instruction` builds one from named fields.
    """

    op: Op
    operands: tuple[int, ...]

    def __post_init__(self) -> None:
        if not FORMS[self.op.mnemonic].is_within_limits(*self.operands):
            self._refuse_operand()
        for region in self._targets:
            if not region.has_rows_apart:
                raise ProgramError(
                    f"{self}: destination rows of {region.cols} words are {region.stride} words "
                    f"apart, expected at least {region.cols}"
                )

    def _refuse_operand(self) -> None:
        """Raise the ProgramError that names the first operand outside its limits."""
        for f, value in zip(self.op.fields, self.operands, strict=True):
            if not f.minimum <= value <= f.limit:
                raise ProgramError(
                    f"{self}: {f.name} ({f.meaning}) is {value}, expected {f.minimum} .. {f.limit}"
                )

    @property
    def _sources(self) -> tuple[Region, ...]:
        return tuple([region(*self.operands) for region in FORMS[self.op.mnemonic].sources])

    @property
    def _targets(self) -> tuple[Region, ...]:
        return tuple([region(*self.operands) for region in FORMS[self.op.mnemonic].targets])

    @property
    def mnemonic(self) -> str:
        """The operation's name."""
        return self.op.mnemonic

    @property
    def unit(self) -> Unit:
        """The unit that executes it."""
        return self.op.unit

    @property
    def cycles(self) -> int:
        """Cycles on its unit, without the control cycles."""
        return int(FORMS[self.op.mnemonic].cycles(*self.operands))

    @property
    def phases(self) -> dict[Phase, int]:
        """What those cycles are spent on, in the order in which the phases begin."""
        spent: dict[Phase, int] = {}
        for phase, cycles in FORMS[self.op.mnemonic].phases:
            spent[phase] = spent.get(phase, 0) + cycles(*self.operands)
        return spent

    def reads(self) -> tuple[Region, ...]:
        """The regions whose words it reads: its sources, and its destination if it updates that."""
        flag = self.op.updates_if
        return self._sources + self._targets if flag and self[flag] else self._sources

    def writes(self) -> tuple[Region, ...]:
        """The regions whose words it writes, every word of them."""
        return self._targets

    def conflicts(self) -> Iterator[tuple[Region, Region]]:
        """(source, destination) pairs that share a word which is needed after it is written."""
        in_place = self.op.overlap is Overlap.SAME
        for target in self._targets:
            for source in self._sources:
                if target.overlaps(source) and not (in_place and target == source):
                    yield source, target

    def __getitem__(self, name: str) -> int:
        return self.operands[FORMS[self.op.mnemonic].index[name]]

    def __str__(self) -> str:
        pairs = zip(self.op.fields, self.operands, strict=True)
        return " ".join([self.mnemonic, *(f"{f.name}={value}" for f, value in pairs)])


def instruction(mnemonic: str, /, **fields: int) -> Instruction:
    """Build an instruction from its named fields, all of which must be given.

    Raises ProgramError for an unknown mnemonic or field, a missing one, or a value out of range.
    """
    return instruction_of(row(mnemonic, **fields))


def instruction_of(row: Sequence[int]) -> Instruction:
    """The instruction of a row."""
    op = BY_OPCODE[row[0]]
    return Instruction(op, tuple(row[1 : 1 + len(op.fields)]))


def row(mnemonic: str, /, **fields: int) -> Row:
    """The row of named fields, all of which must be given; their values are not checked.

    Raises ProgramError for an unknown mnemonic or field, or a missing one.
    """
    form = FORMS.get(mnemonic)
    if form is None:
        raise ProgramError(
            f"unknown instruction {mnemonic!r}, expected one of {', '.join(BY_MNEMONIC)}"
        )
    try:
        made = form.row(**fields)
    except TypeError:
        for name in form.index:
            if name not in fields:
                raise ProgramError(f"{mnemonic} lacks the field {name}") from None
        extra = sorted(set(fields) - set(form.index))
        raise ProgramError(
            f"{mnemonic} has no field {extra[0]}, expected {' '.join(form.index)}"
        ) from None
    return tuple(map(operator.index, made))


def check_on_chip(inst: Instruction, chip: Chip) -> None:
    """Raise ProgramError unless the instruction can run on this chip.

    Checked: every word inside its memory, K within the operand memories, and no destination word
    that the instruction still needs as a source.
    """
    if inst.mnemonic == "MM" and inst["k"] > chip.operand_depth:
        raise ProgramError(
            f"{inst}: k is {inst['k']}, expected at most the operand depth {chip.operand_depth}"
        )
    for region in (*inst.reads(), *inst.writes()):
        if region.end > chip.words(region.memory):
            raise ProgramError(
                f"{inst}: the last {region.memory} word is {region.end - 1}, expected at most "
                f"{chip.words(region.memory) - 1}"
            )
    for source, target in inst.conflicts():
        raise ProgramError(
            f"{inst}: the destination at {target.base} overlaps the source at {source.base}, "
            "which is still needed"
        )


@dataclass(frozen=True, slots=True)
class Form:
    """The expressions of an operation, compiled: functions of operands, or of columns of them."""

    row: Callable[..., Row]
    cycles: Callable[..., Any]
    phases: tuple[tuple[Phase, Callable[..., Any]], ...]
    is_within_limits: Callable[..., Any]
    index: Mapping[str, int]
    """Place of every field in the operands."""
    sources: tuple[Callable[..., Region], ...]
    targets: tuple[Callable[..., Region], ...]


def _row_of(op: Op) -> str:
    """The expression of a row."""
    names = [f.name for f in op.fields]
    zeros = ["0"] * (ROW_LENGTH - 1 - len(names))
    return f"({', '.join([str(op.opcode), *names, *zeros])})"


def _region_maker(op: Op, access: Access) -> Callable[..., Region]:
    rows, cols, stride = access.rows, access.cols, access.stride
    contiguous = f"({stride}) + (({rows}) == 1) * (({cols}) - ({stride}))"  # where one row is all
    parts = compile_expression(op.fields, f"({access.base}, {rows}, {cols}, {contiguous})")
    return lambda *operands: Region(access.memory, *parts(*operands))


FORMS: Final[Mapping[str, Form]] = {
    op.mnemonic: Form(
        compile_expression(op.fields, _row_of(op)),
        compile_expression(op.fields, op.cycles),
        tuple(
            (phase, compile_expression(op.fields, term))
            for phase in Phase
            for use, term in op.terms
            if use is phase
        ),
        compile_expression(
            op.fields,
            " & ".join(f"({f.minimum} <= {f.name}) & ({f.name} <= {f.limit})" for f in op.fields)
            or "True",
        ),
        {f.name: index for index, f in enumerate(op.fields)},
        tuple(_region_maker(op, a) for a in op.reads),
        tuple(_region_maker(op, a) for a in op.writes),
    )
    for op in TABLE
}
"""By mnemonic, in the order of the table."""
