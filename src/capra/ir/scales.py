"""Scales: the integers that turn a float graph into an int8 one.

Made by the compiler's first pass; read by the integer interpreter and by the emission pass, which
therefore cannot disagree about a multiplier.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from capra.numerics import Rescale


@dataclass(frozen=True, slots=True)
class Scales:
    """Scale of every int8 tensor, and the rescales of every operation that needs some."""

    scale: Mapping[str, float]
    """Real value of one integer step, by tensor name; range / 127."""
    product: Mapping[str, Rescale]
    """matmul and scores: from the int32 sums to the output (for softmax: from Q0.15)."""
    softmax_index: Mapping[str, Rescale]
    """softmax: from a score difference to an index of the exponential table."""
    addends: Mapping[str, tuple[Rescale, Rescale]]
    """add: from each operand to the output."""
