"""Attention as operations of the machine: rows or tiles, over any visible set."""

import os
from collections import Counter
from itertools import pairwise

import pytest
from tests.compiler.agreement import check_agreement
from tests.compiler.attention import attention_graph, random_attention
from tests.compiler.random_graphs import leaf_samples

from capra.compiler.ops import Product, Requantize, SoftmaxRow
from capra.compiler.optimization import O0, O1, Optimization
from capra.compiler.passes.masks import mask_of
from capra.compiler.passes.scales import assign_scales
from capra.compiler.passes.tile import tile_operations
from capra.compiler.passes.views import place_tensors
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import Graph
from capra.ir.ranges import record_ranges
from capra.ir.visible import Visible
from capra.isa.chip import Chip
from capra.numerics import UNITY

FIRST = int(os.environ.get("CAPRA_SEED", "0"))
BLOCKS: Optimization = frozenset({"block-attention"})
ZEROS: Optimization = BLOCKS | {"shared-zeros"}

TREE = Visible.tree((-1, 0, 0, 1, 2), 2)
"""Five rows after two cached ones: 0 above 1 and 2, 1 above 3, 2 above 4."""


def operations(graph: Graph, rows: int) -> list[Product | Requantize | SoftmaxRow]:
    """Those of the attention itself."""
    scales = assign_scales(graph, record_ranges(graph, leaf_samples(graph, 0)))
    ops = tile_operations(graph, scales, place_tensors(graph), 256, attention_rows=rows)
    kinds = (Product, Requantize, SoftmaxRow)
    return [op for op in ops if isinstance(op, kinds) and op.tensor == "attn"]


def products(graph: Graph, rows: int) -> list[tuple[tuple[int, int], int]]:
    """Shape and K of every product."""
    ops = [op for op in operations(graph, rows) if isinstance(op, Product)]
    return [((op.dst.rows, op.dst.cols), op.a.cols) for op in ops]


def test_a_tile_is_four_rows_over_what_its_last_sees() -> None:
    graph = attention_graph(6, 3, 1, 4)
    assert products(graph, 4) == [((4, 7), 4), ((4, 4), 7), ((2, 9), 4), ((2, 4), 9)]
    one_by_one = [((1, seen), 4) for seen in range(4, 10)]
    assert products(graph, 1)[::2] == one_by_one


def test_a_tile_of_a_tree_is_over_the_last_key_that_any_of_its_rows_sees() -> None:
    graph = attention_graph(5, 2, 1, 4, visible=TREE)
    assert products(graph, 4) == [((4, 6), 4), ((4, 4), 6), ((1, 7), 4), ((1, 4), 7)]
    only_first = attention_graph(3, 5, 1, 4, visible=Visible(0, 8, (1, 3, 1)))
    assert products(only_first, 4) == [((3, 2), 4), ((3, 4), 2)]


def test_every_head_reads_and_writes_its_own_columns() -> None:
    ops = operations(attention_graph(4, 2, 3, 5), 4)
    found = [(op.a.offset, op.b.offset % 15) for op in ops if isinstance(op, Product)]
    assert found == [(0, 0), (0, 0), (5, 5), (0, 5), (10, 10), (0, 10)]
    written = [
        op.dst.offset for op in ops if isinstance(op, Requantize) and op.dst.buffer == "attn"
    ]
    assert written == [0, 5, 10]


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("visible", [Visible.causal(5, 2), TREE])
def test_no_two_operations_of_an_attention_share_a_temporary(visible: Visible, rows: int) -> None:
    """A buffer that two tiles shared would live from the first to the second."""
    ops = operations(attention_graph(5, 2, 2, 4, visible=visible), rows)
    written = Counter(op.dst.buffer for op in ops if isinstance(op, Product | SoftmaxRow))
    softmaxes = sum(isinstance(op, SoftmaxRow) for op in ops)
    assert softmaxes == 10
    made = [name for name in written if name.endswith(".sums")]
    assert all(written[name] == 1 for name in made)
    assert len(made) == sum(isinstance(op, Product) for op in ops)


def test_values_are_loaded_once_the_first_probabilities_are_there() -> None:
    graph = Graph("g")
    for name in "qkv":
        graph.input(name, 2, 4)
    graph.output(graph.attention("attn", "q", "k", "v", visible=Visible.causal(2, 0), heads=2))
    scales = assign_scales(graph, record_ranges(graph, leaf_samples(graph, 0)))
    ops = tile_operations(graph, scales, place_tensors(graph), 256)
    kinds = [f"{type(op).__name__} {op.tensor}" for op in ops]
    first = ["Product", "Requantize", "SoftmaxRow", "Requantize"]
    assert kinds[:8] == [
        "Load q",
        "Load k",
        *(f"{kind} attn" for kind in first),
        "Load v",
        "Product attn",
    ]
    assert kinds.count("Load v") == 1


@pytest.mark.parametrize(
    ("visible", "mask"),
    [
        (Visible.causal(3, 2), (2, 1, 0)), (Visible(4, 1, (0, 1, 0)), (1, 0, 1)),
        (Visible(1, 2, (3, 2, 3)), None), (Visible(0, 2, (2, 2)), None), (TREE, None),
    ],
)  # fmt: skip
def test_rows_have_a_mask_where_they_see_their_first_keys(
    visible: Visible, mask: tuple[int, ...] | None
) -> None:
    runs = [visible.runs(row) for row in range(visible.rows)]
    assert mask_of(runs, visible.keys) == mask


