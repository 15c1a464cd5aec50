"""The lower bound: worked out by hand for small graphs, and below every program that there is."""

import os
from fractions import Fraction
from math import ceil

import pytest
from tests.compiler.attention import attention_graph, random_attention
from tests.compiler.random_graphs import leaf_samples, random_graph
from tests.lm.samples import pydoc_model, tiny

from capra.compiler.bounds import lower_bound
from capra.compiler.optimization import O0, O1
from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges, record_ranges
from capra.ir.text import parse_graph
from capra.isa.chip import Chip
from capra.isa.timing import Counters
from capra.lm.model import LanguageModel
from capra.lm.target import model_graph

FIRST = int(os.environ.get("CAPRA_SEED", "0"))
ROOMY = Chip(external_words=1 << 15, scratchpad_words=1 << 15)


def ranges_of(graph: Graph) -> Ranges:
    return Ranges(dict.fromkeys((tensor.tag for tensor in graph.tensors()), 1.0))


def bound(text: str, chip: Chip | None = None) -> Counters:
    graph = parse_graph(f"graph g\n{text}")
    return lower_bound(graph, assign_scales(graph, ranges_of(graph)), chip or Chip())


def test_one_full_tile() -> None:
    """64 words loaded, one MM, 16 requantized, 16 stored; five instructions with HALT."""
    found = bound("x = input 4x8\nw = weight 8x4\np = matmul x w\noutput p")
    matrix = 4 * 8 + 8 * 4 + 4 * 4 + 8 + 4 + 4 + 5
    assert found == Counters(matrix=matrix, dma=64 + 9 + 16 + 2, vector=16 + 2, control=10)


