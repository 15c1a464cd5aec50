"""What the recorded experiments have: the runs that make each, and that its record must hold."""

from typing import Final

TABLE: Final = (
    ("structured", ((0.0, 3), (3.0, 3), (4.0, 3))),
    ("random", ((0.0, 1), (0.0, 3))),
)
"""Model, and the (draft noise, k) of its speculative runs, which follow a plain one."""

GRID_NOISES: Final = (0.0, 3.0, 4.0, 5.0, 6.0)
GRID_KS: Final = (1, 2, 3, 4, 5)

SERVING_ACCEPTANCES: Final = (0.6, 0.8, 0.9)
SERVING_GUESSES: Final = (2, 4, 8)
SERVING_COSTS: Final = (0.01, 0.05, 0.15)
"""Assumed costs of a guess, in steps."""

CAUSALITY_CACHE: Final = (3, 8, 1, 12)
CAUSALITY_BLOCKS: Final = ((1, 2, 3, 4), (1, 2, 3, 12), (1, 2, 9, 4), (5, 2, 3, 4))
