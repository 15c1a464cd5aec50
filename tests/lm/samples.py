"""Models that show what is under test, made once per process.

`text_model` is small enough to compile a program in milliseconds and has what the tiny models of
the specification lack: two layers, two heads, positions, characters, a short context. Its attention
weights are large, so that a wrong mask or a stale cache row changes its text.
"""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np

from capra.lm import tiny as tiny_models
from capra.lm.bigram import fitted_logits
from capra.lm.calibrate import calibrate, calibrate_tokens
from capra.lm.checkpoint import chip_for
from capra.lm.model import LanguageModel, ModelConfig
from capra.lm.models import load_model
from capra.lm.target import ChipTarget
from capra.numerics import FloatArray

CHARACTERS = "abcdefghijkl"
CONTEXT = 24
ATTENTION_GAIN = 2.0


@cache
def text_model() -> LanguageModel:
    """Two layers, two heads, positions; weights and bigram are exact in float32."""
    config = ModelConfig(
        name="sample", vocab_size=len(CHARACTERS), width=8, heads=2, layers=2, hidden=16,
        context=CONTEXT, has_positions=True,
    )  # fmt: skip
    config = replace(config, chip=chip_for(config))
    draw = np.random.default_rng(0)
    weights: dict[str, FloatArray] = {}
    for name, shape in {**config.host_shapes(), **config.weight_shapes()}.items():
        gain = ATTENTION_GAIN if name.endswith(("wq", "wk")) else 1.0
        deviation = gain / (1.0 if name in ("embed", "positions") else shape[0] ** 0.5)
        weights[name] = _as_float32(draw.normal(0, deviation, shape))
    model = LanguageModel(config, weights, characters=CHARACTERS)
    model = replace(model, bigram=_as_float32(fitted_logits(model)))
    texts = draw.integers(0, config.vocab_size, (32, CONTEXT)).tolist()
    return calibrate(model, texts)


def gaussian_model(config: ModelConfig, seed: int) -> LanguageModel:
    """A model of any shape with gaussian weights that keep magnitudes, calibrated."""
    draw = np.random.default_rng(seed)
    shapes = {**config.host_shapes(), **config.weight_shapes()}
    weights = {name: draw.normal(0, shape[0] ** -0.5, shape) for name, shape in shapes.items()}
    return calibrate_tokens(LanguageModel(config, weights))


@cache
def sharp_model() -> LanguageModel:
    """The model of the causality check."""
    return tiny_models.sharp_model(2)


@cache
def tiny(name: str, seed: int) -> LanguageModel:
    """random(seed) or structured(seed)."""
    return load_model(name, seed)


@cache
def pydoc_model() -> LanguageModel:
    """The packaged text model."""
    return load_model("pydoc")


MODELS: dict[str, Callable[[], LanguageModel]] = {
    "text": text_model,
    "sharp": sharp_model,
    "random": lambda: tiny("random", 1),
    "structured": lambda: tiny("structured", 3),
}


@cache
def chip_target(name: str) -> ChipTarget:
    """One of MODELS, or pydoc, on the simulated chip; programs are kept from test to test."""
    return ChipTarget(pydoc_model() if name == "pydoc" else MODELS[name]())


def random_tokens(seed: int, vocab_size: int, count: int) -> list[int]:
    """Tokens drawn evenly."""
    draw = random.Random(seed)
    return [draw.randrange(vocab_size) for _ in range(count)]


def _as_float32(values: FloatArray) -> FloatArray:
    return values.astype(np.float32).astype(np.float64)
