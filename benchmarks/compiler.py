"""How long compiling takes: small and large programs, neighbours, and per instruction.

Seconds are processor time of this process, the minimum of the repeats.
"""

import time
from collections import defaultdict
from itertools import product
from typing import Final

from benchmarks.fit import AFFINE, fit
from benchmarks.records import Record, least, say
from capra.compiler.optimization import O0, O1, Optimization
from capra.compiler.passes.emit import forget_tiles
from capra.isa.program import Program
from capra.lm.model import LanguageModel
from capra.lm.models import load_model
from capra.lm.target import ChipTarget, Role
from capra.numerics import rescale_for

REPEATS: Final = 5
ROUNDS: Final = 3
"""Over all programs, which take turns: a machine may be slow for a while."""

CASES: Final = (("random", 8, 5.0), ("pydoc", 64, 50.0))
"""A model, the cache of its programs, and the milliseconds that one should stay below."""

ROWS: Final = (1, 4)
FITTED_ROWS: Final = (1, 2, 4, 8, 16, 32)
OPTIMIZATIONS: Final = {"-O0": O0, "-O1": O1}


def compiler() -> Record:
    """Single programs, and the line through the seconds of larger and larger ones."""
    rounds: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for number in range(ROUNDS):
        for name, cache, target in CASES:
            model = load_model(name)
            for (level, optimize), rows in product(OPTIMIZATIONS.items(), ROWS):
                say(f"compiling {name}, {rows} rows at {cache}, {level}, round {number + 1}")
                case = {"model": name, "rows": rows, "cache": cache, "optimize": level}
                found = {"target_milliseconds": target, **_case(model, optimize, rows, cache)}
                rounds[*case.values()].append({**case, **found})
    times = ("milliseconds", "neighbour_milliseconds")
    programs = [least(runs, *times) for runs in rounds.values()]
    return {"programs": programs, "by_instructions": _by_instructions()}


def _case(model: LanguageModel, optimize: Optimization, rows: int, cache: int) -> Record:
    """A target's first program, and its program for this cache after the one for a row less."""
    program, seconds = _first(model, optimize, rows, cache)

    def neighbour() -> float:
        _forget()
        target = ChipTarget(model, optimize=optimize)
        _program(target, rows, cache - 1)
        return _compile(target, rows, cache)[1]

    return {
        "instructions": len(program.instructions),
        "milliseconds": 1000 * seconds,
        "neighbour_milliseconds": 1000 * min(neighbour() for _ in range(REPEATS)),
    }


def _by_instructions() -> Record:
    """pydoc's programs of more and more rows at -O0, the longest ones, and a line through them."""
    name, cache, _ = CASES[-1]
    model, points = load_model(name), dict[int, Record]()
    for number in range(ROUNDS):
        say(f"compiling {name} at {cache} for the fit, round {number + 1} of {ROUNDS}")
        for rows in FITTED_ROWS:
            program, seconds = _first(model, O0, rows, cache)
            least = min(seconds, points[rows]["compile_seconds"]) if number else seconds
            instructions = len(program.instructions)
            points[rows] = {"rows": rows, "instructions": instructions, "compile_seconds": least}
    line = fit(
        AFFINE,
        [point["instructions"] for point in points.values()],
        [point["compile_seconds"] for point in points.values()],
    )
    return {
        "model": name,
        "cache": cache,
        "optimize": "-O0",
        "points": [*points.values()],
        "fit": line,
    }


def _first(
    model: LanguageModel, optimize: Optimization, rows: int, cache: int
) -> tuple[Program, float]:
    """The first program of all, and the least seconds that it took."""
    runs = []
    for _ in range(REPEATS):
        _forget()
        runs.append(_compile(ChipTarget(model, optimize=optimize), rows, cache))
    return runs[0][0], min(seconds for _, seconds in runs)


def _forget() -> None:
    """Drop what programs share, as in a fresh process."""
    forget_tiles()
    rescale_for.cache_clear()


def _compile(target: ChipTarget, rows: int, cache: int) -> tuple[Program, float]:
    begin = time.process_time()
    program = _program(target, rows, cache)
    return program, time.process_time() - begin


def _program(target: ChipTarget, rows: int, cache: int) -> Program:
    role: Role = "step" if rows == 1 else "verify"
    return target.program(role, rows, cache)
