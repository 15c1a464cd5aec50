"""Two independent float references of a language model, in plain numpy.

`FloatStepper` takes one token at a time and keeps a cache; `block_logits` takes a whole block and
an explicit mask. They share no line and agree to 1e-9.
"""

from collections.abc import Sequence
from typing import Final, cast

import numpy as np

from capra.lm.model import LanguageModel
from capra.numerics import FloatArray

MASKED: Final = -1e30
"""Score of a position that a row must not see; its exponential is exactly 0."""


class FloatStepper:
    """Greedy decoding in float64, one token a call. `length` rows are cached."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._keys: list[list[FloatArray]] = [[] for _ in range(model.config.layers)]
        self._values: list[list[FloatArray]] = [[] for _ in range(model.config.layers)]
        self.length = 0

    def step(self, token: int) -> FloatArray:
        """Append a token and return the logits of the next one, (vocabulary,)."""
        weights, config = self._model.weights, self._model.config
        x = self._model.embed([token], self.length)[0]
        for layer in range(config.layers):
            w = {n: weights[f"layers.{layer}.{n}"] for n in ("wq", "wk", "wv", "wo", "w1", "w2")}
            self._keys[layer].append(x @ w["wk"])
            self._values[layer].append(x @ w["wv"])
            query, heads = x @ w["wq"], []
            for head in range(config.heads):
                cut = slice(head * config.head_width, (head + 1) * config.head_width)
                scores = np.array([query[cut] @ key[cut] for key in self._keys[layer]])
                scores *= config.head_width**-0.5
                probs = np.exp(scores - scores.max())
                probs /= probs.sum()
                rows = zip(probs, self._values[layer], strict=True)
                heads.append(sum(p * value[cut] for p, value in rows))
            h = x + np.concatenate(heads) @ w["wo"]
            x = h + np.maximum(h @ w["w1"], 0.0) @ w["w2"]
        self.length += 1
        return cast(FloatArray, x @ weights["unembed"])


def block_logits(model: LanguageModel, tokens: Sequence[int]) -> FloatArray:
    """Logits after every prefix of a text, (len(tokens), vocabulary), all rows at once."""
    config, count = model.config, len(tokens)
    x = model.embed(tokens, 0)
    mask = np.triu(np.full((count, count), MASKED), k=1)
    for layer in range(config.layers):
        w = {n: model.weights[f"layers.{layer}.{n}"] for n in ("wq", "wk", "wv", "wo", "w1", "w2")}
        q, k, v = (
            (x @ w[n]).reshape(count, config.heads, config.head_width).transpose(1, 0, 2)
            for n in ("wq", "wk", "wv")
        )
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(config.head_width) + mask
        exponentials = np.exp(scores - scores.max(axis=2, keepdims=True))
        probs = exponentials / exponentials.sum(axis=2, keepdims=True)
        attention = (probs @ v).transpose(1, 0, 2).reshape(count, config.width)
        h = x + attention @ w["wo"]
        x = h + np.maximum(h @ w["w1"], 0.0) @ w["w2"]
    return x @ model.weights["unembed"]


def greedy_tokens(model: LanguageModel, start: int, count: int) -> list[int]:
    """The float-greedy continuation of one token, `count` tokens."""
    stepper, tokens = FloatStepper(model), [start]
    for _ in range(count):
        tokens.append(int(stepper.step(tokens[-1]).argmax()))
    return tokens[1:]
