"""Joined transfers: neighbours in external memory move together, and nothing else changes."""

import pytest
from tests.compiler.agreement import check_agreement
from tests.compiler.random_graphs import leaf_samples

from capra.compiler.ops import Load, Op, Store
from capra.compiler.optimization import O0, Optimization
from capra.compiler.passes.scales import assign_scales
from capra.compiler.passes.tile import tile_operations
from capra.compiler.passes.transfers import join_transfers
from capra.compiler.passes.views import Place, place_tensors
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.ir.text import parse_graph
from capra.isa.chip import Chip
from capra.isa.program import Program

JOINED: Optimization = frozenset({"joined-transfers"})


def joined(graph: Graph) -> tuple[Op, ...]:
    places = place_tensors(graph)
    ops = tile_operations(graph, assign_scales(graph, unit_ranges(graph)), places, 256)
    return join_transfers(graph, places, ops)[1]


def unit_ranges(graph: Graph) -> Ranges:
    return Ranges(dict.fromkeys((node.tag for node in graph), 1.0))


def runs(graph: Graph, kind: type[Load] | type[Store]) -> list[tuple[str, ...]]:
    check_agreement(graph, leaf_samples(graph, 0))
    return [(op.tensor, *op.followers) for op in joined(graph) if isinstance(op, kind)]


def compiled(graph: Graph, optimize: Optimization, chip: Chip | None = None) -> Program:
    return compile_graph(graph, unit_ranges(graph), chip or Chip(), optimize=optimize)


CHAIN = parse_graph(
    """graph chain
    a = input 2x3
    b = weight 3x4
    unread = input 5x5
    c = weight 4x2
    d = weight 2x6
    p = matmul a b
    q = matmul p c
    r = matmul q d
    output p
    output q
    output r
    output a
    """
)


def test_neighbours_are_loaded_at_once_and_what_nobody_reads_keeps_them_apart() -> None:
    assert runs(CHAIN, Load) == [("a", "b"), ("c", "d")]


def test_outputs_are_stored_at_once_when_the_last_is_complete() -> None:
    assert runs(CHAIN, Store) == [("p", "q", "r", "a")]
    ops = joined(CHAIN)
    stores = [index for index, op in enumerate(ops) if isinstance(op, Store)]
    assert stores[-1] == len(ops) - 1


def test_a_run_has_at_most_the_words_that_one_transfer_can_count() -> None:
    """20 bits count them: a and b are 2^20 - 1 words together, and c is one more."""
    graph = Graph("g")
    graph.input("a", 3, 5)
    graph.input("b", 16, 65_535)
    graph.input("c", 1, 1)
    for name in "abc":
        graph.output(name)
    for kind in (Load, Store):
        found = [op for op in joined(graph) if isinstance(op, kind)]
        assert [(op.tensor, *op.followers) for op in found] == [("a", "b"), ("c",)]


def test_each_join_saves_what_an_instruction_costs() -> None:
    saved = compiled(CHAIN, O0).cycles - compiled(CHAIN, JOINED).cycles
    loads, stores = 4 - len(runs(CHAIN, Load)), 4 - len(runs(CHAIN, Store))
    assert saved == 11 * loads + 4 * stores


def test_an_order_that_memory_does_not_have_is_not_made() -> None:
    """a is declared before b but lies behind it in the concatenation."""
    graph = Graph("g")
    graph.input("a", 2, 3)
    graph.input("b", 2, 3)
    graph.concat_rows("both", ["b", "a"])
    graph.softmax("s", "both")
    graph.output("s")
    assert sorted(runs(graph, Load)) == [("a",), ("b",)]


@pytest.mark.parametrize("cols", [3, 300])
def test_parts_that_lie_in_order_are_loaded_at_once(cols: int) -> None:
    graph = Graph("g")
    graph.input("a", 2, cols)
    graph.input("b", 4, cols)
    graph.concat_rows("both", ["a", "b"])
    graph.softmax("s", "both")
    graph.output("s")
    assert runs(graph, Load) == [("a", "b")]


def test_parts_with_another_one_between_them_are_not() -> None:
    graph = Graph("g")
    graph.input("a", 2, 3)
    graph.input("b", 4, 3)
    graph.softmax("between", "b")
    graph.concat_rows("all", ["a", "between", "b"])
    graph.softmax("s", "all")
    graph.output("s")
    assert sorted(runs(graph, Load)) == [("a",), ("b",)]


