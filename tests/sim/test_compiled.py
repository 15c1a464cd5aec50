"""The compiled engine: what the naive loops and the readable engine leave, on everything."""

import os
import random
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import ArrayLike

import capra.sim.machine
from capra import ChipTarget, load_model
from capra.cosim.random_programs import random_job
from capra.errors import InputError, ProgramError
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, check_on_chip, instruction
from capra.isa.program import Program
from capra.isa.spec import TABLE
from capra.numerics import Int64Array, UInt64Array
from capra.sim import compiled
from capra.sim.execute import Words
from capra.sim.machine import COMPILED_CYCLES, Engine, Machine

Step = Callable[[Instruction, list[int], list[int]], None]
Draw = Callable[[random.Random, Chip, str], Instruction]

SMALL = Chip(external_words=80, scratchpad_words=128)
CHIP = Chip(external_words=1500, scratchpad_words=1024, operand_depth=300, program_entries=64)
LARGE = Chip(external_words=4096, scratchpad_words=4096, operand_depth=4096)
HALT = instruction("HALT")
RANDOM_PROGRAMS = int(os.environ.get("CAPRA_RANDOM_PROGRAMS", "100"))


def machines(chip: Chip, external: ArrayLike, scratchpad: ArrayLike) -> tuple[Machine, Machine]:
    """A readable and a compiled machine with the same words."""
    both = Machine(chip, engine="readable"), Machine(chip, engine="compiled")
    for machine in both:
        machine.external[...] = external
        machine.scratchpad[...] = scratchpad
    return both


def check_equal(program: Program, external: ArrayLike, scratchpad: ArrayLike) -> None:
    readable, fast = machines(program.chip, external, scratchpad)
    for _ in range(2):  # the second run starts with what the first one left
        assert fast.run(program) == readable.run(program) == program.counters
        np.testing.assert_array_equal(fast.external, readable.external, str(program.name))
        np.testing.assert_array_equal(fast.scratchpad, readable.scratchpad, str(program.name))


@pytest.mark.parametrize("mnemonic", [op.mnemonic for op in TABLE])
def test_an_instruction_performs_its_loops(
    mnemonic: str, seed: int, naive_step: Step, draw_instruction: Draw
) -> None:
    rng = random.Random(f"{mnemonic} {seed}")
    values = [-(1 << 31), (1 << 31) - 1, -129, -128, -127, -1, 0, 1, 127, 128, 255, 256]
    for _ in range(40):
        inst = draw_instruction(rng, SMALL, mnemonic)
        words = [rng.choice([*values, rng.randint(-127, 127)]) for _ in range(80 + 128)]
        external, scratchpad = words[:80], words[80:]
        machine = machines(SMALL, external, scratchpad)[1]
        code = (HALT,) if mnemonic == "HALT" else (inst, HALT)
        machine.run(Program(mnemonic, SMALL, code))
        naive_step(inst, external, scratchpad)
        assert machine.external.tolist() == external, inst
        assert machine.scratchpad.tolist() == scratchpad, inst


@pytest.mark.parametrize(
    "inst",
    [
        instruction("MM", d=8, a=0, b=4, m=1, n=1, k=4092, sd=0, sa=0, sb=0, t=1, acc=1),
        instruction("RQ", d=0, s=0, r=64, c=64, sd=64, ss=64, mul=65535, sh=1, relu=0),
        instruction("RQ", d=0, s=0, r=64, c=64, sd=64, ss=64, mul=65535, sh=47, relu=1),
        instruction("RQ", d=0, s=0, r=64, c=64, sd=64, ss=64, mul=32769, sh=17, relu=0),
        instruction("SM", d=2048, s=0, n=2048, mul=65535, sh=1),
        instruction("AMAX", d=0, s=1, n=4095),
    ],
    ids=lambda inst: inst.mnemonic,
)
@pytest.mark.parametrize(
    "low, high", [(-127, -126), (-128, -128), (-(1 << 31), (1 << 31) - 1), (-(1 << 31), 5)]
)
def test_extremes(inst: Instruction, low: int, high: int) -> None:
    code = (inst, HALT)
    if inst.mnemonic == "MM":  # of which the sum is no operand
        code = (instruction("MM", **{**fields(inst), "d": 4095, "k": 4091}), HALT)
    draw = np.random.default_rng(1)
    words = draw.integers(low, high, 4096, endpoint=True)
    check_equal(Program("extremes", LARGE, code), words, words[::-1])


