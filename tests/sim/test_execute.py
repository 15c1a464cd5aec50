"""Each instruction against the naive loops of the table, word for word over both memories."""

import random
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, check_on_chip, instruction
from capra.isa.spec import TABLE
from capra.sim.execute import Memories, allocate, bind

Step = Callable[[Instruction, list[int], list[int]], None]
Draw = Callable[[random.Random, Chip, str], Instruction]

CHIP = Chip(external_words=80, scratchpad_words=128)
INT32_MIN, INT32_MAX = -(1 << 31), (1 << 31) - 1
MNEMONICS = pytest.mark.parametrize("mnemonic", [op.mnemonic for op in TABLE])


def random_words(rng: random.Random, n: int) -> list[int]:
    """Bytes, whole words, extremes, and values just around the int8 range."""
    kinds: list[Callable[[], int]] = [
        lambda: rng.randint(-127, 127),
        lambda: rng.randint(INT32_MIN, INT32_MAX),
        lambda: rng.choice([INT32_MIN, INT32_MAX, -1, 0, 1]),
        lambda: rng.choice([-129, -128, -127, 127, 128, 255, 256]),
    ]
    common = rng.choice(kinds)
    return [rng.choice([common, common, *kinds])() for _ in range(n)]


def memories(external: Sequence[int], scratchpad: Sequence[int]) -> Memories:
    made = allocate(len(external), len(scratchpad))
    made.external[:], made.scratchpad[:] = external, scratchpad
    return made


def execute(inst: Instruction, mem: Memories) -> None:
    bind(inst.op, inst.operands, mem)()


def executed(inst: Instruction, scratchpad: Sequence[int]) -> list[int]:
    """The scratchpad after one instruction."""
    mem = memories([0] * 16, scratchpad)
    execute(inst, mem)
    return list(mem.scratchpad.tolist())


def test_memories_start_as_zeros_of_32_bits() -> None:
    mem = allocate(20, 30)
    assert mem.external.tolist() == [0] * 20
    assert mem.scratchpad.tolist() == [0] * 30
    assert mem.external.dtype == mem.scratchpad.dtype == np.int32


@MNEMONICS
def test_an_instruction_performs_its_loops(
    mnemonic: str, seed: int, naive_step: Step, draw_instruction: Draw
) -> None:
    rng = random.Random(f"{mnemonic} {seed}")
    for _ in range(80):
        inst = draw_instruction(rng, CHIP, mnemonic)
        external = random_words(rng, CHIP.external_words)
        scratchpad = random_words(rng, CHIP.scratchpad_words)
        mem = memories(external, scratchpad)
        execute(inst, mem)
        naive_step(inst, external, scratchpad)
        assert mem.external.tolist() == external, inst
        assert mem.scratchpad.tolist() == scratchpad, inst


@MNEMONICS
def test_a_bound_instruction_acts_on_what_is_there_each_time(
    mnemonic: str, seed: int, naive_step: Step, draw_instruction: Draw
) -> None:
    rng = random.Random(f"{mnemonic} {seed}")
    inst = draw_instruction(rng, CHIP, mnemonic)
    mem = allocate(CHIP.external_words, CHIP.scratchpad_words)
    action = bind(inst.op, inst.operands, mem)
    for _ in range(3):
        external = random_words(rng, CHIP.external_words)
        scratchpad = random_words(rng, CHIP.scratchpad_words)
        mem.external[:], mem.scratchpad[:] = external, scratchpad
        action()
        naive_step(inst, external, scratchpad)
        assert (mem.external.tolist(), mem.scratchpad.tolist()) == (external, scratchpad), inst


@pytest.mark.parametrize(
    "inst",
    [
        instruction("LD", d=0, s=0, n=4000),
        instruction("ST", d=96, s=96, n=4000),
        instruction("MM", d=4092, a=0, b=1100, m=1, n=4, k=300, sd=0, sa=0, sb=5, t=0, acc=0),
        instruction("MM", d=4080, a=0, b=1300, m=4, n=4, k=300, sd=4, sa=301, sb=303, t=1, acc=1),
        instruction("MM", d=0, a=3000, b=3840, m=4, n=1, k=256, sd=1, sa=10, sb=0, t=1, acc=0),
        instruction("RQ", d=0, s=2048, r=40, c=50, sd=51, ss=50, mul=40000, sh=30, relu=1),
        instruction("RQ", d=96, s=96, r=1, c=4000, sd=0, ss=0, mul=40000, sh=34, relu=0),
        instruction("VADD", d=2096, a=0, b=50, n=2000),
        instruction("SM", d=2096, s=0, n=2000, mul=40000, sh=15),
        instruction("AMAX", d=4095, s=0, n=4095),
    ],
    ids=str,
)
def test_long_instructions_up_to_the_ends_of_the_memories(
    inst: Instruction, seed: int, naive_step: Step
) -> None:
    check_on_chip(inst, Chip(external_words=4096, scratchpad_words=4096, operand_depth=300))
    rng = random.Random(seed)
    external, scratchpad = random_words(rng, 4096), random_words(rng, 4096)
    mem = memories(external, scratchpad)
    execute(inst, mem)
    naive_step(inst, external, scratchpad)
    assert mem.external.tolist() == external
    assert mem.scratchpad.tolist() == scratchpad


# the corners, spelled out


def test_load_and_store_move_all_32_bits() -> None:
    words = [INT32_MIN, INT32_MAX, -1, 0x12345678]
    mem = memories(words + [0] * 12, [9] * 16)
    execute(instruction("LD", d=12, s=0, n=4), mem)
    assert mem.scratchpad.tolist() == [9] * 12 + words
    execute(instruction("ST", d=12, s=12, n=4), mem)
    assert mem.external.tolist() == words + [0] * 8 + words


