"""The two 16-token models of the specification, made from a seed.

random(seed) has gaussian weights. structured(seed) has an orthonormal embedding and an output
matrix that makes its greedy text follow f(t) = (5 t + 3) mod 16, while the rest is small noise.
"""

import random
from dataclasses import replace
from typing import Final

import numpy as np

from capra.isa.chip import Chip
from capra.lm.calibrate import calibrate_tokens
from capra.lm.model import LanguageModel, ModelConfig
from capra.numerics import FloatArray

VOCAB: Final = 16
WIDTH: Final = 16
HIDDEN: Final = 32
CONTEXT: Final = 64
"""Any block within 64 positions fits 8,192 words of external memory."""
STRUCTURED_GAIN: Final = 0.3
RULE_LOGIT: Final = 8.0
SHARP_GAIN: Final = 4.0

_DRAW_ORDER: Final = (
    ("embed", VOCAB, WIDTH),
    ("unembed", WIDTH, VOCAB),
    ("layers.0.wq", WIDTH, WIDTH),
    ("layers.0.wk", WIDTH, WIDTH),
    ("layers.0.wv", WIDTH, WIDTH),
    ("layers.0.wo", WIDTH, WIDTH),
    ("layers.0.w1", WIDTH, HIDDEN),
    ("layers.0.w2", HIDDEN, WIDTH),
)


def successor(token: int) -> int:
    """f(t) = (5 t + 3) mod 16, the rule of the structured model's greedy text."""
    return (5 * token + 3) % VOCAB


def rule_logits() -> FloatArray:
    """Logits of the rule as a bigram: 8 at f(t), 0 elsewhere."""
    logits = np.zeros((VOCAB, VOCAB))
    for token in range(VOCAB):
        logits[token, successor(token)] = RULE_LOGIT
    return logits


def random_weights(seed: int) -> dict[str, FloatArray]:
    """Gaussian weights with deviation 1 / sqrt(rows), drawn matrix by matrix, row by row."""
    draw = random.Random(seed)
    return {
        name: np.array([[draw.gauss(0, rows**-0.5) for _ in range(cols)] for _ in range(rows)])
        for name, rows, cols in _DRAW_ORDER
    }


def structured_weights(seed: int) -> dict[str, FloatArray]:
    """random(seed) times 0.3, with the embedding and the output matrix replaced."""
    weights = {name: w * STRUCTURED_GAIN for name, w in random_weights(seed).items()}
    embed = hadamard(VOCAB) / np.sqrt(VOCAB)
    permutation = np.zeros((VOCAB, VOCAB))
    permutation[np.arange(VOCAB), [successor(t) for t in range(VOCAB)]] = 1.0
    return {**weights, "embed": embed, "unembed": embed.T @ permutation}


def hadamard(size: int) -> FloatArray:
    """Sylvester's Hadamard matrix of a power-of-two size: entries +1 and -1, rows orthogonal."""
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


def random_model(seed: int, chip: Chip | None = None) -> LanguageModel:
    """The random model of a seed, calibrated."""
    return tiny_model("random", random_weights(seed), chip)


def structured_model(seed: int, chip: Chip | None = None) -> LanguageModel:
    """The structured model of a seed, calibrated, with its rule as bigram."""
    model = tiny_model("structured", structured_weights(seed), chip)
    return replace(model, bigram=rule_logits())


def sharp_model(seed: int, chip: Chip | None = None) -> LanguageModel:
    """random(seed) with queries and keys times 4, calibrated: a model whose attention matters."""
    weights = random_weights(seed)
    for name in ("layers.0.wq", "layers.0.wk"):
        weights[name] = weights[name] * SHARP_GAIN
    return tiny_model("random", weights, chip)


def tiny_model(
    name: str, weights: dict[str, FloatArray], chip: Chip | None = None
) -> LanguageModel:
    """A model of the tiny shape with given weights, calibrated."""
    config = ModelConfig(
        name=name, vocab_size=VOCAB, width=WIDTH, heads=1, layers=1, hidden=HIDDEN,
        context=CONTEXT, chip=chip or Chip(),
    )  # fmt: skip
    return calibrate_tokens(LanguageModel(config, weights))
