"""Models that differ in one size at a time, with random weights, for figures of growth."""

from dataclasses import replace
from typing import Final

import numpy as np

from capra.isa.chip import MAX_SCRATCHPAD_WORDS, Chip
from capra.lm.calibrate import calibrate
from capra.lm.model import LanguageModel, ModelConfig

CHIP: Final = Chip(
    external_words=1 << 22, scratchpad_words=MAX_SCRATCHPAD_WORDS, operand_depth=1024,
    program_entries=1 << 20,
)  # fmt: skip
"""As large as needed: no product of the family is split, and what is refused meets GA2's limits."""

BASE: Final = ModelConfig(
    name="family", vocab_size=64, width=64, heads=4, layers=1, hidden=128, context=1024, chip=CHIP
)
"""Where one size grows, the others are these."""

HIDDEN_PER_WIDTH: Final = BASE.hidden // BASE.width
SAMPLE_TEXTS: Final = 4
SAMPLE_LENGTH: Final = 24
SEED: Final = 1


def family_model(*, vocab_size: int = BASE.vocab_size, width: int = BASE.width) -> LanguageModel:
    """The model of this vocabulary and width, calibrated on a few random texts."""
    config = replace(BASE, vocab_size=vocab_size, width=width, hidden=HIDDEN_PER_WIDTH * width)
    draw = np.random.default_rng(SEED)
    shapes = {**config.host_shapes(), **config.weight_shapes()}
    weights = {name: draw.normal(size=(r, c)) / np.sqrt(r) for name, (r, c) in shapes.items()}
    weights["embed"] *= np.sqrt(vocab_size)  # rows of length about sqrt(width), whatever the size
    texts = draw.integers(0, vocab_size, (SAMPLE_TEXTS, SAMPLE_LENGTH)).tolist()
    return calibrate(LanguageModel(config, weights), texts)
