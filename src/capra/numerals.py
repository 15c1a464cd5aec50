"""Numbers as people write them: ASCII decimal digits and nothing else that Python would take.

Python's own int and float also read digits of every script, underscores between digits, a plus
sign, spaces around, inf and nan.
"""

import math
import re
from typing import Final

_WHOLE: Final = re.compile(r"-?[0-9]{1,100}")
_REAL: Final = re.compile(
    r"-?(?:[0-9]{1,100}(?:\.[0-9]{0,100})?|\.[0-9]{1,100})(?:e[-+]?[0-9]{1,4})?"
)


def parse_whole(text: str) -> int:
    """The whole number of a text such as 12 or -3; ValueError for anything else."""
    if not _WHOLE.fullmatch(text):
        raise ValueError(f"found {text!r}, expected a whole number")
    return int(text)


def parse_real(text: str) -> float:
    """The finite number of a text such as 3, -0.5, .5 or 1e-05; ValueError for anything else."""
    value = float(text) if _REAL.fullmatch(text.lower()) and text.isascii() else math.nan
    if not math.isfinite(value):
        raise ValueError(f"found {text!r}, expected a number")
    return value
