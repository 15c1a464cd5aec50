"""Text form: every legal instruction survives it, and a bad line is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capra.errors import ProgramError
from capra.isa.assembler import assemble, disassemble
from capra.isa.instruction import Instruction, instruction
from capra.isa.spec import TABLE, Op

instructions = st.from_type(Instruction)
HALT = instruction("HALT")
AMAX = instruction("AMAX", d=9, s=0, n=4)


@given(st.lists(instructions, max_size=3))
def test_text_round_trips(insts: list[Instruction]) -> None:
    assert assemble(disassemble(insts)) == tuple(insts)


@pytest.mark.parametrize("op", TABLE, ids=lambda op: op.mnemonic)
def test_every_field_round_trips_at_its_limits(op: Op) -> None:
    lowest = {f.name: f.limit if f.name == "sd" else f.minimum for f in op.fields}
    for f in op.fields:
        for value in (f.minimum, f.limit):
            inst = instruction(op.mnemonic, **{**lowest, f.name: value})
            assert assemble(disassemble([inst])) == (inst,)
            assert assemble(str(inst)) == (inst,)


def test_a_listing_shows_index_operands_and_all_cycles() -> None:
    lines = disassemble([AMAX, HALT]).splitlines()
    assert lines[0] == "0: AMAX d=9 s=0 n=4  ; 9 cycles"
    assert lines[1] == "1: HALT              ; 2 cycles"
    assert disassemble([]) == ""


@pytest.mark.parametrize(
    "text",
    [
        "AMAX d=9 s=0 n=4",
        "  0:  AMAX   n=4 d=9\ts=0  ; comment: with a colon; and another",
        "0:AMAX d=0x9 s=0x0 n=0x04",
        "; first a comment\n\n   \nAMAX d=9 s=0 n=4\n;last",
        "AMAX d=9 s=0 n=4\r\n",
    ],
)
def test_spacing_order_comments_and_hexadecimal(text: str) -> None:
    assert assemble(text) == (AMAX,)


def test_no_text_is_no_instructions() -> None:
    assert assemble("") == assemble("\n ; nothing\n") == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("NOP", r"unknown instruction 'NOP', expected one of HALT, LD"),
        ("halt", r"unknown instruction 'halt'"),
        ("AMAX d=9 s=0", r"AMAX lacks the field n"),
        ("AMAX d=9 s=0 n=4 k=1", r"AMAX has no field k, expected d s n"),
        ("AMAX d=9 s=0 n=0", r"n \(length of the row\) is 0, expected 1 \.\. 65535"),
        ("AMAX d=-1 s=0 n=1", r"d \(.*\) is -1, expected 0 \.\. 1048575"),
        ("AMAX d=9 s=0 n=65536", r"n \(.*\) is 65536, expected 1 \.\. 65535"),
        ("AMAX d=9 s=0 n=four", r"n is 'four', expected a whole number"),
        ("AMAX d=9 s=0 n=4.0", r"n is '4\.0', expected a whole number"),
        ("AMAX d=9 s=0 n=", r"n is '', expected a whole number"),
        ("AMAX d=9 s=0 n=0x", r"n is '0x', expected a whole number"),
        ("AMAX d=9 s=0 n=1_0", r"n is '1_0', expected a whole number"),
        ("AMAX d=9 s=0 n=0b1", r"n is '0b1', expected a whole number"),
        ("AMAX d=9 s=0 n=\u0664", r"n is '\u0664', expected a whole number"),
        ("AMAX d=9 s=0 n", r"operand is 'n', expected name=value, each name once"),
        ("AMAX d=9 s=0 n=4 n=4", r"operand is 'n=4', expected name=value, each name once"),
        ("AMAX d = 9 s=0 n=4", r"operand is 'd', expected name=value"),
        ("HALT x=1", r"HALT has no field x"),
        ("HALT =1", r"HALT has no field "),
        ("2: HALT", r"index is '2', expected 1"),
        ("x: HALT", r"index is 'x', expected 1"),
        (": HALT", r"index is '', expected 1"),
        ("1:", r"no mnemonic after the index"),
    ],
)
def test_a_bad_line_is_refused_with_its_number(line: str, message: str) -> None:
    with pytest.raises(ProgramError, match=rf"^line 4: .*{message}"):
        assemble(f"; comment\n\n0: AMAX d=9 s=0 n=4\n{line}\nHALT\n")


@pytest.mark.parametrize("digits", ["9" * 5000, "0x" + "f" * 5000])
def test_a_number_too_long_to_print_is_still_a_program_error(digits: str) -> None:
    with pytest.raises(ProgramError, match=r"^line 1: "):
        assemble(f"AMAX d={digits} s=0 n=1")


@given(st.text(max_size=40))
def test_arbitrary_text_is_code_or_a_program_error(text: str) -> None:
    for line in (text, f"AMAX d=9 s=0 n={text}", f"0: HALT {text}"):
        try:
            insts = assemble(line)
        except ProgramError:
            continue
        assert assemble(disassemble(insts)) == insts
