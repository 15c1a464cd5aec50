"""Bits per character of a text model on held-out text, on the chip and in float."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from capra.errors import InputError
from capra.lm.corpus import load_corpus
from capra.lm.model import LanguageModel
from capra.lm.reference import block_logits
from capra.lm.target import ChipTarget
from capra.numerics import FloatArray


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Mean negative log2 probability of a character given those before it in its window."""

    windows: int
    characters: int
    """Characters predicted: all of a window but its first."""
    chip_bits: float
    float_bits: float
    skipped: int
    """Held-out characters outside the model's vocabulary, left out."""

    @property
    def ratio(self) -> float:
        """Bits on the chip over bits in float; 1 means that int8 costs nothing."""
        return self.chip_bits / self.float_bits


def evaluate(
    model: LanguageModel,
    windows: int | None = None,
    on_window: Callable[[int, int], None] = lambda _done, _total: None,
) -> Evaluation:
    """Evaluate windows as long as the context, spread evenly over the held-out text.

    All of them unless told how many. Each is one program on the chip, a block without a cache, and
    one float run of the same rows. Raises InputError for a model without characters or fewer than
    one window.
    """
    if model.characters is None:
        raise InputError(f"model {model.config.name} has no characters, expected a text model")
    index = {character: token for token, character in enumerate(model.characters)}
    held_out = load_corpus().held_out
    tokens = [index[c] for c in held_out if c in index]
    length = model.config.context
    possible = len(tokens) // length
    count = possible if windows is None else min(windows, possible)
    if count < 1:
        raise InputError(f"{count} windows of {length} characters, expected at least 1")
    target = ChipTarget(model)
    (scale,) = (
        slot.scale for slot in target.program("verify", length, 0).external if slot.name == "logits"
    )
    assert scale is not None
    chip_bits = float_bits = 0.0
    for number in range(count):
        start = number * possible // count * length
        window = tokens[start : start + length]
        chip_bits += _bits(target.session().forward(window).logits * scale, window)
        float_bits += _bits(block_logits(model, window), window)
        on_window(number + 1, count)
    characters = count * (length - 1)
    return Evaluation(
        count, characters, chip_bits / characters, float_bits / characters,
        len(held_out) - len(tokens),
    )  # fmt: skip


def _bits(logits: FloatArray, window: list[int]) -> float:
    """Sum of -log2 p(next token) over a window's rows, the last one predicting nothing."""
    shifted = logits[:-1] - logits[:-1].max(axis=1, keepdims=True)
    log_total = np.log(np.exp(shifted).sum(axis=1))
    chosen = shifted[np.arange(len(window) - 1), window[1:]]
    return float((log_total - chosen).sum() / np.log(2))
