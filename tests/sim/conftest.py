"""A naive model of the machine, and random legal instructions to compare it on.

The model performs the loops that the instruction table describes, one word at a time in Python's
own integers, and shares nothing with the simulator but the instruction it is given.
"""

import math
import random
from collections.abc import Callable

import pytest

from capra.errors import ProgramError
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, check_on_chip, instruction
from capra.isa.spec import BY_MNEMONIC, Overlap

Step = Callable[[Instruction, list[int], list[int]], None]
Draw = Callable[[random.Random, Chip, str], Instruction]

EXP = [math.floor(65535 * math.exp(-i / 32) + 0.5) for i in range(255)] + [0]


def _wrap(x: int, bits: int) -> int:
    """The signed value of the lowest bits."""
    return (x + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _low(x: int) -> int:
    return _wrap(x, 8)


def _clamp(x: int, low: int = -127) -> int:
    return min(max(x, low), 127)


def _rescaled(x: int, mul: int, sh: int) -> int:
    return (x * mul + (1 << (sh - 1))) >> sh


def _mm(i: Instruction, mem: list[int]) -> None:
    for row in range(i["m"]):
        for col in range(i["n"]):
            total = mem[i["d"] + row * i["sd"] + col] if i["acc"] else 0
            for deep in range(i["k"]):
                b = col * i["sb"] + deep if i["t"] else deep * i["sb"] + col
                total += _low(mem[i["a"] + row * i["sa"] + deep]) * _low(mem[i["b"] + b])
            mem[i["d"] + row * i["sd"] + col] = _wrap(total, 32)


def _rq(i: Instruction, mem: list[int]) -> None:
    low = 0 if i["relu"] else -127
    for row in range(i["r"]):
        for col in range(i["c"]):
            x = mem[i["s"] + row * i["ss"] + col]
            mem[i["d"] + row * i["sd"] + col] = _clamp(_rescaled(x, i["mul"], i["sh"]), low)


def _vadd(i: Instruction, mem: list[int]) -> None:
    for j in range(i["n"]):
        mem[i["d"] + j] = _clamp(_low(mem[i["a"] + j]) + _low(mem[i["b"] + j]))


def _sm(i: Instruction, mem: list[int]) -> None:
    scores = [_low(mem[i["s"] + j]) for j in range(i["n"])]
    top = max(scores)
    indices = [min(255, _rescaled(top - score, i["mul"], i["sh"])) for score in scores]
    quotient = (1 << 47) // sum(EXP[index] for index in indices)
    for j, index in enumerate(indices):
        mem[i["d"] + j] = (EXP[index] * quotient + (1 << 31)) >> 32


def _amax(i: Instruction, mem: list[int]) -> None:
    best = 0
    for j in range(i["n"]):
        if mem[i["s"] + j] > mem[i["s"] + best]:
            best = j
    mem[i["d"]] = best


def _step(inst: Instruction, external: list[int], scratchpad: list[int]) -> None:
    if inst.mnemonic == "LD":
        for j in range(inst["n"]):
            scratchpad[inst["d"] + j] = external[inst["s"] + j]
    elif inst.mnemonic == "ST":
        for j in range(inst["n"]):
            external[inst["d"] + j] = scratchpad[inst["s"] + j]
    elif inst.mnemonic != "HALT":
        {"MM": _mm, "RQ": _rq, "VADD": _vadd, "SM": _sm, "AMAX": _amax}[inst.mnemonic](
            inst, scratchpad
        )


def _size(rng: random.Random, name: str, limit: int) -> int:
    if name in ("m", "n", "k", "r", "c"):
        return rng.randint(1, min(limit, rng.choice([1, 2, 5, 9])))
    if name in ("sd", "sa", "sb", "ss"):
        return rng.randint(0, 14)
    if name == "mul":
        return rng.choice([0, 1, 1 << 15, limit, rng.randint(0, limit)])
    return rng.randint(1, limit)  # a shift


def _draw(rng: random.Random, chip: Chip, mnemonic: str) -> Instruction:
    """A random instruction that the chip can run; its regions often touch an end of a memory."""
    op = BY_MNEMONIC[mnemonic]
    accesses = (*op.reads, *op.writes)
    sizes = {"external": chip.external_words, "scratchpad": chip.scratchpad_words}
    memory = {access.base: sizes[access.memory] for access in accesses}
    while True:
        values = {
            f.name: 0 if f.name in memory
            else rng.randint(0, 1) if f.bits == 1
            else _size(rng, f.name, f.limit)
            for f in op.fields
        }  # fmt: skip
        try:
            placed = instruction(mnemonic, **values)
            for access, region in zip(accesses, (*placed.reads(), *placed.writes()), strict=False):
                last = memory[access.base] - region.end
                values[access.base] = rng.choice([0, last, *[rng.randint(0, max(last, 0))] * 6])
            if op.overlap is Overlap.SAME and rng.random() < 0.1:
                values["d"] = values[op.reads[0].base]
            inst = instruction(mnemonic, **values)
            check_on_chip(inst, chip)
        except ProgramError:
            continue
        return inst


@pytest.fixture(scope="session")
def naive_step() -> Step:
    """naive_step(instruction, external, scratchpad) executes on two lists of integers."""
    return _step


@pytest.fixture(scope="session")
def draw_instruction() -> Draw:
    """draw_instruction(rng, chip, mnemonic) is a random instruction that the chip can run."""
    return _draw
