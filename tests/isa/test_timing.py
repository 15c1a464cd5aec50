"""Cycles of every instruction, from formulas written here a second time."""

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.isa.accounts import check_accounts

from capra.isa.instruction import Instruction, instruction
from capra.isa.spec import PHASES, Phase
from capra.isa.timing import (
    Counters,
    count,
    phases_of,
    phases_of_all,
    sum_counters,
    sum_phases,
)

instructions = st.from_type(Instruction)


def mm_cycles(i: Instruction) -> int:
    m, n, k = i["m"], i["n"], i["k"]
    load, stream, drain = m * k + k * n, k + m + n + 5, m * n
    return load + stream + drain * (1 + i["acc"])


UNIT_CYCLES: dict[str, tuple[str, Callable[[Instruction], int]]] = {
    "HALT": ("control", lambda i: 0),
    "LD": ("dma", lambda i: i["n"] + 9),
    "ST": ("dma", lambda i: i["n"] + 2),
    "MM": ("matrix", mm_cycles),
    "RQ": ("vector", lambda i: i["r"] * i["c"] + 2),
    "VADD": ("vector", lambda i: 2 * i["n"] + 2),
    "SM": ("vector", lambda i: 3 * i["n"] + 47),
    "AMAX": ("vector", lambda i: i["n"] + 3),
}


def mm(m: int, n: int, k: int, acc: int = 0) -> Instruction:
    return instruction("MM", d=0, a=0, b=0, m=m, n=n, k=k, sd=n, sa=k, sb=n, t=0, acc=acc)


@given(instructions)
def test_cycles_of_random_instructions(inst: Instruction) -> None:
    unit, cycles = UNIT_CYCLES[inst.mnemonic]
    assert inst.cycles == cycles(inst)
    assert inst.unit.value == unit
    assert count([inst]).by_unit() == {
        "matrix": 0, "dma": 0, "vector": 0, unit: cycles(inst),
        "control": 2,
    }  # fmt: skip


@given(st.lists(instructions, max_size=30))
def test_accounts_of_random_code(code: list[Instruction]) -> None:
    check_accounts(code, count(code), phases_of_all(code))
    for inst in code:
        phases = {phase: n for phase, n in phases_of(inst).items() if n}
        check_accounts([inst], count([inst]), phases)
    parts = [phases_of(inst) for inst in code]
    assert sum_phases(parts) == phases_of_all(code)
    assert sum_counters(count([inst]) for inst in code) == count(code)


@pytest.mark.parametrize(
    ("inst", "cycles"),
    [
        (instruction("HALT"), 0),
        (instruction("LD", d=0, s=0, n=1), 10),
        (instruction("LD", d=0, s=0, n=64), 73),
        (instruction("ST", d=0, s=0, n=1), 3),
        (instruction("ST", d=0, s=0, n=64), 66),
        (mm(1, 1, 1), 1 + 1 + 1 + 1 + 1 + 1 + 5),
        (mm(4, 4, 16), 64 + 64 + 16 + 16 + 4 + 4 + 5),
        (mm(4, 4, 256), 1024 + 1024 + 16 + 256 + 4 + 4 + 5),
        (mm(2, 3, 5), 10 + 15 + 6 + 5 + 2 + 3 + 5),
        (mm(2, 3, 5, acc=1), 10 + 15 + 6 + 5 + 2 + 3 + 5 + 6),
        (instruction("RQ", d=0, s=0, r=3, c=7, sd=7, ss=7, mul=1, sh=1, relu=1), 23),
        (instruction("VADD", d=0, a=0, b=0, n=10), 22),
        (instruction("SM", d=0, s=0, n=1, mul=1, sh=1), 50),
        (instruction("SM", d=0, s=0, n=16, mul=1, sh=1), 95),
        (instruction("AMAX", d=0, s=0, n=16), 19),
    ],
    ids=str,
)
def test_cycles_of_chosen_instructions(inst: Instruction, cycles: int) -> None:
    assert inst.cycles == cycles
    assert count([inst]).total == cycles + 2


PARTS: dict[str, Callable[[Instruction], dict[str, int]]] = {
    "HALT": lambda i: {},
    "LD": lambda i: {"load": i["n"], "load_latency": 9},
    "ST": lambda i: {"store": i["n"], "store_latency": 2},
    "MM": lambda i: {
        "operand_load": (i["m"] + i["n"]) * i["k"],
        "sum_load": i["m"] * i["n"] if i["acc"] else 0,
        "array": i["k"],
        "array_fill": i["m"] + i["n"] + 5,
        "drain": i["m"] * i["n"],
    },
    "RQ": lambda i: {"requantize": i["r"] * i["c"], "vector_pipeline": 2},
    "VADD": lambda i: {"add": 2 * i["n"], "vector_pipeline": 2},
    "SM": lambda i: {"softmax": 3 * i["n"], "softmax_division": 47},
    "AMAX": lambda i: {"argmax": i["n"], "vector_pipeline": 3},
}


@given(instructions)
def test_the_phases_of_random_instructions_are_their_cycles(inst: Instruction) -> None:
    spent = phases_of(inst)
    assert spent == {"fetch": 2, **PARTS[inst.mnemonic](inst)}
    assert sum(spent.values()) == inst.cycles + 2
    assert {PHASES[phase][0] for phase in spent if phase != "fetch"} <= {inst.unit}


@given(st.lists(instructions, max_size=3))
def test_the_phases_of_several_instructions_are_their_counters(insts: list[Instruction]) -> None:
    spent = sum_phases(map(phases_of, insts))
    assert phases_of_all(insts) == spent
    by_unit = dict.fromkeys(("matrix", "dma", "vector", "control"), 0)
    for phase, cycles in spent.items():
        by_unit[PHASES[phase][0]] += cycles
    assert by_unit == count(insts).by_unit()
    assert 0 not in spent.values()
    assert list(spent) == [phase for phase in Phase if phase in spent]


def test_accumulating_costs_one_more_cycle_a_sum() -> None:
    for m, n in product(range(1, 5), repeat=2):
        assert mm(m, n, 9, acc=1).cycles - mm(m, n, 9).cycles == m * n


@given(st.lists(instructions, max_size=3))
def test_every_instruction_adds_its_cycles_to_its_unit_and_two_to_control(
    insts: list[Instruction],
) -> None:
    expected = dict.fromkeys(("matrix", "dma", "vector", "control"), 0)
    for inst in insts:
        unit, cycles = UNIT_CYCLES[inst.mnemonic]
        expected[unit] += cycles(inst)
        expected["control"] += 2
    counters = count(insts)
    assert counters.by_unit() == expected
    assert counters.total == sum(expected.values())
    assert sum_counters(count([inst]) for inst in insts) == counters


def test_counters_add_unit_by_unit() -> None:
    a, b = Counters(1, 2, 3, 4), Counters(10, 20, 30, 40)
    assert a + b == Counters(matrix=11, dma=22, vector=33, control=44)
    assert a.total == 10
    assert sum_counters([]) == Counters() == Counters(0, 0, 0, 0)
    assert sum_counters(iter([a, b, a])) == Counters(12, 24, 36, 48)


def test_counters_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Counters().matrix = 1  # type: ignore[misc]
