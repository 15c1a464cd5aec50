"""Programs on terms: a compiled program is its graph, a broken one is found without any data."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
from tests.certify.symbolic import check
from tests.compiler.random_graphs import random_graph

from capra.certify.explain import Difference
from capra.compiler.overlap import check_buffers
from capra.compiler.passes.buffers import allocate_buffers
from capra.compiler.passes.emit import emit_program
from capra.compiler.passes.scales import assign_scales
from capra.compiler.passes.tile import tile_operations
from capra.compiler.passes.views import Place, place_tensors
from capra.compiler.pipeline import compile_graph
from capra.errors import ProgramError
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges, record_ranges
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction
from capra.isa.program import Program
from capra.numerics import INT8_MAX
from capra.sim.machine import Machine


def outputs(program: Program, seed: int) -> list[int]:
    """What a program stores, on random inputs and a scratchpad of random words."""
    draw, machine = np.random.default_rng(seed), Machine(program.chip)
    machine.scratchpad[:] = draw.integers(-(2**31), 2**31, len(machine.scratchpad))
    for slot in program.slots("input", "weight"):
        words = draw.integers(-INT8_MAX, INT8_MAX, (slot.rows, slot.cols), endpoint=True)
        machine.write_external(slot.address, words)
    machine.run(program)
    return [
        w for slot in program.slots("output") for w in machine.external[slot.address : slot.end]
    ]


def broken(program: Program, seed: int) -> Program | None:
    """The program with one operand of one instruction changed a little; None where refused."""
    draw = np.random.default_rng(seed)
    code = list(program.instructions)
    index = int(draw.integers(len(code) - 1))
    operands = list(code[index].operands)
    field = int(draw.integers(len(operands)))
    operands[field] += int(draw.choice([-4, -1, 1, 4]))
    try:
        code[index] = Instruction(code[index].op, tuple(operands))
        return replace(program, instructions=tuple(code))
    except ProgramError:
        return None


@pytest.mark.sample(6)
@pytest.mark.parametrize("graph_seed", range(12))
def test_whatever_changes_an_output_is_found(graph_seed: int) -> None:
    """And tests with data find fewer faults than the check without any.

    Of 40 changes, and more until one changes an output: little of some graphs reaches any.
    """
    random = random_graph(graph_seed)
    ranges = record_ranges(random.graph, random.leaves)
    program = compile_graph(random.graph, ranges, Chip())
    right, found, seen = outputs(program, graph_seed), 0, 0
    for seed in range(400):
        if seed >= 40 and seen:
            break
        mutant = broken(program, seed)
        if mutant is None:
            continue
        differs = outputs(mutant, graph_seed) != right
        difference = check(random.graph, ranges, mutant)
        assert difference is not None or not differs, f"change {seed} of graph {graph_seed}"
        found, seen = found + (difference is not None), seen + differs
    assert seen > 0 and found > 0


def _chain() -> tuple[Graph, Ranges]:
    graph = Graph("g")
    graph.input("x", 4, 4)
    graph.weight("w", 4, 4)
    graph.matmul("p", "x", "w")
    graph.slice_rows("part", "p", 1, 2)
    graph.softmax("s", "part")
    graph.weight("v", 4, 4)
    graph.matmul("y", "p", "v")
    graph.add("z", "x", "y")
    graph.output("z")
    graph.output("s")
    return graph, Ranges({"x": 1.0, "w": 2.0, "p": 3.0, "s": 1.0, "v": 0.5, "y": 4.0, "z": 5.0})


def _emitted(
    graph: Graph,
    ranges: Ranges,
    places: Mapping[str, Place],
    moved: Mapping[str, str] = MappingProxyType({}),
) -> Program:
    """The passes of the pipeline without its checks, some buffers put onto others."""
    scales, chip = assign_scales(graph, ranges), Chip()
    ops = tile_operations(graph, scales, places, chip.operand_depth)
    buffers = dict(allocate_buffers(ops, chip.scratchpad_words))
    for name, onto in moved.items():
        assert buffers[name].base != buffers[onto].base
        buffers[name] = replace(buffers[name], base=buffers[onto].base)
        with pytest.raises(AssertionError):
            check_buffers(ops, buffers, chip.scratchpad_words)
    return emit_program(graph, scales, places, ops, buffers, chip)


def test_the_passes_without_their_checks_make_the_same_program() -> None:
    graph, ranges = _chain()
    assert check(graph, ranges, _emitted(graph, ranges, place_tensors(graph))) is None


def test_a_buffer_that_is_reused_too_early_is_found_at_the_tensor_that_it_destroys() -> None:
    graph, ranges = _chain()
    program = _emitted(graph, ranges, place_tensors(graph), moved={"v": "x"})
    difference = check(graph, ranges, program)
    assert difference is not None and difference.operation.startswith("x after instruction")


def test_a_wrong_offset_of_a_view_is_found_at_the_view() -> None:
    graph, ranges = _chain()
    places = dict(place_tensors(graph))
    places["part"] = places["part"]._replace(offset=0)
    difference = check(graph, ranges, _emitted(graph, ranges, places))
    assert difference is not None and difference.operation.startswith("part after instruction")


def test_a_wrong_multiplier_is_found_and_named() -> None:
    graph, ranges = _chain()
    program = compile_graph(graph, ranges, Chip())
    code = list(program.instructions)
    index, old = next((i, inst) for i, inst in enumerate(code) if inst.mnemonic == "RQ")
    operands = list(old.operands)
    operands[old.op.index("mul")] += 1
    code[index] = Instruction(old.op, tuple(operands))
    difference = check(graph, ranges, replace(program, instructions=tuple(code)))
    assert difference is not None and difference.operation == f"p after instruction {index}"
    assert f"{old['mul'] + 1} / 2^{old['sh']}, expected {old['mul']} / 2^" in difference.reason


def test_an_input_that_the_host_quantizes_by_another_scale_is_found() -> None:
    graph, ranges = _chain()
    program = compile_graph(graph, ranges, Chip())
    wrong = [replace(s, scale=0.1) if s.name == "x" else s for s in program.external]
    difference = check(graph, ranges, replace(program, external=tuple(wrong)))
    assert difference is not None and "x[0, 0] in steps of 0.1" in difference.reason


def test_a_missing_output_is_found() -> None:
    graph, ranges = _chain()
    program = compile_graph(graph, ranges, Chip())
    fewer = tuple(s for s in program.external if (s.name, s.kind) != ("s", "output"))
    difference = check(graph, ranges, replace(program, external=fewer))
    assert difference == Difference("the external map", "stores z, expected z, s")


def test_an_output_that_is_never_stored_is_found() -> None:
    graph, ranges = _chain()
    program = compile_graph(graph, ranges, Chip())
    code = [inst for inst in program.instructions if inst.mnemonic != "ST"]
    difference = check(
        graph, ranges, replace(program, instructions=tuple(code), tensors={}, origins=())
    )
    assert difference == Difference("output z", "row 0 holds words that nobody wrote")


def test_a_read_of_words_that_nobody_wrote_is_found() -> None:
    graph, ranges = _chain()
    program = compile_graph(graph, ranges, Chip())
    code = list(program.instructions)
    code.pop(0)
    difference = check(
        graph, ranges, replace(program, instructions=tuple(code), tensors={}, origins=())
    )
    assert difference is not None and "that nobody wrote" in difference.reason
