"""Block attention: the same integers by other products, and left alone where it would not be so."""

import os
from collections.abc import Callable

import numpy as np
import pytest
from tests.compiler.agreement import check_agreement
from tests.compiler.attention import attention_graph, attention_row, random_attention
from tests.compiler.random_graphs import leaf_samples

from capra.compiler.optimization import O0, O1, Optimization
from capra.compiler.passes.block_attention import block_attention
from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import Graph, Kind
from capra.ir.interpreter import evaluate_int
from capra.ir.ranges import Ranges, record_ranges
from capra.ir.reference import evaluate_float
from capra.ir.text import print_graph
from capra.isa.chip import Chip
from capra.numerics import quantize

FIRST = int(os.environ.get("CAPRA_SEED", "0"))
BLOCKS: Optimization = frozenset({"block-attention"})
ZEROS: Optimization = BLOCKS | {"shared-zeros"}


def rewritten(graph: Graph, ranges: Ranges | None = None) -> Graph:
    ranges = ranges or record_ranges(graph, leaf_samples(graph, 0))
    return block_attention(graph, assign_scales(graph, ranges))[0]


@pytest.mark.parametrize(("rows", "cache", "heads"), [(2, 0, 1), (4, 3, 2), (5, 1, 1), (9, 2, 3)])
def test_the_rewritten_graph_has_every_tensor_and_scale_of_the_original(
    rows: int, cache: int, heads: int
) -> None:
    graph = attention_graph(rows, cache, heads, 4)
    samples = leaf_samples(graph, 1)
    ranges = record_ranges(graph, samples)
    scales = assign_scales(graph, ranges)
    blocks, block_scales = block_attention(graph, scales)
    assert blocks.outputs == graph.outputs
    anew = assign_scales(blocks, ranges)  # the tags say the same as the rows' scales
    leaves = {name: quantize(value, scales.scale[name]) for name, value in samples[0].items()}
    integers, reals = evaluate_int(graph, scales, leaves), evaluate_float(graph, samples[0])
    block_integers = evaluate_int(blocks, block_scales, leaves)
    block_reals = evaluate_float(blocks, samples[0])
    for node in graph:
        assert blocks[node.name].shape == node.shape and blocks[node.name].tag == node.tag
        assert block_scales.scale[node.name] == scales.scale[node.name]
        np.testing.assert_array_equal(block_integers[node.name], integers[node.name], node.name)
        np.testing.assert_allclose(block_reals[node.name], reals[node.name], atol=1e-12)
    for node in blocks:
        assert anew.scale[node.name] == block_scales.scale[node.name]
        assert anew.product.get(node.name) == block_scales.product.get(node.name) or (
            node.kind in (Kind.SLICE_COLS, Kind.SLICE_ROWS)
        )


def test_a_tile_is_four_rows_over_the_prefix_of_its_last() -> None:
    blocks = rewritten(attention_graph(6, 3, 1, 4))
    shapes = [(node.shape, node.prefix) for node in blocks if node.kind is Kind.SOFTMAX]
    assert shapes == [((4, 7), 4), ((2, 9), 8)]
    products = [node for node in blocks if node.kind is Kind.MATMUL and node.rows <= 4]
    assert [blocks[node.inputs[1]].rows for node in products] == [7, 9]


def test_a_tile_is_named_and_tagged_as_its_first_row() -> None:
    blocks = rewritten(attention_graph(6, 0, 2, 2))
    made = {n.name: n.tag for n in blocks if n.kind is Kind.CONCAT_COLS and n.rows > 1}
    assert made == {"attn.r0.block": "attn", "attn.r4.block": "attn"}


def test_whole_keys_and_values_are_read_without_a_view() -> None:
    blocks = rewritten(attention_graph(3, 2, 1, 4))
    (scores,) = (node for node in blocks if node.kind is Kind.SCORES)
    assert scores.inputs == ("q", "k.all")


@pytest.mark.parametrize("name", ["s.r0.h0.block", "s.r0.h0.rows"])
def test_names_that_look_like_the_passs_own_are_avoided(name: str) -> None:
    graph = attention_graph(2, 0, 1, 4)
    graph.softmax(name, "attn")
    graph.output(name)
    nodes = rewritten(graph).nodes
    assert nodes[name].kind is Kind.SOFTMAX and nodes[name].inputs == ("attn",)
    made = nodes.keys() - graph.nodes.keys()
    assert made and all((".block_" if "block" in name else ".block") in each for each in made)
    check_agreement(graph, leaf_samples(graph, 0))


# What is left alone