def test_a_product_uses_the_stored_or_the_transposed_operand() -> None:
    memory = [1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 0, 0, 0, 0]
    fields = {"d": 4, "a": 0, "b": 8, "m": 2, "n": 2, "k": 2, "sd": 2, "sa": 2, "sb": 2, "acc": 0}
    assert executed(instruction("MM", t=0, **fields), memory)[4:8] == [19, 22, 43, 50]
    assert executed(instruction("MM", t=1, **fields), memory)[4:8] == [17, 23, 39, 53]


def test_a_product_reads_the_low_byte_of_each_word() -> None:
    fields = {"d": 4, "a": 0, "b": 2, "m": 1, "n": 1, "k": 2, "sd": 1, "sa": 2, "sb": 1}
    memory = [0x7FFFFF80, 255, 0x100 + 3, -128, 0, *[0] * 11]
    found = executed(instruction("MM", t=0, acc=0, **fields), memory)
    assert found[4] == -128 * 3 + -1 * -128


@pytest.mark.parametrize(
    ("start", "a", "b", "end"),
    [
        (INT32_MAX, 1, 1, INT32_MIN),
        (INT32_MIN, -1, 1, INT32_MAX),
        (INT32_MAX - 16383, -128, -128, INT32_MIN),
        (INT32_MIN, -128, 127, INT32_MAX - 128 * 127 + 1),
        (5, 3, -4, -7),
    ],
)
def test_accumulation_wraps_at_32_bits(start: int, a: int, b: int, end: int) -> None:
    fields = {"d": 2, "a": 0, "b": 1, "m": 1, "n": 1, "k": 1, "sd": 1, "sa": 1, "sb": 1, "t": 0}
    memory = [a, b, start, *[0] * 13]
    assert executed(instruction("MM", acc=1, **fields), memory)[2] == end
    assert executed(instruction("MM", acc=0, **fields), memory)[2] == a * b


def test_the_deepest_product_of_extremes_does_not_wrap() -> None:
    k = 1 << 15
    scratchpad = [-128] * (2 * k) + [7] * (2 * k)
    fields = {"d": 2 * k, "a": 0, "b": k, "m": 1, "n": 1, "sd": 1, "sa": 1, "sb": 1}
    found = executed(instruction("MM", k=k, t=0, acc=0, **fields), scratchpad)
    assert found[2 * k] == 1 << 29


def test_a_row_stride_of_zero_repeats_a_row() -> None:
    memory = [1, 2, 3, *[9] * 13]
    fields = {"d": 4, "s": 0, "r": 3, "c": 3, "sd": 4, "ss": 0, "mul": 2, "sh": 1, "relu": 0}
    found = executed(instruction("RQ", **fields), memory)
    assert found[4:] == [1, 2, 3, 9, 1, 2, 3, 9, 1, 2, 3, 9]


def test_requantize_reads_whole_words_and_writes_nothing_between_rows() -> None:
    memory = [1 << 20, -(1 << 20), 3 << 12, -(3 << 12), *[INT32_MAX] * 12]
    fields = {"d": 8, "s": 0, "r": 2, "c": 2, "sd": 5, "ss": 2, "mul": 1, "sh": 13}
    last = INT32_MAX
    found = executed(instruction("RQ", relu=0, **fields), memory)
    assert found[8:16] == [127, -127, last, last, last, 2, -1, last]
    found = executed(instruction("RQ", relu=1, **fields), memory)
    assert found[8:16] == [127, 0, last, last, last, 2, 0, last]


@pytest.mark.parametrize(
    ("a", "b", "total"),
    [(127, 1, 127), (-127, -1, -127), (-128, -128, -127), (-128, 0, -127), (127, -127, 0),
     (0x17F, 0x101, 127), (0x80, 0x7F, -1), (256, 512, 0)],
)  # fmt: skip
def test_addition_saturates_the_low_bytes(a: int, b: int, total: int) -> None:
    found = executed(instruction("VADD", d=2, a=0, b=1, n=1), [a, b, *[0] * 14])
    assert found[:3] == [a, b, total]


def test_additions_in_place() -> None:
    memory = [100, -100, 3, 4, *[1] * 12]
    double = executed(instruction("VADD", d=0, a=0, b=0, n=4), memory)
    assert double == [127, -127, 6, 8, *[1] * 12]


def test_softmax_writes_fixed_point_from_low_bytes() -> None:
    memory = [5, 5 + 256, -128, 5 - 512, *[0] * 12]
    found = executed(instruction("SM", d=4, s=0, n=4, mul=65535, sh=1), memory)
    assert found[4:8] == [10923, 10923, 0, 10923]
    assert executed(instruction("SM", d=8, s=2, n=1, mul=0, sh=47), memory)[8] == 32768


def test_argmax_compares_whole_signed_words_and_takes_the_first() -> None:
    memory = [-5, 0x100, 0x1FF, 0x1FF, INT32_MIN, 127, *[0] * 10]
    assert executed(instruction("AMAX", d=15, s=0, n=6), memory)[15] == 2
    assert executed(instruction("AMAX", d=15, s=4, n=1), memory)[15] == 0
    assert executed(instruction("AMAX", d=0, s=6, n=10), memory)[0] == 0


@pytest.mark.parametrize("first", range(6))
def test_argmax_ties_at_every_position(first: int) -> None:
    memory = [INT32_MIN] * first + [-3] * (6 - first) + [0] * 10
    assert executed(instruction("AMAX", d=9, s=0, n=6), memory)[9] == first


def test_halt_changes_nothing() -> None:
    assert executed(instruction("HALT"), list(range(16))) == list(range(16))
