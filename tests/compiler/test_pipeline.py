"""The pipeline: compiled graphs compute what the interpreter says, and refuse what does not fit."""

from collections.abc import Callable

import pytest
from tests.compiler.agreement import check_agreement
from tests.compiler.random_graphs import leaf_samples

from capra.compiler.pipeline import PASSES, compile_graph
from capra.errors import CapacityError, GraphError, RangeError
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.isa.chip import Chip


def test_view_is_intact_while_another_view_of_its_source_was_read_last() -> None:
    """The source dies with the last reader of any of its views, not with its own last reader."""
    graph = Graph("g")
    graph.input("x", 4, 4)
    graph.input("w", 4, 8)
    graph.slice_rows("v", "x", 3, 1)
    graph.argmax("last_of_x", "x")
    graph.matmul("big", "w", "w", transpose_b=True)
    graph.softmax("s", "big")
    graph.add("end", "v", "v")
    for name in ("last_of_x", "s", "end"):
        graph.output(name)
    check_agreement(graph, leaf_samples(graph, 0))
    ranges = Ranges(dict.fromkeys(graph.nodes, 1.0))
    homes = compile_graph(graph, ranges, Chip()).tensors
    assert homes["x"].until == homes["v"].until > homes["big"].until


def test_attention_with_heads_side_by_side_and_a_cache() -> None:
    graph = Graph("attention")
    graph.input("cache", 3, 8)
    graph.input("x", 2, 8)
    graph.weight("w", 8, 8)
    graph.matmul("k", "x", "w")
    graph.concat_rows("keys", ["cache", "k"])
    heads = []
    for head in range(2):
        graph.slice_cols(f"q{head}", "x", 4 * head, 4)
        graph.slice_cols(f"k{head}", "keys", 4 * head, 4)
        graph.scores(f"s{head}", f"q{head}", f"k{head}", scale=0.5)
        graph.softmax(f"p{head}", f"s{head}")
        heads.append(graph.matmul(f"a{head}", f"p{head}", f"k{head}"))
    graph.concat_cols("both", heads)
    graph.relu("r", "both")
    graph.output("both")
    graph.output("r")
    for seed in range(5):
        check_agreement(graph, leaf_samples(graph, seed))


def small_graph() -> Graph:
    graph = Graph("small")
    graph.input("x", 4, 4)
    graph.softmax("s", "x")
    graph.softmax("t", "s")
    graph.output("t")
    return graph


UNIT = Ranges(dict.fromkeys(small_graph().nodes, 1.0))


def test_states_are_observed_in_order_and_printed_on_demand() -> None:
    seen: list[tuple[str, Callable[[], str]]] = []
    program = compile_graph(
        small_graph(), UNIT, Chip(), observer=lambda name, text: seen.append((name, text))
    )
    assert tuple(name for name, _ in seen) == PASSES
    texts = [text() for _, text in seen]
    assert texts[0].startswith("graph small\n")
    assert texts[-1].startswith(f"; program small: {program.cycles} cycles\n")
    assert all(text.endswith("\n") for text in texts)


def test_reuse_saves_space_and_changes_no_instruction_count() -> None:
    with_reuse = compile_graph(small_graph(), UNIT, Chip())
    without = compile_graph(small_graph(), UNIT, Chip(), reuse=False)
    assert with_reuse.counters == without.counters
    used = [max(home.region.end for home in p.tensors.values()) for p in (with_reuse, without)]
    assert used == [32, 80]


def test_graph_without_output_is_refused() -> None:
    graph = Graph("silent")
    graph.input("x", 1, 1)
    with pytest.raises(GraphError, match="silent: the graph has no output"):
        compile_graph(graph, Ranges({"x": 1.0}), Chip())


def test_missing_range_is_refused() -> None:
    with pytest.raises(RangeError, match=r"small: no range for t \(tag t\)"):
        compile_graph(small_graph(), Ranges({"x": 1.0, "s": 1.0}), Chip())


def test_program_too_large_for_the_scratchpad_is_refused_by_tensor() -> None:
    message = r"the scratchpad needs 32 words for s\.fixed, expected at most 16"
    with pytest.raises(CapacityError, match=message):
        compile_graph(small_graph(), UNIT, Chip(scratchpad_words=16))
    compile_graph(small_graph(), UNIT, Chip(scratchpad_words=32))
    with pytest.raises(CapacityError, match=r"needs 80 words for t, expected at most 64"):
        compile_graph(small_graph(), UNIT, Chip(scratchpad_words=64), reuse=False)


def test_program_too_large_for_external_memory_is_refused_by_tensor() -> None:
    with pytest.raises(CapacityError, match=r"external memory needs 32 words for t, .* 31"):
        compile_graph(small_graph(), UNIT, Chip(external_words=31))
    compile_graph(small_graph(), UNIT, Chip(external_words=32))


def test_program_with_too_many_instructions_is_refused() -> None:
    with pytest.raises(CapacityError, match="small has 13 instructions, expected at most 12"):
        compile_graph(small_graph(), UNIT, Chip(program_entries=12))
    compile_graph(small_graph(), UNIT, Chip(program_entries=13))


def test_compilation_is_deterministic() -> None:
    one, two = (compile_graph(small_graph(), UNIT, Chip()) for _ in range(2))
    assert one == two
