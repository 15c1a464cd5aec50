"""Random visible sets, and what one means, bit by bit."""

from random import Random

import numpy as np
import numpy.typing as npt

from capra.ir.visible import Visible


def random_visible(draw: Random, rows: int, keys: int) -> Visible:
    """What `rows` rows see of `keys` keys: a chain's or a token tree's block, or anything."""
    cache = keys - rows
    kind = draw.choice(("chain", "tree", "any")) if cache >= 0 else "any"
    if kind == "chain":
        return Visible.causal(rows, cache)
    if kind == "tree":
        return Visible.tree([draw.randint(-1, row - 1) for row in range(rows)], cache)
    prefix = draw.choice((0, draw.randint(0, keys)))
    width = keys - prefix
    lowest = 0 if prefix else 1
    return Visible(
        prefix, width, tuple(draw.randint(lowest, (1 << width) - 1) for _ in range(rows))
    )


def mask_of(visible: Visible) -> npt.NDArray[np.bool_]:
    """True where a row sees a key, (rows, keys)."""
    return np.array([
        [True] * visible.prefix + [bool(tail >> bit & 1) for bit in range(visible.width)]
        for tail in visible.tails
    ])  # fmt: skip
