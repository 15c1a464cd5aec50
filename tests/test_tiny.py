"""The whole stack in seconds: a graph, a program, a chip, a text, and its speculative twin."""

from pathlib import Path

import numpy as np

from capra import (
    ChipTarget,
    Graph,
    Machine,
    assemble,
    compile_graph,
    decode,
    disassemble,
    evaluate_float,
    evaluate_int,
    load_model,
    load_program,
    record_ranges,
    save_program,
)
from capra.compiler.passes.scales import assign_scales
from capra.isa.chip import Chip
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram
from capra.lm.reference import greedy_tokens
from capra.numerics import quantize
from capra.sim.device import SimulatedDevice
from capra.spec_decode.metrics import acceptance, total_counters
from capra.spec_decode.proposers import ChainProposer


def test_a_graph_three_ways(tmp_path: Path) -> None:
    graph = Graph("tiny")
    graph.input("x", 2, 3)
    graph.weight("w", 3, 4)
    graph.matmul("y", "x", "w")
    graph.argmax("best", "y")
    graph.output("y")
    graph.output("best")
    leaves = {"x": np.array([[1.0, -2, 3], [0, 1, 0]]), "w": np.arange(12.0).reshape(3, 4) - 5}

    exact = evaluate_float(graph, leaves)
    assert np.array_equal(exact["y"], leaves["x"] @ leaves["w"])

    ranges, chip = record_ranges(graph, [leaves]), Chip()
    scales = assign_scales(graph, ranges)
    integers = {name: quantize(value, scales.scale[name]) for name, value in leaves.items()}
    interpreted = evaluate_int(graph, scales, integers)

    program = compile_graph(graph, ranges, chip)
    save_program(program, tmp_path / "tiny.ga2")
    program = load_program(tmp_path / "tiny.ga2")
    assert assemble(disassemble(program.instructions)) == program.instructions
    execution = SimulatedDevice(chip, poison=True).execute(program, integers)

    for name in ("y", "best"):
        assert np.array_equal(execution.outputs[name], interpreted[name])
    assert np.abs(interpreted["y"] * scales.scale["y"] - exact["y"]).max() < 0.5
    assert interpreted["best"].tolist() == exact["best"].tolist()
    assert execution.counters == program.counters == Machine(chip).run(program)


def test_speculative_decoding_is_plain_decoding_in_fewer_cycles() -> None:
    model = load_model("structured", 1)
    target = ChipTarget(model)
    plain = decode(target, [0], 12)
    assert list(plain.tokens) == greedy_tokens(model, 0, 12)

    draft = ChainProposer(ChipBigram(load_bigram(model), model.config.chip))
    run = decode(target, [0], 12, proposer=draft, num_speculative_tokens=3)
    assert run.tokens == plain.tokens
    counts = acceptance(run)
    assert (counts["accepted"], counts["proposed"], counts["blocks"]) == (9, 9, 3)
    assert len(run.runs) == 3 * (3 + 1)
    assert total_counters(run.runs).total < 0.6 * total_counters(plain.runs).total
