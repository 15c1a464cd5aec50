"""A chip's sizes are checked when it is described."""

from collections.abc import Mapping

import pytest

from capra.errors import CapacityError
from capra.isa.chip import Chip

RANGES = {
    "external_words": ("external memory", 16, 1 << 24),
    "scratchpad_words": ("scratchpad", 16, 1 << 20),
    "operand_depth": ("operand memory", 256, 1 << 15),
    "program_entries": ("program memory", 1, 1 << 20),
}
SIZES = pytest.mark.parametrize(("field", "limits"), RANGES.items())


def chip(sizes: Mapping[str, int]) -> Chip:
    return Chip(**sizes)


def test_the_default_chip_has_the_tiny_models_external_memory() -> None:
    assert Chip().external_words == 8192
    assert Chip().operand_depth == 256


@SIZES
def test_both_ends_of_a_range_are_allowed(field: str, limits: tuple[str, int, int]) -> None:
    for size in limits[1:]:
        assert getattr(chip({field: size}), field) == size


@SIZES
def test_sizes_outside_are_refused(field: str, limits: tuple[str, int, int]) -> None:
    name, low, high = limits
    for size in (low - 1, high + 1, 0, -low, high * 2):
        message = rf"^{name} has {size} entries, expected {low} \.\. {high}$"
        with pytest.raises(CapacityError, match=message):
            chip({field: size})


@pytest.mark.parametrize("size", [17, 24, 100, 8191, 8193, (1 << 20) - 1])
def test_a_scratchpad_is_a_power_of_two(size: int) -> None:
    with pytest.raises(CapacityError, match=rf"scratchpad has {size} words, expected a power of"):
        Chip(scratchpad_words=size)


def test_every_power_of_two_is_allowed() -> None:
    for exponent in range(4, 21):
        assert Chip(scratchpad_words=1 << exponent).scratchpad_words == 1 << exponent
