"""One product on Capra and on tools for similar chips: 4 x 576 by 576 x 576 in int8.

Each tool gets the chip as near to GA2 as it can describe; its file says what its cycles count and
what they leave out. Two come from PyPI, into an environment of their own.
"""

from typing import Final

M: Final = 4
N: Final = 576
K: Final = 576
ARRAY: Final = 4
"""Rows and columns of the array."""
