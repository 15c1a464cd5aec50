"""Terms as numbers: what a term is worth once its leaves have values."""

from collections.abc import Callable

import numpy as np

from capra.certify.terms import Term, TermOp, Terms
from capra.numerics import Int64Array, first_argmax, requantize, saturating_add, softmax_row

LeafValue = Callable[[str, int, int], int]


class Meaning:
    """Evaluates terms of a table, each once."""

    def __init__(self, terms: Terms, leaf_value: LeafValue) -> None:
        self._terms = terms
        self._leaf_value = leaf_value
        self._values: dict[int, int] = {}

    def row(self, vector: int) -> Int64Array:
        """The numbers of a vector of terms."""
        return np.array([self.value(t) for t in self._terms.elements(vector).tolist()], np.int64)

    def value(self, number: int) -> int:
        if number not in self._values:
            self._values[number] = self._evaluate(self._terms[number])
        return self._values[number]

    def _evaluate(self, term: Term) -> int:
        operands = [np.array([self.value(t)]) for t in term.terms]
        vectors = [self.row(v) for v in term.vectors]
        match term.op:
            case TermOp.LEAF:
                tensor, row, column, _ = term.constants
                assert isinstance(row, int) and isinstance(column, int)
                return self._leaf_value(str(tensor), row, column)
            case TermOp.DOT:
                return int(vectors[0] @ vectors[1])
            case TermOp.ACCUMULATE:
                return int(operands[0][0] + vectors[0] @ vectors[1])
            case TermOp.RESCALE:
                multiplier, shift = (int(c) for c in term.constants if isinstance(c, int))
                return int(requantize(operands[0], multiplier, shift)[0])
            case TermOp.RELU:
                return max(int(operands[0][0]), 0)
            case TermOp.ADD:
                return int(saturating_add(*operands)[0])
            case TermOp.SOFTMAX:
                index, multiplier, shift = (int(c) for c in term.constants if isinstance(c, int))
                return int(softmax_row(vectors[0], multiplier, shift)[index])
            case TermOp.ARGMAX:
                return first_argmax(vectors[0])
            case TermOp.ZERO:
                return 0
            case TermOp.BYTE:
                return (int(operands[0][0]) + 128) % 256 - 128
