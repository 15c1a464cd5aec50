"""The table: complete, unambiguous, wide enough for the largest chip, and as the machine's page."""

import pytest

from capra.isa.chip import MAX_EXTERNAL_WORDS, MAX_OPERAND_DEPTH, MAX_SCRATCHPAD_WORDS
from capra.isa.spec import (
    ARRAY_SIZE,
    BY_MNEMONIC,
    BY_OPCODE,
    CONTROL_CYCLES,
    INSTRUCTION_BITS,
    INSTRUCTION_WORDS,
    OPCODE_BITS,
    PHASES,
    TABLE,
    Memory,
    Op,
    Overlap,
    Phase,
    compile_expression,
)

OPS = pytest.mark.parametrize("op", TABLE, ids=lambda op: op.mnemonic)

UNITS = {
    "HALT": "control", "LD": "dma", "ST": "dma", "MM": "matrix",
    "RQ": "vector", "VADD": "vector", "SM": "vector", "AMAX": "vector",
}  # fmt: skip
FIELDS = {
    "HALT": "", "LD": "d s n", "ST": "d s n", "MM": "d a b m n k sd sa sb t acc",
    "RQ": "d s r c sd ss mul sh relu", "VADD": "d a b n", "SM": "d s n mul sh", "AMAX": "d s n",
}  # fmt: skip


def test_the_table_holds_the_eight_instructions_with_their_units_and_fields() -> None:
    assert {op.mnemonic: op.unit.value for op in TABLE} == UNITS
    assert {op.mnemonic: " ".join(f.name for f in op.fields) for op in TABLE} == FIELDS


def test_constants_of_the_machine() -> None:
    assert CONTROL_CYCLES == 2
    assert ARRAY_SIZE == 4
    assert INSTRUCTION_BITS == 32 * INSTRUCTION_WORDS


def test_mnemonics_and_opcodes_are_unique_and_opcodes_fit() -> None:
    assert len({op.mnemonic for op in TABLE}) == len({op.opcode for op in TABLE}) == len(TABLE)
    assert all(0 <= op.opcode < 1 << OPCODE_BITS for op in TABLE)


@OPS
def test_an_op_is_found_by_mnemonic_and_by_opcode(op: Op) -> None:
    assert BY_MNEMONIC[op.mnemonic] is op
    assert BY_OPCODE[op.opcode] is op


@OPS
def test_fields_have_unique_names_and_fit_the_instruction(op: Op) -> None:
    assert len({f.name for f in op.fields}) == len(op.fields)
    assert OPCODE_BITS + sum(f.bits for f in op.fields) <= INSTRUCTION_BITS


@OPS
def test_limits_fit_the_bits_of_their_field(op: Op) -> None:
    for f in op.fields:
        assert 0 <= f.minimum <= f.limit < 1 << f.bits


@OPS
def test_index_is_the_position_in_the_operands(op: Op) -> None:
    assert [op.index(f.name) for f in op.fields] == list(range(len(op.fields)))


@OPS
def test_every_access_names_an_address_field_as_wide_as_its_memory(op: Op) -> None:
    words = {Memory.SCRATCHPAD: MAX_SCRATCHPAD_WORDS, Memory.EXTERNAL: MAX_EXTERNAL_WORDS}
    for access in (*op.reads, *op.writes):
        assert op.fields[op.index(access.base)].limit == words[access.memory] - 1


@OPS
def test_every_expression_can_be_evaluated_at_the_limits(op: Op) -> None:
    for values in ([f.minimum for f in op.fields], [f.limit for f in op.fields]):
        assert compile_expression(op.fields, op.cycles)(*values) >= 0
        for a in (*op.reads, *op.writes):
            for text in (a.base, a.rows, a.cols, a.stride):
                assert compile_expression(op.fields, text)(*values) >= 0


@OPS
def test_every_term_of_the_cycles_has_a_phase_of_the_ops_unit(op: Op) -> None:
    assert " + ".join(term for _, term in op.terms) == op.cycles
    assert {PHASES[phase][0] for phase, _ in op.terms} == {op.unit}
    assert set(PHASES) == set(Phase)


def test_k_reaches_the_deepest_operand_memory() -> None:
    mm = BY_MNEMONIC["MM"]
    assert mm.fields[mm.index("k")].limit >= MAX_OPERAND_DEPTH


def test_sizes_are_at_least_one_and_tiles_at_most_the_array() -> None:
    limits = {
        (op.mnemonic, f.name): (f.minimum, f.limit)
        for op in TABLE
        for f in op.fields
        if f.name in ("n", "m", "k", "r", "c")
    }
    assert limits.pop(("MM", "m")) == limits.pop(("MM", "n")) == (1, 4)
    assert all(low == 1 and high >= (1 << 16) - 1 for low, high in limits.values())


def test_shifts_are_1_to_47_and_multipliers_have_16_bits() -> None:
    for op in TABLE:
        for f in op.fields:
            if f.name == "sh":
                assert (f.minimum, f.limit) == (1, 47)
            if f.name == "mul":
                assert (f.minimum, f.limit) == (0, (1 << 16) - 1)


def test_only_requantize_and_add_may_work_in_place() -> None:
    assert [op.mnemonic for op in TABLE if op.overlap is Overlap.SAME] == ["RQ", "VADD"]


def test_only_the_accumulating_product_updates_its_destination() -> None:
    assert {op.mnemonic: op.updates_if for op in TABLE if op.updates_if} == {"MM": "acc"}
