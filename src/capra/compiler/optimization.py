"""What the compiler may do to make a program faster: names of passes, and the levels made of them.

A pass changes which instructions compute a tensor, never its integers.
"""

from collections.abc import Mapping
from typing import Final

from capra.errors import InputError

Optimization = frozenset[str]
"""Names of passes that are switched on."""

OPTIMIZATIONS: Final = ("block-attention",)

O0: Final[Optimization] = frozenset()
"""The programs of the reference, to the cycle."""
O1: Final[Optimization] = frozenset(OPTIMIZATIONS)
LEVELS: Final[Mapping[str, Optimization]] = {"0": O0, "1": O1}


def parse_optimization(text: str) -> Optimization:
    """A level, 0 or 1, or names of passes with commas between them."""
    if text in LEVELS:
        return LEVELS[text]
    names = text.split(",")
    for name in names:
        if name not in OPTIMIZATIONS:
            raise InputError(
                f"-O is {text!r}, expected {', '.join(LEVELS)}, or some of "
                f"{', '.join(OPTIMIZATIONS)} with commas between them"
            )
    return frozenset(names)
