"""Random programs from the instruction table, with memory images to run them on.

Every field takes its smallest and largest value that the chip allows now and then; operands meet
what earlier instructions wrote, and the first and last words of the memories.
"""

import random
from typing import Final

import numpy as np

from capra.cosim.jobs import Job, Words
from capra.errors import ProgramError
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, check_on_chip, instruction
from capra.isa.program import Program
from capra.isa.spec import TABLE, Field, Memory, Op, Overlap

_SMALL: Final = 12
_MEDIUM: Final = 80
_WORKERS: Final = tuple(op for op in TABLE if op.mnemonic != "HALT")


def random_job(seed: int, chip: Chip, instructions: int = 12) -> Job:
    """A program of so many instructions and a HALT, and random memories, all from the seed."""
    draw = random.Random(seed)
    code: list[Instruction] = []
    while len(code) < instructions:
        code.append(_random_instruction(draw, chip, code))
    program = Program(f"random-{seed}", chip, (*code, instruction("HALT")))
    bits = np.random.default_rng(seed)
    return Job(
        program, _words(bits, chip.external_words), _words(bits, chip.scratchpad_words),
    )  # fmt: skip


def _words(bits: np.random.Generator, size: int) -> Words:
    """A third each of bytes, extremes and anything."""
    extremes = np.array([0, 1, -1, 127, -127, -128, 128, 255, 2**31 - 1, -(2**31)])
    kinds = (
        bits.integers(-128, 128, size),
        extremes[bits.integers(0, len(extremes), size)],
        bits.integers(-(2**31), 2**31, size),
    )
    return np.choose(bits.integers(0, 3, size), kinds).astype(np.int32)


def _random_instruction(draw: random.Random, chip: Chip, earlier: list[Instruction]) -> Instruction:
    """Draw again until the instruction fits the chip."""
    op = draw.choice(_WORKERS)
    while True:
        fields = {f.name: _value(draw, f, chip) for f in op.fields}
        if op.overlap is Overlap.SAME and draw.random() < 0.3:  # in place
            _copy_source_strides(op, fields)
            in_place = True
        else:
            in_place = False
        try:
            _place(draw, op, fields, chip, earlier)
            if in_place:
                fields["d"] = fields[draw.choice(op.reads).base]
            inst = instruction(op.mnemonic, **fields)
            check_on_chip(inst, chip)
        except ProgramError:
            continue
        return inst


def _value(draw: random.Random, f: Field, chip: Chip) -> int:
    """A value of any field but an address, mostly small."""
    kind = draw.random()
    if f.bits <= 6:
        return draw.choice((f.minimum, f.limit)) if kind < 0.3 else draw.randint(f.minimum, f.limit)
    if f.name == "mul":
        return draw.choice((0, 1, f.limit)) if kind < 0.2 else draw.randint(0, f.limit)
    if kind < 0.15:
        return f.minimum
    if kind < 0.2:
        return min(f.limit, _largest(f, chip))
    return draw.randint(max(f.minimum, 1), _SMALL if kind < 0.8 else _MEDIUM)


def _largest(f: Field, chip: Chip) -> int:
    """The largest useful value on a chip: K fits the operand memories, three vectors the others."""
    if f.name == "k":
        return chip.operand_depth
    if f.name == "n":
        return min(chip.scratchpad_words, chip.external_words) // 3
    return f.limit


def _copy_source_strides(op: Op, fields: dict[str, int]) -> None:
    if "ss" in fields:
        fields["sd"] = fields["ss"]


def _place(
    draw: random.Random, op: Op, fields: dict[str, int], chip: Chip, earlier: list[Instruction]
) -> None:
    """Choose the addresses: anywhere, at either end, or where an earlier instruction wrote."""
    bases = {access.base: access.memory for access in (*op.reads, *op.writes)}
    trial = instruction(op.mnemonic, **{**fields, **dict.fromkeys(bases, 0)})
    extents = dict.fromkeys(bases, 0)
    sources = trial.reads()[: len(op.reads)]  # a destination that is read too has its place below
    for access, region in zip((*op.reads, *op.writes), (*sources, *trial.writes()), strict=True):
        extents[access.base] = max(extents[access.base], region.end)
    for name, memory in bases.items():
        size = chip.scratchpad_words if memory is Memory.SCRATCHPAD else chip.external_words
        room = size - extents[name]
        if room < 0:
            raise ProgramError(f"{op.mnemonic} does not fit")
        kind = draw.random()
        written = [w.base for inst in earlier[-4:] for w in inst.writes() if w.memory is memory]
        if kind < 0.1:
            fields[name] = 0
        elif kind < 0.2:
            fields[name] = room
        elif kind < 0.6 and written:
            fields[name] = min(draw.choice(written), room)
        else:
            fields[name] = draw.randint(0, room)
