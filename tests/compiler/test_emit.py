"""Emission: the external map, the instructions, and the home of every tensor."""

from dataclasses import replace

import pytest
from tests.compiler.random_graphs import random_graph

from capra.compiler.optimization import LEVELS
from capra.compiler.passes import emit
from capra.compiler.passes.scales import assign_scales
from capra.compiler.passes.tile import tile_operations
from capra.compiler.passes.views import place_tensors
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges, record_ranges
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.lm.graphs import verifier_graph
from capra.lm.models import load_model


def compiled(graph: Graph, **ranges: float) -> Program:
    """A program with range 1 for whatever is not given; the last node is the default output."""
    if not graph.outputs:
        graph.output(list(graph.nodes)[-1])
    return compile_graph(graph, Ranges(dict.fromkeys(graph.nodes, 1.0) | ranges), Chip())


def code(program: Program) -> list[str]:
    return [str(inst) for inst in program.instructions]


def product_graph() -> Graph:
    graph = Graph("g")
    graph.input("x", 2, 5)
    graph.weight("unused", 3, 3)
    graph.weight("w", 5, 6)
    graph.matmul("p", "x", "w")
    graph.argmax("t", "p")
    graph.output("t")
    graph.output("p")
    return graph


def test_external_map_is_leaves_then_outputs_in_declared_order() -> None:
    program = compiled(product_graph(), x=2.0)
    assert [(s.name, s.kind, s.address, s.rows, s.cols) for s in program.external] == [
        ("x", "input", 0, 2, 5),
        ("unused", "weight", 10, 3, 3),
        ("w", "weight", 19, 5, 6),
        ("t", "output", 49, 2, 1),
        ("p", "output", 51, 2, 6),
    ]
    scales = {slot.name: slot.scale for slot in program.external}
    assert scales["x"] == 2 / 127
    assert scales["t"] is None


def test_leaf_that_is_an_output_has_two_slots() -> None:
    graph = Graph("g")
    graph.input("x", 1, 3)
    graph.output("x")
    program = compiled(graph)
    assert [(slot.kind, slot.address) for slot in program.external] == [("input", 0), ("output", 3)]
    assert code(program) == ["LD d=0 s=0 n=3", "ST d=3 s=0 n=3", "HALT"]


def test_product_becomes_loads_tiles_and_one_requantization() -> None:
    assert code(compiled(product_graph())) == [
        "LD d=0 s=0 n=10",
        "LD d=10 s=19 n=30",
        "MM d=40 a=0 b=10 m=2 n=4 k=5 sd=6 sa=5 sb=6 t=0 acc=0",
        "MM d=44 a=0 b=14 m=2 n=2 k=5 sd=6 sa=5 sb=6 t=0 acc=0",
        "RQ d=0 s=40 r=2 c=6 sd=6 ss=6 mul=33026 sh=22 relu=0",
        "ST d=51 s=0 n=12",
        "AMAX d=12 s=0 n=6",
        "AMAX d=13 s=6 n=6",
        "ST d=49 s=12 n=2",
        "HALT",
    ]


def test_unread_leaf_has_a_slot_but_no_load_and_no_home() -> None:
    program = compiled(product_graph())
    assert program.words_loaded == 40
    assert "unused" not in program.tensors


def test_vectors_without_gaps_move_at_once_others_row_by_row() -> None:
    graph = Graph("g")
    graph.input("x", 3, 2)
    graph.input("y", 3, 4)
    graph.concat_cols("all", ["x", "y"])
    graph.slice_cols("v", "all", 1, 2)
    graph.slice_rows("rows", "all", 1, 2)
    graph.output("v")
    graph.output("rows")
    assert code(compiled(graph)) == [
        "LD d=0 s=0 n=2", "LD d=6 s=2 n=2", "LD d=12 s=4 n=2",
        "LD d=2 s=6 n=4", "LD d=8 s=10 n=4", "LD d=14 s=14 n=4",
        "ST d=18 s=1 n=2", "ST d=20 s=7 n=2", "ST d=22 s=13 n=2",
        "ST d=24 s=6 n=12",
        "HALT",
    ]  # fmt: skip


def test_sum_of_strided_operands_is_one_instruction_a_row() -> None:
    graph = Graph("g")
    graph.input("x", 2, 5)
    graph.slice_cols("a", "x", 0, 2)
    graph.slice_cols("b", "x", 3, 2)
    graph.add("s", "a", "b")
    graph.add("whole", "x", "x")
    assert code(compiled(graph))[1:4] == [
        "VADD d=10 a=0 b=3 n=2",
        "VADD d=12 a=5 b=8 n=2",
        "VADD d=10 a=0 b=0 n=10",
    ]


def test_transposed_view_keeps_its_sources_stride() -> None:
    graph = Graph("g")
    graph.input("x", 1, 3)
    graph.input("cache", 4, 8)
    graph.slice_cols("head", "cache", 2, 3)
    graph.slice_rows("seen", "head", 1, 2)
    graph.scores("q", "x", "seen")
    assert code(compiled(graph))[2] == ("MM d=35 a=0 b=13 m=1 n=2 k=3 sd=2 sa=3 sb=8 t=1 acc=0")


