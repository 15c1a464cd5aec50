"""Products of all sizes around the tile and the operand memory, in chains with views between."""

from itertools import product

import numpy as np
import pytest
from tests.compiler.agreement import LARGE, check_agreement
from tests.compiler.execution import run_and_read_back
from tests.compiler.full_programs import CORES, full_program
from tests.compiler.random_graphs import leaf_samples

from capra.compiler.pipeline import compile_graph
from capra.ir.graph import MAX_DIMENSION, Graph
from capra.ir.ranges import Ranges
from capra.isa.chip import Chip

SIZES = (1, 3, 4, 5, 7, 8, 9)
DEEPEST = Chip().operand_depth


def chain(rows: int, inner: int, cols: int, transpose_b: bool) -> Graph:
    """p, (rows, inner) x (inner, cols); a product of a part of it; one that spans two tensors."""
    graph = Graph(f"chain{rows}x{inner}x{cols}")
    graph.input("a", rows, inner)
    graph.input("b", *((cols, inner) if transpose_b else (inner, cols)))
    graph.matmul("p", "a", "b", transpose_b=transpose_b)
    graph.slice_rows("lower", "p", rows // 2, rows - rows // 2)
    part = graph[graph.slice_cols("part", "lower", cols // 3, cols - cols // 3)]
    graph.weight("c", *((part.cols, inner) if transpose_b else (inner, part.cols)))
    graph.matmul("q", "part", "c", transpose_b=not transpose_b)
    graph.relu("r", "q")
    graph.input("more", part.rows, 2)
    graph.slice_cols("span", graph.concat_cols("both", ["r", "more"]), 1, inner)
    graph.weight("d", 5, inner)
    graph.scores("s", "span", "d")
    for name in ("p", "part", "r", "s"):
        graph.output(name)
    return graph


@pytest.mark.sample(2)
@pytest.mark.parametrize("inner", SIZES)
def test_products_of_all_sizes_around_the_tile(inner: int) -> None:
    for index, (rows, cols) in enumerate(product(SIZES, SIZES)):
        transpose_b = index % 2 == 0
        graph = Graph(f"g{rows}x{inner}x{cols}")
        graph.input("a", rows, inner)
        graph.input("b", *((cols, inner) if transpose_b else (inner, cols)))
        graph.output(graph.matmul("p", "a", "b", transpose_b=transpose_b))
        check_agreement(graph, leaf_samples(graph, index))


@pytest.mark.sample(3)
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("shift", range(len(SIZES)))
def test_chains_of_all_pairs_of_sizes_around_the_tile(shift: int, transpose_b: bool) -> None:
    """A Latin square: any two of the three sizes meet in every combination."""
    for index, rows in enumerate(SIZES):
        inner = SIZES[(index + shift) % len(SIZES)]
        graph = chain(rows, inner, SIZES[shift], transpose_b)
        check_agreement(graph, leaf_samples(graph, shift))


@pytest.mark.sample(4)
@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("side", ["rows", "inner", "cols"])
@pytest.mark.parametrize("size", [DEEPEST - 1, DEEPEST, DEEPEST + 1, 2 * DEEPEST + 88])
def test_chains_around_the_operand_depth(size: int, side: str, transpose_b: bool) -> None:
    """Each side is the inner one of a product in turn."""
    sizes = {"rows": 5, "inner": 3, "cols": 4, side: size}
    graph = chain(**sizes, transpose_b=transpose_b)
    check_agreement(graph, leaf_samples(graph, size), LARGE)


@pytest.mark.parametrize("sign", [1, -1])
def test_sums_of_4096_extreme_products(sign: int) -> None:
    inner = 4096
    graph = Graph("extreme")
    graph.input("a", 2, inner, tag="unit")
    graph.input("b", inner, 2, tag="unit")
    graph.output(graph.matmul("p", "a", "b"))
    ranges = Ranges({"unit": 1.0, "p": float(inner)})
    program = compile_graph(graph, ranges, LARGE)
    leaves = {"a": np.full((2, inner), -127), "b": np.full((inner, 2), -127 * sign)}
    found = run_and_read_back(program, leaves)
    assert found.tensors["%p.sums"].tolist() == [[sign * 4096 * 16129] * 4]
    assert found.outputs["p"].tolist() == [[sign * 127] * 2] * 2


def test_no_product_of_a_graph_can_wrap() -> None:
    """The longest inner side there can be, of the largest int8 values: 31 bits and a sign do."""
    assert MAX_DIMENSION * 127**2 < 2**30


@pytest.mark.parametrize("name", CORES)
def test_programs_that_use_the_last_word_of_every_memory(name: str) -> None:
    chip = Chip(external_words=1100, scratchpad_words=1024, program_entries=64)
    program, leaves, expected = full_program(name, chip)
    assert max(home.region.end for home in program.tensors.values()) == chip.scratchpad_words
    assert max(slot.end for slot in program.external) == chip.external_words
    assert len(program.instructions) == chip.program_entries
    found = run_and_read_back(program, leaves)
    for tensor, value in (found.tensors | found.outputs).items():
        if not tensor.startswith("%"):
            np.testing.assert_array_equal(value, expected[tensor], tensor)
