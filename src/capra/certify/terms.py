"""Terms: what an integer is computed from, down to the leaves, hash-consed.

    term   ::= leaf tensor row column scale      an int8 element that the host writes
             | dot vector vector                 the 32-bit sum of products of two int8 vectors
             | accumulate term vector vector     a sum of products added to another word
             | rescale term multiplier shift     rounded, shifted, clamped to -127 .. 127
             | relu term                         max(int8 term, 0)
             | add term term                     the saturating int8 sum
             | softmax vector index multiplier shift    one element of a row's softmax, in Q0.15
             | argmax vector                     index of the first maximum
             | byte term                         the lowest byte of a word, as int8
             | zero                              0
    vector ::= term*

Terms and vectors are numbers; the same term made twice has the same number, so two integers with
the same number are the same function of the same leaves, whatever the leaves hold. The opposite is
not promised: only what is written above a function here is made alike (a fused relu, a rescale by
exactly 1 or by 0, a sum split over K, products with 0 in a sum). That is safe: the certificate may
refuse what is equal, never accept what is not.
"""

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

import numpy as np

from capra.numerics import Int64Array


class TermOp(StrEnum):
    """The operation of a term."""

    LEAF = "leaf"
    DOT = "dot"
    ACCUMULATE = "accumulate"
    RESCALE = "rescale"
    RELU = "relu"
    ADD = "add"
    SOFTMAX = "softmax"
    ARGMAX = "argmax"
    BYTE = "byte"
    ZERO = "zero"


_INT8: Final = frozenset({TermOp.LEAF, TermOp.RESCALE, TermOp.RELU, TermOp.ADD, TermOp.ZERO})
"""Operations whose result is an int8 integer of -127 .. 127; a byte may also be -128."""

DIGEST_BYTES: Final = 16


class Term(NamedTuple):
    """One operation: the numbers of the terms and vectors that it reads, and its constants."""

    op: TermOp
    terms: tuple[int, ...] = ()
    vectors: tuple[int, ...] = ()
    constants: tuple[str | int | float | None, ...] = ()


_ZERO: Final = Term(TermOp.ZERO)


