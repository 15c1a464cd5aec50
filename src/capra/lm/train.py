"""Training of the character model `pydoc`, for exactly the arithmetic that GA2 computes with.

Needs torch, which only training needs: `pip install '.[train]'` in the checkout.

The model is the one of `capra.lm.model`: no normalization, no biases. The recipe:

* Matrices of the layers are trained by steepest descent in the spectral norm: the momentum of the
  gradient is replaced by the nearest matrix with equal singular values. Without normalization
  layers this is what makes training quick: in a run of 400 steps of two layers, AdamW alone (rate
  0.003) came to 3.1 bits per character and this to 2.5. Embedding, positions and output matrix
  are trained by AdamW.
* After FLOAT_PART of the steps every tensor that the chip holds as int8 is rounded in the forward
  pass; the gradient ignores the rounding.
* Weights have their largest magnitude as range. Activations do not: their range is the one with
  the least squared error on a sample of training text, searched again and again while the weights
  change. It cuts off a few outliers, which saturate, and makes the steps of all other values
  smaller. The compiled model should use these ranges, since it was trained with them.
* Scores are left to grow as large as they like. Limiting their largest magnitude to 20, by scaling
  the query and key matrices of a head down, cost 0.2 bits.

Not mirrored, since both are far below the step of an int8 probability: the softmax table has steps
of 1/32 and ends at 8, and rescale factors have sixteen significant bits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from capra.errors import InputError
from capra.lm.corpus import Corpus, load_corpus

if TYPE_CHECKING:
    import torch

Float32Array = npt.NDArray[np.float32]
TokenArray = npt.NDArray[np.int64]

WIDTH: Final = 64
HEADS: Final = 4
LAYERS: Final = 3
HIDDEN: Final = 256
CONTEXT: Final = 128

STEPS: Final = 1800
INDENT: Final = 3
NARROW: Final = 5
"""Of six copies of the text that windows are drawn from, five have runs of spaces cut to 3. Wide
indentation is a trap: after three spaces the likeliest single character is a fourth one, and most
greedy texts never leave the run. In this mixture it is a letter, and the sixth copy still teaches
what wide indentation looks like."""

BATCH: Final = 32
"""Windows of CONTEXT + 1 characters in one step."""

FLOAT_PART: Final = 0.75
"""Share of the steps without rounding; rounded steps take about twice the time."""

MATRIX_RATE: Final = 0.04
"""Spectral norm of the first steps of a layer's matrix."""
ADAM_RATE: Final = 0.01
WEIGHT_DECAY: Final = 0.1
WARMUP_STEPS: Final = 50

RANGES_EVERY: Final = 50
RANGE_WINDOWS: Final = 8
RANGE_CHOICES: Final = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
"""Candidate ranges, as shares of the largest magnitude."""

INT8_MAX: Final = 127

BIGRAM_PROMPTS: Final = 1024
BIGRAM_PROMPT_LENGTH: Final = 32
BIGRAM_LENGTH: Final = 64


@dataclass(frozen=True)
class TrainedModel:
    """What a checkpoint holds.

    `config` is ready for JSON: format, name, vocab (one-character strings in token order), width,
    heads, layers, hidden, context, corpus_digest, seed, steps. `tensors` are float32, applied as
    row vector times matrix: embed [vocab, width], positions [context, width], layers.{i}.wq, wk,
    wv, wo [width, width], layers.{i}.w1 [width, hidden], layers.{i}.w2 [hidden, width], unembed
    [width, vocab], and bigram [vocab, vocab], see `fit_bigram`. `ranges` has the largest magnitude
    that int8 expresses, for every activation by its tag in the graphs of `capra.lm.graphs`.
    """

    config: dict[str, Any]
    tensors: dict[str, Float32Array]
    ranges: dict[str, float]


