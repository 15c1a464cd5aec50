"""Directed programs for each unit: the corners of its arithmetic, on simulator and RTL."""

from collections.abc import Callable, Iterable, Sequence
from itertools import product

import numpy as np
import pytest

from capra.cosim.compare import expected
from capra.cosim.jobs import Job
from capra.cosim.replay import Replay
from capra.cosim.toolchain import Simulator
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, instruction
from capra.isa.program import Program
from capra.numerics import EXP_ONE, SOFTMAX_ONE, IntArray

Check = Callable[..., Replay]

CHIP = Chip()
LARGE = Chip(
    external_words=1 << 18, scratchpad_words=1 << 18, operand_depth=1 << 15, program_entries=64
)
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def job(
    name: str, code: Iterable[Instruction], words: IntArray | Sequence[int] = (), chip: Chip = CHIP
) -> Job:
    """A program on a scratchpad that begins with these words, the rest random but repeatable."""
    bits = np.random.default_rng(len(name))
    scratchpad = bits.integers(INT32_MIN, INT32_MAX + 1, chip.scratchpad_words).astype(np.int32)
    scratchpad[: len(words)] = words
    external = bits.integers(INT32_MIN, INT32_MAX + 1, chip.external_words).astype(np.int32)
    return Job(Program(name, chip, (*code, instruction("HALT"))), external, scratchpad)


def half_ways(shift: int, multiplier: int) -> list[int]:
    """Words around which x * multiplier is an odd multiple of 2^(shift - 1), and the extremes."""
    centers = [(2 * j + 1) * (1 << shift) // (2 * multiplier) for j in (-128, -127, -3, -1, 0, 126)]
    near = [c + d for c in centers for d in (-1, 0, 1)]
    return [x for x in near if INT32_MIN <= x <= INT32_MAX] + [0, 1, -1, INT32_MIN, INT32_MAX]


@pytest.mark.parametrize("relu", [0, 1])
def test_requantizer_at_every_shift(simulator: Simulator, check: Check, relu: int) -> None:
    words: list[int] = []
    code = []
    for shift, multiplier in product(range(1, 48), (1, 3, 1 << 15, (1 << 16) - 1)):
        row = half_ways(shift, multiplier)
        code.append(
            instruction(
                "RQ", d=4600 + len(words) % 3500, s=len(words), r=1, c=len(row), sd=0, ss=0,
                mul=multiplier, sh=shift, relu=relu,
            )
        )  # fmt: skip
        words += row
    assert len(words) <= 4600
    parts = code[:64], code[64:128], code[128:]  # so that results stay apart
    check(simulator, [job(f"rq-{i}", part, words) for i, part in enumerate(parts)])


def test_requantizer_over_a_rectangle(simulator: Simulator, check: Check) -> None:
    shape = {"r": 7, "c": 5, "mul": 40000, "sh": 30, "relu": 0}
    code = [
        instruction("RQ", d=1000, s=0, sd=5, ss=5, **shape),
        instruction("RQ", d=2000, s=3, sd=65, ss=11, **shape),
        instruction("RQ", d=3000, s=7, sd=5, ss=0, **shape),
        instruction("RQ", d=50, s=50, sd=9, ss=9, **shape),
        instruction("RQ", d=8191, s=8191, sd=65535, ss=65535, **{**shape, "r": 1, "c": 1}),
    ]
    check(simulator, [job("rectangles", code)])


def test_sums_of_extreme_bytes_saturate(simulator: Simulator, check: Check) -> None:
    extremes = [-128, -127, -126, -65, -64, -63, -1, 0, 1, 62, 63, 64, 65, 126, 127]
    pairs = list(product(extremes, extremes))
    words = [a for a, _ in pairs] + [b for _, b in pairs]
    n = len(pairs)
    code = [
        instruction("VADD", d=4000, a=0, b=n, n=n),
        instruction("VADD", d=0, a=0, b=n, n=n),
        instruction("VADD", d=n, a=0, b=n, n=n),
        instruction("VADD", d=n, a=n, b=n, n=n),
    ]
    check(simulator, [job("sums", code, words)])


def test_every_sum_of_two_bytes(verilator: Simulator, check: Check) -> None:
    a, b = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128))
    code = [instruction("VADD", d=4096, a=0, b=2048, n=2048)]
    pairs = zip(a.reshape(-1, 2048), b.reshape(-1, 2048), strict=True)
    check(verilator, [job("all sums", code, np.concatenate(pair)) for pair in pairs])


def test_every_entry_of_the_exponential_table(simulator: Simulator, check: Check) -> None:
    words = [w for difference in range(256) for w in (127, 127 - difference)]
    code = [instruction("SM", d=1000 + 2 * i, s=2 * i, n=2, mul=1 << 15, sh=15) for i in range(256)]
    check(simulator, [job("exponentials", code, words)])


