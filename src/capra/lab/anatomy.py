"""What programs are made of, side by side: instructions, words moved, cycles by unit."""

from collections.abc import Sequence
from typing import Any

from capra.errors import InputError
from capra.isa.program import Program
from capra.lm.target import ChipTarget

Record = dict[str, Any]


def program_anatomy(program: Program) -> Record:
    """One program: its histogram, the words that it loads, and its cycles."""
    return {
        "name": program.name,
        "instructions": len(program.instructions),
        "histogram": program.histogram(),
        "words_loaded": program.words_loaded,
        "weight_words": program.weight_words,
        "cycles": program.cycles,
        "cycles_by_unit": program.counters.by_unit(),
    }


def compare_programs(programs: Sequence[Program]) -> Record:
    """Programs side by side; `ratios` are each program's cycles over those of the first."""
    anatomies = [program_anatomy(program) for program in programs]
    first = anatomies[0]["cycles"]
    return {
        "programs": anatomies,
        "ratios": [each["cycles"] / first if first else 1.0 for each in anatomies],
    }


def verifier_anatomy(target: ChipTarget, rows: int, cache: int, draft: Program) -> Record:
    """A verifier beside the plain steps that write the same rows, their sum, and a draft step.

    `ratio` is the verifier's cycles over those of the steps together. InputError where the rows do
    not fit the context.
    """
    if rows < 2 or rows + cache > target.max_context:
        raise InputError(
            f"{rows} rows after {cache}, expected at least 2, and at most {target.max_context} "
            "together, the context"
        )
    verifier = program_anatomy(target.program("verify", rows, cache))
    steps = [
        {"cache": position, **program_anatomy(target.program("step", 1, position))}
        for position in range(cache, cache + rows)
    ]
    together = _sum(f"{rows} steps", steps)
    return {
        "verifier": verifier,
        "steps": steps,
        "steps_together": together,
        "ratio": verifier["cycles"] / together["cycles"],
        "draft": program_anatomy(draft),
    }


def _sum(name: str, parts: Sequence[Record]) -> Record:
    def added(key: str) -> dict[str, int]:
        names = dict.fromkeys(name for part in parts for name in part[key])
        return {name: sum(part[key].get(name, 0) for part in parts) for name in names}

    sums = {
        key: sum(part[key] for part in parts)
        for key in ("instructions", "words_loaded", "weight_words", "cycles")
    }
    by_name = {key: added(key) for key in ("histogram", "cycles_by_unit")}
    return {"name": name, **sums, **by_name}
