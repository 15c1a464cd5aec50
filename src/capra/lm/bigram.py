"""The bigram draft: the next token from the last one, as one small product.

    logits = embed[t] . table,  table = pinv(embed) . L

L[t, u] is the score of token u after token t. `noise` adds random.Random(seed).gauss(0, noise) to
every entry of L, row by row, to make a draft worse by degrees.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from capra.compiler.optimization import O0, Optimization
from capra.compiler.pipeline import compile_graph
from capra.ir.ranges import Ranges, record_ranges
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.lm.graphs import draft_graph
from capra.lm.model import LanguageModel
from capra.lm.reference import greedy_tokens
from capra.lm.target import ProgramRun, run_of
from capra.numerics import FloatArray, quantize
from capra.sim.device import Device, SimulatedDevice

SAMPLE_TOKENS: Final = 24
INITIAL_COUNT: Final = 0.5
LOG_GAIN: Final = 4.0

FACTOR_RANK: Final = 32
"""Width of a text model's draft: words of its table a token."""


def count_logits(texts: Sequence[Sequence[int]], vocab_size: int) -> FloatArray:
    """L fitted to texts: 4 ln(V p), p the relative frequency of a token after another one.

    Counts start at 0.5, so that no frequency is 0.
    """
    counts = np.full((vocab_size, vocab_size), INITIAL_COUNT)
    for text in texts:
        for before, after in pairwise(text):
            counts[before, after] += 1
    frequency = counts / counts.sum(axis=1, keepdims=True)
    logits: FloatArray = LOG_GAIN * np.log(vocab_size * frequency)
    return logits


def fitted_logits(model: LanguageModel) -> FloatArray:
    """L fitted to the model's own float-greedy text, 24 tokens from every start.

    Fewer where the context ends before. Weights may be too large for float, they need not make
    sense here.
    """
    vocab, length = model.config.vocab_size, min(SAMPLE_TOKENS, model.config.context)
    with np.errstate(over="ignore", invalid="ignore"):
        texts = [[t, *greedy_tokens(model, t, length)] for t in range(vocab)]
    return count_logits(texts, vocab)


def with_noise(logits: FloatArray, noise: float, seed: int) -> FloatArray:
    """L plus gaussian noise of this deviation, drawn row by row."""
    if noise == 0:
        return logits
    draw = random.Random(seed)
    noisy: FloatArray = logits + np.array([[draw.gauss(0, noise) for _ in row] for row in logits])
    return noisy


@dataclass(frozen=True)
class Bigram:
    """A bigram draft in float: embed is (vocabulary, width), table (width, vocabulary)."""

    embed: FloatArray
    table: FloatArray

    @classmethod
    def from_logits(cls, embed: FloatArray, logits: FloatArray) -> "Bigram":
        """The draft whose table gives L back from this embedding, as closely as its width can."""
        return cls(embed, np.linalg.pinv(embed) @ logits)

    @property
    def vocab_size(self) -> int:
        """Tokens that it knows."""
        return len(self.embed)

    def next(self, token: int) -> tuple[int, tuple[ProgramRun, ...]]:
        """The most likely next token, computed in float; no program runs."""
        return int((self.embed[token] @ self.table).argmax()), ()


def factored(logits: FloatArray, rank: int = FACTOR_RANK) -> Bigram:
    """The draft whose embed . table is the best approximation of L of this rank.

    A constant added to a row of L changes no choice, so the row means are taken out first. Rows of
    tokens that were rarely seen are nearly flat in L and weigh little.
    """
    centred = logits - logits.mean(axis=1, keepdims=True)
    left, values, right = np.linalg.svd(centred)
    root = np.sqrt(values[:rank])
    return Bigram(left[:, :rank] * root, root[:, None] * right[:rank])


class ChipBigram:
    """A bigram draft compiled for a chip; one program, run once a guess."""

    def __init__(
        self, bigram: Bigram, chip: Chip, device: Device | None = None,
        *, optimize: Optimization = O0,
    ) -> None:  # fmt: skip
        self.bigram = bigram
        self.vocab_size = bigram.vocab_size
        self._device: Device = device or SimulatedDevice(chip)
        self.program = compile_bigram(bigram, chip, optimize)
        scales = {slot.name: slot.scale for slot in self.program.external}
        assert scales["x"] is not None and scales["table"] is not None
        self._x = quantize(bigram.embed, scales["x"])
        self._table = quantize(bigram.table, scales["table"])

    def next(self, token: int) -> tuple[int, tuple[ProgramRun, ...]]:
        """The most likely next token as the chip computes it, and the program that it took."""
        feeds = {"x": self._x[token : token + 1], "table": self._table}
        execution = self._device.execute(self.program, feeds)
        run = run_of("draft", 1, 0, execution)
        return int(execution.outputs["token"][0, 0]), (run,)


def compile_bigram(bigram: Bigram, chip: Chip, optimize: Optimization = O0) -> Program:
    """The draft program, with the ranges of all its tokens."""
    graph = draft_graph(bigram.vocab_size, bigram.embed.shape[1])
    rows = (bigram.embed[t : t + 1] for t in range(bigram.vocab_size))
    ranges: Ranges = record_ranges(graph, ({"x": row, "table": bigram.table} for row in rows))
    return compile_graph(graph, ranges, chip, optimize=optimize)
