"""The pipeline: compiled graphs compute what the interpreter says, and refuse what does not fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.compiler.agreement import check_agreement
from tests.compiler.random_graphs import leaf_samples

from capra.compiler.ops import Load, Op
from capra.compiler.passes.buffers import Buffer, allocate_buffers
from capra.compiler.passes.emit import emit_program
from capra.compiler.passes.tile import tile_operations
from capra.compiler.pipeline import PASSES, compile_graph
from capra.errors import CapacityError, GraphError, RangeError
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.isa.chip import Chip
from capra.isa.program import Program


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


def all_at_the_start(ops: Sequence[Op], words: int, *, reuse: bool = True) -> Mapping[str, Buffer]:
    buffers = allocate_buffers(ops, words, reuse=reuse)
    return {name: replace(buffer, base=0) for name, buffer in buffers.items()}


def behind_the_end(ops: Sequence[Op], words: int, *, reuse: bool = True) -> Mapping[str, Buffer]:
    buffers = allocate_buffers(ops, words, reuse=reuse)
    last = [*buffers][-1]
    return {**buffers, last: replace(buffers[last], base=words - 1)}


@pytest.mark.parametrize("allocate", [all_at_the_start, behind_the_end])
def test_a_wrong_buffer_map_is_refused_before_it_is_emitted(
    allocate: Callable[..., Mapping[str, Buffer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capra.compiler.pipeline.allocate_buffers", allocate)
    monkeypatch.setattr("capra.compiler.pipeline.emit_program", _unexpected)
    with pytest.raises(AssertionError, match=r"^operation \d+ .* expected words between"):
        compile_graph(small_graph(), UNIT, Chip())


def test_an_operation_that_reads_what_none_wrote_is_refused_before_it_is_emitted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_loads(*args: Any, **options: Any) -> tuple[Op, ...]:
        ops = tile_operations(*args, **options)
        return tuple(op for op in ops if not isinstance(op, Load))

    monkeypatch.setattr("capra.compiler.pipeline.tile_operations", without_loads)
    monkeypatch.setattr("capra.compiler.pipeline.emit_program", _unexpected)
    with pytest.raises(AssertionError, match=r"^operation 0 .* reads words of x that none before"):
        compile_graph(small_graph(), UNIT, Chip())


def _unexpected(*_args: Any) -> Program:
    raise NotImplementedError("nothing should be emitted")


def test_a_program_that_reads_what_no_instruction_wrote_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_the_load(*args: Any) -> Program:
        made = emit_program(*args)
        assert made.instructions[0].mnemonic == "LD"
        return replace(made, instructions=made.instructions[1:], tensors={}, origins=())

    monkeypatch.setattr("capra.compiler.pipeline.emit_program", without_the_load)
    with pytest.raises(AssertionError, match=r"^small, instruction \d+ .* which no instruction wr"):
        compile_graph(small_graph(), UNIT, Chip())


def test_a_program_that_overwrites_a_living_tensor_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def with_a_longer_life(*args: Any) -> Program:
        made = emit_program(*args)
        home = made.tensors["x"]._replace(until=len(made.instructions) - 1)
        return replace(made, tensors={**made.tensors, "x": home})

    monkeypatch.setattr("capra.compiler.pipeline.emit_program", with_a_longer_life)
    with pytest.raises(AssertionError, match=r"^small: x, whole after .* is overwritten by"):
        compile_graph(small_graph(), UNIT, Chip())