@pytest.mark.parametrize("cols", [3, 300])
def test_tensors_of_any_size_follow_each_other(cols: int) -> None:
    graph = Graph("g")
    graph.input("a", 2, cols)
    graph.input("b", 2, cols)
    graph.add("s", "a", "b")
    graph.output("s")
    assert runs(graph, Load) == [("a", "b")]


def test_a_tensor_with_gaps_between_its_rows_moves_alone() -> None:
    """a and b lie beside each other, between x and y, which have no gaps."""
    graph = Graph("g")
    for cols, name in enumerate("xaby", 3):
        graph.input(name, 2, cols)
    graph.concat_cols("wide", ["a", "b"])
    for name in ("x", "wide", "y"):
        graph.output(graph.softmax(f"s.{name}", name))
    assert runs(graph, Load) == [("x",), ("a",), ("b",), ("y",)]


def test_words_behind_a_cache_keep_the_next_tensor_apart() -> None:
    """The new rows lie behind the cached ones: nothing can follow those, something can precede."""
    graph = Graph("g")
    graph.input("x", 2, 3)
    graph.input("cache", 3, 3)
    graph.input("after", 2, 5)
    graph.softmax("new", "x")
    graph.concat_rows("all", ["cache", "new"])
    graph.softmax("s", "all")
    graph.softmax("t", "after")
    graph.output("s")
    graph.output("t")
    assert runs(graph, Load) == [("x", "cache"), ("after",)]


def test_words_before_a_cache_keep_the_tensor_before_it_apart() -> None:
    graph = Graph("g")
    graph.input("x", 2, 3)
    graph.input("cache", 3, 3)
    graph.softmax("new", "x")
    graph.concat_rows("all", ["new", "cache"])
    graph.softmax("s", "all")
    graph.output("s")
    assert runs(graph, Load) == [("x",), ("cache",)]


@pytest.mark.parametrize("names", ["abc", "cba"])
@pytest.mark.parametrize(
    ("outputs", "stored"),
    [
        ("120t", ["12", "0", "t"]), ("01t", ["01", "t"]), ("12t", ["12t"]), ("02t", ["0", "2t"]),
        ("10t", ["1", "0", "t"]), ("t0", ["t0"]), ("t1", ["t", "1"]),
    ],
)  # fmt: skip
def test_an_input_that_is_an_output_may_be_in_two_runs(
    names: str, outputs: str, stored: list[str]
) -> None:
    """The loads put inputs 0, 1 and 2 behind each other, whatever their names; stores add to it."""
    named = str.maketrans("012", names)
    graph = Graph("g")
    for name in names:
        graph.input(name, 2, 3)
    graph.add("s", *names[:2])
    graph.add("t", "s", names[2])
    for name in outputs.translate(named):
        graph.output(name)
    assert runs(graph, Load) == [tuple(names)]
    assert sorted(runs(graph, Store)) == sorted(tuple(run.translate(named)) for run in stored)


def test_any_number_of_neighbours_moves_at_once() -> None:
    graph = Graph("g")
    for index in range(300):
        graph.output(graph.input(f"x{index}", 1, 1))
    load, store = joined(graph)
    assert isinstance(load, Load) and isinstance(store, Store)
    assert (load.tensor, *load.followers) == (store.tensor, *store.followers) == graph.outputs
    assert load.dst == store.src == Place("x0", 0, 1, 300, 300)


@pytest.mark.parametrize("scratchpad", [64, 128, 256])
def test_where_joined_buffers_do_not_fit_they_are_left_apart(scratchpad: int) -> None:
    graph = Graph("g")
    graph.input("x", 1, 5)
    for i in range(4):
        graph.weight(f"w{i}", 5, 5)
    for i, x in enumerate(("x", "p0", "p1", "p2")):
        graph.matmul(f"p{i}", x, f"w{i}")
    graph.output("p3")
    loads = compiled(graph, JOINED, Chip(scratchpad_words=scratchpad)).histogram()["LD"]
    assert loads == (5 if scratchpad == 64 else 1)
