"""Binary form: every legal instruction survives it, and nothing else decodes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capra.errors import ProgramError
from capra.isa.encoding import INSTRUCTION_BYTES, decode, encode, from_bytes, to_words
from capra.isa.instruction import Instruction, instruction
from capra.isa.spec import TABLE, Op

instructions = st.from_type(Instruction)
OPS = pytest.mark.parametrize("op", TABLE, ids=lambda op: op.mnemonic)


def with_fields(op: Op, **changes: int) -> Instruction:
    """Fields at their minimum but for the changes, destination rows far apart unless changed."""
    values = {f.name: f.limit if f.name == "sd" else f.minimum for f in op.fields}
    return instruction(op.mnemonic, **{**values, **changes})


def used_bits(op: Op) -> int:
    return 4 + sum(f.bits for f in op.fields)


@given(instructions)
def test_encoding_round_trips(inst: Instruction) -> None:
    value = encode(inst)
    assert 0 <= value < 1 << 160
    assert decode(value) == inst


@OPS
def test_every_field_round_trips_at_its_limits(op: Op) -> None:
    for f in op.fields:
        for value in (f.minimum, f.limit):
            inst = with_fields(op, **{f.name: value})
            assert decode(encode(inst)) == inst


@OPS
def test_the_opcode_is_lowest_then_each_field_in_table_order(op: Op) -> None:
    position = 4
    assert encode(with_fields(op)) & 15 == op.opcode
    for f in op.fields:
        low, high = (encode(with_fields(op, **{f.name: v})) for v in (f.minimum, f.limit))
        assert high - low == (f.limit - f.minimum) << position
        position += f.bits


def test_a_known_encoding() -> None:
    inst = instruction("LD", d=0x12345, s=0xABCDEF, n=0x00300)
    assert encode(inst) == 0x00300_ABCDEF_12345_1
    assert encode(instruction("HALT")) == 0


def test_unknown_opcodes_are_refused() -> None:
    for opcode in range(8, 16):
        with pytest.raises(ProgramError, match=rf"opcode is {opcode}, expected one of 0, 1, 2"):
            decode(opcode)


@OPS
def test_a_set_spare_bit_is_refused(op: Op) -> None:
    legal = encode(with_fields(op))
    for bit in range(used_bits(op), 161):
        with pytest.raises(ProgramError, match=rf"{op.mnemonic} has set bits above its last field"):
            decode(legal | 1 << bit)


@OPS
def test_values_outside_a_field_are_refused_when_decoded(op: Op) -> None:
    position = 4
    for f in op.fields:
        cleared = encode(with_fields(op)) & ~(((1 << f.bits) - 1) << position)
        for value in (f.minimum - 1, f.limit + 1, (1 << f.bits) - 1):
            if 0 <= value < 1 << f.bits and not f.minimum <= value <= f.limit:
                with pytest.raises(ProgramError, match=rf"{f.name} \(.*\) is {value}, expected"):
                    decode(cleared | value << position)
        position += f.bits


@given(st.integers(0, (1 << 160) - 1) | st.integers(0, (1 << 137) - 1).map(lambda x: x & ~15 | 3))
def test_an_arbitrary_pattern_is_refused_or_is_exactly_one_instruction(value: int) -> None:
    try:
        inst = decode(value)
    except ProgramError:
        return
    assert encode(inst) == value


@given(st.lists(instructions, max_size=3))
def test_words_are_little_endian_five_an_instruction(insts: list[Instruction]) -> None:
    array = to_words(insts)
    assert array.dtype == np.dtype("<u4")
    assert array.shape == (len(insts), 5)
    for row, inst in zip(array.tolist(), insts, strict=True):
        assert sum(word << 32 * i for i, word in enumerate(row)) == encode(inst)
    assert tuple(from_bytes(array.tobytes())) == tuple(insts)


@pytest.mark.parametrize("size", [1, INSTRUCTION_BYTES - 1, INSTRUCTION_BYTES + 1])
def test_a_torn_instruction_is_refused(size: int) -> None:
    with pytest.raises(ProgramError, match=rf"has {size} bytes, expected a multiple of 20"):
        from_bytes(bytes(size))


def test_a_bad_instruction_is_refused_with_its_index() -> None:
    with pytest.raises(ProgramError, match=r"^instruction 2: opcode is 9"):
        from_bytes(bytes(40) + (9).to_bytes(20, "little") + bytes(20))