@pytest.mark.parametrize(
    ("multiplier", "shift"), [(65535, 39), (32769, 38), (32768, 38), (40503, 33), (1, 24)]
)
def test_requantization_is_exact_beside_every_half(multiplier: int, shift: int) -> None:
    """The largest word that is rounded down to q, and the next one, which is rounded up."""
    halves = [(2 * q + 1) << (shift - 1) for q in range(-127, 127)]
    words, expected = [], []
    for q, half in enumerate(halves, -127):
        first_up = -(-half // multiplier)
        words += [first_up - 1, first_up]
        expected += [q, q + 1]
    size = {"r": 1, "c": len(words), "sd": 0, "ss": 0}
    inst = instruction("RQ", d=0, s=0, mul=multiplier, sh=shift, relu=0, **size)
    padded = words + [0] * (LARGE.scratchpad_words - len(words))
    for machine in machines(LARGE, 0, padded):
        machine.run(Program("halves", LARGE, (inst, HALT)))
        assert machine.scratchpad[: len(words)].tolist() == expected


def fields(inst: Instruction) -> dict[str, int]:
    return {f.name: inst[f.name] for f in inst.op.fields}


@pytest.mark.parametrize("part", range(4))
def test_random_programs(part: int, record_property: Callable[[str, object], None]) -> None:
    first = int(os.environ.get("CAPRA_SEED", "0"))
    for seed in range(first + part, first + RANDOM_PROGRAMS, 4):
        job = random_job(seed, CHIP, instructions=30)
        assert job.scratchpad is not None
        check_equal(job.program, job.external, job.scratchpad)
        record_property("programs on both engines", [seed, 1])


@pytest.mark.parametrize("rows, cache", [(1, 64), (4, 64), (7, 3)])
def test_programs_of_the_text_model(rows: int, cache: int) -> None:
    target = ChipTarget(load_model("pydoc"))
    program = target.program("step" if rows == 1 else "verify", rows, cache)
    draw = np.random.default_rng(rows)
    external = draw.integers(-127, 127, program.chip.external_words, endpoint=True)
    check_equal(program, external, 0)


def beside(rng: random.Random) -> list[Instruction]:
    """Tiles beside each other, or nearly, whose sums and operands may lie over those of others."""
    drawn = {name: rng.randrange(60) for name in "dab"}
    drawn |= {name: rng.randrange(21) for name in ("sd", "sa", "sb")}
    drawn |= {"m": rng.randint(1, 4), "k": rng.choice([1, 2, 7])}
    drawn |= {"t": rng.randint(0, 1), "acc": rng.randint(0, 1)}
    tiles: list[Instruction] = []
    for _ in range(rng.randint(2, 4)):
        drawn["n"] = rng.choice([1, 2, 3, 4, 4, 4])
        try:
            tile = instruction("MM", **drawn)
            check_on_chip(tile, CHIP)
        except ProgramError:
            return beside(rng)
        tiles.append(tile)
        drawn["d"] += drawn["n"]
        as_rows = drawn["t"] if rng.randrange(6) else not drawn["t"]
        drawn["b"] += drawn["n"] * (drawn["sb"] if as_rows else 1)
        if not rng.randrange(4):
            name = rng.choice(["d", "a", "b", "m", "k", "sd", "sa", "sb", "t", "acc"])
            drawn[name] = 1 - drawn[name] if name in ("t", "acc") else drawn[name] + 1
    return tiles


def test_tiles_beside_each_other_are_as_if_one_came_after_the_other(seed: int) -> None:
    """Most are computed as one wide product; some must not be."""
    rng = random.Random(seed)
    wide, apart = 0, 0
    for _ in range(600):
        words = np.random.default_rng(rng.randrange(1 << 32)).integers(-128, 128, 1024)
        tiles = beside(rng)
        program = Program("tiles", CHIP, (*tiles, HALT))
        check_equal(program, 0, words)
        rows = len(compiled.encode(program.code)) - 1
        wide, apart = wide + (rows == 1), apart + (rows == len(tiles))
    assert wide > 40 and apart > 40, (wide, apart)


def test_a_matrix_is_one_wide_product() -> None:
    target = ChipTarget(load_model("pydoc"))
    code = target.program("step", 1, 20).code
    assert len(compiled.encode(code)) < len(code) / 3


def test_the_longest_operand_of_any_instruction_is_prepared_for() -> None:
    """A short product after a long one, and before it."""
    product = {"sd": 4, "sa": 0, "sb": 0, "t": 0, "acc": 0, "m": 4, "n": 4}
    code = [instruction("MM", d=3000, a=0, b=0, k=k, **product) for k in (5, 2000, 5)]
    words = np.random.default_rng(2).integers(-127, 127, 4096)
    check_equal(Program("depths", LARGE, (*code, HALT)), words, words)


# which engine runs


@pytest.fixture
def count_calls(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of rows of each program that the compiled engine runs; the tests choose it."""
    monkeypatch.delenv("CAPRA_ENGINE", raising=False)
    calls: list[int] = []
    whole = compiled.run

    def run(code: UInt64Array, *memories: Words) -> Int64Array:
        calls.append(len(code))
        return whole(code, *memories)

    monkeypatch.setattr(compiled, "run", run)
    return calls


def program_of(cycles: int, chip: Chip = CHIP) -> Program:
    """Loads that take at least so many cycles."""
    load = instruction("LD", d=0, s=0, n=1000)
    return Program("loads", chip, (load,) * -(-cycles // (load.cycles + 2)) + (HALT,))


def test_long_programs_are_compiled(count_calls: list[int]) -> None:
    chip = Chip(external_words=1500, scratchpad_words=1024, program_entries=1024)
    machine = Machine(chip)
    machine.run(program_of(COMPILED_CYCLES // 2, chip))
    assert not count_calls
    machine.run(program_of(COMPILED_CYCLES, chip))
    assert len(count_calls) == 1
    Machine(chip, poison=True).bind(program_of(COMPILED_CYCLES, chip))
    machine.run(program_of(COMPILED_CYCLES, chip), after=lambda _: None)
    machine.run(program_of(COMPILED_CYCLES, chip), trace=lambda _: None)
    assert len(count_calls) == 1


def test_poison_is_found_whatever_the_engine(count_calls: list[int]) -> None:
    machine = Machine(CHIP, poison=True, engine="compiled")
    with pytest.raises(capra.errors.PoisonError):
        machine.run(program_of(1))
    assert not count_calls


@pytest.mark.parametrize("engine, compiles", [("readable", False), ("compiled", True)])
def test_the_environment_names_the_engine(
    engine: Engine, compiles: bool, count_calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPRA_ENGINE", engine)
    Machine(CHIP).run(program_of(1))
    assert bool(count_calls) == compiles
    Machine(CHIP, engine="readable").run(program_of(1))
    assert len(count_calls) == compiles


def test_without_numba_everything_is_readable(
    count_calls: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capra.sim.machine, "has_numba", lambda: False)
    monkeypatch.setattr(capra.sim.machine, "COMPILED_CYCLES", 0)
    Machine(CHIP).run(program_of(1))
    assert not count_calls
    with pytest.raises(InputError, match=r"the engine is 'compiled', expected numba"):
        Machine(CHIP, engine="compiled")


def test_an_unknown_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAPRA_ENGINE", "steam")
    with pytest.raises(InputError, match=r"'steam', expected one of auto, readable, compiled"):
        Machine(CHIP)
