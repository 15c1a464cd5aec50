"""What int8 costs a text model on held-out text: the chip against float.

Bits per character and the agreement of greedy tokens come from windows of the text, teacher-forced;
the error of every tensor, and how far greedy texts go together, from a few of them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from capra.errors import InputError
from capra.ir.quantization import TensorError, tensor_errors
from capra.lm.checkpoint import BLOCK_ROWS
from capra.lm.corpus import load_corpus
from capra.lm.model import LanguageModel
from capra.lm.reference import FloatStepper, block_logits
from capra.lm.target import ChipTarget, InterpretedTarget
from capra.numerics import FloatArray

ERROR_WINDOWS: Final = 2
"""Windows whose tensors are compared one by one: seconds each."""

TEXTS: Final = 4
PROMPT_CHARACTERS: Final = 16
TEXT_CHARACTERS: Final = 64
"""Greedy texts continue the start of this many windows; they end with the context, if before."""

_Item = TypeVar("_Item")


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Chip and float on the same windows of held-out text."""

    windows: int
    characters: int
    """Characters predicted: all of a window but its first."""
    chip_bits: float
    """Mean negative log2 probability of a character given those before it in its window."""
    float_bits: float
    agreement: float
    """Fraction of the windows' rows after which the chip's greedy token is that of float."""
    text_characters: int
    """Length of the greedy texts."""
    common_prefixes: tuple[int, ...]
    """For each prompt, the characters up to the first in which the greedy texts differ."""
    error_windows: int
    tensor_errors: Mapping[str, TensorError]
    """By tag, over this many of the windows."""
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

    All of them unless told how many. Each is a text of its own on the chip, in blocks of at most
    BLOCK_ROWS rows, and one float run of the same rows. Raises InputError for a model without
    characters or fewer than one window.
    """
    if model.characters is None:
        raise InputError(f"model {model.config.name} has no characters, expected a text model")
    index = {character: token for token, character in enumerate(model.characters)}
    held_out = load_corpus().held_out
    tokens = [index[c] for c in held_out if c in index]
    length = model.config.context
    possible = [tokens[end - length : end] for end in range(length, len(tokens) + 1, length)]
    chosen = possible if windows is None else _spread(possible, windows)
    if not chosen:
        raise InputError(f"0 windows of {length} characters, expected at least 1")
    target = ChipTarget(model)
    graph = target.graph("verify", length, 0)
    scales = target.scales(graph)
    scale = scales.scale["logits"]
    chip_bits, float_bits, agreeing = 0.0, 0.0, 0
    for number, window in enumerate(chosen):
        choices, logits = _on_chip(target, window)
        exact = block_logits(model, window)
        chip_bits += _bits(logits * scale, window)
        float_bits += _bits(exact, window)
        agreeing += int((exact.argmax(axis=1) == choices).sum())
        on_window(number + 1, len(chosen))
    few = _spread(chosen, ERROR_WINDOWS)
    prompt = min(PROMPT_CHARACTERS, length)
    text = min(TEXT_CHARACTERS, length - prompt + 1)
    characters = len(chosen) * (length - 1)
    return Evaluation(
        windows=len(chosen),
        characters=characters,
        chip_bits=chip_bits / characters,
        float_bits=float_bits / characters,
        agreement=agreeing / (len(chosen) * length),
        text_characters=text,
        common_prefixes=tuple(
            common_prefix(model, window[:prompt], text) for window in _spread(chosen, TEXTS)
        ),
        error_windows=len(few),
        tensor_errors=tensor_errors(graph, scales, map(model.leaves, few)),
        skipped=len(held_out) - len(tokens),
    )


def _on_chip(target: ChipTarget, window: Sequence[int]) -> tuple[list[int], FloatArray]:
    """The choices and integer logits after every row of a window, in blocks that fit the chip."""
    session, choices, logits = target.session(), list[int](), list[FloatArray]()
    for start in range(0, len(window), BLOCK_ROWS):
        forward = session.forward(window[start : start + BLOCK_ROWS])
        choices += forward.choices
        logits.append(forward.logits)
    return choices, np.concatenate(logits)


def common_prefix(model: LanguageModel, prompt: Sequence[int], count: int) -> int:
    """The greedy tokens in which chip and float agree after a prompt, before the first other one.

    At most `count`. The integer interpreter stands in for the chip.
    """
    chip, exact = InterpretedTarget(model).session(), FloatStepper(model)
    block = list(prompt)
    for agreeing in range(count):
        token = chip.forward(block).choices[-1]
        logits = [exact.step(each) for each in block][-1]
        if logits.argmax() != token:
            return agreeing
        block = [token]
    return count


def _spread(items: Sequence[_Item], count: int) -> list[_Item]:
    """At most `count` of the items, evenly spread, the first one among them."""
    count = min(count, len(items))
    return [items[number * len(items) // count] for number in range(count)]


def _bits(logits: FloatArray, window: list[int]) -> float:
    """Sum of -log2 p(next token) over a window's rows, the last one predicting nothing."""
    shifted = logits[:-1] - logits[:-1].max(axis=1, keepdims=True)
    log_total = np.log(np.exp(shifted).sum(axis=1))
    chosen = shifted[np.arange(len(window) - 1), window[1:]]
    return float((log_total - chosen).sum() / np.log(2))
