"""Visible sets: what chains and trees see, how it is told, and what is no visible set."""

from itertools import product

import numpy as np
import pytest
from tests.ir.visible_sets import mask_of

from capra.errors import GraphError
from capra.ir.visible import Visible


def ancestors(parents: tuple[int, ...], row: int) -> set[int]:
    """The rows from a row up to the cache, itself included."""
    return {row} | (ancestors(parents, parents[row]) if parents[row] >= 0 else set())


@pytest.mark.parametrize("cache", range(4))
def test_a_row_of_a_chain_sees_the_cache_and_the_rows_up_to_itself(cache: int) -> None:
    for rows in range(1, 6):
        visible = Visible.causal(rows, cache)
        assert (visible.rows, visible.keys) == (rows, cache + rows)
        for row in range(rows):
            assert visible.columns(row) == list(range(cache + row + 1))
            assert visible.runs(row) == [(0, cache + row + 1)]
            assert visible.count(row) == visible.end(row) == cache + row + 1
        assert visible == Visible.tree(range(-1, rows - 1), cache)


@pytest.mark.parametrize("cache", [0, 1, 3])
@pytest.mark.parametrize("rows", range(1, 6))
def test_a_row_of_any_tree_sees_the_cache_its_ancestors_and_itself(rows: int, cache: int) -> None:
    for parents in product(*(range(-1, row) for row in range(rows))):
        visible = Visible.tree(parents, cache)
        assert (visible.prefix, visible.width, visible.rows) == (cache, rows, rows)
        for row in range(rows):
            behind = sorted(cache + each for each in ancestors(parents, row))
            assert visible.columns(row) == [*range(cache), *behind]


@pytest.mark.parametrize("prefix", range(4))
@pytest.mark.parametrize("width", range(6))
def test_everything_that_is_told_of_a_row_is_its_mask(prefix: int, width: int) -> None:
    """Of all masks: columns, count, end, and runs that are as few as can be."""
    for tail in range(0 if prefix else 1, 1 << width):
        visible = Visible(prefix, width, (tail,))
        seen = np.flatnonzero(mask_of(visible)[0]).tolist()
        assert visible.columns(0) == seen
        assert (visible.count(0), visible.end(0)) == (len(seen), seen[-1] + 1)
        runs = visible.runs(0)
        assert [key for first, count in runs for key in range(first, first + count)] == seen
        assert len(runs) == sum(key - 1 not in seen for key in seen)


@pytest.mark.parametrize(
    ("prefix", "width", "tails", "said"),
    [
        (-1, 2, (1,), "prefix -1, width 2 and 1 rows, expected 0 or more, 0 or more and at least"),
        (2, -1, (0,), "prefix 2, width -1 and 1 rows"),
        (2, 2, (), "prefix 2, width 2 and 0 rows"),
        (2, 2, (1, 4), "row 1 of a visible set has a tail of 3 bits, expected at most 2 bits"),
        (2, 0, (1,), "row 0 of a visible set has a tail of 1 bits, expected at most 0 bits"),
        (2, 2, (-1,), "row 0 of a visible set has a tail of a negative number, expected at most 2"),
        (0, 2, (1, 0), "row 1 of a visible set sees no key, expected at least one"),
        (0, 10**12, (1, 0), "row 1 of a visible set sees no key, expected at least one"),
    ],
)  # fmt: skip
def test_no_visible_set(prefix: int, width: int, tails: tuple[int, ...], said: str) -> None:
    with pytest.raises(GraphError) as caught:
        Visible(prefix, width, tails)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("parents", "said"),
    [
        ((0,), "the parent of row 0 is 0, expected -1 .. -1"),
        ((-1, 1), "the parent of row 1 is 1, expected -1 .. 0"),
        ((-1, 0, 3), "the parent of row 2 is 3, expected -1 .. 1"),
        ((-1, -2), "the parent of row 1 is -2, expected -1 .. 0"),
    ],
)
def test_no_tree(parents: tuple[int, ...], said: str) -> None:
    with pytest.raises(GraphError) as caught:
        Visible.tree(parents, 3)
    assert str(caught.value) == said


def test_a_tree_has_rows() -> None:
    with pytest.raises(GraphError, match="0 rows"):
        Visible.tree((), 3)