def train(
    *,
    seed: int = 0,
    steps: int = STEPS,
    progress: Callable[[int, int, float], None] | None = None,
) -> TrainedModel:
    """Train on the help topics of this Python.

    The default steps take about 7 minutes of one core; they took 15 on a machine of two cores that
    ran test suites at the same time.

    The same seed gives the same model on one machine and one version of torch. `progress` is called
    after every step with the number of steps done, of all steps, and the mean training loss of late
    in bits per character. Sets torch's global seed and its number of threads, to 1: two wait for
    each other at every product, which on a busy machine takes longer than one alone. Raises
    InputError when torch is not installed, ValueError when steps is below 1.
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}, expected at least 1")
    try:
        import torch
    except ModuleNotFoundError:
        raise InputError(
            "torch is not installed, expected pip install '.[train]' in the checkout"
        ) from None

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    corpus = load_corpus()
    vocab = sorted(set(corpus.train + corpus.held_out))
    trainer = _Trainer(_tokens(corpus, vocab), len(vocab), seed, steps)
    recent = math.log2(len(vocab))
    for step in range(steps):
        recent += 0.05 * (trainer.step(step) - recent)
        if progress is not None:
            progress(step + 1, steps, recent)
    tensors = {name: value.detach().numpy().copy() for name, value in trainer.weights.items()}
    prompts = sample_windows(
        trainer.text.numpy(), BIGRAM_PROMPTS, BIGRAM_PROMPT_LENGTH, np.random.default_rng(seed)
    )
    tensors["bigram"] = fit_bigram(tensors, HEADS, prompts, BIGRAM_LENGTH)
    config = {
        "format": 1,
        "name": "pydoc",
        "vocab": vocab,
        "width": WIDTH,
        "heads": HEADS,
        "layers": LAYERS,
        "hidden": HIDDEN,
        "context": CONTEXT,
        "corpus_digest": corpus.digest,
        "seed": seed,
        "steps": steps,
    }
    return TrainedModel(config, tensors, trainer.best_ranges())


def _tokens(corpus: Corpus, vocab: list[str]) -> TokenArray:
    """What to train on as token numbers: the text with little indentation, and as it is."""
    token = {char: index for index, char in enumerate(vocab)}
    narrow = re.sub(f" {{{INDENT + 1},}}", " " * INDENT, corpus.train)
    return np.array([token[char] for char in narrow * NARROW + corpus.train], dtype=np.int64)


class _Trainer:
    """The weights and everything that changes from step to step."""

    def __init__(self, text: TokenArray, vocab_size: int, seed: int, steps: int) -> None:
        import torch

        self.text = torch.from_numpy(text)
        self.weights = _initial_weights(vocab_size)
        self._steps = steps
        self._draw = torch.Generator().manual_seed(seed)
        self._quantizer: _Quantizer | None = None
        layered = {name: w for name, w in self.weights.items() if name.startswith("layers.")}
        self._matrices = _by_shape(layered)
        self._momentum = {name: torch.zeros_like(w) for name, w in layered.items()}
        self._adam = torch.optim.AdamW(
            [w for name, w in self.weights.items() if name not in layered],
            betas=(0.9, 0.98),
            weight_decay=WEIGHT_DECAY,
        )

    def step(self, step: int) -> float:
        """Train on one batch; the loss before it, in bits per character."""
        from torch.nn import functional

        if step >= FLOAT_PART * self._steps and step % RANGES_EVERY == 0:
            self._quantizer = _Quantizer(self.best_ranges())
        batch = self._windows(BATCH)
        logits = _logits(self.weights, batch[:, :-1], self._quantizer or _Float())
        loss = functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()  # type: ignore[no-untyped-call, unused-ignore]
        self._descend(step)
        bits: float = loss.item() / math.log(2)
        return bits

    def best_ranges(self) -> dict[str, float]:
        """The range of every activation with the least squared error on a sample of the text."""
        import torch

        search = _RangeSearch()
        with torch.no_grad():
            _logits(self.weights, self._windows(RANGE_WINDOWS)[:, :-1], search)
        return search.ranges

    def _windows(self, count: int) -> torch.Tensor:
        """Random windows of the training text, [count, CONTEXT + 1]."""
        import torch

        starts = torch.randint(len(self.text) - CONTEXT, (count, 1), generator=self._draw)
        return self.text[starts + torch.arange(CONTEXT + 1)]

    def _descend(self, step: int) -> None:
        """Move all weights against their gradients and clear these."""
        import torch

        cosine = 0.5 + 0.5 * math.cos(math.pi * step / self._steps)
        rate = min((step + 1) / WARMUP_STEPS, max(cosine, 0.01))
        for group in self._adam.param_groups:
            group["lr"] = ADAM_RATE * rate
        self._adam.step()
        # A young momentum is mostly its zero start, so it forgets faster in the beginning.
        keep = min(0.95, 0.85 + step / 3000)
        shrink = 1 - MATRIX_RATE * rate * WEIGHT_DECAY
        with torch.no_grad():
            for (rows, cols), names in self._matrices.items():
                ahead = []
                for name in names:
                    gradient, momentum = self.weights[name].grad, self._momentum[name]
                    assert gradient is not None
                    momentum.lerp_(gradient, 1 - keep)
                    ahead.append(gradient.lerp(momentum, keep))
                length = MATRIX_RATE * rate * math.sqrt(max(1.0, cols / rows))
                directions = _with_equal_singular_values(torch.stack(ahead))
                for name, direction in zip(names, directions, strict=True):
                    self.weights[name].mul_(shrink).sub_(direction, alpha=length)
        for weight in self.weights.values():
            weight.grad = None


def _initial_weights(vocab_size: int) -> dict[str, torch.Tensor]:
    """Gaussian weights; products keep the magnitude, sums grow by little from layer to layer."""
    import torch

    def gaussian(rows: int, cols: int, deviation: float) -> torch.Tensor:
        return (torch.randn(rows, cols) * deviation).requires_grad_()

    into_sum = 1 / math.sqrt(2 * LAYERS)
    weights = {
        "embed": gaussian(vocab_size, WIDTH, 0.2),
        "positions": gaussian(CONTEXT, WIDTH, 0.1),
        "unembed": gaussian(WIDTH, vocab_size, 0.5 / math.sqrt(WIDTH)),
    }
    for layer in range(LAYERS):
        for name in ("wq", "wk", "wv"):
            weights[f"layers.{layer}.{name}"] = gaussian(WIDTH, WIDTH, WIDTH**-0.5)
        weights[f"layers.{layer}.wo"] = gaussian(WIDTH, WIDTH, WIDTH**-0.5 * into_sum)
        weights[f"layers.{layer}.w1"] = gaussian(WIDTH, HIDDEN, WIDTH**-0.5)
        weights[f"layers.{layer}.w2"] = gaussian(HIDDEN, WIDTH, HIDDEN**-0.5 * into_sum)
    return weights


def _by_shape(matrices: Mapping[str, torch.Tensor]) -> dict[tuple[int, int], list[str]]:
    """Names of the matrices of each shape: those are orthogonalized in one call."""
    groups: dict[tuple[int, int], list[str]] = {}
    for name, matrix in matrices.items():
        groups.setdefault((matrix.shape[0], matrix.shape[1]), []).append(name)
    return groups


def _with_equal_singular_values(matrices: torch.Tensor) -> torch.Tensor:
    """Matrices [n, rows, cols] with their singular vectors, and singular values of about 1.

    An odd polynomial of a matrix applies to its singular values alone. Five times this one takes
    everything of 0.002 .. 1 to 0.68 .. 1.21, which is all the precision that descent needs, with
    nothing but products.
    """
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)  # no singular value exceeds this norm
    for _ in range(5):
        square = x @ x.mT
        x = 3.4445 * x + (-4.775 * square + 2.0315 * square @ square) @ x
    result: torch.Tensor = x.mT if tall else x
    return result


def _logits(
    weights: Mapping[str, torch.Tensor], tokens: torch.Tensor, arithmetic: _Float
) -> torch.Tensor:
    """Logits [windows, length, vocab] of tokens [windows, length] in the given arithmetic."""
    import torch

    windows, length = tokens.shape
    see = arithmetic.activation
    later = torch.ones(length, length, dtype=torch.bool).triu(1)

    def product(x: torch.Tensor, name: str) -> torch.Tensor:
        result: torch.Tensor = x @ arithmetic.weight(weights[name])
        return result

    def per_head(x: torch.Tensor) -> torch.Tensor:
        return x.view(windows, length, HEADS, WIDTH // HEADS).transpose(1, 2)

    x = see("x", weights["embed"][tokens] + weights["positions"][:length])
    for layer in range(LAYERS):
        at, of = f"l{layer}", f"layers.{layer}"
        q, k, v = (per_head(see(f"{at}.{n}", product(x, f"{of}.w{n}"))) for n in "qkv")
        heads = arithmetic.attention(at, q, k, v, later)
        joined = see(f"{at}.attn", heads.transpose(1, 2).reshape(windows, length, WIDTH))
        x = arithmetic.add(f"{at}.mid", x, see(f"{at}.o", product(joined, f"{of}.wo")))
        hidden = see(f"{at}.ff1", product(x, f"{of}.w1").relu())
        x = arithmetic.add(f"{at}.out", x, see(f"{at}.ff2", product(hidden, f"{of}.w2")))
    return see("logits", product(x, "unembed"))


class _Float:
    """Arithmetic without rounding; the others are variations of it.

    Tags that differ from head to head have a star for the head: l0.h*.scores.
    """

    def weight(self, matrix: torch.Tensor) -> torch.Tensor:
        """A matrix as the chip would hold it."""
        return matrix

    def activation(self, tag: str, value: torch.Tensor) -> torch.Tensor:
        """An activation as the chip would hold it; heads are dimension 1 where tags have stars."""
        return value

    def add(self, tag: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        """The sum of two activations."""
        return self.activation(tag, a + b)

    def attention(
        self, at: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, later: torch.Tensor
    ) -> torch.Tensor:
        """Attention of all heads, [windows, heads, length, columns], each row blind to later ones.

        The fused form: it takes a fraction of the time, and nothing of it needs to be seen.
        """
        from torch.nn import functional

        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class _Visible(_Float):
    """Arithmetic in which scores and probabilities pass through `activation` too."""

    def attention(
        self, at: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, later: torch.Tensor
    ) -> torch.Tensor:
        """As in float, in its steps; `activation` sees scores that no row uses, too."""
        scores = self.activation(f"{at}.h*.scores", (q * q.shape[-1] ** -0.5) @ k.mT)
        probs = scores.masked_fill(later, -math.inf).softmax(-1)
        return self.activation(f"{at}.h*.probs", probs) @ v


class _Quantizer(_Visible):
    """Every tensor rounded to the int8 grid of its range."""

    def __init__(self, ranges: Mapping[str, float]) -> None:
        """Limits are floats, or [heads, 1, 1] where the tag has a star."""
        import torch

        self._limits: dict[str, Any] = dict(ranges)
        for layer in range(LAYERS):
            for tag in (f"l{layer}.h*.scores", f"l{layer}.h*.probs"):
                limits = torch.tensor([ranges[name] for name in _head_tags(tag)])
                self._limits[tag] = limits.view(HEADS, 1, 1)

    def weight(self, matrix: torch.Tensor) -> torch.Tensor:
        return _on_grid(matrix, float(matrix.detach().abs().max()))

    def activation(self, tag: str, value: torch.Tensor) -> torch.Tensor:
        return _on_grid(value, self._limits[tag])

    def add(self, tag: str, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        limit = self._limits[tag]
        return (_on_grid(a, limit) + _on_grid(b, limit)).clamp(-limit, limit)


def _on_grid(value: torch.Tensor, limit: float | torch.Tensor) -> torch.Tensor:
    """The nearest of the 255 multiples of limit / 127, halves up; the gradient passes unchanged."""
    import torch

    scale = limit / INT8_MAX
    with torch.no_grad():
        steps = (value / scale).add_(0.5).floor_().clamp_(-INT8_MAX, INT8_MAX)
        error = steps.mul_(scale).sub_(value)
    return value + error


def _head_tags(tag: str) -> Iterator[str]:
    return (tag.replace("*", str(head)) for head in range(HEADS))


class _RangeSearch(_Visible):
    """Float arithmetic that finds, for every tag, the range with the least squared error."""

    def __init__(self) -> None:
        self.ranges: dict[str, float] = {}

    def activation(self, tag: str, value: torch.Tensor) -> torch.Tensor:
        if "*" not in tag:
            self.ranges[tag] = _best_range(value)
        else:
            for head, name in enumerate(_head_tags(tag)):  # tril: without scores that are not used
                self.ranges[name] = _best_range(value[:, head].tril())
        return value


def _best_range(value: torch.Tensor) -> float:
    largest = float(value.abs().max())
    errors = {
        share * largest: float((_on_grid(value, share * largest) - value).square().sum())
        for share in RANGE_CHOICES
    }
    return min(errors, key=errors.__getitem__)


def sample_windows(
    tokens: TokenArray, count: int, length: int, draw: np.random.Generator
) -> TokenArray:
    """Random stretches of a text, [count, length]."""
    starts = draw.integers(0, len(tokens) - length + 1, size=(count, 1))
    windows: TokenArray = tokens[starts + np.arange(length)]
    return windows


def fit_bigram(
    tensors: Mapping[str, Float32Array], heads: int, prompts: TokenArray, length: int
) -> Float32Array:
    """Scores [vocab, vocab] of a token after another one in the model's own greedy text.

    The model continues every row of `prompts` [count, prompt length] by `length` tokens; pairs of
    neighbours are counted, from the last prompt token on. With counts that start at 0.5, an entry
    is 4 ln(vocab p), p the relative frequency of its column in its row. Equal for a model that is
    fitted twice on one machine. The prompt and its continuation must fit the context.
    """
    vocab_size = len(tensors["embed"])
    written = continue_greedily(tensors, heads, prompts, length)[:, prompts.shape[1] - 1 :]
    counts = np.full((vocab_size, vocab_size), 0.5)
    np.add.at(counts, (written[:, :-1], written[:, 1:]), 1)
    frequency = counts / counts.sum(axis=1, keepdims=True)
    scores: Float32Array = (4 * np.log(vocab_size * frequency)).astype(np.float32)
    return scores


def continue_greedily(
    tensors: Mapping[str, Float32Array], heads: int, prompts: TokenArray, length: int
) -> TokenArray:
    """The prompts [count, n] and the most likely `length` tokens after each: [count, n + length].

    In float32, all rows at once, with cached keys and values. Raises ValueError when the result
    would not fit the context.
    """
    count, given = prompts.shape
    context, width = tensors["positions"].shape
    if given + length > context:
        raise ValueError(f"{given} + {length} tokens do not fit the context of {context}")
    layers = sum(name.endswith(".wq") for name in tensors)
    cache = np.zeros((layers, 2, count, heads, given + length, width // heads), dtype=np.float32)
    tokens = np.concatenate([prompts, np.zeros((count, length), dtype=np.int64)], axis=1)
    for position in range(given + length - 1):
        x = tensors["embed"][tokens[:, position]] + tensors["positions"][position]
        for layer in range(layers):
            of = f"layers.{layer}"
            q, cache[layer, 0, :, :, position], cache[layer, 1, :, :, position] = (
                (x @ tensors[f"{of}.{name}"]).reshape(count, heads, -1)
                for name in ("wq", "wk", "wv")
            )
            keys, values = cache[layer, :, :, :, : position + 1]
            scores = (keys @ q[..., None])[..., 0] / np.float32(math.sqrt(width // heads))
            probs = np.exp(scores - scores.max(axis=-1, keepdims=True))
            probs /= probs.sum(axis=-1, keepdims=True)
            attention = (probs[:, :, None, :] @ values).reshape(count, width)
            x = x + attention @ tensors[f"{of}.wo"]
            x = x + np.maximum(x @ tensors[f"{of}.w1"], 0) @ tensors[f"{of}.w2"]
        if position >= given - 1:
            tokens[:, position + 1] = (x @ tensors["unembed"]).argmax(axis=1)
    return tokens
