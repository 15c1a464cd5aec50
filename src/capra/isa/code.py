"""Code: the instructions of a program as columns of numbers.

What the table says of an operation holds for all of its instructions, so it is computed for all of
them at once: limits, regions, cycles. Objects are made when somebody looks at an instruction.
"""

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from capra.isa.chip import Chip
from capra.isa.instruction import FORMS, ROW_LENGTH, Instruction, Region, Row, instruction_of
from capra.isa.spec import BY_MNEMONIC, BY_OPCODE, Memory, Op
from capra.numerics import Int64Array

Int32Array = npt.NDArray[np.int32]
"""Addresses and indices of instructions."""

Views = list[list[Int32Array]]
"""By instruction: views of some of the words of a memory."""


@dataclass(frozen=True)
class Group:
    """All instructions of one operation."""

    op: Op
    at: Int32Array
    """Their indices in the code."""
    operands: Int64Array
    """(fields, instructions)"""

    def evaluated(self, expression: Callable[..., Any]) -> Int64Array:
        """An expression of the operation, such as its cycles, for each of them."""
        constant_or_each: Int64Array = expression(*self.operands)
        return np.zeros(len(self.at), dtype=np.int64) + constant_or_each

    @cached_property
    def cycles(self) -> Int64Array:
        """Their cycles on their unit, without the control cycles."""
        return self.evaluated(FORMS[self.op.mnemonic].cycles)

    @cached_property
    def sources(self) -> list[Region]:
        """Their sources, as regions of columns."""
        return [region(*self.operands) for region in FORMS[self.op.mnemonic].sources]

    @cached_property
    def targets(self) -> list[Region]:
        """Their destinations, as regions of columns."""
        return [region(*self.operands) for region in FORMS[self.op.mnemonic].targets]

    def where(self, chosen: npt.NDArray[np.bool_]) -> "Group":
        """Some of them."""
        return Group(self.op, self.at[chosen], self.operands[:, chosen])


class Code(Sequence[Instruction]):
    """Instructions, each checked as it would be by itself; ProgramError names a bad one."""

    def __init__(self, parts: Iterable[Row | Int64Array]) -> None:
        """Of rows, and of tables of several rows: (instructions, ROW_LENGTH)."""
        tables = [np.empty((0, ROW_LENGTH), dtype=np.int64)]
        for are_rows, run in groupby(parts, lambda part: isinstance(part, tuple)):
            together = list(run)
            tables.append(np.array(together, dtype=np.int64) if are_rows else np.vstack(together))
        self._table: Int64Array = np.concatenate(tables)
        for group in self.groups:
            legal = np.ones(len(group.at), dtype=np.bool_)
            legal &= FORMS[group.op.mnemonic].is_within_limits(*group.operands)
            for region in group.targets:
                legal &= region.has_rows_apart
            if not legal.all():
                instruction_of(self._table[group.at[legal.argmin()]].tolist())  # says what is wrong

    @classmethod
    def of(cls, instructions: Sequence[Instruction]) -> "Code":
        """The code of these instructions."""
        if isinstance(instructions, Code):
            return instructions
        rows = (FORMS[inst.mnemonic].row(*inst.operands) for inst in instructions)
        return cls(tuple(map(operator.index, row)) for row in rows)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The instructions by operation, in the order of the table."""
        opcodes, columns = self._table[:, 0], self._table.T
        found = ((op, np.flatnonzero(opcodes == op.opcode)) for op in BY_MNEMONIC.values())
        return tuple(
            Group(op, at.astype(np.int32), columns[1 : 1 + len(op.fields), at])
            for op, at in found
            if len(at)
        )

    @cached_property
    def _instructions(self) -> tuple[Instruction, ...]:
        return tuple(map(instruction_of, self._table.tolist()))

    def at(self, index: int) -> Instruction:
        """One instruction; the others are not made."""
        return instruction_of(self._table[index].tolist())

    @property
    def mnemonics(self) -> list[str]:
        """The operation of every instruction."""
        return [BY_OPCODE[opcode].mnemonic for opcode in self._table[:, 0].tolist()]

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> Instruction: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Instruction, ...]: ...
    def __getitem__(self, index: int | slice) -> Instruction | tuple[Instruction, ...]:
        return self._instructions[index]

    def __iter__(self) -> Iterator[Instruction]:
        return iter(self._instructions)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._instructions == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def suspects(self, chip: Chip) -> list[int]:
        """Indices of instructions that `check_on_chip` has to look at: it accepts all others."""
        suspects: list[int] = []
        for group in self.groups:
            sources, targets = group.sources, group.targets
            doubt = np.zeros(len(group.at), dtype=np.bool_)
            if group.op.mnemonic == "MM":
                doubt |= group.operands[group.op.index("k")] > chip.operand_depth
            for region in (*sources, *targets):
                doubt |= region.end > chip.words(region.memory)
            for source in sources:
                for target in targets:
                    if source.memory is target.memory:
                        doubt |= (source.base < target.end) & (target.base < source.end)
            suspects += group.at[doubt].tolist()
        return sorted(suspects)

    def views(self, memory: Memory, words: Int32Array) -> tuple[Views, Views]:
        """What instructions read and what they write of a memory, in an array of all its words."""
        read: Views = [[] for _ in range(len(self))]
        written: Views = [[] for _ in range(len(self))]

        def add(views: Views, regions: Iterable[Region], at: Int32Array) -> None:
            for region in regions:
                if region.memory is memory:
                    found = region.each_of(words, len(at))
                    for index, view in zip(at.tolist(), found, strict=True):
                        views[index].append(view)

        for group in self.groups:
            add(read, group.sources, group.at)
            add(written, group.targets, group.at)
            if group.op.updates_if:
                updates = group.where(group.operands[group.op.index(group.op.updates_if)] > 0)
                add(read, updates.targets, updates.at)
        return read, written
