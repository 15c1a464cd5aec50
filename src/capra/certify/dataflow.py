"""A graph as terms: what every row of every tensor is computed from.

The third meaning of a graph beside the float reference and the integer interpreter. A tensor is a
tuple of rows, and a row is the number of a vector of terms. Rows are computed once: the programs of
a model differ in few of them.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from capra.certify.terms import Terms
from capra.ir.graph import Graph, Kind, Node
from capra.ir.scales import Scales
from capra.numerics import Int64Array, Rescale

Rows = tuple[int, ...]
"""One vector a row."""

LeafRows = Callable[[Node, float], Rows]
"""The rows of an input or a weight, given the scale by which the host quantizes it."""

Cut = Callable[[Node, Rows], Rows]
"""Called with every tensor once it is expanded; what it gives is what readers see."""


class Dataflow:
    """Expands graphs into one table of terms."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._rows: dict[tuple[object, ...], int] = {}
        self._columns: dict[Rows, Rows] = {}

    def expand(
        self,
        graph: Graph,
        scales: Scales,
        leaf_rows: LeafRows,
        cut: Cut = lambda _node, rows: rows,
    ) -> dict[str, Rows]:
        """The rows of every tensor by name, a product that is fused into a relu included."""
        values: dict[str, Rows] = {}
        for node in graph:
            self.terms.origin = f"{node.name} of {graph.name}"
            if node.kind in (Kind.INPUT, Kind.WEIGHT):
                rows = leaf_rows(node, scales.scale[node.name])
            else:
                rows = self._expand(node, scales, [values[name] for name in node.inputs])
            values[node.name] = cut(node, rows)
        return values

    def mark(self) -> tuple[int, ...]:
        """How much is known now, for `forget_since`."""
        return (*self.terms.mark(), len(self._rows), len(self._columns))

    def forget_since(self, mark: tuple[int, ...]) -> None:
        """Forget every term, vector and row made since a mark."""
        *in_terms, rows, columns = mark
        self.terms.forget_since(*in_terms)
        for known, count in ((self._rows, rows), (self._columns, columns)):
            while len(known) > count:
                known.popitem()

    def leaf(self, tensor: str, start: int, count: int, cols: int, scale: float | None) -> Rows:
        """Rows start .. start + count - 1 of what the host writes."""

        def make(row: int) -> list[int]:
            return [self.terms.leaf(tensor, row, column, scale) for column in range(cols)]

        return tuple(
            self._once(("leaf", tensor, row, cols, scale), partial(make, row))
            for row in range(start, start + count)
        )

    def array(self, rows: Rows) -> Int64Array:
        """The terms of a tensor, rows x columns."""
        return np.stack([self.terms.elements(row) for row in rows])

    def _expand(self, node: Node, scales: Scales, operands: list[Rows]) -> Rows:
        first = operands[0]
        match node.kind:
            case Kind.MATMUL | Kind.SCORES:
                columns = operands[1] if node.transpose_b else self._transposed(operands[1])
                out = scales.product[node.name]
                return tuple(self._product_row(row, columns, out) for row in first)
            case Kind.SOFTMAX:
                index, out = scales.softmax_index[node.name], scales.product[node.name]
                return tuple(self._softmax_row(row, index, out) for row in first)
            case Kind.ATTENTION:
                heads = zip(*self._heads(node, scales, *operands), strict=True)
                return tuple(self._beside(row) if node.heads > 1 else row[0] for row in heads)
            case Kind.RELU:
                return tuple(self._relu_row(row) for row in first)
            case Kind.ADD:
                to_out = scales.addends[node.name]
                pairs = zip(*operands, strict=True)
                return tuple(self._sum_row(a, b, *to_out) for a, b in pairs)
            case Kind.CONCAT_ROWS:
                return tuple(row for part in operands for row in part)
            case Kind.CONCAT_COLS:
                return tuple(self._beside(row) for row in zip(*operands, strict=True))
            case Kind.SLICE_ROWS:
                return first[node.start : node.start + node.rows]
            case Kind.SLICE_COLS:
                return tuple(self._cut_row(row, node.start, node.cols) for row in first)
            case Kind.ARGMAX:
                return tuple(self.terms.vector([self.terms.argmax(row)]) for row in first)
            case Kind.INPUT | Kind.WEIGHT:
                raise AssertionError(f"{node.name} is a leaf")

    def _heads(self, node: Node, scales: Scales, q: Rows, k: Rows, v: Rows) -> Iterator[Rows]:
        """The rows of every head's result. A row is made of the keys that it sees and no other."""
        assert node.visible is not None
        for number, head in enumerate(node.inner):
            columns = node.columns(number)
            width = columns.stop - columns.start
            (queries, keys, values) = (
                rows if node.heads == 1 else
                tuple(self._cut_row(row, columns.start, width) for row in rows)
                for rows in (q, k, v)
            )  # fmt: skip
            to_score, to_prob, to_out = (scales.product[tensor.name] for tensor in head)
            index, mixed = scales.softmax_index[head.probs.name], list[int]()
            for row, query in enumerate(queries):
                seen = node.visible.columns(row)
                scores = self._product_row(query, tuple(keys[key] for key in seen), to_score)
                probs = self._softmax_row(scores, index, to_prob)
                weighed = self._transposed(tuple(values[key] for key in seen))
                mixed.append(self._product_row(probs, weighed, to_out))
            yield tuple(mixed)

    def _transposed(self, rows: Rows) -> Rows:
        if rows not in self._columns:
            self._columns[rows] = tuple(self.terms.vector(c) for c in self.array(rows).T)
        return self._columns[rows]

    def _once(self, key: tuple[object, ...], make: Callable[[], list[int] | Int64Array]) -> int:
        """The row of a key, made the first time that it is asked for."""
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self.terms.vector(make())
        return row

    def _terms_of(self, row: int) -> list[int]:
        numbers: list[int] = self.terms.elements(row).tolist()
        return numbers

    def _product_row(self, row: int, columns: Rows, out: Rescale) -> int:
        terms = self.terms

        def make() -> list[int]:
            sums = (terms.dot(row, column) for column in columns)
            return [terms.rescale(s, out.multiplier, out.shift) for s in sums]

        return self._once(("product", row, columns, out), make)

    def _softmax_row(self, row: int, index: Rescale, out: Rescale) -> int:
        terms = self.terms

        def make() -> list[int]:
            fixed = terms.softmax(row, index.multiplier, index.shift)
            return [terms.rescale(f, out.multiplier, out.shift) for f in fixed]

        return self._once(("softmax", row, index, out), make)

    def _relu_row(self, row: int) -> int:
        return self._once(("relu", row), lambda: [self.terms.relu(t) for t in self._terms_of(row)])

    def _sum_row(self, a: int, b: int, a_to_out: Rescale, b_to_out: Rescale) -> int:
        terms = self.terms

        def make() -> list[int]:
            pairs = zip(self._terms_of(a), self._terms_of(b), strict=True)
            return [
                terms.add(
                    terms.rescale(x, a_to_out.multiplier, a_to_out.shift),
                    terms.rescale(y, b_to_out.multiplier, b_to_out.shift),
                )
                for x, y in pairs
            ]

        return self._once(("add", a, b, a_to_out, b_to_out), make)

    def _beside(self, parts: Rows) -> int:
        elements = self.terms.elements
        return self._once(("beside", parts), lambda: np.concatenate([elements(p) for p in parts]))

    def _cut_row(self, row: int, start: int, count: int) -> int:
        return self._once(
            ("cut", row, start, count), lambda: self.terms.elements(row)[start : start + count]
        )
