"""The chip that a graph gets: large enough, and no larger than it must be."""

from dataclasses import replace

import pytest

from capra.compiler.fit import fitting_chip
from capra.compiler.pipeline import compile_graph
from capra.errors import CapacityError
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.isa.chip import Chip


def softmax_of(rows: int, cols: int) -> tuple[Graph, Ranges]:
    graph = Graph("g")
    graph.input("x", rows, cols)
    graph.softmax("y", "x")
    graph.output("y")
    return graph, Ranges({"x": 1.0, "y": 1.0})


def test_a_small_graph_gets_the_default_chip() -> None:
    assert fitting_chip(*softmax_of(2, 2)) == Chip()


@pytest.mark.parametrize(("rows", "cols"), [(9, 500), (100, 100), (1, 9000)])
def test_a_memory_of_half_the_size_is_not_enough(rows: int, cols: int) -> None:
    graph, ranges = softmax_of(rows, cols)
    chip = fitting_chip(graph, ranges)
    compile_graph(graph, ranges, chip)
    for name in ("external_words", "scratchpad_words", "program_entries"):
        size = getattr(chip, name)
        if size == getattr(Chip(), name):
            continue
        with pytest.raises(CapacityError):
            compile_graph(graph, ranges, replace(chip, **{name: size // 2}))


def test_what_no_chip_holds_is_refused() -> None:
    with pytest.raises(CapacityError, match="expected at most 1048576"):
        fitting_chip(*softmax_of(1000, 5000))
