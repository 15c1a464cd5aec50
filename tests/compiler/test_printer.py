"""The printed states: one line for each thing, with every number that the pass decided."""

from functools import cache

import pytest

from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.compiler.printer import print_scales
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.ir.visible import Visible
from capra.isa.assembler import assemble
from capra.isa.chip import Chip
from capra.isa.program import Program


@cache
def states() -> tuple[Program, dict[str, str]]:
    """A graph with every operation of the machine, compiled, and the text of each state."""
    graph = Graph("all")
    graph.input("x", 1, 4)
    graph.weight("w", 2, 4)
    graph.matmul("p", "x", "w", transpose_b=True)
    graph.relu("r", "p")
    graph.softmax("s", "r")
    graph.slice_cols("v", "x", 2, 2)
    graph.add("a", "s", "v")
    graph.argmax("t", "a")
    graph.output("t")
    ranges = Ranges({"x": 1.0, "w": 2.0, "r": 4.0, "s": 1.0, "a": 1.0})
    texts: dict[str, str] = {}
    program = compile_graph(
        graph, ranges, Chip(), observer=lambda name, text: texts.update({name: text()})
    )
    return program, texts


@pytest.fixture
def texts() -> dict[str, str]:
    return states()[1]


def test_scales_are_printed_with_their_rescales(texts: dict[str, str]) -> None:
    assert texts["scales"] == (
        "x: scale 0.00787402\n"
        "w: scale 0.015748\n"
        "p: scale 0.0314961, rescale 33026 >> 23\n"
        "r: scale 0.0314961\n"
        "s: scale 0.00787402, index 33026 >> 15, rescale 65024 >> 24\n"
        "v: scale 0.00787402\n"
        "a: scale 0.00787402, operand 32768 >> 15, operand 32768 >> 15\n"
    )


def test_scales_inside_an_attention_are_printed_before_its_own() -> None:
    graph = Graph("g")
    graph.input("x", 2, 4)
    graph.attention("a", "x", "x", "x", visible=Visible.causal(2, 0), scale=0.5)
    ranges = Ranges({"x": 1.0, "a.h0.scores": 2.0, "a.h0.probs": 1.0, "a": 1.0})
    assert print_scales(graph, assign_scales(graph, ranges)) == (
        "x: scale 0.00787402\n"
        "a.h0.scores: scale 0.015748, rescale 33026 >> 24\n"
        "a.h0.probs: scale 0.00787402, index 33026 >> 16, rescale 65024 >> 24\n"
        "a.h0.mixed: scale 0.00787402, rescale 33026 >> 22\n"
        "a: scale 0.00787402\n"
    )


def test_views_are_printed_as_rectangles_of_buffers(texts: dict[str, str]) -> None:
    assert texts["views"] == (
        "x: x[0: 1x4 stride 4]\n"
        "w: w[0: 2x4 stride 4]\n"
        "p: r[0: 1x2 stride 2]\n"
        "r: r[0: 1x2 stride 2]\n"
        "s: s[0: 1x2 stride 2]\n"
        "v: x[2: 1x2 stride 4]\n"
        "a: a[0: 1x2 stride 2]\n"
        "t: t[0: 1x1 stride 1]\n"
    )


def test_operations_are_printed_with_their_index(texts: dict[str, str]) -> None:
    assert texts["tiles"] == (
        "0: x[0: 1x4 stride 4] = load x\n"
        "1: w[0: 2x4 stride 4] = load w\n"
        "2: %r.sums[0: 1x2 stride 2] = x[0: 1x4 stride 4] . w[0: 2x4 stride 4]^T\n"
        "    %r.sums[0: 1x2 stride 2] = x[0: 1x4 stride 4] . w[0: 2x4 stride 4]^T\n"
        "3: r[0: 1x2 stride 2] = requantize %r.sums[0: 1x2 stride 2] 33026 >> 23 relu\n"
        "4: %s.fixed[0: 1x2 stride 2] = softmax r[0: 1x2 stride 2] index 33026 >> 15\n"
        "5: s[0: 1x2 stride 2] = requantize %s.fixed[0: 1x2 stride 2] 65024 >> 24\n"
        "6: a[0: 1x2 stride 2] = s[0: 1x2 stride 2] + x[2: 1x2 stride 4]\n"
        "7: t[0: 1x1 stride 1] = argmax a[0: 1x2 stride 2]\n"
        "8: store t = t[0: 1x1 stride 1]\n"
    )


def test_accumulating_tile_is_printed_as_an_update() -> None:
    graph = Graph("deep")
    graph.input("x", 1, 300)
    graph.scores("p", "x", "x")
    graph.output("p")
    texts: dict[str, str] = {}
    compile_graph(
        graph,
        Ranges({"x": 1.0, "p": 100.0}),
        Chip(),
        observer=lambda name, text: texts.update({name: text()}),
    )
    x = "x[256: 1x44 stride 300]"
    assert f"    %p.sums[0: 1x1 stride 1] += {x} . {x}^T\n2: p" in texts["tiles"]


def test_buffers_are_printed_with_words_and_life(texts: dict[str, str]) -> None:
    assert texts["buffers"] == (
        "x: words 0 .. 3, operations 0 .. 6\n"
        "w: words 4 .. 11, operations 1 .. 2\n"
        "%r.sums: words 12 .. 13, operations 2 .. 3\n"
        "r: words 4 .. 5, operations 3 .. 4\n"
        "%s.fixed: words 6 .. 7, operations 4 .. 5\n"
        "s: words 4 .. 5, operations 5 .. 6\n"
        "a: words 6 .. 7, operations 6 .. 7\n"
        "t: words 0 .. 0, operations 7 .. 8\n"
    )


def test_program_is_printed_as_a_text_that_assembles() -> None:
    program, texts = states()
    text = texts["emission"]
    lines = text.splitlines()
    assert lines[0] == f"; program all: {program.cycles} cycles"
    assert "; weight w 2x4 at 4" in lines
    assert "; v 1x2 stride 4 at 2, whole after 0, kept until 6" in lines
    assert "; %r.sums 1x2 stride 2 at 12, whole after 2, kept until 3" in lines
    assert assemble(text) == program.instructions
