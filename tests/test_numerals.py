"""Numbers as people write them."""

import pytest

from capra.numerals import parse_real, parse_whole

NO_NUMBERS = [
    "", " ", " 3", "3 ", "+5", "1_0", "0x10", "0b1", "١٢", "\uff11\uff12", "3\n", "--1", "-", "1,5",
    "two", "²", "K1", "9" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("text", [*NO_NUMBERS, "1e3", "1.0", "inf", "nan", "True"])
def test_what_is_not_a_whole_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a whole number"):
        parse_whole(text)


@pytest.mark.parametrize(
    "text",
    [
        *NO_NUMBERS,
        "1_0.5",
        "inf",
        "-inf",
        "nan",
        "Infinity",
        "1e999",
        "1e",
        ".",
        "1.5.2",
        "\u0663.\u0665",
    ],
)
def test_what_is_not_a_real_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a number"):
        parse_real(text)


def test_plain_decimal_is_read() -> None:
    assert [parse_whole(text) for text in ("0", "007", "-12", "1" + "0" * 99)] == [
        0,
        7,
        -12,
        10**99,
    ]
    texts = ("0", "-1", "2.5", ".5", "5.", "1e308", "1E-05", "3e+2")
    assert [parse_real(text) for text in texts] == [0, -1, 2.5, 0.5, 5, 1e308, 1e-05, 300]


def test_every_float_is_read_as_python_writes_it() -> None:
    for value in (1 / 3, 2.0**-1074, 1.7976931348623157e308, -0.1, 1e22, 5e-324):
        assert parse_real(repr(value)) == value
