"""Single blocks against the Python model, where instructions alone do not reach.

The bench is plain SystemVerilog with vector files: it runs in both simulators, and its 60,000
vectors take a second in Verilator; a bench in Python would run in Icarus only, and much slower.
"""

import random
import subprocess
from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from tests.half_ways import half_way_cases

from capra.cosim.toolchain import RTL, Simulator, chip_sources, compiled
from capra.numerics import (
    EXP_ONE,
    EXP_TABLE,
    INT8_MAX,
    MAX_SHIFT,
    RECIPROCAL_BITS,
    requantize,
)

Vector = tuple[int, int, int, int]

DIVIDER, REQUANTIZER, EXPONENTIAL, NARROW, WIDE = range(5)
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
LARGEST_SUM = 65535 * EXP_ONE


def results(
    simulator: Simulator, directory: Path, block: int, vectors: Sequence[Vector]
) -> list[str]:
    """What the bench writes for each vector of one block."""
    command = compiled(simulator, "unit_tb", (*chip_sources(), RTL / "tb/unit_tb.sv"))
    listing, out = directory / "vectors.txt", directory / "results.txt"
    mask = 2**64 - 1
    listing.write_text(
        "".join(f"{block} {a & mask:x} {b:x} {c:x} {d:x}\n" for a, b, c, d in vectors)
    )
    run = [*command, f"+vectors={listing}", f"+out={out}"]
    subprocess.run(run, check=True, capture_output=True)  # noqa: S603
    *lines, end = out.read_text().splitlines()
    assert end == "end"
    assert len(lines) == len(vectors)
    return lines


def compare(vectors: Sequence[Vector], found: Sequence[str], expected: Sequence[str]) -> None:
    wrong = [v for v in zip(vectors, found, expected, strict=True) if v[1] != v[2]]
    assert not wrong, f"{len(wrong)} wrong, first (vector, found, expected): {wrong[0]}"


def lone_bit_cases() -> list[Vector]:
    """Results 2^e + r and -2^e - 1 - r with r < 127, where one bit alone tells that they saturate.

    They are what a saturation that overlooks a bit gets wrong.
    """
    cases = []
    for e, sign in product(range(7, 46), (1, -1)):
        low = 1 << e if sign > 0 else -(1 << e) - INT8_MAX
        for mul in range((1 << 16) - 1, 0, -1):
            x = -(-2 * low // mul)  # the smallest with x * mul / 2 at least low
            if (x * mul + 1) >> 1 < low + INT8_MAX and INT32_MIN <= x <= INT32_MAX:
                cases.append((x, mul, 1, 0))
                break
    return cases


def test_the_lone_bit_cases_are_all_there() -> None:
    results = [(x * mul + 1) >> 1 for x, mul, _, _ in lone_bit_cases()]
    above = {r.bit_length() - 1 for r in results if r > 0 and (r ^ 1 << r.bit_length() - 1) < 128}
    below = {(~r).bit_length() - 1 for r in results if r < 0 and (~r & ~127).bit_count() == 1}
    assert above == below == set(range(7, 46))


def test_requantizer(simulator: Simulator, tmp_path: Path) -> None:
    extremes = (INT32_MIN, INT32_MIN + 1, -1, 0, 1, INT32_MAX - 1, INT32_MAX)
    multipliers = (0, 1, (1 << 15) - 1, 1 << 15, (1 << 16) - 1)
    vectors = half_way_cases()
    vectors += product(extremes, multipliers, range(1, MAX_SHIFT + 1), (0, 1))
    if simulator is Simulator.ICARUS:
        vectors = vectors[::10]  # Verilator takes them all
    vectors += lone_bit_cases()
    expected = [
        f"{int(requantize(np.array([x]), mul, shift, bool(relu))[0]) & 0xFFFFFFFF:08x}"
        for x, mul, shift, relu in vectors
    ]
    compare(vectors, results(simulator, tmp_path, REQUANTIZER, vectors), expected)


def test_divider(simulator: Simulator, tmp_path: Path) -> None:
    draw = random.Random(47)
    divisors = [EXP_ONE + i for i in range(200)] + [LARGEST_SUM - i for i in range(200)]
    divisors += [(1 << e) + d for e in range(16, 32) for d in (-1, 0, 1)]
    divisors += [2**47 // q + d for q in (2**31, 2**31 - 1, 2**20, 32771) for d in (0, 1)]
    divisors += [int(2 ** draw.uniform(16, 31.99)) for _ in range(1000)]
    divisors = [d for d in divisors if EXP_ONE <= d <= LARGEST_SUM]
    vectors: list[Vector] = [(d, 0, 0, 0) for d in divisors]
    vectors += [(draw.choice(divisors), 1 + i % 32, 1 + i % 3, 0) for i in range(96)]  # stands
    vectors += [(draw.choice(divisors), i % 33, 40 * (i % 2), 1) for i in range(66)]  # reset before
    expected = [f"{(1 << RECIPROCAL_BITS) // d:08x} 32" for d, *_ in vectors]
    compare(vectors, results(simulator, tmp_path, DIVIDER, vectors), expected)


def test_every_entry_of_the_exponential_table(simulator: Simulator, tmp_path: Path) -> None:
    vectors = [(i, 0, 0, 0) for i in range(len(EXP_TABLE))]
    expected = [f"{value:04x}" for value in EXP_TABLE.tolist()]
    compare(vectors, results(simulator, tmp_path, EXPONENTIAL, vectors), expected)


@pytest.mark.parametrize(("block", "width"), [(NARROW, 9), (WIDE, 47)])
def test_saturate(simulator: Simulator, tmp_path: Path, block: int, width: int) -> None:
    powers = (1 << e for e in range(width - 1))
    values = {s * p + d for p in powers for s in (-1, 1) for d in (-1, 0, 1)}
    values |= {*range(-300, 300), 2 ** (width - 1) - 1, -(2 ** (width - 1))}
    vectors = [(v, 0, 0, 0) for v in sorted(values) if -(2 ** (width - 1)) <= v < 2 ** (width - 1)]
    expected = [f"{min(max(v, -INT8_MAX), INT8_MAX) & 0xFF:02x}" for v, *_ in vectors]
    compare(vectors, results(simulator, tmp_path, block, vectors), expected)
