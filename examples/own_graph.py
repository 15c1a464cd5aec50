"""A graph of one's own: build it, calibrate it, compile it, run it, compare all three results.

python examples/own_graph.py
"""

import numpy as np

from capra import (
    Chip,
    Graph,
    SimulatedDevice,
    assign_scales,
    compile_graph,
    disassemble,
    evaluate_float,
    evaluate_int,
    quantize,
    record_ranges,
)

# A small classifier of eight rows: hidden = relu(x w1), scores = hidden w2, label = argmax.
graph = Graph("classifier")
graph.input("x", 8, 20)
graph.weight("w1", 20, 32)
graph.weight("w2", 32, 5)
graph.relu("hidden", graph.matmul("product", "x", "w1"))
graph.matmul("scores", "hidden", "w2")
graph.argmax("label", "scores")
graph.output("label")
graph.output("scores")

# Calibration: run samples in float and record how large every tensor gets.
draw = np.random.default_rng(seed=0)
weights = {"w1": draw.normal(size=(20, 32)) / 5, "w2": draw.normal(size=(32, 5)) / 6}
samples = [{**weights, "x": draw.normal(size=(8, 20))} for _ in range(16)]
ranges = record_ranges(graph, samples)

# Compile for a chip with small memories, and look at the code.
program = compile_graph(graph, ranges, Chip(external_words=2048, scratchpad_words=2048))
print("".join(disassemble(program.instructions).splitlines(keepends=True)[:6]), "...", sep="")

# Run one sample: in float, by the integer interpreter, and on the simulated chip.
scales = assign_scales(graph, ranges)
integers = {name: quantize(value, scales.scale[name]) for name, value in samples[0].items()}
in_float = evaluate_float(graph, samples[0])
interpreted = evaluate_int(graph, scales, integers)
on_chip = SimulatedDevice(program.chip).execute(program, integers)

print("labels in float:", *in_float["label"][:, 0].astype(int))
print("labels on chip: ", *on_chip.outputs["label"][:, 0])
print("cycles:", on_chip.counters.total, on_chip.counters.by_unit())
assert (on_chip.outputs["scores"] == interpreted["scores"]).all(), "not the interpreter's integers"
