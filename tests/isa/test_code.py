"""Code as columns says of all instructions what each says of itself."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capra.errors import ProgramError
from capra.isa.chip import Chip
from capra.isa.code import Code
from capra.isa.instruction import Instruction, check_on_chip, instruction, row
from capra.isa.spec import TABLE, Memory

CHIP = Chip(external_words=300, scratchpad_words=256)

small = st.sampled_from([0, 1, 2, 3, 5, 40, 100, 253, 254, 255, 256, 297, 298, 299, 300])
"""Operands near each other and near the ends of CHIP, so that some fit and some meet."""


@st.composite
def small_instructions(draw: st.DrawFn) -> Instruction:
    op = draw(st.sampled_from(TABLE))
    fields = {f.name: min(max(draw(small), f.minimum), f.limit) for f in op.fields}
    try:
        return instruction(op.mnemonic, **fields)
    except ProgramError:  # destination rows that share words: move them apart
        return instruction(op.mnemonic, **fields | {"sd": 300})


@st.composite
def tiles(draw: st.DrawFn) -> Instruction:
    """Tiles that are likely to lie side by side, or to be the same."""
    place, flag = st.sampled_from([0, 2, 4, 6, 8]), st.integers(0, 1)
    fields = {"m": 2, "n": 2, "k": draw(st.integers(1, 2)), "sd": 10, "sa": 10, "sb": 10}
    d, a, b = 40 + draw(place), draw(place), 20 + draw(place)
    return instruction("MM", d=d, a=a, b=b, t=draw(flag), acc=draw(flag), **fields)


def is_refused(inst: Instruction) -> bool:
    try:
        check_on_chip(inst, CHIP)
    except ProgramError:
        return True
    return False


@given(st.lists(st.from_type(Instruction)))
def test_code_is_a_sequence_of_its_instructions(insts: list[Instruction]) -> None:
    code = Code.of(insts)
    assert len(code) == len(insts) and list(code) == insts and code == tuple(insts)
    assert code[1:3] == tuple(insts[1:3]) and code.mnemonics == [i.mnemonic for i in insts]
    assert Code.of(code) is code
    if insts:
        assert code[-1] == insts[-1] and code != insts[1:]


@given(st.lists(st.from_type(Instruction)))
def test_groups_have_every_instruction_once_with_its_cycles(insts: list[Instruction]) -> None:
    found = {}
    for group in Code.of(insts).groups:
        for at, operands, cycles in zip(group.at, group.operands.T, group.cycles, strict=True):
            found[int(at)] = (Instruction(group.op, tuple(operands.tolist())), int(cycles))
    assert [found[index] for index in range(len(insts))] == [(i, i.cycles) for i in insts]


@given(st.lists(small_instructions() | tiles()))
def test_the_words_that_each_instruction_touches(insts: list[Instruction]) -> None:
    addresses = np.arange(100_000, dtype=np.int32)
    for memory in Memory:
        views = Code.of(insts).views(memory, addresses)
        regions = [inst.reads() for inst in insts], [inst.writes() for inst in insts]
        for found, expected in zip(views, regions, strict=True):
            assert [[view.ravel().tolist() for view in each] for each in found] == [
                [region.addresses().tolist() for region in each if region.memory is memory]
                for each in expected
            ]


@given(st.lists(small_instructions()))
def test_every_refused_instruction_is_a_suspect(insts: list[Instruction]) -> None:
    suspects = Code.of(insts).suspects(CHIP)
    assert suspects == sorted(suspects)
    assert {i for i, inst in enumerate(insts) if is_refused(inst)} <= set(suspects)


def test_what_is_far_from_every_rule_is_no_suspect() -> None:
    deep = Chip(scratchpad_words=1024)
    good = instruction("MM", d=250, a=0, b=600, m=1, n=1, k=250, sd=0, sa=0, sb=1, t=0, acc=1)
    deeper = instruction("MM", d=260, a=0, b=600, m=1, n=1, k=257, sd=0, sa=0, sb=1, t=0, acc=1)
    assert Code.of([good, good, deeper, good]).suspects(deep) == [2]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"c": 0}, r"c \(columns\) is 0, expected 1"),
        ({"sh": 48}, r"sh .* is 48, expected 1 \.\. 47"),
        ({"d": -1}, r"d .* is -1, expected 0"),
        ({"r": 2, "sd": 2}, r"destination rows of 3 words are 2 words apart"),
    ],
)
def test_a_bad_row_is_refused_as_an_instruction_is(changes: dict[str, int], message: str) -> None:
    fields = {"d": 9, "s": 0, "r": 1, "c": 3, "sd": 3, "ss": 3, "mul": 1, "sh": 1, "relu": 0}
    good = row("RQ", **fields)
    assert len(Code([good, good])) == 2
    with pytest.raises(ProgramError, match=rf"^RQ .*: {message}"):
        Code([good, row("RQ", **fields | changes), good])
