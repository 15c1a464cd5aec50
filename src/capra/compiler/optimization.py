"""What may be done to make programs faster: names of passes, and the levels made of them.

    block-attention    attention of a block's rows by tiles of four    compiler
    shared-zeros       one buffer of zeros for all masked softmaxes    compiler
    joined-transfers   neighbours in external memory moved as one      compiler
    unread-outputs     no store of what a session never reads          the target's graphs
    short-last-block   no guess behind the last token asked for        the loop

Each is on or off by itself. None changes an integer of any tensor.
"""

from collections.abc import Mapping
from typing import Final

from capra.errors import InputError

Optimization = frozenset[str]
"""Names of passes that are switched on."""

SHORT_LAST_BLOCK: Final = "short-last-block"
OPTIMIZATIONS: Final = (
    "block-attention", "shared-zeros", "joined-transfers", "unread-outputs", SHORT_LAST_BLOCK,
)  # fmt: skip

O0: Final[Optimization] = frozenset()
"""The programs and the loop of the reference, to the cycle."""
O1: Final[Optimization] = frozenset(OPTIMIZATIONS)
LEVELS: Final[Mapping[str, Optimization]] = {"0": O0, "1": O1}


def names_of(optimize: Optimization) -> list[str]:
    """The names that are switched on, in the order of OPTIMIZATIONS."""
    return [name for name in OPTIMIZATIONS if name in optimize]


def spelled(optimize: Optimization) -> str:
    """The one text of these passes that rows and keys have: a level where it is one."""
    levels = {passes: level for level, passes in LEVELS.items()}
    return levels.get(optimize, ",".join(names_of(optimize)))


def parse_optimization(text: str) -> Optimization:
    """A level, 0 or 1, or names of passes with commas between them."""
    if text in LEVELS:
        return LEVELS[text]
    names = text.split(",")
    for name in names:
        if name not in OPTIMIZATIONS:
            raise InputError(
                f"-O is {text!r}, expected {' or '.join(LEVELS)}, or names with commas between "
                f"them, of {', '.join(OPTIMIZATIONS)}"
            )
    return frozenset(names)
