"""The two models of the specification, number by number."""

import random

import numpy as np
import pytest
from tests.lm.samples import tiny

from capra.compiler.pipeline import compile_graph
from capra.isa.chip import Chip
from capra.lm.reference import greedy_tokens
from capra.lm.target import model_graph
from capra.lm.tiny import hadamard, random_weights, structured_weights, successor
from capra.numerics import quantize

RECORDED_TEXT = [0, 5, 3, 13, 9, 1, 11, 11, 11, 11, 11, 11, 11, 11]
"""Greedy text of random(1) from token 0, as the reference system recorded it."""

WEIGHT_WORDS = 2304


def test_the_random_model_continues_as_recorded() -> None:
    assert [0, *greedy_tokens(tiny("random", 1), 0, 13)] == RECORDED_TEXT


def test_weights_are_one_stream_of_draws(seed: int) -> None:
    draw = random.Random(seed)
    rows_and_words = [(16, 256)] * 6 + [(16, 512), (32, 512)]
    stream = [draw.gauss(0, rows**-0.5) for rows, words in rows_and_words for _ in range(words)]
    weights = random_weights(seed)
    assert list(weights) == [
        "embed", "unembed", *(f"layers.0.{name}" for name in ("wq", "wk", "wv", "wo", "w1", "w2"))
    ]  # fmt: skip
    assert np.concatenate([w.ravel() for w in weights.values()]).tolist() == stream
    assert weights["layers.0.w1"].shape == (16, 32) and weights["layers.0.w2"].shape == (32, 16)


def test_seeds_differ() -> None:
    assert not np.array_equal(random_weights(1)["embed"], random_weights(2)["embed"])


def test_the_rule_visits_every_token() -> None:
    assert [successor(t) for t in (0, 1, 2, 3, 15)] == [3, 8, 13, 2, 14]
    assert sorted(map(successor, range(16))) == list(range(16))


def test_the_structured_model_is_the_rule_and_a_little_noise(seed: int) -> None:
    weights, noise = structured_weights(seed), random_weights(seed)
    embed, unembed = weights.pop("embed"), weights.pop("unembed")
    assert np.array_equal(np.abs(embed), np.full((16, 16), 0.25))
    assert np.array_equal(embed @ embed.T, np.eye(16))
    assert np.array_equal((embed @ unembed).argmax(axis=1), [successor(t) for t in range(16)])
    assert np.array_equal(np.sort((embed @ unembed).ravel()), [0.0] * 240 + [1.0] * 16)
    for name, weight in weights.items():
        assert np.array_equal(weight, 0.3 * noise[name])


@pytest.mark.parametrize("model_seed", [1, 2, 3])
def test_the_structured_model_follows_the_rule_from_every_token(model_seed: int) -> None:
    for start in range(16):
        text = [start, *greedy_tokens(tiny("structured", model_seed), start, 20)]
        assert text[1:] == [successor(t) for t in text[:-1]]


def test_its_embedding_is_exact_in_int8() -> None:
    model = tiny("structured", 1)
    scale = 0.25 / 127
    integers = quantize(model.weights["embed"], scale)
    assert set(np.unique(integers)) == {-127, 127}
    assert np.array_equal(integers * scale, model.weights["embed"])


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_hadamard_rows_are_orthogonal_signs(size: int) -> None:
    matrix = hadamard(size)
    assert set(np.unique(matrix)) <= {-1.0, 1.0}
    assert np.array_equal(matrix @ matrix.T, size * np.eye(size))


def test_the_chip_loads_2304_weight_words() -> None:
    shapes = tiny("random", 1).config.weight_shapes()
    assert sum(rows * cols for rows, cols in shapes.values()) == WEIGHT_WORDS


@pytest.mark.parametrize("shape", [("step", 1, 63), ("verify", 64, 0), ("verify", 32, 32)])
def test_any_block_within_the_context_fits_the_default_chip(shape: tuple[str, int, int]) -> None:
    model = tiny("random", 1)
    role, rows, cache = shape
    graph = model_graph(model.config, "step" if role == "step" else "verify", rows, cache)
    assert compile_graph(graph, model.ranges, model.config.chip).chip == Chip()
