"""Ranges: the largest magnitude of every named tensor of a model, recorded once.

Every program of a model is compiled from one Ranges value, whatever its shape. Hence a row of the
model is the same integers in a plain step and in a verifier of any size: the promise of exactness
starts here.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

import numpy as np

from capra.errors import RangeError
from capra.ir.graph import Graph, Kind
from capra.ir.reference import evaluate_float
from capra.numerics import FloatArray

_MANTISSA_BITS = 16

MAX_RANGE: Final = 1e30
"""Larger magnitudes are a model that went wrong, and their products would leave float64."""


def round_range(value: float) -> float:
    """The range rounded up to 16 significant bits.

    Float sums differ in their last bits from one BLAS to the next. Rounding up keeps such noise out
    of the scales, and so out of the integers, on every machine.
    """
    mantissa, exponent = math.frexp(value)
    return math.ldexp(math.ceil(math.ldexp(mantissa, _MANTISSA_BITS)), exponent - _MANTISSA_BITS)


@dataclass(frozen=True, slots=True)
class Ranges:
    """Largest magnitudes by tag, 0 .. 1e30. A range of 0 means that all values were 0."""

    values: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for tag, value in self.values.items():
            if not 0 <= value <= round_range(MAX_RANGE):
                raise RangeError(f"range of {tag} is {value}, expected 0 .. {MAX_RANGE:.0e}")
        object.__setattr__(self, "values", MappingProxyType(dict(self.values)))

    def widened(self, other: "Ranges") -> "Ranges":
        """The larger range of the two for every tag of either."""
        merged = dict(self.values)
        for tag, value in other.values.items():
            merged[tag] = max(value, merged.get(tag, 0.0))
        return Ranges(merged)


def parse_ranges(text: str) -> Ranges:
    """The ranges of a JSON object {tag: magnitude}. Raises RangeError for anything else."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RangeError(f"the ranges are not JSON: {error}") from None
    if not isinstance(values, dict):
        raise RangeError(f"the ranges are {type(values).__name__}, expected a JSON object")
    for tag, value in values.items():
        if type(value) not in (int, float) or not 0 <= value <= MAX_RANGE:
            raise RangeError(
                f"range of {tag!r} is {value!r:.40}, expected a number of 0 .. {MAX_RANGE:.0e}"
            )
    return Ranges({tag: float(value) for tag, value in values.items()})


def record_ranges(graph: Graph, samples: Iterable[Mapping[str, FloatArray]]) -> Ranges:
    """Run the float reference over samples of leaf values and record the range of every tag.

    A product that is fused into a relu has no int8 form and records nothing; a softmax output
    never exceeds 1. Views and relus need no range of their own, but may widen their group's.
    """
    largest: dict[str, float] = {}
    recorded = [n for n in graph.tensors() if not n.is_index and graph.is_materialized(n.name)]
    for leaves in samples:
        values = evaluate_float(graph, leaves)
        for node in recorded:
            magnitude = float(np.abs(values[node.name]).max())
            if not magnitude <= MAX_RANGE:
                raise RangeError(
                    f"{node.name} reaches {magnitude} in float, expected at most {MAX_RANGE:.0e}"
                )
            if node.kind is Kind.SOFTMAX:
                magnitude = min(magnitude, 1.0)
            largest[node.tag] = max(magnitude, largest.get(node.tag, 0.0))
    return Ranges({tag: round_range(value) for tag, value in largest.items()})