def test_a_part_of_a_tile_costs_its_part() -> None:
    """2 x 2 sums are a half of the 2 x 4 sums of a tile of two rows."""
    found = bound("x = input 2x8\nw = weight 8x2\np = matmul x w\noutput p")
    assert found.matrix == -(-(2 * 8 + 8 * 4 + 2 * 4 + 8 + 2 + 4 + 5) // 2)
    assert found.control == 2 * 5  # a half MM is a whole one


def test_rows_that_meet_the_same_operand_could_share_a_tile() -> None:
    apart = "x = input 1x8\ny = input 1x8\nw = weight 8x4\nv = weight 8x4\n"
    one, other = "p = matmul x w\nq = matmul y {}\noutput p\noutput q", 16
    shared, lonely = (bound(apart + one.format(name)) for name in ("w", "v"))
    tile = 2 * 8 + 8 * 4 + 2 * 4 + 8 + 2 + 4 + 5
    single = 1 * 8 + 8 * 4 + 1 * 4 + 8 + 1 + 4 + 5
    assert (shared.matrix, lonely.matrix) == (tile, 2 * single)
    assert lonely.dma == shared.dma + 2 * other


def test_operands_in_the_same_columns_of_a_tensor_could_share_a_tile() -> None:
    """Whichever rows they are, and in whatever order; those in other columns could not."""
    text = (
        "x = input 1x4\ny = input 1x4\nw = weight {shape}\n"
        + "".join(f"{name} = {{cut}} w start={{{name}}} count=4\n" for name in ("lo", "hi"))
        + "p = matmul x {first}\nq = matmul y {second}\noutput p\noutput q"
    )
    rows = {"shape": "9x4", "cut": "slice_rows", "lo": 0, "hi": 5}
    cols = {"shape": "4x9", "cut": "slice_cols", "lo": 1, "hi": 5}
    for first, second in (("lo", "hi"), ("hi", "lo")):
        shared, lonely = (
            bound(text.format(**cut, first=first, second=second)).matrix for cut in (rows, cols)
        )
        assert shared == 2 * 4 + 4 * 4 + 2 * 4 + 4 + 2 + 4 + 5
        assert lonely == 2 * (1 * 4 + 4 * 4 + 1 * 4 + 4 + 1 + 4 + 5)


def test_heads_share_no_operand() -> None:
    def one_row(heads: int, width: int) -> int:
        graph = attention_graph(1, 7, heads, width)
        return lower_bound(graph, assign_scales(graph, ranges_of(graph)), Chip()).matrix

    projections = 3 * 2 * (8 + 8 * 4 + 4 + 8 + 5 + 5)
    scores = 2 * 2 * (4 + 4 * 4 + 4 + 4 + 5 + 5)
    values = 2 * 1 * (8 + 8 * 4 + 4 + 8 + 5 + 5)
    assert one_row(2, 4) == projections + scores + values


@pytest.mark.parametrize(
    ("inner", "depth", "parts"),
    [(256, 256, 1), (257, 256, 2), (300, 256, 2), (512, 256, 2), (700, 300, 3)],
)
def test_a_long_product_is_split(inner: int, depth: int, parts: int) -> None:
    """Every part costs as if it were alone, and 16 more to add to the sums of those before."""
    text = f"x = input 4x{inner}\nw = weight {inner}x4\np = matmul x w\noutput p"
    found = bound(text, Chip(operand_depth=depth))
    assert found.matrix == inner * 9 + parts * (16 + 4 + 4 + 5) + (parts - 1) * 16


def test_what_no_output_needs_costs_nothing() -> None:
    needed = "x = input 2x8\ns = softmax x\noutput s"
    dead = "x = input 2x8\ny = input 9x9\nt = softmax y\ns = softmax x\noutput s"
    assert bound(dead) == bound(needed)
    rows = [3 * 8 + 47] * 2
    assert bound(needed).vector == sum(rows) + 16 + 2


@pytest.mark.parametrize(
    "sources",
    [
        "x = input 9x8\ncut = slice_rows x start=3 count=2",
        "x = input 9x8\nwide = slice_rows x start=1 count=7\ncut = slice_rows wide start=3 count=2",
        "x = input 1x8\ny = input 8x8\nall = concat_rows x y\ncut = slice_rows all start=2 count=2",
        "x = input 2x7\ny = input 2x9\nall = concat_cols x y\ncut = slice_cols all start=4 count=8",
    ],
)
def test_words_that_nobody_reads_are_not_loaded(sources: str) -> None:
    assert bound(f"{sources}\ns = softmax cut\noutput s").dma == 16 + 9 + 16 + 2


def test_a_key_that_a_row_does_not_see_costs_it_nothing() -> None:
    """Rows of 3 and 4 keys of 5, the last of which nobody sees, and so nobody loads.

    Scores and results are requantized by the same factor.
    """
    leaves = "q = input 2x4\nk = input 5x4\nv = input 5x4\n"
    sees = "a = attention q k v heads=1 prefix=2 width=3 tails=1,3"
    found = bound(f"{leaves}{sees}\noutput a")
    assert found.dma == (8 + 16 + 16 + 9) + (8 + 2)
    assert found.vector == (3 * 3 + 47) + (3 * 4 + 47) + (7 + 8 + 2) + (7 + 2)

    def of(inner: int) -> Fraction:
        """A sum of a tile of two rows, 2 x 4 of them."""
        return Fraction(2 * inner + inner * 4 + 2 * 4 + inner + 2 + 4 + 5, 8)

    assert found.matrix == ceil((3 + 4) * of(4) + 4 * of(3) + 4 * of(4))


def test_attentions_over_the_same_keys_could_share_a_tile() -> None:
    leaves = "".join(f"{name} = input {4 if name in 'kvw' else 1}x4\n" for name in "qrkvw")
    one = "a = attention q k v heads=1 prefix=4 width=0 tails=0\noutput a\n"
    other = "b = attention r k {} heads=1 prefix=4 width=0 tails=0\noutput b"
    shared, apart = (bound(leaves + one + other.format(values)).matrix for values in "vw")
    tile = 2 * 4 + 4 * 4 + 2 * 4 + 4 + 2 + 4 + 5
    single = 1 * 4 + 4 * 4 + 1 * 4 + 4 + 1 + 4 + 5
    assert (shared, apart) == (2 * tile, tile + 2 * single)


def test_sums_argmax_and_relus() -> None:
    """The addends have the scale of the sum: nothing to requantize but the relu's words."""
    found = bound("x = input 2x8\na = add x x\nr = relu a\nt = argmax r\noutput t")
    assert found.vector == (2 * 16 + 2) + (16 + 2) + 2 * (8 + 3)
    assert found.control == 2 * (1 + 1 + 1 + 1 + 2 + 1)


def test_equal_factors_are_one_requantization() -> None:
    """A step of 1 everywhere, so that every factor is exactly 1."""
    text = "graph g\nx = input 1x4\nw = weight 4x4\np = matmul x w\nr = relu p\nt = relu x\n"
    graph = parse_graph(text + "output r\noutput t")
    found = lower_bound(graph, assign_scales(graph, Ranges(dict.fromkeys("xwprt", 127.0))), Chip())
    assert found.vector == 8 + 2
    assert found.control == 2 * (1 + 1 + 1 + 1 + 1)


def test_a_relu_is_another_requantization() -> None:
    """The product and one addend are both multiplied by 2, but only the product has a relu."""
    text = "graph g\nx = input 1x4\ny = input 1x4\nw = weight 4x4\np = matmul x w\nr = relu p\n"
    graph = parse_graph(text + "a = add x y\noutput r\noutput a")
    ranges = Ranges(dict.fromkeys("wpyra", 127.0) | {"x": 254.0})
    found = lower_bound(graph, assign_scales(graph, ranges), Chip())
    assert found.vector == 2 * (4 + 2) + (2 * 4 + 2)


def assert_bounds(graph: Graph, ranges: Ranges, chip: Chip) -> float:
    """The bound is below both levels, unit by unit; the part of it that -O1 takes more."""
    found = lower_bound(graph, assign_scales(graph, ranges), chip)
    for level in (O0, O1):
        counters = compile_graph(graph, ranges, chip, optimize=level).counters
        for unit, cycles in counters.by_unit().items():
            assert found.by_unit()[unit] <= cycles, (graph.name, unit)
    return counters.total / found.total - 1


@pytest.mark.parametrize("first", range(FIRST, FIRST + 60, 20))
def test_no_program_of_a_random_graph_is_below_its_bound(first: int) -> None:
    for seed in range(first, first + 20):
        graph = random_graph(seed).graph
        assert_bounds(graph, record_ranges(graph, leaf_samples(graph, seed)), ROOMY)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 10))
def test_no_attention_is_below_its_bound(seed: int) -> None:
    graph = random_attention(seed)
    assert_bounds(graph, record_ranges(graph, leaf_samples(graph, seed)), ROOMY)


@pytest.mark.parametrize(
    ("model", "shapes", "most"),
    [
        (tiny("structured", 1), [(1, 0), (1, 31), (4, 0), (4, 28), (8, 24), (32, 0)], 0.02),
        (pydoc_model(), [(1, 64), (4, 64)], 0.005),
    ],
    ids=["structured", "pydoc"],
)
def test_optimized_models_are_near_their_bound(
    model: LanguageModel, shapes: list[tuple[int, int]], most: float
) -> None:
    for rows, cache in shapes:
        graph = model_graph(model.config, "step" if rows == 1 else "verify", rows, cache)
        assert 0 < assert_bounds(graph, model.ranges, model.config.chip) < most
