"""The largest tensors: what a field of an instruction cannot say is split or refused, by name."""

import numpy as np
import pytest
from tests.compiler.execution import run_and_read_back

from capra.compiler.optimization import O0, O1, Optimization
from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.errors import CapacityError, GraphError
from capra.ir.graph import MAX_DIMENSION, Graph
from capra.ir.interpreter import evaluate_int
from capra.ir.ranges import Ranges
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.isa.spec import BY_MNEMONIC

LARGEST = Chip(external_words=1 << 24, scratchpad_words=1 << 20, program_entries=1 << 20)
LEVELS = pytest.mark.parametrize("optimize", [O0, O1], ids=["O0", "O1"])


def compiled(graph: Graph, optimize: Optimization) -> Program:
    ranges = Ranges(dict.fromkeys(graph.nodes, 1.0))
    return compile_graph(graph, ranges, LARGEST, optimize=optimize)


def check_outputs(graph: Graph, optimize: Optimization) -> Program:
    """The program, which leaves what the interpreter says."""
    program = compiled(graph, optimize)
    draw = np.random.default_rng(0)
    leaves = {
        slot.name: draw.integers(-127, 127, (slot.rows, slot.cols), endpoint=True)
        for slot in program.slots("input", "weight")
    }
    scales = assign_scales(graph, Ranges(dict.fromkeys(graph.nodes, 1.0)))
    expected = evaluate_int(graph, scales, leaves)
    for name, value in run_and_read_back(program, leaves).outputs.items():
        np.testing.assert_array_equal(value, expected[name], name)
    return program


def square(rows: int, cols: int) -> Graph:
    graph = Graph("g")
    graph.output(graph.input("x", rows, cols))
    return graph


@LEVELS
def test_a_tensor_of_all_words_of_the_scratchpad_is_moved_in_two(optimize: Optimization) -> None:
    code = list(map(str, check_outputs(square(1024, 1024), optimize).instructions))
    assert code == [
        "LD d=0 s=0 n=1048575", "LD d=1048575 s=1048575 n=1",
        "ST d=1048576 s=0 n=1048575", "ST d=2097151 s=1048575 n=1",
        "HALT",
    ]  # fmt: skip
    assert compiled(square(1025, 1023), optimize).histogram() == {"LD": 1, "ST": 1, "HALT": 1}


@LEVELS
def test_a_tensor_larger_than_the_scratchpad_is_refused_by_name(optimize: Optimization) -> None:
    message = r"^g: the scratchpad needs 1049600 words for x, expected at most 1048576$"
    with pytest.raises(CapacityError, match=message):
        compiled(square(1025, 1024), optimize)


@LEVELS
def test_a_program_of_the_largest_dimensions(optimize: Optimization) -> None:
    """Strides, rows, columns and rows of scores of 65,535; sums of twice as many words."""
    graph = Graph("g")
    graph.input("x", 2, MAX_DIMENSION - 3)
    graph.input("y", 2, 3)
    graph.concat_cols("wide", ["x", "y"])
    graph.slice_cols("end", "wide", MAX_DIMENSION - 5, 5)
    graph.softmax("s", "wide")
    graph.argmax("t", "s")
    graph.add("sum", "wide", "s")
    graph.scores("p", "end", "end")
    graph.relu("r", "wide")
    for name in ("t", "sum", "p", "r"):
        graph.output(name)
    check_outputs(graph, optimize)
    tall = Graph("g")
    tall.input("a", MAX_DIMENSION, 1)
    tall.slice_rows("low", "a", MAX_DIMENSION - 4, 4)
    tall.relu("r", tall.add("twice", "low", "low"))
    tall.output("r")
    check_outputs(tall, optimize)


def test_no_field_is_narrower_than_a_dimension() -> None:
    for mnemonic in ("RQ", "SM", "AMAX", "MM"):
        op = BY_MNEMONIC[mnemonic]
        for field in op.fields:
            if field.name in ("r", "c", "n", "k", "sd", "ss", "sa", "sb") and field.bits > 3:
                assert field.limit >= MAX_DIMENSION, (mnemonic, field.name)


def test_a_dimension_that_no_field_holds_is_refused_by_name() -> None:
    graph = Graph("g")
    with pytest.raises(GraphError, match=r"x: 65536 columns, expected 1 \.\. 65535"):
        graph.input("x", 1, MAX_DIMENSION + 1)
    graph.input("x", 1, MAX_DIMENSION)
    graph.input("y", 1, 1)
    with pytest.raises(GraphError, match=r"wide: 65536 columns, expected 1 \.\. 65535"):
        graph.concat_cols("wide", ["x", "y"])
