"""Laws of growth: how well measured points follow one, and the exponent that they grow with.

A law is a list of terms, functions of the size alone; the fit is the sum of them, each times a
coefficient of its own, with the smallest relative error.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.records import Record
from capra.isa.spec import ARRAY_SIZE

Term = Callable[[float], float]


@dataclass(frozen=True)
class Law:
    """Terms by the text that docs show for them, and the largest power of the size among them."""

    terms: Mapping[str, Term]
    degree: float

    def __str__(self) -> str:
        return " + ".join(self.terms)


AFFINE: Final = Law({"1": lambda n: 1.0, "n": lambda n: n}, 1)
QUADRATIC: Final = Law({**AFFINE.terms, "n^2": lambda n: n * n}, 2)


def tiled(cache: int) -> Law:
    """Rows of a verifier after `cache` others: products by row tiles, softmaxes by what rows see.

    A tile loads its right operands once; it multiplies them with each of its rows, and its scores
    and probabilities have a column for every key that its last row sees.
    """

    def tiles(rows: float) -> float:
        return float(-(-rows // ARRAY_SIZE))

    def keys(rows: float) -> float:
        return sum(cache + end for end in _tile_ends(rows))

    def scores(rows: float) -> float:
        ends = _tile_ends(rows)
        sizes = np.diff([0, *ends])
        return float(sum(size * (cache + end) for size, end in zip(sizes, ends, strict=True)))

    terms = {
        "1": lambda n: 1.0,
        f"ceil(n / {ARRAY_SIZE})": tiles,
        "n": lambda n: n,
        "keys of tiles": keys,
        "scores of tiles": scores,
    }
    return Law(terms, 2)


def _tile_ends(rows: float) -> list[int]:
    return [min(start + ARRAY_SIZE, int(rows)) for start in range(0, int(rows), ARRAY_SIZE)]


def fit(law: Law, sizes: Sequence[float], values: Sequence[float]) -> Record:
    """Coefficients, fitted values and the largest relative deviation of the values from the law.

    There must be more points than terms: a law that can bend to every point says nothing.
    """
    assert len(sizes) == len(values) > len(law.terms), f"{len(sizes)} points for {law}"
    matrix = np.array([[term(n) for term in law.terms.values()] for n in sizes])
    target = np.array(values, dtype=float)
    weighted = matrix / target[:, None]
    coefficients = np.linalg.lstsq(weighted, np.ones(len(values)), rcond=None)[0]
    fitted = matrix @ coefficients
    return {
        "law": str(law),
        "degree": law.degree,
        "coefficients": dict(zip(law.terms, coefficients.tolist(), strict=True)),
        "largest_deviation": float(np.abs(fitted / target - 1).max()),
        **exponents(sizes, values),
    }


def exponents(sizes: Sequence[float], values: Sequence[float]) -> Record:
    """p of value = size^p: over all points, and over the last doubling alone."""
    logs, sizes_logs = np.log2(np.array(values, float)), np.log2(np.array(sizes, float))
    slope = np.polyfit(sizes_logs, logs, 1)[0]
    last = (logs[-1] - logs[-2]) / (sizes_logs[-1] - sizes_logs[-2])
    return {"exponent": float(slope), "last_exponent": float(last)}
