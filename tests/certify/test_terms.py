"""The table of terms: one number a function, whatever way leads to it."""

import pytest
from tests.certify.meaning import Meaning

from capra.certify.terms import TermOp, Terms


def leaves(terms: Terms, tensor: str, count: int) -> list[int]:
    return [terms.leaf(tensor, 0, column, None) for column in range(count)]


def test_the_same_term_has_the_same_number() -> None:
    terms = Terms()
    a, b = (terms.vector(leaves(terms, name, 3)) for name in "ab")
    assert terms.dot(a, b) == terms.dot(a, b)
    assert terms.vector(leaves(terms, "a", 3)) == a


def test_whatever_differs_gives_another_number() -> None:
    terms = Terms()
    x, y, *_ = leaves(terms, "x", 4)
    a, b, c = terms.vector([x, y]), terms.vector([y, x]), terms.vector([x, y, x])
    wide = terms.dot(a, a)
    numbers = [
        x, y,
        terms.leaf("x", 1, 0, None), terms.leaf("y", 0, 0, None), terms.leaf("x", 0, 0, 0.5),
        wide, terms.dot(a, b), terms.dot(b, a), terms.dot(c, c),
        terms.rescale(wide, 3, 4), terms.rescale(wide, 4, 4), terms.rescale(wide, 3, 5),
        terms.rescale(x, 3, 4), terms.relu(x), terms.relu(y),
        terms.add(x, y), terms.add(y, x),
        *terms.softmax(a, 3, 4), *terms.softmax(a, 4, 4), *terms.softmax(c, 3, 4),
        terms.argmax(a), terms.argmax(b), terms.argmax(c),
    ]  # fmt: skip
    assert len(set(numbers)) == len(numbers)


def test_a_sum_that_goes_on_is_the_whole_sum() -> None:
    terms = Terms()
    a, b = leaves(terms, "a", 5), leaves(terms, "b", 5)
    part = terms.dot(terms.vector(a[:2]), terms.vector(b[:2]))
    part = terms.dot(terms.vector(a[2:4]), terms.vector(b[2:4]), onto=part)
    whole = terms.dot(terms.vector(a[4:]), terms.vector(b[4:]), onto=part)
    assert whole == terms.dot(terms.vector(a), terms.vector(b))


def test_a_sum_onto_something_else_is_not_a_sum_of_products() -> None:
    terms = Terms()
    x, row = terms.leaf("x", 0, 0, None), terms.vector(leaves(terms, "a", 2))
    assert terms[terms.dot(row, row, onto=x)].op is TermOp.ACCUMULATE


def test_a_rescale_by_exactly_one_leaves_an_int8_integer_alone_and_no_other() -> None:
    terms = Terms()
    x, row = terms.leaf("x", 0, 0, None), terms.vector(leaves(terms, "a", 2))
    assert terms.rescale(x, 1 << 15, 15) == x
    wide = terms.dot(row, row)
    clamped = terms.rescale(wide, 1 << 15, 15)
    assert clamped != wide
    meaning = Meaning(terms, lambda _tensor, _row, _column: 100)
    assert (meaning.value(wide), meaning.value(clamped)) == (20000, 127)


def test_a_rescale_by_exactly_one_clamps_a_byte() -> None:
    terms = Terms()
    x, row = terms.leaf("x", 0, 0, None), terms.vector(leaves(terms, "a", 2))
    byte = int(terms.bytes_of(terms.elements(terms.vector([terms.dot(row, row, onto=x)])))[0])
    meaning = Meaning(terms, lambda tensor, _row, _column: 0 if tensor == "a" else -128)
    assert meaning.value(byte) == -128
    assert meaning.value(terms.rescale(byte, 1 << 15, 15)) == -127


def test_products_with_zero_are_left_out_of_a_sum() -> None:
    terms = Terms()
    a, b, zero = leaves(terms, "a", 3), leaves(terms, "b", 3), terms.zero()
    short = terms.dot(terms.vector(a[:2]), terms.vector(b[:2]))
    assert terms.dot(terms.vector([*a[:2], zero]), terms.vector(b)) == short
    assert terms.dot(terms.vector([*a[:2], a[2]]), terms.vector([*b[:2], zero])) == short
    assert terms.dot(terms.vector([zero, *a[:2]]), terms.vector([b[2], *b[:2]])) == short
    assert terms.dot(terms.vector([a[0], zero, a[1]]), terms.vector(b)) != short