def test_a_row_with_gaps_has_its_scores_together_and_its_probabilities_apart() -> None:
    """Key 0 and keys 3 and 4 of 6: three words of neighbours between, no other word read."""
    graph = attention_graph(1, 5, 1, 4, visible=Visible(0, 6, (0b011001,)))
    _, _, *ops, _, _ = operations(graph, 1)
    together, softmax, apart = ops[:2], ops[2], ops[3:]
    assert [op.dst.cols for op in together] == [1, 2]
    assert all(isinstance(op, Requantize) and op.rescale == UNITY for op in together)
    assert [(op.src.offset, op.dst.offset) for op in together if isinstance(op, Requantize)] == [
        (0, 0), (3, 1)
    ]  # fmt: skip
    assert isinstance(softmax, SoftmaxRow) and softmax.src.cols == softmax.dst.cols == 3
    assert [
        (op.src.offset, op.dst.offset, op.dst.cols, op.rescale.multiplier > 0)
        for op in apart if isinstance(op, Requantize)
    ] == [(0, 0, 1, True), (1, 1, 2, False), (1, 3, 2, True)]  # fmt: skip


def test_more_heads_than_an_instruction_has_rows() -> None:
    graph = attention_graph(2, 0, 257, 1)
    assert products(graph, 4) == [((2, 2), 1), ((2, 1), 2)] * 257


# Instructions


def instructions(graph: Graph, optimize: Optimization, mnemonic: str) -> list[dict[str, int]]:
    ranges = record_ranges(graph, leaf_samples(graph, 0))
    program = compile_graph(graph, ranges, Chip(), optimize=optimize)
    return [
        {field.name: inst[field.name] for field in inst.op.fields}
        for inst in program.instructions
        if inst.mnemonic == mnemonic
    ]


def zero_fills(graph: Graph, optimize: Optimization) -> list[tuple[int, int]]:
    return [(rq["r"], rq["c"]) for rq in instructions(graph, optimize, "RQ") if rq["mul"] == 0]


def test_a_tile_is_one_product_per_column_of_tiles_and_one_softmax_per_row() -> None:
    graph = attention_graph(4, 4, 1, 4)
    row_by_row, blocks = (instructions(graph, level, "MM") for level in (O0, O1))
    assert len(row_by_row) - len(blocks) == 4 * (2 + 1) - (2 + 1)
    softmaxes = instructions(graph, O1, "SM")
    assert [sm["n"] for sm in softmaxes] == [5, 6, 7, 8]


@pytest.mark.parametrize("level", [O0, O1], ids=["O0", "O1"])
def test_a_softmax_is_over_as_many_words_as_its_row_sees(level: Optimization) -> None:
    graph = attention_graph(5, 2, 1, 4, visible=TREE)
    assert [sm["n"] for sm in instructions(graph, level, "SM")] == [3, 4, 4, 5, 5]


def test_zeros_are_written_once_per_softmax_or_once_per_mask() -> None:
    graph = attention_graph(10, 2, 2, 4)  # two heads; tiles of 4, 4 and 2 rows
    assert zero_fills(graph, O0) == []
    assert zero_fills(graph, BLOCKS) == [(3, 3), (3, 3), (3, 3), (3, 3), (1, 1), (1, 1)]
    assert zero_fills(graph, ZEROS) == [(3, 3), (1, 1)]


def test_gaps_and_keys_behind_the_last_are_zeros_in_every_tile() -> None:
    """Rows 0, 1, 2 and 3 of the tree, over 6 keys; row 4 has a tile of its own."""
    graph = attention_graph(5, 2, 1, 4, visible=TREE)
    gaps = {0: [3], 1: [2], 2: [1, 1], 3: [1], 4: [1, 1]}
    expected = [(1, width) for row in gaps.values() for width in row]
    assert zero_fills(graph, ZEROS) == expected


def test_one_row_of_a_chain_has_no_zeros() -> None:
    assert zero_fills(attention_graph(1, 5, 2, 4), O1) == []


# All tensors of random ones; last, as it takes longest


@pytest.mark.sample(8)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + 60))
def test_random_attention_computes_what_the_interpreter_does(seed: int) -> None:
    graph = random_attention(seed)
    check_agreement(graph, leaf_samples(graph, seed), Chip(scratchpad_words=1 << 14))


def test_masks_that_take_turns_keep_their_zeros() -> None:
    """Two attentions of a tile of four rows and one of two: each mask again after the other."""
    graph = Graph("g")
    graph.input("x", 6, 4)
    for name in "ab":
        graph.output(graph.attention(name, "x", "x", "x", visible=Visible.causal(6, 0)))
    check_agreement(graph, leaf_samples(graph, 0))


def test_random_attention_has_chains_trees_and_gaps() -> None:
    kinds, rows, caches = set(), set(), set()
    for seed in range(60):
        graph = random_attention(seed)
        visible = graph["attn"].visible
        assert visible is not None
        runs = [visible.runs(row) for row in range(visible.rows)]
        ends = [visible.end(row) for row in range(visible.rows)]
        grows = all(below == above + 1 for above, below in pairwise(ends))
        kinds.add((mask_of(runs, visible.keys) is not None, grows, graph["attn"].heads > 1))
        rows.add(visible.rows)
        caches.add(visible.keys - visible.rows)
    assert {(True, True), (False, True), (False, False)} <= {kind[:2] for kind in kinds}
    assert rows == set(range(1, 11)) and caches == set(range(10))
