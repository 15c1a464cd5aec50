"""The product as a program of GA2: `python -m benchmarks.peers.matmul` compiles, runs, checks it.

It prints what it cost as JSON; seconds are wall time within the process.
"""

import json
import sys
import time
from typing import Final

import numpy as np

from benchmarks.peers import K, M, N
from benchmarks.records import Record
from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.numerics import INT8_MAX, Int64Array
from capra.sim.device import SimulatedDevice

CHIP: Final = Chip(
    external_words=1 << 19, scratchpad_words=1 << 19, operand_depth=K, program_entries=1 << 10
)
"""Operand memories as deep as the product, since no peer splits it."""

SEED: Final = 1
RANGES: Final = Ranges({"x": 1.0, "w": 1.0, "y": 32.0})
"""Some elements of y saturate: the sums of K products have a deviation of 8."""


def graph() -> Graph:
    """y = x w."""
    made = Graph("matmul")
    made.input("x", M, K)
    made.weight("w", K, N)
    made.matmul("y", "x", "w")
    made.output("y")
    return made


def program() -> Program:
    """The product for CHIP, requantized to int8."""
    return compile_graph(graph(), RANGES, CHIP)


def operands() -> dict[str, Int64Array]:
    """Random int8 for x and w."""
    draw = np.random.default_rng(SEED)
    shapes = {"x": (M, K), "w": (K, N)}
    return {name: draw.integers(-INT8_MAX, INT8_MAX + 1, shape) for name, shape in shapes.items()}


def in_numpy(values: dict[str, Int64Array]) -> Int64Array:
    """y by numpy's product, rounded half up to int8."""
    rescale = assign_scales(graph(), RANGES).product["y"]
    sums = values["x"].astype(np.int64) @ values["w"].astype(np.int64)
    rounded = (sums * rescale.multiplier + (1 << (rescale.shift - 1))) >> rescale.shift
    return rounded.clip(-INT8_MAX, INT8_MAX)


def main() -> None:
    """The command. Exits with 1 when a value is not numpy's."""
    begin = time.perf_counter()
    compiled = program()
    made = time.perf_counter()
    values = operands()
    device = SimulatedDevice(CHIP)
    result = device.execute(compiled, values)
    first = time.perf_counter()
    device.execute(compiled, values)
    again = time.perf_counter()
    y, wanted = result.outputs["y"], in_numpy(values)
    if not np.array_equal(y, wanted):
        sys.exit(f"{(y != wanted).sum()} of {y.size} values are not numpy's")
    record: Record = {
        "cycles": result.counters.total,
        "cycles_by_unit": result.counters.by_unit(),
        "instructions": len(compiled.instructions),
        "values_checked": y.size,
        "compile_seconds": made - begin,
        "first_run_seconds": first - made,
        "run_seconds": again - first,
    }
    json.dump(record, sys.stdout)


if __name__ == "__main__":
    main()