def test_a_sum_of_nothing_but_zeros_is_zero_and_adds_nothing() -> None:
    terms = Terms()
    zero, row = terms.zero(), terms.vector(leaves(terms, "a", 2))
    nothing = terms.vector([zero, zero])
    assert terms.dot(nothing, row) == zero
    assert terms.dot(row, row, onto=zero) == terms.dot(row, row)
    assert terms.dot(row, nothing, onto=terms.dot(row, row)) == terms.dot(row, row)


def test_a_rescale_by_zero_or_of_zero_is_zero() -> None:
    terms = Terms()
    row = terms.vector(leaves(terms, "a", 2))
    assert terms.rescale(terms.dot(row, row), 0, 5) == terms.zero()
    assert terms.rescale(terms.zero(), 3, 5) == terms.zero()
    assert terms.rescale(terms.dot(row, row), 1, 5) != terms.zero()


def test_zeros_are_known_again_after_they_were_forgotten() -> None:
    terms = Terms()
    a, b = leaves(terms, "a", 2), terms.vector(leaves(terms, "b", 2))
    mark = terms.mark()
    for _ in range(2):
        padded = terms.vector([a[0], terms.zero()])
        assert len(terms.elements(terms[terms.dot(padded, b)].vectors[0])) == 1
        terms.forget_since(*mark)
        assert len(terms.elements(terms[terms.dot(terms.vector(a), b)].vectors[0])) == 2
        terms.forget_since(*mark)


def test_an_operand_is_the_lowest_byte_of_its_word() -> None:
    terms = Terms()
    x, row = terms.leaf("x", 0, 0, None), terms.vector(leaves(terms, "a", 3))
    wide = terms.dot(row, row)
    array = terms.elements(terms.vector([x, wide]))
    low = terms.bytes_of(array[None])
    assert low[0, 0] == x and low[0, 1] != wide
    meaning = Meaning(terms, lambda _tensor, _row, column: 100 + column)
    assert meaning.value(wide) == 100**2 + 101**2 + 102**2 == 30605
    assert meaning.value(int(low[0, 1])) == (30605 + 128) % 256 - 128


def test_what_was_made_since_a_mark_is_forgotten() -> None:
    terms = Terms()
    kept = terms.vector(leaves(terms, "a", 2))
    first = terms.dot(kept, kept)
    mark = terms.mark()
    terms.origin = "later"
    terms.dot(terms.vector(leaves(terms, "b", 2)), kept)
    terms.forget_since(*mark)
    assert len(terms) == mark[0]
    terms.origin = "again"
    again = terms.leaf("c", 0, 0, None)
    assert again == mark[0] and terms.origin_of(again) == "again"
    assert terms.dot(kept, kept) == first


def _product(swap: bool, scale: float) -> str:
    terms = Terms()
    a, b = (terms.vector([terms.leaf(name, 0, c, scale) for c in range(3)]) for name in "ab")
    if swap:  # other numbers for the same functions
        terms = Terms()
        b, a = (terms.vector([terms.leaf(name, 0, c, scale) for c in range(3)]) for name in "ba")
    return terms.digest([terms.vector([terms.rescale(terms.dot(a, b), 5, 7)])])


def test_a_digest_depends_on_the_function_alone() -> None:
    assert _product(swap=False, scale=0.5) == _product(swap=True, scale=0.5)
    assert _product(swap=False, scale=0.5) != _product(swap=False, scale=0.25)


@pytest.mark.parametrize("operation", ["argmax", "softmax"])
def test_a_digest_tells_rows_apart(operation: str) -> None:
    terms = Terms()
    rows = [terms.vector(leaves(terms, "a", n)) for n in (2, 3)]
    made = [
        [terms.argmax(row)] if operation == "argmax" else terms.softmax(row, 3, 4)[:1]
        for row in rows
    ]
    digests = {terms.digest([terms.vector(numbers)]) for numbers in made}
    assert len(digests) == 2