def spoiled(change: Callable[[Graph], None]) -> Graph:
    """Three rows of attention, with something else in the graph or with another third row."""
    graph = Graph("spoiled")
    for name in ("q", "k", "v", "also", "zero"):
        graph.input(name, 6, 4)
    parts = [attention_row(graph, row, row + 2, 1, 4, k="k", v="v") for row in range(2)]
    change(graph)
    if "a.r2.h0" not in graph.nodes:
        attention_row(graph, 2, 4, 1, 4, k="k", v="v")
    graph.concat_rows("attn", [*parts, "a.r2.h0"], tag="attn")
    graph.output("attn")
    return graph


def third_row(**changes: object) -> Callable[[Graph], None]:
    def add(graph: Graph) -> None:
        options: dict[str, object] = {"seen": 4, "k": "k", "v": "v", **changes}
        attention_row(graph, 2, heads=1, width=4, **options)  # type: ignore[arg-type]

    return add


def scores_are_an_output(graph: Graph) -> None:
    graph.output("s.r1.h0")


def probabilities_are_read_twice(graph: Graph) -> None:
    graph.softmax("again", "p.r0.h0")
    graph.output("again")


def products_are_read_twice(graph: Graph) -> None:
    graph.softmax("again", "a.r1.h0")
    graph.output("again")


def other_third_row(query: int = 2, prefix: int = 0, scale: float = 0.5) -> Callable[[Graph], None]:
    def add(graph: Graph) -> None:
        graph.slice_rows("q.r2", "q", query, 1, tag="q")
        for name in ("k", "v"):
            graph.slice_rows(f"{name}.r2", name, 0, 4, tag=name)
        graph.scores("s.r2.h0", "q.r2", "k.r2", scale=scale, tag="s.h0")
        graph.softmax("p.r2.h0", "s.r2.h0", prefix=prefix, tag="p.h0")
        graph.matmul("a.r2.h0", "p.r2.h0", "v.r2", tag="attn")

    return add


def test_rows_that_follow_each_other_are_rewritten() -> None:
    for graph in (spoiled(third_row()), spoiled(other_third_row())):
        assert print_graph(rewritten(graph)) != print_graph(graph)


@pytest.mark.parametrize(
    "change",
    [
        third_row(seen=5), third_row(seen=3), third_row(k="also"), third_row(k="zero"),
        third_row(v="also"), third_row(v="zero"), other_third_row(query=1),
        third_row(tag=".own_scale"), third_row(as_matmul=True),
        scores_are_an_output, probabilities_are_read_twice,
        products_are_read_twice, other_third_row(prefix=2), other_third_row(query=3),
        other_third_row(scale=0.5 - 1e-9), other_third_row(scale=0.5 + 1e-9),
    ],
)  # fmt: skip
def test_rows_that_do_not_follow_each_other_are_left_alone(change: Callable[[Graph], None]) -> None:
    graph = spoiled(change)
    samples = leaf_samples(graph, 3)
    ranges = record_ranges(graph, samples)
    assert print_graph(rewritten(graph, ranges)) == print_graph(graph)
    check_agreement(graph, samples)


@pytest.mark.parametrize("factor", [0.5, 1 - 1e-9, 1 + 1e-9, 2.0])
def test_a_row_of_another_range_is_left_alone(factor: float) -> None:
    """However little it differs, and so even where it would be the same integers."""
    graph = spoiled(third_row(tag=".own"))
    ranges = dict(record_ranges(graph, leaf_samples(graph, 3)).values)
    same, other = (Ranges(ranges | {"s.h0.own": ranges["s.h0"] * own}) for own in (1.0, factor))
    assert print_graph(rewritten(graph, same)) != print_graph(graph)
    assert print_graph(rewritten(graph, other)) == print_graph(graph)


def rows_of_heads(*heads: int, beside: bool = False, as_matmul: bool = False) -> Graph:
    """Rows of attention with so many heads, all 4 columns wide, or with a part that is no head."""
    graph = Graph("heads")
    for name in ("q", "k", "v"):
        graph.input(name, 4, 4)
    parts = []
    for row, count in enumerate(heads):
        part = attention_row(
            graph, row, row + 2, count, 4 // count, k="k", v="v", as_matmul=as_matmul
        )
        if beside:
            graph.softmax(f"no_head.r{row}", f"q.r{row}", tag="attn")
            part = graph.concat_cols(f"wide.r{row}", [part, f"no_head.r{row}"], tag="attn")
        parts.append(part)
    graph.output(graph.concat_rows("attn", parts, tag="attn"))
    return graph


