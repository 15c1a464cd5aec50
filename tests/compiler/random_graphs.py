"""Random graphs built around views, with float data for every leaf.

`random_graph(seed)` depends on nothing but its seed. Almost every operand is cut out of something
that exists already, by rows, by columns or both, so that each operation meets views of every kind
of source. The float values come from numpy expressions of this file's own; they also choose the
factor of every product, which keeps the numbers of a deep graph near 1.
"""

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from tests.ir.visible_sets import mask_of, random_visible

from capra.ir.graph import CONCATS, LEAVES, PRODUCTS, SLICES, Graph
from capra.numerics import FloatArray

SAMPLES = 6
"""Draws of the leaves of one graph: calibration sees all of them, programs run the first."""

MAX_SIDE = 12

ZEROS = 0.05
"""Part of the leaves that are 0."""


@dataclass(frozen=True)
class RandomGraph:
    """A graph, its leaves by sample, and what every tensor is worth in float, (samples, r, c)."""

    seed: int
    graph: Graph
    leaves: tuple[dict[str, FloatArray], ...]
    values: dict[str, FloatArray]


def leaf_values(name: str, rows: int, cols: int, seed: int) -> FloatArray:
    """Normally distributed values of one leaf by sample, whatever other leaves a graph has.

    Some leaves are 0 throughout.
    """
    noise = np.random.default_rng([seed, zlib.crc32(name.encode())])
    values = noise.normal(size=(SAMPLES, rows, cols))
    return values * (noise.random() >= ZEROS)


def leaf_samples(graph: Graph, seed: int) -> tuple[dict[str, FloatArray], ...]:
    """Values of every leaf of a graph, by sample."""
    values = {n.name: leaf_values(n.name, *n.shape, seed) for n in graph if n.kind in LEAVES}
    return tuple({name: value[s] for name, value in values.items()} for s in range(SAMPLES))


def random_graph(seed: int) -> RandomGraph:
    """The graph of a seed: 8 to 15 operations, 1 to 5 outputs."""
    return _Builder(seed).build()


