"""Every half-way case of a requantization, for the Python model and for the RTL."""

from capra.numerics import INT8_MAX, MAX_SHIFT

Case = tuple[int, int, int, int]
"""x, multiplier, shift, relu."""

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def half_way_cases() -> list[Case]:
    """Every x * multiplier = (y + 1/2) * 2^shift that 32 bits allow, and both of its neighbours.

    All shifts, all y in -128 .. 127 and thus past both ends of int8, and for each the smallest
    and the largest power of two as multiplier, and three times one.
    """
    cases = []
    for shift in range(1, MAX_SHIFT + 1):
        for y in range(-INT8_MAX - 2, INT8_MAX + 2):
            product_ = (2 * y + 1) << (shift - 1)
            factors = [
                mul
                for mul in (*(1 << e for e in range(16)), *(3 << e for e in range(15)))
                if product_ % mul == 0 and INT32_MIN <= product_ // mul <= INT32_MAX
            ]
            for mul in {factors[0], factors[-1]} if factors else ():
                center = product_ // mul
                relu = (y + shift) & 1
                cases += [
                    (x, mul, shift, relu)
                    for x in (center - 1, center, center + 1)
                    if INT32_MIN <= x <= INT32_MAX
                ]
    return cases