class Terms:
    """The table of all terms and vectors; `origin` is noted for every term that is new."""

    def __init__(self) -> None:
        self.origin = ""
        self._terms: list[Term] = []
        self._origins: list[str] = []
        self._numbers: dict[Term, int] = {}
        self._is_wide = bytearray()
        self._vectors: list[Int64Array] = []
        self._holds_zero = bytearray()
        self._vector_numbers: dict[bytes, int] = {}
        self._digests: list[bytes] = []

    def __len__(self) -> int:
        return len(self._terms)

    def __getitem__(self, number: int) -> Term:
        return self._terms[number]

    def origin_of(self, number: int) -> str:
        """What was being expanded when this term was first made."""
        return self._origins[number]

    def mark(self) -> tuple[int, int]:
        """The number of terms and of vectors now, for `forget_since`."""
        return len(self._terms), len(self._vectors)

    def forget_since(self, terms: int, vectors: int) -> None:
        """Forget every term and vector made since a mark; their numbers will be given again."""
        for table, numbers, count in (
            (self._terms, self._numbers, terms),
            (self._vectors, self._vector_numbers, vectors),
        ):
            del table[count:]
            while len(numbers) > count:
                numbers.popitem()
        del self._origins[terms:], self._is_wide[terms:], self._digests[terms:]
        del self._holds_zero[vectors:]

    # Vectors

    def vector(self, numbers: Int64Array | Sequence[int]) -> int:
        """The number of a vector of terms."""
        array = np.ascontiguousarray(numbers, dtype=np.int64)
        key = array.tobytes()
        number = self._vector_numbers.get(key)
        if number is None:
            number = self._vector_numbers[key] = len(self._vectors)
            self._vectors.append(np.frombuffer(key, np.int64))
            zero = self._numbers.get(_ZERO)
            self._holds_zero.append(zero is not None and bool((array == zero).any()))
        return number

    def elements(self, vector: int) -> Int64Array:
        """The terms of a vector, read-only."""
        return self._vectors[vector]

    def bytes_of(self, numbers: Int64Array) -> Int64Array:
        """The lowest bytes of words, as int8: what an int8 operand reads."""
        if not np.frombuffer(self._is_wide, np.bool_)[numbers].any():
            return numbers
        flat = [self._byte(number) for number in numbers.ravel().tolist()]
        return np.array(flat, np.int64).reshape(numbers.shape)

    # Terms

    def leaf(self, tensor: str, row: int, column: int, scale: float | None) -> int:
        """An element that the host writes; with a scale, as the host quantizes it."""
        return self._number(Term(TermOp.LEAF, constants=(tensor, row, column, scale)))

    def dot(self, a: int, b: int, onto: int | None = None) -> int:
        """The sum of products of two vectors, added to the word `onto` where given.

        Sums of 32 bits do not depend on how they are split, so a sum that goes on with a later
        part of K is the sum over both parts. Products with 0 add nothing, whatever the other
        operand is, and are left out.
        """
        a, b = self._without_zeros(a, b)
        if onto is not None and onto == self._numbers.get(_ZERO):
            onto = None
        if not len(self._vectors[a]):
            return self.zero() if onto is None else onto
        if onto is None:
            return self._number(Term(TermOp.DOT, vectors=(a, b)))
        before = self._terms[onto]
        if before.op is TermOp.DOT:
            whole = (
                self.vector(np.concatenate([self._vectors[old], self._vectors[new]]))
                for old, new in zip(before.vectors, (a, b), strict=True)
            )
            return self._number(Term(TermOp.DOT, vectors=tuple(whole)))
        return self._number(Term(TermOp.ACCUMULATE, (onto,), (a, b)))

    def rescale(self, term: int, multiplier: int, shift: int) -> int:
        """A requantization; of an int8 integer by exactly 1, the integer itself; by 0, 0."""
        if multiplier == 0 or term == self._numbers.get(_ZERO):
            return self.zero()
        if multiplier == 1 << shift and self._terms[term].op in _INT8:
            return term
        return self._number(Term(TermOp.RESCALE, (term,), constants=(multiplier, shift)))

    def relu(self, term: int) -> int:
        """max(term, 0) of an int8 term."""
        return self._number(Term(TermOp.RELU, (term,)))

    def add(self, a: int, b: int) -> int:
        """The saturating sum of two int8 terms."""
        return self._number(Term(TermOp.ADD, (a, b)))

    def softmax(self, row: int, multiplier: int, shift: int) -> list[int]:
        """The elements of a row's softmax."""
        return [
            self._number(Term(TermOp.SOFTMAX, (), (row,), (index, multiplier, shift)))
            for index in range(len(self._vectors[row]))
        ]

    def argmax(self, row: int) -> int:
        """The index of a row's first maximum."""
        return self._number(Term(TermOp.ARGMAX, vectors=(row,)))

    def zero(self) -> int:
        """0, an int8 term."""
        return self._number(_ZERO)

    def _without_zeros(self, a: int, b: int) -> tuple[int, int]:
        """Two vectors without the elements at which either of them is 0."""
        if self._holds_zero[a] or self._holds_zero[b]:
            zero, left, right = self.zero(), self._vectors[a], self._vectors[b]
            kept = (left != zero) & (right != zero)
            return self.vector(left[kept]), self.vector(right[kept])
        return a, b

    def _byte(self, term: int) -> int:
        return self._number(Term(TermOp.BYTE, (term,))) if self._is_wide[term] else term

    def _number(self, term: Term) -> int:
        number = self._numbers.get(term)
        if number is None:
            number = self._numbers[term] = len(self._terms)
            self._terms.append(term)
            self._origins.append(self.origin)
            self._is_wide.append(term.op not in _INT8 and term.op is not TermOp.BYTE)
        return number

    # Digests

    def digest(self, vectors: Iterable[int]) -> str:
        """A digest of some vectors that depends on nothing but the functions they are.

        The same on every machine and for every way that leads to the same terms.
        """
        for term in self._terms[len(self._digests) :]:  # operands come before what reads them
            h = hashlib.blake2b(
                repr((str(term.op), term.constants)).encode(), digest_size=DIGEST_BYTES
            )
            for operand in term.terms:
                h.update(self._digests[operand])
            for vector in term.vectors:
                h.update(self._vector_digest(vector))
            self._digests.append(h.digest())
        total = hashlib.blake2b(digest_size=DIGEST_BYTES)
        for vector in vectors:
            total.update(self._vector_digest(vector))
        return total.hexdigest()

    def _vector_digest(self, vector: int) -> bytes:
        h = hashlib.blake2b(digest_size=DIGEST_BYTES)
        for number in self._vectors[vector].tolist():
            h.update(self._digests[number])
        return h.digest()