def test_any_number_of_heads_is_rewritten() -> None:
    blocks = rewritten(attention_graph(2, 0, 257, 1))
    assert [n.rows for n in blocks if n.kind is Kind.SOFTMAX] == [2] * 257


def test_scores_may_be_a_transposed_product() -> None:
    graph = rows_of_heads(2, 2, 2, as_matmul=True)
    check_agreement(graph, leaf_samples(graph, 3))
    products = [(n.shape, n.transpose_b) for n in rewritten(graph) if n.kind is Kind.MATMUL]
    assert products == [((3, 4), True), ((3, 2), False)] * 2


@pytest.mark.parametrize("heads", [(2, 1), (1, 2)])
def test_rows_of_other_heads_are_left_alone(heads: tuple[int, ...]) -> None:
    graph = rows_of_heads(*heads)
    check_agreement(graph, leaf_samples(graph, 3))
    assert print_graph(rewritten(graph)) == print_graph(graph)


@pytest.mark.parametrize("name", ["A", "wide"])
@pytest.mark.parametrize("wide", [0, 1])
def test_a_head_and_a_concatenation_of_one_are_left_alone(wide: int, name: str) -> None:
    graph = rows_of_heads(1, 1)
    mixed = Graph("mixed")
    for node in graph:
        if node.name == "attn":
            parts = list(node.inputs)
            parts[wide] = mixed.concat_cols(name, [parts[wide]], tag="attn")
            mixed.output(mixed.concat_rows("attn", parts, tag="attn"))
        else:
            mixed.adopt(node, graph)
    check_agreement(mixed, leaf_samples(mixed, 3))
    assert print_graph(rewritten(mixed)) == print_graph(mixed)


def test_pairs_of_rows_are_left_alone() -> None:
    """Each sees one key more than the pair above it, as single rows would."""
    graph = Graph("pairs")
    for name in ("q", "k", "v"):
        graph.input(name, 4, 4)
    parts = []
    for first in range(2):
        graph.slice_rows(f"q.{first}", "q", first, 2)
        for name in ("k", "v"):
            graph.slice_rows(f"{name}.{first}", name, 0, first + 2)
        graph.scores(f"s.{first}", f"q.{first}", f"k.{first}", tag="s")
        graph.softmax(f"p.{first}", f"s.{first}", tag="p")
        parts.append(graph.matmul(f"a.{first}", f"p.{first}", f"v.{first}", tag="attn"))
    graph.output(graph.concat_rows("attn", parts, tag="attn"))
    check_agreement(graph, leaf_samples(graph, 3))
    assert print_graph(rewritten(graph)) == print_graph(graph)


def test_rows_with_a_part_that_is_no_head_are_left_alone() -> None:
    assert print_graph(rewritten(rows_of_heads(1, 1))) != print_graph(rows_of_heads(1, 1))
    graph = rows_of_heads(1, 1, beside=True)
    check_agreement(graph, leaf_samples(graph, 3))
    assert print_graph(rewritten(graph)) == print_graph(graph)


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


def test_a_tile_is_one_product_a_column_of_tiles_and_one_softmax_a_row() -> None:
    graph = attention_graph(4, 4, 1, 4)
    row_by_row, blocks = (instructions(graph, level, "MM") for level in (O0, O1))
    assert len(row_by_row) - len(blocks) == 4 * (2 + 1) - (2 + 1)
    softmaxes = instructions(graph, O1, "SM")
    assert [sm["n"] for sm in softmaxes] == [5, 6, 7, 8]


def test_zeros_are_written_once_a_softmax_or_once_a_mask() -> None:
    graph = attention_graph(10, 2, 2, 4)  # two heads; tiles of 4, 4 and 2 rows
    assert zero_fills(graph, O0) == []
    assert zero_fills(graph, BLOCKS) == [(3, 3), (3, 3), (3, 3), (3, 3), (1, 1), (1, 1)]
    assert zero_fills(graph, ZEROS) == [(3, 3), (1, 1)]


def test_one_row_is_left_as_it_is() -> None:
    graph = attention_graph(1, 5, 2, 4)
    assert print_graph(rewritten(graph)) == print_graph(graph)
    assert zero_fills(graph, O1) == []


# All tensors of random ones; last, as it takes longest


@pytest.mark.sample(6)
@pytest.mark.parametrize("seed", range(FIRST, FIRST + 30))
def test_random_attention_computes_the_rows_of_the_original(seed: int) -> None:
    graph = random_attention(seed)
    check_agreement(graph, leaf_samples(graph, seed), Chip(scratchpad_words=1 << 14))
