"""Random language models, each from one small value that a failure prints and a paste brings back.

The models are tiny, so that thousands of programs compile in minutes, and ugly: odd vocabularies
down to one token, attention that is nearly one-hot, weights with an outlier that leaves the others
a few integer steps, weights of -1, 0 and 1 that tie, ranges that saturate or drown everything.
"""

import random
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from capra.compiler.passes.scales import assign_scales
from capra.errors import RangeError
from capra.ir.ranges import Ranges
from capra.lm.calibrate import calibrate
from capra.lm.graphs import verifier_graph
from capra.lm.model import LanguageModel, ModelConfig
from capra.numerics import FloatArray

WeightKind = Literal["gaussian", "sharp", "outlier", "whole"]
RangeKind = Literal["calibrated", "small", "large", "wild", "saturated"]

SHARP_GAIN: Final = 8.0
OUTLIER_GAIN: Final = 40.0
CALIBRATION_TEXTS: Final = 2

RANGE_EXPONENTS: Final[dict[RangeKind, tuple[int, ...]]] = {
    "calibrated": (0,),
    "small": (-6, -3, 0),
    "large": (0, 3, 7),
    "wild": tuple(range(-5, 6)),
    "saturated": (0,),
}
"""Powers of two, one drawn for every tag, that the recorded ranges are multiplied by."""

SATURATED: Final = (".k", ".v", "logits")
SATURATED_EXPONENT: Final = -9
"""Every key, value and logit but a 0 is one of -127 and 127."""


@dataclass(frozen=True)
class Case:
    """The shape of a model and how its numbers are drawn."""

    seed: int = 0
    vocab_size: int = 5
    heads: int = 1
    head_width: int = 2
    layers: int = 1
    hidden: int = 3
    context: int = 6
    has_positions: bool = False
    weights: WeightKind = "gaussian"
    ranges: RangeKind = "calibrated"

    def model(self) -> LanguageModel:
        """The model, on the chip of the specification."""
        config = ModelConfig(
            name="case", vocab_size=self.vocab_size, width=self.heads * self.head_width,
            heads=self.heads, layers=self.layers, hidden=self.hidden, context=self.context,
            has_positions=self.has_positions,
        )  # fmt: skip
        draw = np.random.default_rng(self.seed)
        shapes = {**config.host_shapes(), **config.weight_shapes()}
        weights = {name: self._weight(name, shape, draw) for name, shape in shapes.items()}
        shape = (CALIBRATION_TEXTS, config.context)
        texts = draw.integers(0, config.vocab_size, shape).tolist()
        model = calibrate(LanguageModel(config, weights), texts)
        return model.with_ranges(self._distorted(model.ranges, draw))

    def _weight(self, name: str, shape: tuple[int, int], draw: np.random.Generator) -> FloatArray:
        if self.weights == "whole":
            return draw.integers(-1, 1, shape, endpoint=True).astype(np.float64)
        values = draw.normal(0, 1.0 if name in ("embed", "positions") else shape[0] ** -0.5, shape)
        if self.weights == "sharp" and name.endswith(("wq", "wk")):
            values *= SHARP_GAIN
        if self.weights == "outlier" and name in ("embed", "unembed"):
            values[draw.integers(shape[0]), draw.integers(shape[1])] *= OUTLIER_GAIN
        return values

    def _distorted(self, ranges: Ranges, draw: np.random.Generator) -> Ranges:
        distorted: dict[str, float] = {}
        for tag, value in ranges.values.items():
            exponent = int(draw.choice(RANGE_EXPONENTS[self.ranges]))
            if self.ranges == "saturated" and tag.endswith(SATURATED):
                exponent = SATURATED_EXPONENT
            distorted[tag] = value * 2.0**exponent
        return Ranges(distorted)


def random_case(seed: int) -> Case:
    """The case of a seed."""
    draw = random.Random(seed)
    return Case(
        seed=seed,
        vocab_size=draw.choice((1, 2, 3, 5, 7, 9, 13)),
        heads=draw.randint(1, 3),
        head_width=draw.randint(1, 3),
        layers=draw.randint(1, 2),
        hidden=draw.randint(1, 6),
        context=draw.randint(1, 10),
        has_positions=draw.random() < 0.5,
        weights=draw.choice(get_args(WeightKind)),
        ranges=draw.choice(get_args(RangeKind)),
    )


def is_refused(model: LanguageModel) -> bool:
    """True for ranges so far apart that the compiler says no, as drawn ones may be."""
    try:
        assign_scales(verifier_graph(model.config, 1, 0), model.ranges)
    except RangeError:
        return True
    return False
