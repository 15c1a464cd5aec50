"""Calibration: float runs of a model that give the one Ranges value of all its programs."""

import random
from collections.abc import Sequence
from typing import Final

from capra.errors import InputError
from capra.ir.ranges import record_ranges
from capra.lm.graphs import verifier_graph
from capra.lm.model import LanguageModel
from capra.lm.reference import greedy_tokens

SAMPLE_LENGTH: Final = 24
RANDOM_SAMPLES: Final = 16
SAMPLE_SEED: Final = 0


def calibrate(model: LanguageModel, texts: Sequence[Sequence[int]]) -> LanguageModel:
    """The model with the ranges that its tensors reach in float over these texts of equal length.

    Each text is one block without a cache, so that every row, short context and long, counts.
    Raises InputError unless there is a text and all have one length that fits the context.
    """
    lengths, context = sorted(set(map(len, texts))), model.config.context
    if len(lengths) != 1 or not 1 <= lengths[0] <= context:
        raise InputError(
            f"the texts of a calibration have the lengths {lengths}, expected one length of 1 .. "
            f"{context}, the context"
        )
    graph = verifier_graph(model.config, len(texts[0]), 0)
    return model.with_ranges(record_ranges(graph, map(model.leaves, texts)))


def calibrate_tokens(model: LanguageModel) -> LanguageModel:
    """Calibrate on the model's own greedy text from every token, and on random texts.

    A draft may propose anything, so texts that the model would not write count too. A text has 24
    tokens, or as many as the context has.
    """
    length = min(SAMPLE_LENGTH, model.config.context)
    vocabulary, draw = range(model.config.vocab_size), random.Random(SAMPLE_SEED)
    greedy = [[t, *greedy_tokens(model, t, length - 1)] for t in vocabulary]
    noise = [[draw.choice(vocabulary) for _ in range(length)] for _ in range(RANDOM_SAMPLES)]
    return calibrate(model, greedy + noise)
