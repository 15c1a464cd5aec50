"""Tiles: the operations of a graph, against a small interpreter of this test's own."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from capra.compiler.ops import (
    AddRows,
    ArgmaxRow,
    Load,
    Op,
    Product,
    Requantize,
    SoftmaxRow,
    Store,
    Tile,
    reads,
    writes,
)
from capra.compiler.passes.scales import assign_scales
from capra.compiler.passes.tile import tile_operations
from capra.compiler.passes.views import Place, place_tensors
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.ir.visible import Visible
from capra.numerics import Rescale

ZERO = Rescale(0, 1)
SIZES = (1, 3, 4, 5, 7, 8, 9)


def operations(
    graph: Graph,
    depth: int = 256,
    ranges: dict[str, float] | None = None,
    *,
    attention_rows: int = 1,
    shared_zeros: bool = False,
) -> tuple[Op, ...]:
    """The operations of a graph, with range 1 for whatever is not given."""
    filled = Ranges({tensor.tag: 1.0 for tensor in graph.tensors()} | (ranges or {}))
    scales, places = assign_scales(graph, filled), place_tensors(graph)
    return tile_operations(
        graph, scales, places, depth, attention_rows=attention_rows, shared_zeros=shared_zeros
    )


def summary(ops: Sequence[Op]) -> list[str]:
    return [f"{type(op).__name__} {op.tensor}" for op in ops]


def tiles_of(ops: Sequence[Op]) -> list[Tile]:
    """The tiles of all products."""
    return [tile for op in ops if isinstance(op, Product) for tile in op.tiles()]


def product_graph(rows: int, inner: int, cols: int, transpose_b: bool) -> Graph:
    graph = Graph("g")
    graph.input("a", rows, inner)
    graph.input("b", *((cols, inner) if transpose_b else (inner, cols)))
    graph.matmul("p", "a", "b", transpose_b=transpose_b)
    graph.output("p")
    return graph


def words(memory: dict[str, np.ndarray], place: Place) -> np.ndarray:
    """A view of a place in a flat buffer of its own; numpy refuses one that leaves the buffer."""
    flat = memory[place.buffer]
    strides = (place.stride * flat.itemsize, flat.itemsize)
    shape, start = (place.rows, place.cols), place.offset * flat.itemsize
    return np.ndarray(shape, flat.dtype, flat, start, strides)


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("depth", [3, 4, 8])
@pytest.mark.parametrize("inner", SIZES)
def test_tiles_add_up_to_the_whole_product(inner: int, depth: int, transpose_b: bool) -> None:
    rng = np.random.default_rng(inner)
    for rows, cols in product(SIZES, SIZES):
        ops = operations(product_graph(rows, inner, cols, transpose_b), depth)
        tiles = tiles_of(ops)
        requantize = [op for op in ops if isinstance(op, Requantize)]
        a = rng.integers(-127, 128, (rows, inner))
        b = rng.integers(-127, 128, (cols, inner) if transpose_b else (inner, cols))
        memory = {"a": a.ravel(), "b": b.ravel(), "%p.sums": np.full(rows * cols, 10**6)}
        for tile in tiles:
            assert tile.dst.rows <= 4 and tile.dst.cols <= 4 and tile.a.cols <= depth
            right = words(memory, tile.b).T if transpose_b else words(memory, tile.b)
            sums = words(memory, tile.dst)
            sums[...] = words(memory, tile.a) @ right + (sums if tile.accumulate else 0)
        expected = a @ (b.T if transpose_b else b)
        np.testing.assert_array_equal(memory["%p.sums"].reshape(rows, cols), expected)
        ceil = [-(-rows // 4), -(-cols // 4), -(-inner // depth)]
        assert len(tiles) == ceil[0] * ceil[1] * ceil[2]
        assert sum(tile.accumulate for tile in tiles) == ceil[0] * ceil[1] * (ceil[2] - 1)
        assert [(op.src.buffer, op.dst) for op in requantize] == [
            ("%p.sums", Place("p", 0, rows, cols, cols))
        ]
        assert requantize[0].src.is_contiguous


def test_product_up_to_the_operand_depth_is_not_split() -> None:
    def tiles(inner: int) -> list[tuple[int, bool]]:
        ops = operations(product_graph(4, inner, 4, False), 256)
        return [(tile.a.cols, tile.accumulate) for tile in tiles_of(ops)]

    assert tiles(255) == [(255, False)]
    assert tiles(256) == [(256, False)]
    assert tiles(257) == [(256, False), (1, True)]
    assert tiles(512) == [(256, False), (256, True)]
    assert tiles(513) == [(256, False), (256, True), (1, True)]


def test_tiles_share_zeros_where_their_rows_hide_as_many_of_the_last_keys() -> None:
    """Rows, keys, and what the first row sees; the shared buffer is 12 columns wide.

    Those that hide nothing share nothing.
    """
    shapes = {"p": (4, 9, 6), "q": (3, 8, 5), "r": (4, 12, 9), "s": (2, 9, 8), "t": (4, 6, 3),
              "u": (1, 300, 300), "v": (1, 290, 290), "w": (3, 7, 5)}  # fmt: skip
    graph = Graph("g")
    for name, (rows, keys, first) in shapes.items():
        for part, height in (("q", rows), ("k", keys), ("v", keys)):
            graph.input(f"{part}.{name}", height, 2)
        tails = [(1 << row) - 1 for row in range(rows)]
        if name == "w":
            tails[1] = 3  # sees as much as the last row
        visible = Visible(first, keys - first, tuple(tails))
        graph.output(graph.attention(name, f"q.{name}", f"k.{name}", f"v.{name}", visible=visible))
    ops = operations(graph, attention_rows=4, shared_zeros=True)
    fixed = {op.tensor: op.dst for op in ops if isinstance(op, SoftmaxRow)}  # of the last row
    shared = "%p.h0.probs.r0.fixed"
    assert fixed == {
        "p": Place(shared, 3 + 36, 1, 9, 12), "q": Place("%q.h0.probs.r0.fixed", 14, 1, 7, 7),
        "r": Place(shared, 36, 1, 12, 12), "s": Place("%s.h0.probs.r0.fixed", 9, 1, 9, 9),
        "t": Place(shared, 6 + 36, 1, 6, 12), "u": Place("%u.h0.probs.r0.fixed", 0, 1, 300, 300),
        "v": Place("%v.h0.probs.r0.fixed", 0, 1, 290, 290),
        "w": Place("%w.h0.probs.r0.fixed", 14, 1, 7, 7),
    }  # fmt: skip
    zeros = [op for op in ops if isinstance(op, Requantize) and op.rescale == ZERO]
    assert [(op.dst, op.src) for op in zeros] == [
        (Place(shared, 3 + 6, 3, 3, 12), Place("%p.h0.scores.r0", 6, 3, 3, 9)),
        (Place("%q.h0.probs.r0.fixed", 5, 2, 2, 7), Place("%q.h0.scores.r0", 5, 2, 2, 7)),
        (Place("%s.h0.probs.r0.fixed", 8, 1, 1, 9), Place("%s.h0.scores.r0", 8, 1, 1, 9)),
        (Place("%w.h0.probs.r0.fixed", 5, 1, 2, 7), Place("%w.h0.scores.r0", 5, 1, 2, 7)),
    ]
    softmax = [(op.dst, op.src) for op in ops if isinstance(op, SoftmaxRow) and op.tensor == "t"]
    assert softmax == [
        (Place(shared, 6 + 12 * row, 1, 3 + row, 12),
         Place("%t.h0.scores.r0", 6 * row, 1, 3 + row, 6))
        for row in range(4)
    ]  # fmt: skip
    apart = operations(graph, attention_rows=4)
    alone = [op for op in apart if isinstance(op, Requantize) and op.rescale == ZERO]
    assert [op.tensor for op in alone] == ["p", "q", "r", "s", "t", "w"]


def test_relu_is_fused_where_it_is_the_only_reader() -> None:
    graph = product_graph(1, 2, 2, False)
    fused = Graph("g")
    fused.input("x", 1, 2)
    fused.scores("p", "x", "x")
    fused.relu("r", "p")
    fused.output("r")
    ops = operations(fused)
    assert summary(ops) == ["Load x", "Product r", "Requantize r", "Store r"]
    assert [op.relu for op in ops if isinstance(op, Requantize)] == [True]

    graph.relu("r", "p")
    ops = operations(graph)
    assert summary(ops)[2:] == ["Product p", "Requantize p", "Store p", "Requantize r"]
    requantize = [op for op in ops if isinstance(op, Requantize)]
    assert [op.relu for op in requantize] == [False, True]
    assert requantize[1].rescale.is_identity
    assert requantize[1].src == requantize[0].dst


def test_fused_relu_loads_the_operands_of_its_product() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.weight("w", 2, 2)
    graph.slice_rows("v", "w", 0, 2)
    graph.matmul("p", "x", "v")
    graph.input("between", 1, 2)
    graph.softmax("s", "between")
    graph.relu("r", "p")
    assert summary(operations(graph)) == [
        "Load between", "SoftmaxRow s", "Requantize s",
        "Load x", "Load w", "Product r", "Requantize r",
    ]  # fmt: skip


def test_leaves_are_loaded_once_just_before_their_first_reader() -> None:
    graph = Graph("g")
    for name in ("unused", "late", "early"):
        graph.input(name, 1, 2)
    graph.argmax("first", "early")
    graph.add("second", "early", "late")
    assert summary(operations(graph)) == [
        "Load early", "ArgmaxRow first", "Load late", "AddRows second",
    ]  # fmt: skip


def test_a_concatenation_loads_no_part_before_something_reads_it() -> None:
    graph = Graph("g")
    for name in "xyz":
        graph.input(name, 1, 2)
    graph.concat_rows("xy", ["x", "y"])
    graph.argmax("first", "z")
    graph.argmax("second", "xy")
    assert summary(operations(graph)) == [
        "Load z", "ArgmaxRow first", "Load x", "Load y", "ArgmaxRow second", "ArgmaxRow second",
    ]  # fmt: skip


@pytest.mark.parametrize("read", ["slice", "slice of slice", "concat", "slice of concat"])
def test_view_loads_everything_that_it_is_a_view_of(read: str) -> None:
    graph = Graph("g")
    graph.input("x", 2, 2)
    graph.weight("w", 2, 2)
    x = "x"
    if "concat" in read:
        x = graph.concat_rows("all", ["x", "w"])
    if "slice" in read:
        x = graph.slice_rows("rows", x, 0, 1)
    if read == "slice of slice":
        x = graph.slice_cols("cell", x, 1, 1)
    graph.argmax("t", x)
    loads = ["Load x", "Load w"] if "concat" in read else ["Load x"]
    count = 4 if read == "concat" else 1
    assert summary(operations(graph)) == [*loads, *["ArgmaxRow t"] * count]


def test_outputs_are_stored_once_complete_leaves_and_views_too() -> None:
    graph = Graph("g")
    graph.input("x", 2, 2)
    graph.softmax("s", "x")
    graph.concat_rows("all", ["x", "s"])
    graph.slice_rows("cut", "all", 1, 1)
    graph.weight("w", 1, 1)
    for name in ("w", "cut", "all", "s", "x"):
        graph.output(name)
    ops = operations(graph)
    assert summary(ops) == [
        "Load x", "Store x", "SoftmaxRow s", "SoftmaxRow s", "Requantize s", "Store s",
        "Store all", "Store cut", "Load w", "Store w",
    ]  # fmt: skip
    assert [op.src for op in ops if isinstance(op, Store)][3] == Place("all", 2, 1, 2, 2)


def test_concatenation_parts_are_written_into_its_buffer() -> None:
    graph = Graph("g")
    graph.input("cache", 2, 4)
    graph.input("x", 1, 4)
    graph.softmax("new", "x")
    graph.concat_rows("all", ["cache", "new"])
    graph.argmax("t", "all")
    destinations = [op.dst for op in operations(graph) if isinstance(op, Load | Requantize)]
    assert Place("all", 0, 2, 4, 4) in destinations
    assert Place("all", 8, 1, 4, 4) in destinations


def test_add_rescales_each_operand_unless_by_exactly_one() -> None:
    graph = Graph("g")
    graph.input("x", 2, 2)
    graph.input("y", 2, 2)
    graph.add("a", "x", "y")
    both = operations(graph, ranges={"x": 2.0, "y": 3.0})
    assert summary(both)[2:] == ["Requantize a", "Requantize a", "AddRows a"]
    add = both[-1]
    assert isinstance(add, AddRows)
    assert (add.a.buffer, add.b.buffer) == ("%a.a", "%a.b")

    for own, other in (("x", "y"), ("y", "x")):
        ops = operations(graph, ranges={own: 2.0, "a": 2.0})
        assert summary(ops)[2:] == ["Requantize a", "AddRows a"]
        add = ops[-1]
        assert isinstance(add, AddRows)
        assert own in (add.a.buffer, add.b.buffer)
        assert [op.src.buffer for op in ops if isinstance(op, Requantize)] == [other]

    assert summary(operations(graph))[2:] == ["AddRows a"]


def test_rows_are_taken_one_by_one_where_the_machine_does_so() -> None:
    graph = Graph("g")
    graph.input("x", 3, 8)
    graph.slice_cols("v", "x", 2, 4)
    graph.softmax("s", "v")
    graph.argmax("t", "v")
    ops = operations(graph)
    sources = [Place("x", 2 + 8 * row, 1, 4, 8) for row in range(3)]
    softmax = [op for op in ops if isinstance(op, SoftmaxRow)]
    argmax = [op for op in ops if isinstance(op, ArgmaxRow)]
    assert [op.src for op in softmax] == [op.src for op in argmax] == sources
    assert [op.dst for op in softmax] == [Place("%s.fixed", 4 * r, 1, 4, 4) for r in range(3)]
    assert [op.dst for op in argmax] == [Place("t", r, 1, 1, 1) for r in range(3)]


def test_reads_and_writes_of_every_operation() -> None:
    graph = Graph("g")
    graph.input("x", 1, 9)
    graph.scores("p", "x", "x")
    graph.softmax("s", "p")
    graph.add("a", "s", "p")
    graph.argmax("t", "a")
    graph.output("t")
    touched = [
        ([place.buffer for place in reads(op)], [place.buffer for place in writes(op)])
        for op in operations(graph, depth=8, ranges={"s": 0.5})
    ]
    assert touched == [
        ([], ["x"]),
        (["x", "x"], ["%p.sums"]),
        (["%p.sums"], ["p"]),
        (["p"], ["%s.fixed"]),
        (["%s.fixed"], ["s"]),
        (["s"], ["%a.a"]),
        (["%a.a", "p"], ["a"]),
        (["a"], ["t"]),
        (["t"], []),
    ]
