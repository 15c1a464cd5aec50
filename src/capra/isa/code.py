"""Code: the instructions of a program as columns of numbers.

What the table says of an operation holds for all of its instructions, so it is computed for all of
them at once: limits, regions, cycles. Objects are made when somebody looks at an instruction.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from capra.isa.chip import Chip
from capra.isa.instruction import FORMS, Instruction, Region, Row
from capra.isa.spec import BY_MNEMONIC, Memory, Op
from capra.numerics import Int64Array

Int32Array = npt.NDArray[np.int32]
"""Addresses and indices of instructions."""


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
        return np.broadcast_to(expression(*self.operands), len(self.at))

    @property
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

    def shapes(self, regions: Iterable[Region], memory: Memory) -> Iterator[Int32Array]:
        """base, rows, cols and stride of such regions of a memory: (instructions, 4)."""
        for region in regions:
            if region.memory is memory:
                shapes = np.empty((len(self.at), 4), dtype=np.int32)
                for column, part in enumerate(region[1:]):
                    shapes[:, column] = part
                yield shapes


class Code(Sequence[Instruction]):
    """Instructions, each checked as it would be by itself; ProgramError names a bad one."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = tuple(rows)
        for group in self.groups:
            legal = np.ones(len(group.at), dtype=np.bool_)
            legal &= FORMS[group.op.mnemonic].is_within_limits(*group.operands)
            for region in group.targets:
                legal &= region.has_rows_apart
            if not legal.all():
                Instruction(group.op, self._rows[group.at[legal.argmin()]][1])  # says what is wrong

    @classmethod
    def of(cls, instructions: Sequence[Instruction]) -> "Code":
        """The code of these instructions."""
        if isinstance(instructions, Code):
            return instructions
        return cls((inst.mnemonic, inst.operands) for inst in instructions)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The instructions by operation, in the order of the table."""
        at: dict[str, list[int]] = {mnemonic: [] for mnemonic in BY_MNEMONIC}
        for index, (mnemonic, _) in enumerate(self._rows):
            at[mnemonic].append(index)
        return tuple(
            Group(op, np.array(at[op.mnemonic], dtype=np.int32), self._columns(at[op.mnemonic]))
            for op in BY_MNEMONIC.values()
            if at[op.mnemonic]
        )

    def _columns(self, indices: Sequence[int]) -> Int64Array:
        return np.array([self._rows[index][1] for index in indices], dtype=np.int64).T

    @cached_property
    def _instructions(self) -> tuple[Instruction, ...]:
        return tuple(Instruction(BY_MNEMONIC[mnemonic], row) for mnemonic, row in self._rows)

    @property
    def mnemonics(self) -> list[str]:
        """The operation of every instruction."""
        return [mnemonic for mnemonic, _ in self._rows]

    def __len__(self) -> int:
        return len(self._rows)

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

    def writes(self, memory: Memory) -> list[list[Region]]:
        """What every instruction writes of a memory."""
        writes: list[list[Region]] = [[] for _ in self._rows]
        for group in self.groups:
            for shapes in group.shapes(group.targets, memory):
                for index, shape in zip(group.at.tolist(), shapes.tolist(), strict=True):
                    writes[index].append(Region(memory, *shape))
        return writes

    def words_read(self, memory: Memory) -> Iterator[tuple[Int32Array, Int32Array]]:
        """All that is read of a memory, in parts: addresses, and who reads each of them.

        What instructions of one operation read again, one after the other, is there once.
        """
        for group in self.groups:
            for shapes in group.shapes(group.sources, memory):
                yield _words(shapes, group.at)
            if group.op.updates_if:
                updates = group.operands[group.op.index(group.op.updates_if)] > 0
                for shapes in group.shapes(group.targets, memory):
                    yield _words(shapes[updates], group.at[updates])


def _words(shapes: Int32Array, at: Int32Array) -> tuple[Int32Array, Int32Array]:
    """The addresses of such shapes, row by row, and of each the index of its instruction."""
    is_new = np.ones(len(at), dtype=np.bool_)
    is_new[1:] = (shapes[1:] != shapes[:-1]).any(axis=1)
    at, (bases, heights, cols, strides) = at[is_new], shapes[is_new].T
    first = np.repeat(bases, heights)  # of a row: its first word, its length, its instruction
    first += _counted(heights) * np.repeat(strides, heights)
    length, index = np.repeat(cols, heights), np.repeat(at, heights)
    return np.repeat(first, length) + _counted(length), np.repeat(index, length)


def _counted(lengths: Int32Array) -> Int32Array:
    """0 .. length - 1 for each of them, one after the other."""
    ends = np.cumsum(lengths, dtype=np.int32)
    numbers = np.arange(ends[-1] if len(ends) else 0, dtype=np.int32)
    return numbers - np.repeat(ends - lengths, lengths)
