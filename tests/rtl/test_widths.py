"""Bit widths: derived from the extremes, and what the RTL declares.

docs/reference/rtl.md has the derivation in words. That the RTL computes the extremes right is in
test_arithmetic.py and test_units.py.
"""

import re

import pytest
from tests.rtl.declarations import declared_widths

from capra.cosim.toolchain import RTL
from capra.ir.graph import MAX_DIMENSION
from capra.isa.chip import MAX_OPERAND_DEPTH
from capra.isa.spec import BY_MNEMONIC
from capra.numerics import (
    EXP_ONE,
    EXP_TABLE_BITS,
    INT8_MAX,
    MULTIPLIER_BITS,
    RECIPROCAL_BITS,
    RECIPROCAL_SHIFT,
)

BYTE_MIN, BYTE_MAX = -128, 127
WORD_MIN = -(1 << 31)
LARGEST_MULTIPLIER = (1 << MULTIPLIER_BITS) - 1
LONGEST_ROW = next(f.limit for f in BY_MNEMONIC["SM"].fields if f.name == "n")
LARGEST_RECIPROCAL = (1 << RECIPROCAL_BITS) // EXP_ONE


def signed_bits(*extremes: int) -> int:
    """Bits of the narrowest two's complement number that holds them all."""
    return max((value if value >= 0 else ~value).bit_length() + 1 for value in extremes)


RESCALED = signed_bits(WORD_MIN * LARGEST_MULTIPLIER, -WORD_MIN * LARGEST_MULTIPLIER)
DIFFERENCE = (BYTE_MAX - BYTE_MIN).bit_length()
SCALED_DIFFERENCE = ((BYTE_MAX - BYTE_MIN) * LARGEST_MULTIPLIER).bit_length()
WIDTHS = [
    ("pe", "product_q", signed_bits(BYTE_MIN * BYTE_MIN, BYTE_MIN * BYTE_MAX)),
    ("add_unit", "sum", signed_bits(2 * BYTE_MIN, 2 * BYTE_MAX)),
    ("requantizer", "product_q", RESCALED),
    ("requantizer", "rounded", RESCALED),
    ("softmax_unit", "difference_q", DIFFERENCE),
    ("softmax_unit", "product_q", SCALED_DIFFERENCE),
    ("softmax_unit", "rounded", SCALED_DIFFERENCE + 1),
    ("softmax_unit", "index_q", EXP_TABLE_BITS),
    ("softmax_unit", "sum_q", (LONGEST_ROW * EXP_ONE).bit_length()),
    ("softmax_unit", "reciprocal", LARGEST_RECIPROCAL.bit_length()),
    ("divider", "quotient_o", LARGEST_RECIPROCAL.bit_length()),
    ("divider", "remainder_q", (LONGEST_ROW * EXP_ONE - 1).bit_length()),
    ("divider", "shifted", (2 * (LONGEST_ROW * EXP_ONE - 1) + 1).bit_length()),
    ("argmax_unit", "best_q", signed_bits(WORD_MIN)),
]


@pytest.mark.parametrize(("module", "name", "bits"), WIDTHS)
def test_a_register_is_as_wide_as_its_extremes_need(module: str, name: str, bits: int) -> None:
    text = (RTL / f"{module}.sv").read_text()
    text = text.replace("[INDEX_BITS-1:0]", f"[{EXP_TABLE_BITS - 1}:0]")
    assert declared_widths(re.sub(r"//.*", "", text))[name] == bits


def test_sums_of_the_deepest_products_fit_a_word() -> None:
    """Of raw bytes in one MM, and of int8 tensors in the longest product of a graph."""
    word = declared_widths((RTL / "pe.sv").read_text())["sum_o"]
    raw = signed_bits(MAX_OPERAND_DEPTH * BYTE_MIN**2, MAX_OPERAND_DEPTH * BYTE_MIN * BYTE_MAX)
    int8 = signed_bits(MAX_DIMENSION * INT8_MAX**2, -MAX_DIMENSION * INT8_MAX**2)
    assert raw == int8 == 31 < word == 32


def test_a_scaled_exponential_fits_what_it_is_added_in() -> None:
    half = 1 << (RECIPROCAL_SHIFT - 1)
    exponential_bits = EXP_ONE.bit_length()
    assert (EXP_ONE * LARGEST_RECIPROCAL + half).bit_length() <= exponential_bits + 32
    assert "localparam int SCALED_BITS = EXP_BITS + 32;" in (RTL / "softmax_unit.sv").read_text()
