"""Figures, drawn from records and from nothing else."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from matplotlib.figure import Figure

from capra.report.figures import decoding, speedup, verified
from capra.report.figures.style import Drawing, lay_out, style
from capra.report.names import slug
from capra.report.records import Source

Draw = Callable[[Mapping[str, Any]], tuple[Figure, str] | None]
"""A record to its figure and what that shows; None where the record has nothing to draw."""

FIGURES: Final[Mapping[str, tuple[tuple[str, str, Draw], ...]]] = {
    "decode": (
        ("blocks", "Guesses accepted and rejected, block by block", decoding.blocks),
        ("acceptance", "Acceptance by position", decoding.acceptance_by_position),
        ("gain", "Where the gain comes from", decoding.gain),
        ("roofline", "Cycles by unit against the memory roofline", decoding.units_of_runs),
        ("mask", "The causal mask as slices", decoding.mask),
    ),
    "table": (
        ("runs", "The table", speedup.table),
        ("roofline", "Cycles by unit against the memory roofline", speedup.table_units),
    ),
    "grid": (
        ("by-k", "Speedup against k by draft quality", speedup.by_k),
        ("derived", "Speedup derived from acceptance", speedup.derived_curves),
    ),
    "plan": (
        ("cost", "Cost of a block by its rows", speedup.cost_curve),
        ("predictions", "Speedup against k, measured over predicted", speedup.predictions),
    ),
    "bench": (("spread", "Speedup over many prompts", speedup.spread),),
    "anatomy": (),
    "causality": (),
    "serving": (),
    "profile": (),
    "sweep": (),
    "certify": (("counts", "What was certified, by role", verified.certified),),
    "eval": (("tensors", "Errors of tensors, the largest first", verified.tensors),),
    "replay": (("roofline", "Cycles by unit against the memory roofline", verified.replayed),),
}
"""The figures of each kind of record: name, title and what draws it."""


def draw(sources: Sequence[Source]) -> Iterator[Drawing]:
    """Every figure of these records, named after its record and itself."""
    number = 0
    with style():
        for source in sources:
            for name, title, make in FIGURES[source.kind]:
                made = make(source.record)
                if made is not None:
                    figure, description = made
                    lay_out(figure)
                    number += 1
                    yield Drawing(
                        f"{slug(source.name)}-{name}",
                        f"figure-{number}",
                        title,
                        description,
                        figure,
                    )
