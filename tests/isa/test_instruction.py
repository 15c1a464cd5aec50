"""An instruction is checked when built, and again against the chip that shall run it."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capra.errors import ProgramError
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, Region, check_on_chip, instruction
from capra.isa.spec import BY_MNEMONIC, TABLE, Memory

CHIP = Chip(external_words=300, scratchpad_words=256)
LEGAL = {
    "HALT": {},
    "LD": {"d": 5, "s": 7, "n": 3},
    "ST": {"d": 5, "s": 7, "n": 3},
    "MM": {"d": 200, "a": 3, "b": 100, "m": 2, "n": 3, "k": 5, "sd": 4, "sa": 6, "sb": 7,
           "t": 0, "acc": 0},
    "RQ": {"d": 100, "s": 3, "r": 2, "c": 3, "sd": 4, "ss": 5, "mul": 9, "sh": 2, "relu": 0},
    "VADD": {"d": 200, "a": 3, "b": 100, "n": 4},
    "SM": {"d": 100, "s": 3, "n": 4, "mul": 9, "sh": 2},
    "AMAX": {"d": 100, "s": 3, "n": 4},
}  # fmt: skip
EVERY_FIELD = [(op.mnemonic, f) for op in TABLE for f in op.fields]


def legal(mnemonic: str, **changes: int) -> Instruction:
    return instruction(mnemonic, **{**LEGAL[mnemonic], **changes})


def runs(mnemonic: str, **changes: int) -> bool:
    """Whether a changed legal instruction may run on the chip."""
    try:
        check_on_chip(legal(mnemonic, **changes), CHIP)
    except ProgramError as error:
        assert str(legal(mnemonic, **changes)) in str(error)
        return False
    return True


# building


def test_every_field_takes_its_limits() -> None:
    one_row = {"MM": {"m": 1}, "RQ": {"r": 1}}
    for mnemonic, field in EVERY_FIELD:
        for value in (field.minimum, field.limit):
            changes = {**one_row.get(mnemonic, {}), field.name: value}
            if field.name in ("m", "r"):
                changes["sd"] = 65535
            assert legal(mnemonic, **changes)[field.name] == value


def test_a_value_beyond_a_limit_is_refused_with_field_value_and_expectation() -> None:
    for (mnemonic, field), beyond in product(EVERY_FIELD, (1, 1 << 70)):
        for value in (field.minimum - beyond, field.limit + beyond):
            with pytest.raises(ProgramError) as caught:
                legal(mnemonic, **{field.name: value})
            message = str(caught.value)
            assert message.startswith(f"{mnemonic} ")
            assert f"{field.name} ({field.meaning}) is {value}" in message
            assert message.endswith(f"expected {field.minimum} .. {field.limit}")


@pytest.mark.parametrize(
    ("mnemonic", "size"),
    [("LD", "n"), ("ST", "n"), ("MM", "m"), ("MM", "n"), ("MM", "k"), ("RQ", "r"), ("RQ", "c"),
     ("VADD", "n"), ("SM", "n"), ("AMAX", "n")],
)  # fmt: skip
def test_zero_sizes_are_refused(mnemonic: str, size: str) -> None:
    with pytest.raises(ProgramError, match=rf"{size} \(.*\) is 0, expected 1 \.\. "):
        legal(mnemonic, **{size: 0})


@pytest.mark.parametrize("field", ["m", "n"])
def test_tiles_are_at_most_four_by_four(field: str) -> None:
    assert legal("MM", m=4, n=4)[field] == 4
    with pytest.raises(ProgramError, match=rf"{field} \(.*\) is 5, expected 1 \.\. 4"):
        legal("MM", **{field: 5})


@pytest.mark.parametrize("shift", [0, 48, 63])
@pytest.mark.parametrize("mnemonic", ["RQ", "SM"])
def test_shifts_outside_1_to_47_are_refused(mnemonic: str, shift: int) -> None:
    with pytest.raises(ProgramError, match=rf"sh \(.*\) is {shift}, expected 1 \.\. 47"):
        legal(mnemonic, sh=shift)


def test_unknown_mnemonics_and_fields_and_missing_fields_are_refused() -> None:
    with pytest.raises(ProgramError, match=r"unknown instruction 'NOP', expected one of HALT, LD"):
        instruction("NOP")
    with pytest.raises(ProgramError, match=r"AMAX has no field k, expected d s n"):
        legal("AMAX", k=1)
    with pytest.raises(ProgramError, match=r"AMAX lacks the field n"):
        instruction("AMAX", d=0, s=1)


@pytest.mark.parametrize(("mnemonic", "rows", "cols"), [("MM", "m", "n"), ("RQ", "r", "c")])
def test_destination_rows_may_touch_but_not_share_words(
    mnemonic: str, rows: str, cols: str
) -> None:
    legal(mnemonic, **{rows: 2, cols: 3, "sd": 3})
    legal(mnemonic, **{rows: 1, cols: 3, "sd": 0})
    with pytest.raises(
        ProgramError, match=r"destination rows of 3 words are 2 words apart, expected at least 3"
    ):
        legal(mnemonic, **{rows: 2, cols: 3, "sd": 2})


def test_an_instruction_shows_every_field_in_table_order() -> None:
    assert str(legal("HALT")) == "HALT"
    assert str(legal("SM")) == "SM d=100 s=3 n=4 mul=9 sh=2"
    assert legal("SM")["mul"] == 9


# regions


def words(base: int, rows: int, cols: int, stride: int) -> list[int]:
    return [base + i * stride + j for i in range(rows) for j in range(cols)]


rectangles = st.tuples(st.integers(0, 30), st.integers(1, 4), st.integers(1, 6), st.integers(0, 12))


@given(rectangles)
def test_a_region_holds_the_words_of_its_rows(shape: tuple[int, int, int, int]) -> None:
    region = Region(Memory.SCRATCHPAD, *shape)
    assert region.addresses().tolist() == words(*shape)
    assert region.end == max(words(*shape)) + 1


@given(rectangles, rectangles)
def test_regions_overlap_when_they_share_a_word(
    a: tuple[int, int, int, int], b: tuple[int, int, int, int]
) -> None:
    shared = set(words(*a)) & set(words(*b))
    left, right = Region(Memory.SCRATCHPAD, *a), Region(Memory.SCRATCHPAD, *b)
    assert left.overlaps(right) == right.overlaps(left) == bool(shared)
    assert not left.overlaps(Region(Memory.EXTERNAL, *b))


def touched(regions: tuple[Region, ...]) -> list[tuple[str, list[int]]]:
    return [(r.memory.value, r.addresses().tolist()) for r in regions]


@pytest.mark.parametrize("t", [0, 1])
@pytest.mark.parametrize("acc", [0, 1])
def test_a_product_reads_its_operands_and_its_sums_only_to_accumulate(t: int, acc: int) -> None:
    inst = legal("MM", t=t, acc=acc)
    sums = ("scratchpad", words(200, 2, 3, 4))
    right = words(100, 3, 5, 7) if t else words(100, 5, 3, 7)
    expected = [("scratchpad", words(3, 2, 5, 6)), ("scratchpad", right)]
    assert touched(inst.reads()) == expected + [sums] * acc
    assert touched(inst.writes()) == [sums]


@pytest.mark.parametrize(
    ("mnemonic", "reads", "writes"),
    [
        ("HALT", [], []),
        ("LD", [("external", words(7, 1, 3, 0))], [("scratchpad", words(5, 1, 3, 0))]),
        ("ST", [("scratchpad", words(7, 1, 3, 0))], [("external", words(5, 1, 3, 0))]),
        ("RQ", [("scratchpad", words(3, 2, 3, 5))], [("scratchpad", words(100, 2, 3, 4))]),
        (
            "VADD",
            [("scratchpad", words(3, 1, 4, 0)), ("scratchpad", words(100, 1, 4, 0))],
            [("scratchpad", words(200, 1, 4, 0))],
        ),
        ("SM", [("scratchpad", words(3, 1, 4, 0))], [("scratchpad", words(100, 1, 4, 0))]),
        ("AMAX", [("scratchpad", words(3, 1, 4, 0))], [("scratchpad", [100])]),
    ],
)
def test_the_words_that_each_instruction_touches(
    mnemonic: str, reads: list[tuple[str, list[int]]], writes: list[tuple[str, list[int]]]
) -> None:
    assert touched(legal(mnemonic).reads()) == reads
    assert touched(legal(mnemonic).writes()) == writes


# on a chip

LAST_BASE = [  # the address field, its memory, and the largest value that still fits
    ("LD", "d", "scratchpad", 256 - 3),
    ("LD", "s", "external", 300 - 3),
    ("ST", "d", "external", 300 - 3),
    ("ST", "s", "scratchpad", 256 - 3),
    ("MM", "d", "scratchpad", 256 - (4 + 3)),
    ("MM", "a", "scratchpad", 256 - (6 + 5)),
    ("MM", "b", "scratchpad", 256 - (4 * 7 + 3)),
    ("RQ", "d", "scratchpad", 256 - (4 + 3)),
    ("RQ", "s", "scratchpad", 256 - (5 + 3)),
    ("VADD", "d", "scratchpad", 256 - 4),
    ("VADD", "a", "scratchpad", 256 - 4),
    ("VADD", "b", "scratchpad", 256 - 4),
    ("SM", "d", "scratchpad", 256 - 4),
    ("SM", "s", "scratchpad", 256 - 4),
    ("AMAX", "d", "scratchpad", 256 - 1),
    ("AMAX", "s", "scratchpad", 256 - 4),
]


@pytest.mark.parametrize(
    ("mnemonic", "field", "memory", "last"), LAST_BASE, ids=[f"{m}.{f}" for m, f, *_ in LAST_BASE]
)
def test_operands_must_end_inside_their_memory(
    mnemonic: str, field: str, memory: str, last: int
) -> None:
    elsewhere = {"d": 50} if mnemonic == "MM" and field != "d" else {}
    check_on_chip(legal(mnemonic, **elsewhere, **{field: last}), CHIP)
    size = 256 if memory == "scratchpad" else 300
    inst = legal(mnemonic, **elsewhere, **{field: last + 1})
    with pytest.raises(ProgramError) as caught:
        check_on_chip(inst, CHIP)
    expected = f"the last {memory} word is {size}, expected at most {size - 1}"
    assert str(caught.value) == f"{inst}: {expected}"


def test_a_transposed_operand_ends_elsewhere() -> None:
    assert runs("MM", t=1, d=50, b=256 - (2 * 7 + 5))
    assert not runs("MM", t=1, d=50, b=256 - (2 * 7 + 5) + 1)


def test_k_is_at_most_the_operand_depth() -> None:
    deep = Chip(scratchpad_words=8192, operand_depth=300)
    check_on_chip(legal("MM", d=6000, b=2000, k=300), deep)
    with pytest.raises(ProgramError, match=r"k is 301, expected at most the operand depth 300"):
        check_on_chip(legal("MM", d=6000, b=2000, k=301), deep)


@pytest.mark.parametrize(
    ("mnemonic", "source"),
    [("MM", "a"), ("MM", "b"), ("RQ", "s"), ("VADD", "a"), ("VADD", "b"), ("SM", "s"),
     ("AMAX", "s")],
)  # fmt: skip
def test_a_destination_that_overlaps_a_source_in_part_is_refused(
    mnemonic: str, source: str
) -> None:
    for shift in (-2, -1, 1, 2):
        if mnemonic == "AMAX" and shift < 0:
            continue  # its one word lies before the row
        base = 50
        inst = legal(mnemonic, **{source: base, "d": base + shift})
        with pytest.raises(ProgramError) as caught:
            check_on_chip(inst, CHIP)
        assert str(caught.value) == (
            f"{inst}: the destination at {base + shift} overlaps the source at {base}, which is "
            "still needed"
        )


@pytest.mark.parametrize(
    ("mnemonic", "source", "allowed"),
    [("RQ", "s", True), ("VADD", "a", True), ("VADD", "b", True), ("MM", "a", False),
     ("MM", "b", False), ("SM", "s", False), ("AMAX", "s", False)],
)  # fmt: skip
def test_in_place_is_allowed_only_where_each_word_is_read_before_it_is_written(
    mnemonic: str, source: str, allowed: bool
) -> None:
    same = {"d": 50, source: 50}
    strides = {"RQ": {"sd": 5}, "MM": {"k": 3, "sd": 6}}.get(mnemonic, {})
    assert runs(mnemonic, **same, **strides) == allowed


def test_in_place_requantize_needs_equal_strides() -> None:
    assert runs("RQ", d=50, s=50, sd=5, ss=5)
    assert not runs("RQ", d=50, s=50, sd=4, ss=5)
    assert runs("RQ", d=50, s=50, r=1, sd=4, ss=5)


def test_both_operands_of_an_add_may_be_the_destination() -> None:
    assert runs("VADD", d=50, a=50, b=50)
    assert not runs("VADD", d=50, a=50, b=51)


def test_an_accumulating_product_may_not_overlap_its_operands() -> None:
    assert runs("MM", acc=1)
    assert not runs("MM", acc=1, d=4)
    assert not runs("MM", acc=1, d=101)


def test_interleaved_rows_that_share_no_word_are_allowed() -> None:
    assert runs("RQ", r=4, c=3, s=20, ss=8, d=23, sd=8)
    assert runs("RQ", r=4, c=3, s=20, ss=8, d=25, sd=8)
    assert not runs("RQ", r=4, c=3, s=20, ss=8, d=22, sd=8)
    assert not runs("RQ", r=4, c=3, s=20, ss=8, d=26, sd=8)
    assert runs("MM", m=4, k=5, a=20, sa=9, n=4, d=25, sd=9)
    assert not runs("MM", m=4, k=5, a=20, sa=9, n=4, d=24, sd=9)


def test_every_placement_of_a_small_product_is_judged_by_its_words() -> None:
    a, b = words(20, 2, 3, 6), words(60, 3, 2, 5)
    for d, sd, acc in product(range(10, 80), (2, 3, 7), (0, 1)):
        shared = set(words(d, 2, 2, sd)) & (set(a) | set(b))
        fields = {"m": 2, "k": 3, "n": 2, "a": 20, "sa": 6, "b": 60, "sb": 5}
        assert runs("MM", d=d, sd=sd, acc=acc, **fields) == (not shared)


@pytest.mark.parametrize("operands", [(0, 0, 0), (-5, 0, 1), (0, 0, 1 << 20)])
def test_an_instruction_cannot_be_made_past_its_checks(operands: tuple[int, ...]) -> None:
    with pytest.raises(ProgramError, match="expected"):
        Instruction(BY_MNEMONIC["LD"], operands)
