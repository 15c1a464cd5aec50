"""Why two terms differ: the first operation that is not the expected one, and what about it."""

from dataclasses import dataclass

from capra.certify.terms import Term, TermOp, Terms


@dataclass(frozen=True, slots=True)
class Difference:
    """Where a row leaves the expected function."""

    operation: str
    """The first operation that differs, and the graph or instruction that made it."""
    reason: str
    """What about it: a scale, a row range, an order, what it reads, or its kind."""


def explain(terms: Terms, found: int, expected: int, known: int) -> Difference:
    """The difference between two vectors of terms that are not equal.

    Terms below `known` existed before what is checked was expanded: a step computes them, at this
    or another position. The first operation that differs is the one that no step performs.
    """
    a, b = (terms.elements(vector).tolist() for vector in (found, expected))
    if len(a) != len(b):
        return Difference("the row", f"has {len(a)} elements, expected {len(b)}")
    pair = next((x, y) for x, y in zip(a, b, strict=True) if x != y)
    if pair[0] < known:
        return Difference(
            "the row", f"is {_name(terms, pair[0])}, expected {_name(terms, pair[1])}"
        )
    while True:
        step = _compare(terms, *pair, known)
        if isinstance(step, str):
            return Difference(terms.origin_of(pair[0]), step)
        pair = step


def _compare(terms: Terms, found: int, expected: int, known: int) -> str | tuple[int, int]:
    """What differs about an operation itself, or the operands where the difference comes from."""
    a, b = terms[found], terms[expected]
    if a.op is not b.op:
        return f"its kind: {_name(terms, found)}, expected {_name(terms, expected)}"
    ranges: str | None = None
    for mine, theirs in _operands(terms, a, b):
        if mine == theirs:
            continue
        pairs = [(x, y) for x, y in zip(mine, theirs, strict=False) if x != y]
        fresh = next((pair for pair in pairs if pair[0] >= known), None)
        if fresh is not None:
            return fresh
        if len(mine) != len(theirs):
            ranges = ranges or f"a row range: {len(mine)} elements, expected {len(theirs)}"
        elif sorted(mine) == sorted(theirs):
            return f"an order: the same {len(mine)} elements in another one"
        else:
            x, y = (_name(terms, number) for number in pairs[0])
            return f"what it reads: {x}, expected {y}"
    if ranges is not None:
        return ranges
    return f"a scale or constant: {_constants(a)}, expected {_constants(b)}"


def _operands(terms: Terms, a: Term, b: Term) -> list[tuple[list[int], list[int]]]:
    pairs = [([x], [y]) for x, y in zip(a.terms, b.terms, strict=True)]
    return pairs + [
        (terms.elements(x).tolist(), terms.elements(y).tolist())
        for x, y in zip(a.vectors, b.vectors, strict=True)
    ]


def _constants(term: Term) -> str:
    if term.op is TermOp.RESCALE:
        multiplier, shift = term.constants
        return f"{multiplier} / 2^{shift}"
    return " ".join(map(str, term.constants))


def _name(terms: Terms, number: int) -> str:
    term = terms[number]
    if term.op is not TermOp.LEAF:
        return f"{term.op} ({terms.origin_of(number)})"
    tensor, row, column, scale = term.constants
    return f"{tensor}[{row}, {column}]" + ("" if scale is None else f" in steps of {scale:.6g}")