def test_softmax_rows(simulator: Simulator, check: Check) -> None:
    bits = np.random.default_rng(5)
    rows = [
        [0], [-128], [127], [5] * 100, [-128] * 3, [127, *[-128] * 200], [*[-128] * 200, 127],
        list(range(-128, 128)), *(bits.integers(-128, 128, n).tolist() for n in (2, 3, 64, 999)),
    ]  # fmt: skip
    scales = ((0, 1), (1, 1), (65535, 16), (65535, 1), (40000, 15), (65535, 47))
    words: list[int] = []
    code = []
    for row in rows:
        for multiplier, shift in scales:
            code.append(
                instruction(
                    "SM", d=4096 + len(words), s=len(words), n=len(row), mul=multiplier, sh=shift
                )
            )
        words += row
    jobs = [job(f"softmax {i}", code[i::6], words) for i in range(6)]
    check(simulator, jobs)


def test_softmax_of_a_long_row_of_equal_scores(simulator: Simulator, check: Check) -> None:
    """The sum of 4,096 exponentials of the maximum has every bit from 12 up to 27."""
    assert 4096 * EXP_ONE == (1 << 28) - (1 << 12)
    sm = instruction("SM", d=4096, s=0, n=4096, mul=40000, sh=15)
    row = job("equal scores", [sm], [5] * 4096)
    check(simulator, [row])
    assert expected(row).scratchpad[4096:].tolist() == [SOFTMAX_ONE // 4096] * 4096


def test_argmax_ties_at_every_position(simulator: Simulator, check: Check) -> None:
    words: list[int] = []
    code: list[Instruction] = []
    for top, rest in ((INT32_MAX, INT32_MIN), (0, -1), (-5, -6), (INT32_MIN, INT32_MIN)):
        for first in range(8):
            for second in range(first, 8):
                row = [top if i in (first, second) else rest for i in range(8)]
                code.append(instruction("AMAX", d=4000 + len(code), s=len(words), n=8))
                words += row
    code += [instruction("AMAX", d=8191, s=i, n=1) for i in (0, 8190)]
    code.append(instruction("AMAX", d=8191, s=0, n=8191))
    check(simulator, [job("ties", code, words)])


def test_argmax_of_every_pair_of_extreme_words(simulator: Simulator, check: Check) -> None:
    """Differences of these leave 32 bits, so that a comparison by subtraction goes wrong."""
    extremes = (INT32_MIN, INT32_MIN + 1, -(1 << 30), -1, 0, 1, 1 << 30, INT32_MAX - 1, INT32_MAX)
    rows = [*product(extremes, repeat=2), *product((INT32_MIN, -1, INT32_MAX), repeat=4)]
    words: list[int] = []
    code: list[Instruction] = []
    for row in rows:
        code.append(instruction("AMAX", d=4000 + len(code), s=len(words), n=len(row)))
        words += row
    pairs = job("extreme words", code, words)
    check(simulator, [pairs])
    found = expected(pairs).scratchpad[4000 : 4000 + len(rows)]
    assert found.tolist() == [row.index(max(row)) for row in rows]


@pytest.mark.parametrize(
    ("transposed", "accumulate"),
    [(0, 1), (1, 0), *(pytest.param(n, n, marks=pytest.mark.full) for n in (0, 1))],
)
def test_every_tile_shape(
    simulator: Simulator, check: Check, transposed: int, accumulate: int
) -> None:
    jobs = []
    for k in (1, 2, 3, 4, 5, 15, 16, 17, 256):
        code: list[Instruction] = []
        for m, n in product(range(1, 5), range(1, 5)):
            code.append(
                instruction(
                    "MM", d=4096 + 32 * len(code), a=1 + m, b=2000 + n, m=m, n=n, k=k, sd=n + m % 3,
                    sa=k + n % 2, sb=(k if transposed else n) + m % 2, t=transposed, acc=accumulate,
                )
            )  # fmt: skip
        jobs.append(job(f"tiles of {k}", code))
    check(simulator, jobs)


@pytest.mark.parametrize("transposed", [0, 1])
def test_strides_of_tiles(simulator: Simulator, check: Check, transposed: int) -> None:
    """From 0, the same row again and again, to the largest that the scratchpad has room for."""
    last = CHIP.scratchpad_words - 1
    shape = {"m": 4, "n": 4, "k": 5, "t": transposed, "acc": 0}
    one_row = {**shape, "m": 1, "n": 1, "k": 1}
    far = (last - 5) // 4
    code = [
        instruction("MM", d=8000, a=0, b=100, sd=4, sa=0, sb=0, **shape),
        instruction("MM", d=8016, a=0, b=100, sd=4, sa=1, sb=1, **shape),
        instruction("MM", d=8032, a=0, b=100, sd=40, sa=5, sb=7, **shape),
        instruction("MM", d=5, a=0, b=20, sd=far, sa=far, sb=far // 2, **shape),
        instruction("MM", d=last, a=0, b=last - 1, sd=65535, sa=65535, sb=65535, **one_row),
    ]
    check(simulator, [job(f"strides {i}", [inst]) for i, inst in enumerate(code)])


def test_sums_of_4096_extreme_products(simulator: Simulator, check: Check) -> None:
    """-127 and -128 times -128 .. 127 in 16 instructions, the deepest there are, and the wrap."""
    left, right = (-128, -127, 127, 1), (-128, -127, 127, 126)
    fields = {"a": 0, "b": 2048, "m": 4, "n": 4, "k": 256, "sd": 4, "sa": 256, "sb": 256, "t": 1}
    code = [instruction("MM", d=5000, acc=int(part > 0), **fields) for part in range(16)]
    code.append(instruction("MM", d=5100, acc=1, **fields))
    words = np.zeros(4096, np.int32)
    words[:1024], words[2048:3072] = np.repeat(left, 256), np.repeat(right, 256)
    deep = job("extreme products", code, words)
    assert deep.scratchpad is not None
    deep.scratchpad[5100:5116] = INT32_MAX
    check(simulator, [deep])
    sums = expected(deep).scratchpad
    assert sums[5000:5016].tolist() == [4096 * a * b for a, b in product(left, right)]
    wrapped = [INT32_MAX + 256 * a * b for a, b in product(left, right)]
    assert sums[5100:5116].tolist() == [w - 2**32 if w > INT32_MAX else w for w in wrapped]


def test_a_program_of_nothing_but_halt(simulator: Simulator, check: Check) -> None:
    assert check(simulator, [job("halt", []), job("halt again", [])]).cycles == 4


def test_dma_at_both_ends_of_both_memories(simulator: Simulator, check: Check) -> None:
    last = 8191
    ends = [(0, last), (last, 0), (0, 0), (last, last)]
    code = [instruction("LD", d=d, s=s, n=1) for d, s in ends]
    code += [instruction("ST", d=d, s=s, n=1) for d, s in ends]
    code += [instruction("LD", d=0, s=0, n=8192), instruction("ST", d=0, s=0, n=8192)]
    code += [instruction("LD", d=1, s=0, n=2), instruction("ST", d=0, s=1, n=2)]
    check(simulator, [job("ends", code)])


def test_every_unit_at_the_last_words_of_the_scratchpad(simulator: Simulator, check: Check) -> None:
    """Each reads up to the last word, and writes up to it."""
    end = CHIP.scratchpad_words
    tile = {"m": 4, "n": 3, "k": 5, "sd": 4, "sa": 6, "sb": 7, "t": 1}
    rescale = {"r": 3, "c": 4, "mul": 50000, "sh": 30, "relu": 0}
    scores = {"n": 9, "mul": 40000, "sh": 15}
    code = [
        instruction("MM", d=0, a=end - 23, b=100, acc=0, **tile),
        instruction("MM", d=0, a=100, b=end - 19, acc=0, **tile),
        instruction("MM", d=end - 15, a=100, b=200, acc=1, **tile),
        instruction("RQ", d=0, s=end - 14, sd=4, ss=5, **rescale),
        instruction("RQ", d=end - 14, s=100, sd=5, ss=4, **rescale),
        instruction("VADD", d=0, a=end - 9, b=100, n=9),
        instruction("VADD", d=0, a=100, b=end - 9, n=9),
        instruction("VADD", d=end - 9, a=100, b=200, n=9),
        instruction("SM", d=0, s=end - 9, **scores),
        instruction("SM", d=end - 9, s=100, **scores),
        instruction("AMAX", d=0, s=end - 9, n=9),
        instruction("AMAX", d=end - 1, s=100, n=9),
    ]
    for inst in code:
        ends = [region.end for region in (*inst.reads(), *inst.writes())]
        assert max(ends) == end, inst
    check(simulator, [job(f"last {i}", [inst]) for i, inst in enumerate(code)])


@pytest.mark.full
def test_the_longest_rows_and_the_deepest_product(verilator: Simulator, check: Check) -> None:
    longest = 65535
    code = [
        instruction("LD", d=0, s=1 << 17, n=1 << 17),
        instruction("SM", d=1 << 17, s=1, n=longest, mul=3000, sh=15),
        instruction("SM", d=(1 << 17) + longest, s=1, n=longest, mul=0, sh=1),
        instruction("AMAX", d=0, s=7, n=longest),
        instruction(
            "MM", d=(1 << 18) - 16, a=0, b=65535, m=4, n=4, k=1 << 15, sd=4, sa=10, sb=2, t=0, acc=0
        ),
        instruction("ST", d=0, s=0, n=1 << 18),
    ]  # fmt: skip
    check(verilator, [job("longest", code, chip=LARGE)])
