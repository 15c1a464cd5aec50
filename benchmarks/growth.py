"""How cycles, time and memory grow with one size, beside the law that each should follow.

Every point is a process of its own, so that its peak memory is its own:
`python -m benchmarks.growth AXIS SIZE` prints one. Rounds over all points take turns, since a
machine may be slow for a while. Cycles are those that the simulator counted when it executed the
program.
"""

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.family import family_model
from benchmarks.fit import AFFINE, QUADRATIC, Law, fit, tiled
from benchmarks.processes import PYTHON, measure_output
from benchmarks.records import Record, least, say
from capra.compiler.optimization import O1
from capra.errors import CapacityError
from capra.lm.target import ChipTarget, Role
from capra.sim.machine import Machine, has_numba

CACHE: Final = 64
ROUNDS: Final = 3
MEASURED: Final = ("compile_seconds", "simulate_seconds", "peak_mib")
COMPILATIONS: Final = 5
SIMULATIONS: Final = 50


@dataclass(frozen=True)
class Axis:
    """One size that doubles."""

    what: str
    sizes: Sequence[int]
    cycles: Law

    def program(self, size: int) -> tuple[ChipTarget, Role, int, int]:
        """The target and the shape of the program of a size: role, rows, cache."""
        if self.what == "context":
            return ChipTarget(family_model(), optimize=O1), "step", 1, size
        if self.what == "rows":
            role: Role = "step" if size == 1 else "verify"
            return ChipTarget(family_model(), optimize=O1), role, size, CACHE
        sizes = {"vocabulary": "vocab_size", "width": "width"}
        model = family_model(**{sizes[self.what]: size})
        return ChipTarget(model, optimize=O1), "step", 1, CACHE


AXES: Final = {
    axis.what: axis
    for axis in (
        Axis("context", (16, 32, 64, 128, 256, 512), AFFINE),
        Axis("rows", (1, 2, 3, 4, 6, 8, 12, 16, 24, 32), tiled(CACHE)),
        Axis("vocabulary", (64, 128, 256, 512, 1024, 2048), AFFINE),
        Axis("width", (16, 32, 64, 128, 256, 512, 1024), QUADRATIC),
    )
}


def growth() -> Record:
    """Every axis: its points, and fits of what they measured."""
    rounds: dict[tuple[str, int], list[Record]] = defaultdict(list)
    for number in range(ROUNDS):
        for axis in AXES.values():
            for size in axis.sizes:
                say(f"growth of {axis.what}: {size}, round {number + 1} of {ROUNDS}")
                command = (*PYTHON, "benchmarks.growth", axis.what, str(size))
                measured, found = measure_output(command)
                run = {"size": size, **found, "peak_mib": measured["peak_mib"]}
                rounds[axis.what, size].append(run)
    record: Record = {}
    for axis in AXES.values():
        points = [least(rounds[axis.what, size], *MEASURED) for size in axis.sizes]
        record[axis.what] = {"points": points, "fits": fits(axis, points)}
    return record


def fits(axis: Axis, points: Sequence[Record]) -> Record:
    """Cycles by the axis's law; time and memory by the laws of a tool that wastes none.

    Compilation is linear in instructions, simulation in cycles, memory above that of a process
    that does nothing in the words that the program knows.
    """
    ran = [point for point in points if "refused" not in point]

    def values(name: str) -> list[float]:
        return [point[name] for point in ran]

    return {
        "cycles": fit(axis.cycles, values("size"), values("cycles")),
        "compile_seconds": fit(AFFINE, values("instructions"), values("compile_seconds")),
        "simulate_seconds": fit(AFFINE, values("cycles"), values("simulate_seconds")),
        "peak_mib": fit(AFFINE, values("words"), values("peak_mib")),
    }


def point(axis: Axis, size: int) -> Record:
    """What compiling and executing one program takes, or the sentence of its refusal.

    `words` are those of its external-memory map; seconds are processor time.
    """
    target, role, rows, cache = axis.program(size)
    seconds = []
    for _ in range(COMPILATIONS):
        fresh = ChipTarget(target.model, optimize=target.optimize)
        begin = time.process_time()
        try:
            program = fresh.program(role, rows, cache)
        except CapacityError as error:
            return {"refused": str(error)}
        seconds.append(time.process_time() - begin)
    machine = Machine(program.chip, engine="compiled" if has_numba() else "readable")
    draw = np.random.default_rng(1)
    for slot in program.slots("input", "weight"):
        machine.write_external(slot.address, draw.integers(-127, 128, slot.words))
    bound = machine.bind(program)
    machine.run(bound)  # loads the engine
    simulated = []
    for _ in range(SIMULATIONS):
        begin = time.process_time()
        counters = machine.run(bound)
        simulated.append(time.process_time() - begin)
    return {
        "rows": rows,
        "cache": cache,
        "instructions": len(program.instructions),
        "words": sum(slot.words for slot in program.external),
        "cycles": counters.total,
        "cycles_by_unit": counters.by_unit(),
        "compile_seconds": min(seconds),
        "simulate_seconds": min(simulated),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("axis", choices=AXES)
    parser.add_argument("size", type=int)
    arguments = parser.parse_args()
    print(json.dumps(point(AXES[arguments.axis], arguments.size)))