def test_accumulating_tiles_and_fused_relu_reach_the_instructions() -> None:
    graph = Graph("g")
    graph.input("x", 1, 257)
    graph.scores("p", "x", "x")
    graph.relu("r", "p")
    program = compiled(graph)
    flags = [(i["k"], i["acc"]) for i in program.instructions if i.mnemonic == "MM"]
    assert flags == [(256, 0), (1, 1)]
    assert [i["relu"] for i in program.instructions if i.mnemonic == "RQ"] == [1]


def test_home_goes_from_its_first_write_to_its_last_and_to_its_buffers_last_read() -> None:
    program = compiled(product_graph(), p=2.0)
    homes = {
        name: (home.base, home.rows, home.cols, home.stride, home.first, home.ready, home.until)
        for name, home in program.tensors.items()
    }
    assert homes == {
        "x": (0, 2, 5, 5, 0, 0, 3),
        "w": (10, 5, 6, 6, 1, 1, 3),
        "%p.sums": (40, 1, 12, 12, 2, 3, 4),
        "p": (0, 2, 6, 6, 4, 4, 7),
        "t": (12, 2, 1, 1, 6, 7, 8),
    }
    assert program.tensors["p"].scale == 2 / 127
    assert program.tensors["t"].scale is None


def test_views_have_homes_inside_their_sources() -> None:
    graph = Graph("g")
    graph.input("x", 2, 4)
    graph.input("y", 1, 4)
    graph.concat_rows("all", ["x", "y"])
    graph.slice_rows("rows", "all", 1, 2)
    graph.slice_cols("cells", "rows", 3, 1)
    graph.argmax("early", "x")
    graph.argmax("late", "cells")
    homes = compiled(graph).tensors
    assert (homes["cells"].base, homes["cells"].stride, homes["cells"].rows) == (7, 4, 2)
    assert homes["x"].ready == 0
    assert [homes[name].first for name in ("x", "y", "all", "rows", "cells")] == [0, 3, 0, 0, 0]
    assert homes["y"].ready == homes["all"].ready == homes["cells"].ready == 3
    assert {homes[name].until for name in ("x", "y", "all", "rows", "cells")} == {5}


def test_unread_view_of_an_unread_leaf_and_fused_product_have_no_home() -> None:
    graph = Graph("g")
    graph.input("x", 1, 2)
    graph.input("y", 1, 2)
    graph.concat_rows("all", ["x", "y"])
    graph.slice_rows("cut", "all", 0, 1)
    graph.scores("p", "x", "x")
    graph.relu("r", "p")
    named = {name for name in compiled(graph).tensors if not name.startswith("%")}
    assert named == {"x", "r"}


def test_program_ends_with_its_only_halt() -> None:
    program = compiled(product_graph())
    halts = [i for i, inst in enumerate(program.instructions) if inst.mnemonic == "HALT"]
    assert halts == [len(program.instructions) - 1]
    assert replace(program) == program


def test_every_instruction_comes_from_the_tensor_that_it_loads_computes_or_stores() -> None:
    program = compiled(product_graph())
    assert [(o.tensor, o.text, o.instructions) for o in program.origins] == [
        ("x", "x = input 2x5", 1),
        ("w", "w = weight 5x6", 1),
        ("p", "p = matmul x w", 4),  # two tiles, one requantization, the store
        ("t", "t = argmax p", 3),
    ]


def test_a_fused_product_is_named_with_its_relu() -> None:
    graph = Graph("g")
    graph.input("x", 1, 4)
    graph.scores("p", "x", "x")
    graph.relu("r", "p")
    last = compiled(graph).origins[-1]
    assert (last.tensor, last.text) == ("r", "p = scores x x\nr = relu p")


@pytest.mark.parametrize("level", LEVELS)
def test_a_program_is_the_same_whatever_was_compiled_before(level: str) -> None:
    """Tiles are shared by products of one shape, at other addresses and of other caches too."""
    model = load_model("random")

    def verifier(cache: int) -> Program:
        graph = verifier_graph(model.config, 5, cache)
        chip = model.config.chip
        return compile_graph(graph, model.ranges, chip, optimize=LEVELS[level])

    emit.forget_tiles()
    shared = [verifier(cache) for cache in range(6)]
    assert emit._tiles.cache_info().hits, "nothing was shared"
    for cache, program in enumerate(shared):
        emit.forget_tiles()
        assert verifier(cache) == program


@pytest.mark.parametrize("graph_seed", range(30))
def test_instructions_and_external_words_are_known_before_emission(graph_seed: int) -> None:
    random = random_graph(graph_seed)
    ranges = record_ranges(random.graph, random.leaves)
    for depth in (256, 300):
        chip = Chip(operand_depth=depth)
        program = compile_graph(random.graph, ranges, chip)
        scales, places = assign_scales(random.graph, ranges), place_tensors(random.graph)
        ops = tile_operations(random.graph, scales, places, depth)
        assert emit.count_instructions(ops) == len(program.instructions)
        assert emit.external_words(random.graph) == max(slot.end for slot in program.external)


def test_parts_of_a_long_product_are_counted() -> None:
    graph = Graph("g")
    graph.input("x", 5, 700)
    graph.scores("p", "x", "x")
    graph.output("p")
    ranges, chip = Ranges({"x": 1.0, "p": 1.0}), Chip()
    program = compile_graph(graph, ranges, chip)
    ops = tile_operations(graph, assign_scales(graph, ranges), place_tensors(graph), 256)
    assert emit.count_instructions(ops) == len(program.instructions) == 12 + 4
