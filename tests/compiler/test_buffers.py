"""Buffers: lives and first fit, against an oracle that looks at every word."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compiler.random_graphs import random_graph

from capra.compiler.ops import Load, Op, Product, Requantize, Store, reads, writes
from capra.compiler.overlap import check_buffers
from capra.compiler.passes.buffers import Buffer, allocate_buffers, words_piled, words_stacked
from capra.compiler.passes.scales import assign_scales
from capra.compiler.passes.tile import tile_operations
from capra.compiler.passes.views import Place, place_tensors
from capra.errors import CapacityError
from capra.ir.ranges import record_ranges
from capra.numerics import Rescale


def place(name: str, words: int) -> Place:
    return Place(name, 0, 1, words, words)


def touching(*names: str) -> tuple[Op, ...]:
    """One operation a name: the first one of a name writes its buffer, later ones read it.

    A name is a letter and its size: "a5" is a buffer of 5 words.
    """
    ops: list[Op] = []
    for index, name in enumerate(names):
        words = place(name, int(name[1:]))
        ops.append(Load(name, words) if name not in names[:index] else Store(name, words))
    return tuple(ops)


def bases(buffers: Mapping[str, Buffer]) -> dict[str, int]:
    return {name: buffer.base for name, buffer in buffers.items()}


def oracle(ops: Sequence[Op], buffers: Mapping[str, Buffer], *, reuse: bool = True) -> None:
    """Assert lives, disjointness and first fit by looking at every word of every buffer."""
    used: dict[str, set[int]] = {}
    extent: dict[str, int] = {}
    for index, op in enumerate(ops):
        for at in (*reads(op), *writes(op)):
            used.setdefault(at.buffer, set()).add(index)
            last_word = at.offset + (at.rows - 1) * at.stride + at.cols
            extent[at.buffer] = max(extent.get(at.buffer, 0), last_word)
    assert buffers.keys() == used.keys()
    earlier: list[Buffer] = []
    for name in sorted(used, key=lambda name: min(used[name])):
        mine = buffers[name]
        assert (mine.first, mine.last) == (min(used[name]), max(used[name]))
        assert mine.words == extent[name]
        taken: set[int] = set()
        for other in earlier:
            if not reuse or other.last >= mine.first:
                taken |= set(range(other.base, other.base + other.words))
        free = (b for b in range(10**6) if taken.isdisjoint(range(b, b + mine.words)))
        assert mine.base == next(free), f"{name} is not at its first fit"
        earlier.append(mine)


def test_space_is_reused_after_the_last_reader() -> None:
    buffers = allocate_buffers(touching("a8", "b8", "a8", "c8", "b8", "c8"), 16)
    assert bases(buffers) == {"a8": 0, "b8": 8, "c8": 0}
    assert buffers["a8"] == Buffer("a8", 0, 8, 0, 2)


def test_operation_may_not_write_over_what_it_reads() -> None:
    x, y = place("x", 4), place("y", 4)
    ops = (Load("x", x), Requantize("y", x, y, Rescale(1 << 15, 15)))
    assert bases(allocate_buffers(ops, 16)) == {"x": 0, "y": 4}


def test_first_gap_that_is_large_enough_is_taken() -> None:
    names = ("a2", "b1", "c4", "d1", "c4", "e3", "a2", "b1", "d1")
    assert bases(allocate_buffers(touching(*names), 16))["e3"] == 3
    names = ("a2", "b1", "c4", "d1", "c4", "e5", "a2", "b1", "d1")
    assert bases(allocate_buffers(touching(*names), 16))["e5"] == 8


def test_buffer_lives_as_long_as_any_view_of_it_is_read() -> None:
    view = Place("x", 6, 1, 2, 4)
    ops = (
        Load("x", Place("x", 0, 2, 4, 4)),
        *touching("a8", "a8"),
        Store("v", view),
        *touching("b8", "b8"),
    )
    buffers = allocate_buffers(ops, 16)
    assert (buffers["x"].first, buffers["x"].last, buffers["x"].words) == (0, 3, 8)
    assert bases(buffers) == {"x": 0, "a8": 8, "b8": 0}


def test_without_reuse_no_two_buffers_share_a_word() -> None:
    ops = touching("a8", "a8", "b4", "b4", "c2")
    assert bases(allocate_buffers(ops, 16)) == {"a8": 0, "b4": 0, "c2": 0}
    assert bases(allocate_buffers(ops, 16, reuse=False)) == {"a8": 0, "b4": 8, "c2": 12}


def test_a_product_reads_its_factors_and_writes_its_sums() -> None:
    """What it adds to is what it wrote itself, a part of K before."""
    a, b, sums = place("a", 4), place("b", 4), place("sums", 1)
    product = Product("p", a, b, sums, True, 2)
    assert reads(product) == (a, b) and writes(product) == (sums,)
    assert not Requantize("p", sums, a, Rescale(1 << 15, 15)).relu


def test_buffers_that_do_not_fit_are_refused_by_name() -> None:
    assert bases(allocate_buffers(touching("a8", "b8", "a8"), 16))["b8"] == 8
    message = r"the scratchpad needs 17 words for b9, expected at most 16"
    with pytest.raises(CapacityError, match=message):
        allocate_buffers(touching("a8", "b9", "a8"), 16)
    with pytest.raises(CapacityError, match=message):
        allocate_buffers(touching("a8", "a8", "b9"), 16, reuse=False)


HOLED = ("a3", "b2", "c4", "a3", "d4", "b2", "d4", "c4")
"""First fit puts d behind c, where a and the word behind it would be free."""


def test_another_layout_is_tried_where_first_fit_needs_too_much() -> None:
    ops = touching(*HOLED)
    assert bases(allocate_buffers(ops, 16)) == {"a3": 0, "b2": 3, "c4": 5, "d4": 9}
    found = allocate_buffers(ops, 10)
    check_buffers(ops, found, 10)
    assert max(buffer.base + buffer.words for buffer in found.values()) == 10
    assert list(found) == ["a3", "b2", "c4", "d4"]
    with pytest.raises(CapacityError, match=r"needs 13 words for d4, expected at most 9"):
        allocate_buffers(ops, 9)


names = st.builds(lambda letter, words: f"{letter}{words}", st.sampled_from("abcdefgh"),
                  st.integers(1, 9))  # fmt: skip


@given(st.lists(names, min_size=1, max_size=40), st.booleans())
def test_any_sequence_is_allocated_first_fit_and_apart(touched: list[str], reuse: bool) -> None:
    ops = touching(*touched)
    oracle(ops, allocate_buffers(ops, 1 << 12, reuse=reuse), reuse=reuse)


@given(st.lists(names, min_size=1, max_size=40))
def test_any_layout_is_apart_and_a_stack_is_always_found(touched: list[str]) -> None:
    ops = touching(*touched)
    stacked, apart = words_stacked(ops), sum(int(name[1:]) for name in set(touched))
    assert max(stacked, words_piled(ops)) <= apart
    low = max(int(name[1:]) for name in touched)
    for limit in range(low, apart + 1):
        try:
            check_buffers(ops, allocate_buffers(ops, limit), limit)
        except CapacityError:
            assert limit < min(stacked, words_piled(ops))


@given(st.lists(names, min_size=1, max_size=40), st.data())
def test_a_stack_of_smaller_buffers_needs_no_more(touched: list[str], data: st.DataObject) -> None:
    sizes = {name: data.draw(st.integers(1, int(name[1:]))) for name in dict.fromkeys(touched)}
    ops = [
        type(op)(op.tensor + "_", place(op.tensor + "_", sizes[op.tensor]))
        for op in touching(*touched)
        if isinstance(op, Load | Store)
    ]
    assert words_stacked(ops) <= words_stacked(touching(*touched))
    # Without the last operations, and without some that are not the first of their buffer.
    kept = [
        op
        for op in ops[: data.draw(st.integers(1, len(ops)))]
        if isinstance(op, Load) or data.draw(st.booleans())
    ]
    assert words_piled(kept) <= words_piled(ops) <= words_piled(touching(*touched))


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_random_graphs_are_allocated_first_fit_and_apart(first: int) -> None:
    for graph_seed in range(first, first + 10):
        random = random_graph(graph_seed)
        scales = assign_scales(random.graph, record_ranges(random.graph, random.leaves))
        ops = tile_operations(random.graph, scales, place_tensors(random.graph), 256)
        for reuse in (True, False):
            oracle(ops, allocate_buffers(ops, 1 << 20, reuse=reuse), reuse=reuse)
