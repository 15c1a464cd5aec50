"""A decoder-only language model: its shape, its float weights, and the row it feeds the chip.

    x = embed[t] (+ positions[p])                          on the host
    layer:  q, k, v = x wq, x wk, x wv
            a = softmax(q k^T / sqrt(width / heads)) v     per head, over the cache and itself
            h = x + a wo
            x = h + relu(h w1) w2
    logits = x unembed

No normalization and no biases: GA2 has no instruction for them. Weights are float arrays applied
as row vector times matrix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from capra.errors import CheckpointError, InputError
from capra.ir.ranges import Ranges, round_range
from capra.isa.chip import Chip
from capra.numerics import FloatArray


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a model, in elements, and the chip that it is compiled for."""

    name: str
    vocab_size: int
    width: int
    heads: int
    layers: int
    hidden: int
    context: int
    """Most rows that the cache can hold: positions 0 .. context - 1."""
    has_positions: bool = False
    chip: Chip = field(default_factory=Chip)

    @property
    def head_width(self) -> int:
        """Columns of one head."""
        return self.width // self.heads

    def __post_init__(self) -> None:
        for what in ("vocab_size", "width", "heads", "layers", "hidden", "context"):
            value = getattr(self, what)
            if type(value) is not int or not 1 <= value < 1 << 16:
                raise CheckpointError(
                    f"model {self.name}: {what} is {value!r}, expected a whole number of 1 .. 65535"
                )
        if self.width % self.heads:
            raise CheckpointError(
                f"model {self.name}: width {self.width} is not a multiple of its {self.heads} heads"
            )

    def weight_shapes(self) -> dict[str, tuple[int, int]]:
        """Shapes of the matrices that the chip multiplies by, in the order of the external map."""
        d = self.width
        shapes: dict[str, tuple[int, int]] = {}
        for layer in range(self.layers):
            for name in ("wq", "wk", "wv", "wo"):
                shapes[f"layers.{layer}.{name}"] = (d, d)
            shapes[f"layers.{layer}.w1"] = (d, self.hidden)
            shapes[f"layers.{layer}.w2"] = (self.hidden, d)
        return {**shapes, "unembed": (d, self.vocab_size)}

    def host_shapes(self) -> dict[str, tuple[int, int]]:
        """Shapes of the tables that stay on the host."""
        shapes = {"embed": (self.vocab_size, self.width)}
        return {**shapes, "positions": (self.context, self.width)} if self.has_positions else shapes


@dataclass(frozen=True)
class LanguageModel:
    """A model with its weights; `ranges` covers every tag of its programs once calibrated.

    Raises CheckpointError when a tensor is missing, unknown, of another shape, or not finite.
    """

    config: ModelConfig
    weights: Mapping[str, FloatArray]
    ranges: Ranges = field(default_factory=Ranges)
    characters: str | None = None
    """The vocabulary of a character model, in token order."""
    bigram: FloatArray | None = None
    """Logits of a bigram fitted to the model's own text, (vocabulary, vocabulary)."""

    def __post_init__(self) -> None:
        expected = {**self.config.host_shapes(), **self.config.weight_shapes()}
        for name in sorted(set(expected) | set(self.weights)):
            if name not in self.weights or name not in expected:
                state = "missing" if name in expected else "unknown"
                raise CheckpointError(
                    f"model {self.config.name}: tensor {name} is {state}, expected the "
                    f"{len(expected)} tensors of its {self.config.layers} layers"
                )
            self._check_tensor(name, self.weights[name], expected[name])
        if self.bigram is not None:
            size = self.config.vocab_size
            self._check_tensor("bigram", self.bigram, (size, size))
            object.__setattr__(self, "bigram", np.asarray(self.bigram, dtype=np.float64))
        if self.characters is not None and len(self.characters) != self.config.vocab_size:
            raise CheckpointError(
                f"model {self.config.name}: the vocabulary has {len(self.characters)} characters, "
                f"expected {self.config.vocab_size}"
            )
        weights = {name: np.asarray(self.weights[name], dtype=np.float64) for name in expected}
        object.__setattr__(self, "weights", MappingProxyType(weights))

    def _check_tensor(self, name: str, value: FloatArray, shape: tuple[int, int]) -> None:
        if value.shape != shape:
            raise CheckpointError(
                f"model {self.config.name}: tensor {name} has shape {value.shape}, expected {shape}"
            )
        if not np.isfinite(value).all():
            raise CheckpointError(
                f"model {self.config.name}: tensor {name} holds {value[~np.isfinite(value)][0]}, "
                "expected finite numbers"
            )

    def with_ranges(self, ranges: Ranges) -> "LanguageModel":
        """The same model with these ranges and those of its weights."""
        own = {name: round_range(float(np.abs(self.weights[name]).max()))
               for name in self.config.weight_shapes()}  # fmt: skip
        return replace(self, ranges=Ranges({**ranges.values, **own}))

    def embed(self, tokens: Sequence[int], start: int) -> FloatArray:
        """The rows fed to the first layer, (tokens, width); the first one is at position start.

        Raises InputError for a token outside the vocabulary, and for one that has no position.
        """
        for token in tokens:
            check_token("token", token, self.config.vocab_size)
        end, context = start + len(tokens), self.config.context
        if self.config.has_positions and end > context:
            raise InputError(
                f"model {self.config.name}: {len(tokens)} tokens after {start} make {end}, "
                f"expected at most {context}, the context"
            )
        rows = self.weights["embed"][list(tokens)]
        if self.config.has_positions:
            rows = rows + self.weights["positions"][start : start + len(tokens)]
        return rows

    def leaves(self, tokens: Sequence[int]) -> dict[str, FloatArray]:
        """The float inputs and weights of the graph of a block without a cache."""
        weights = {name: self.weights[name] for name in self.config.weight_shapes()}
        return {**weights, "x": self.embed(tokens, 0)}


def check_token(what: str, token: int, vocab_size: int) -> None:
    """Raise InputError unless a token is in the vocabulary."""
    if not (
        isinstance(token, int | np.integer) and type(token) is not bool and 0 <= token < vocab_size
    ):
        raise InputError(f"{what} is {token}, expected 0 .. {vocab_size - 1}, the vocabulary")
