"""Compiled programs that use the last word of both memories and the last entry of a third.

A tensor that lives from the first instruction to the last pushes all others up, a weight that
nobody reads does so in external memory, and argmaxes of one word fill the program memory.
"""

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import LEAVES, Graph
from capra.ir.interpreter import evaluate_int
from capra.ir.ranges import Ranges
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.numerics import INT8_MAX, Int64Array


def _product(graph: Graph) -> str:
    graph.input("a", 5, 7)
    graph.weight("b", 7, 6)
    return graph.matmul("last", "a", "b")


def _deep_product(graph: Graph) -> str:
    """Its sums, written twice, are the last buffer: the result takes the place of what is read."""
    graph.input("a", 1, 310)
    graph.slice_cols("b", "a", 0, 310)
    return graph.scores("last", "a", "b")


def _softmax(graph: Graph) -> str:
    return graph.softmax("last", graph.input("a", 3, 9))


def _sum(graph: Graph) -> str:
    graph.input("a", 4, 6)
    graph.input("b", 4, 9)
    return graph.add("last", "a", graph.slice_cols("part", "b", 3, 6))


def _argmax(graph: Graph) -> str:
    return graph.argmax("last", graph.input("a", 3, 9))


def _load(graph: Graph) -> str:
    return graph.input("last", 9, 4)


CORES: Final[Mapping[str, Callable[[Graph], str]]] = {
    "product": _product, "deep product": _deep_product, "softmax": _softmax, "sum": _sum,
    "argmax": _argmax, "load": _load,
}  # fmt: skip


def _graph(core: Callable[[Graph], str], low: int, unread: int, fillers: int) -> Graph:
    graph = Graph("full")
    graph.input("low", 1, low)
    graph.weight("unread", 1, unread)
    graph.slice_cols("word", "low", 0, 1)
    for index in range(fillers):
        graph.argmax(f"filler{index}", "word")
    last = core(graph)
    graph.argmax("end", "low")
    graph.output("end")
    graph.output(last)
    return graph


def full_program(
    name: str, chip: Chip
) -> tuple[Program, dict[str, Int64Array], dict[str, Int64Array]]:
    """(program, its leaves, what its tensors must be): nothing is left of the chip's memories."""
    low, unread, fillers = 1, 1, 1
    roomy = Chip(1 << 14, 1 << 14, chip.operand_depth, chip.program_entries)
    for size in (roomy, chip):
        graph = _graph(CORES[name], low, unread, fillers)
        ranges = Ranges(dict.fromkeys(graph.nodes, 2.0))
        program = compile_graph(graph, ranges, size)
        used = max(home.region.end for home in program.tensors.values())
        stored = max(slot.end for slot in program.external)
        low += chip.scratchpad_words - used
        unread += chip.external_words - stored - (chip.scratchpad_words - used)
        fillers += chip.program_entries - len(program.instructions)
    draw = np.random.default_rng(len(name))
    leaves = {
        node.name: draw.integers(-INT8_MAX, INT8_MAX, node.shape, endpoint=True)
        for node in graph
        if node.kind in LEAVES
    }
    return program, leaves, evaluate_int(graph, assign_scales(graph, ranges), leaves)