class _Builder:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._draw = random.Random(seed)
        self._graph = Graph(f"random_{seed}")
        self._values: dict[str, FloatArray] = {}
        self._pool: list[str] = []

    def build(self) -> RandomGraph:
        steps: list[tuple[Callable[[], str], int]] = [
            (self._concat, 4), (self._matmul, 3), (self._matmul_transposed, 3), (self._scores, 3),
            (self._softmax, 4), (self._attention, 5), (self._add, 3), (self._relu, 3),
            (self._argmax, 4), (self._operand, 1), (self._any_leaf, 1),
        ]  # fmt: skip
        makers, weights = [make for make, _ in steps], [weight for _, weight in steps]
        self._any_leaf()
        last = ""
        for make in self._draw.choices(makers, weights, k=self._draw.randint(8, 15)):
            last = make()
        names = [name for name in self._graph.nodes if name != last]
        for name in [last, *self._draw.sample(names, k=min(len(names), self._draw.randint(0, 4)))]:
            self._graph.output(name)
        leaves = leaf_samples(self._graph, self._seed)
        return RandomGraph(self._seed, self._graph, leaves, self._values)

    # Names and operands

    def _name(self, kind: str) -> str:
        return f"{kind}{len(self._graph.nodes)}"

    def _keep(self, name: str, value: FloatArray) -> str:
        self._values[name] = value
        self._pool.append(name)
        return name

    def _coin(self, chance: float) -> bool:
        return self._draw.random() < chance

    def _leaf(self, rows: int, cols: int) -> str:
        choices = ((self._graph.input, "input"), (self._graph.weight, "weight"))
        make, kind = self._draw.choice(choices)
        name = make(self._name(kind), rows, cols)
        return self._keep(name, leaf_values(name, rows, cols, self._seed))

    def _any_leaf(self) -> str:
        return self._leaf(self._side(), self._side())

    def _side(self) -> int:
        return self._draw.randint(1, MAX_SIDE)

    def _margin(self) -> int:
        return self._draw.choice((0, 0, 1, 3))

    def _operand(self, rows: int | None = None, cols: int | None = None) -> str:
        """A tensor of this shape (None: any size), mostly a view of an older one of any kind."""
        fitting = [
            name
            for name in self._pool
            if self._graph[name].rows >= (rows or 1) and self._graph[name].cols >= (cols or 1)
        ]
        if not fitting or self._coin(0.1):
            sides = [size + self._margin() if size else self._side() for size in (rows, cols)]
            fitting = [self._leaf(*sides)]
        kind = self._draw.choice(sorted({self._graph[name].kind for name in fitting}))
        name = self._draw.choice([name for name in fitting if self._graph[name].kind is kind])
        if rows is cols is None and self._coin(0.15):
            return name
        cuts = [(self._cut_rows, rows), (self._cut_cols, cols)]
        self._draw.shuffle(cuts)
        for cut, size in cuts:
            name = cut(name, size)
        return name

    def _range(self, whole: int, count: int | None) -> tuple[int, int] | None:
        """Start and count of a slice, or None where the whole will do."""
        if count is None:
            count = self._draw.randint(1, whole) if self._coin(0.55) else whole
        if count == whole and not self._coin(0.05):
            return None
        return self._draw.randint(0, whole - count), count

    def _cut_rows(self, name: str, rows: int | None) -> str:
        chosen = self._range(self._graph[name].rows, rows)
        if chosen is None:
            return name
        start, count = chosen
        cut = self._graph.slice_rows(self._name("slice_rows"), name, start, count)
        return self._keep(cut, self._values[name][:, start : start + count])

    def _cut_cols(self, name: str, cols: int | None) -> str:
        chosen = self._range(self._graph[name].cols, cols)
        if chosen is None:
            return name
        start, count = chosen
        cut = self._graph.slice_cols(self._name("slice_cols"), name, start, count)
        return self._keep(cut, self._values[name][:, :, start : start + count])

    # Operations

    def _matmul(self) -> str:
        if self._coin(0.5):
            a = self._operand()
            b = self._operand(rows=self._graph[a].cols)
        else:
            b = self._operand()
            a = self._operand(cols=self._graph[b].rows)
        product = self._values[a] @ self._values[b]
        scale = _normalizing(product)
        return self._keep(
            self._graph.matmul(self._name("matmul"), a, b, scale=scale), product * scale
        )

    def _matmul_transposed(self) -> str:
        a = self._operand()
        b = a if self._coin(0.15) else self._operand(cols=self._graph[a].cols)
        product = self._values[a] @ self._values[b].transpose(0, 2, 1)
        scale = _normalizing(product)
        name = self._name("matmul_t")
        self._graph.matmul(name, a, b, transpose_b=True, scale=scale)
        return self._keep(name, product * scale)

    def _scores(self) -> str:
        q = self._operand()
        k = q if self._coin(0.15) else self._operand(cols=self._graph[q].cols)
        product = self._values[q] @ self._values[k].transpose(0, 2, 1)
        scale = _normalizing(product)
        return self._keep(
            self._graph.scores(self._name("scores"), q, k, scale=scale), product * scale
        )

    def _softmax(self) -> str:
        x = self._operand()
        return self._keep(self._graph.softmax(self._name("softmax"), x), _softmax(self._values[x]))

    def _attention(self) -> str:
        """Any visible set; keys and values may be one tensor, and the queries' too."""
        q = self._operand()
        rows, cols = self._graph[q].shape
        keys = rows if self._coin(0.2) else self._side()
        k = q if keys == rows and self._coin(0.3) else self._operand(keys, cols)
        v = k if self._coin(0.15) else self._operand(keys, cols)
        heads = self._draw.choice([n for n in range(1, cols + 1) if cols % n == 0])
        visible = random_visible(self._draw, rows, keys)
        mask, width = mask_of(visible), cols // heads
        products = [
            self._values[q][:, :, cut] @ self._values[k][:, :, cut].transpose(0, 2, 1)
            for cut in (slice(start, start + width) for start in range(0, cols, width))
        ]
        scale = _normalizing(np.stack(products) * mask)
        name = self._graph.attention(
            self._name("attention"), q, k, v, visible=visible, heads=heads, scale=scale
        )
        mixed = list[FloatArray]()
        for head, product in enumerate(products):
            probs = _softmax(np.where(mask, product * scale, -np.inf))
            mixed.append(probs @ self._values[v][:, :, head * width : (head + 1) * width])
            self._values[f"{name}.h{head}.scores"] = np.where(mask, product * scale, 0)
            self._values[f"{name}.h{head}.probs"] = probs
            self._values[f"{name}.h{head}.mixed"] = mixed[-1]
        return self._keep(name, np.concatenate(mixed, axis=2))

    def _add(self) -> str:
        a = self._operand()
        b = a if self._coin(0.15) else self._operand(*self._graph[a].shape)
        return self._keep(
            self._graph.add(self._name("add"), a, b), self._values[a] + self._values[b]
        )

    def _relu(self) -> str:
        whole = [name for name in self._pool if self._graph[name].kind not in SLICES]
        unread = [
            name
            for name in whole
            if self._graph[name].kind in PRODUCTS and not self._graph.users(name)
        ]
        x = self._draw.choice(unread if unread and self._coin(0.6) else whole)
        if x in unread and self._coin(0.7):
            self._pool.remove(x)  # nothing else will read it, so the relu is fused
        value = self._values[x]
        return self._keep(self._graph.relu(self._name("relu"), x), value * (value > 0))

    def _argmax(self) -> str:
        x = self._operand()
        name = self._graph.argmax(self._name("argmax"), x)
        self._values[name] = self._values[x].argmax(axis=2)[:, :, None].astype(np.float64)
        return name

    def _concat(self) -> str:
        """Two or three tensors that no other concatenation has, with a new leaf if need be."""
        free = [
            name
            for name in self._pool
            if self._graph[name].kind not in SLICES and self._graph.concat_of(name) is None
        ] or [self._any_leaf()]
        nested = [name for name in free if self._graph[name].kind in CONCATS]
        first = self._draw.choice(nested if nested and self._coin(0.5) else free)
        rows, cols = self._graph[first].shape
        by_rows = rows < cols if max(rows, cols) > 2 * MAX_SIDE else self._coin(0.5)
        matching = [
            name
            for name in free
            if name != first
            and (self._graph[name].cols == cols if by_rows else self._graph[name].rows == rows)
        ]
        others = self._draw.sample(matching, k=min(len(matching), self._draw.randint(0, 2)))
        if not others:
            others = [self._leaf(self._side(), cols) if by_rows else self._leaf(rows, self._side())]
        parts = [first, *others]
        self._draw.shuffle(parts)
        values = [self._values[part] for part in parts]
        if by_rows:
            name = self._graph.concat_rows(self._name("concat_rows"), parts)
            return self._keep(name, np.concatenate(values, axis=1))
        name = self._graph.concat_cols(self._name("concat_cols"), parts)
        return self._keep(name, np.concatenate(values, axis=2))


def _softmax(x: FloatArray) -> FloatArray:
    exponentials = np.exp(x)
    total: FloatArray = exponentials.sum(axis=2, keepdims=True)
    return exponentials / total


def _normalizing(product: FloatArray) -> float:
    """A factor that brings a product near 1, to three digits."""
    size = float(np.sqrt(np.mean(product**2)))
    return float(f"{1 / size:.3g}") if size > 0 else 1.0
