"""Explanations of what the certificate refuses; the certificate's own tests show the rest."""

from capra.certify.explain import Difference, explain
from capra.certify.terms import Terms


def test_rows_of_other_lengths() -> None:
    terms = Terms()
    x = terms.leaf("x", 0, 0, None)
    found, expected = terms.vector([x]), terms.vector([x, x])
    assert explain(terms, found, expected, 0) == Difference("the row", "has 1 elements, expected 2")


def test_a_row_that_is_right_somewhere_else() -> None:
    terms = Terms()
    found, expected = (terms.vector([terms.leaf("x", row, 0, 0.5)]) for row in (3, 4))
    assert explain(terms, found, expected, len(terms)) == Difference(
        "the row", "is x[3, 0] in steps of 0.5, expected x[4, 0] in steps of 0.5"
    )


def test_the_operation_that_is_new_is_named_and_not_what_it_feeds() -> None:
    terms = Terms()
    row = terms.vector([terms.leaf("x", 0, column, None) for column in range(2)])
    sums = terms.dot(row, row)
    expected = terms.vector([terms.relu(terms.rescale(sums, 5, 7))])
    known = len(terms)
    terms.origin = "the rescale"
    wrong = terms.rescale(sums, 6, 7)
    terms.origin = "the relu"
    found = terms.vector([terms.relu(wrong)])
    assert explain(terms, found, expected, known) == Difference(
        "the rescale", "a scale or constant: 6 / 2^7, expected 5 / 2^7"
    )
