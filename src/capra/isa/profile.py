"""The profile of a program: what each instruction costs, when it runs, and for which tensor."""

from dataclasses import asdict
from typing import Any

from capra.isa.program import Program
from capra.isa.timing import phases_of


def profile_record(program: Program) -> dict[str, Any]:
    """A record of one run, down to the instruction, and cost by unit and by phase.

    GA2 executes one instruction at a time, so an instruction starts where the one before it ends.
    `start` is the cycle of its fetch, counted from 0; `cycles` has the fetch in it. `origin` is an
    index into `origins`; it is null for HALT, and for all of a program that no graph became. A
    transfer of several tensors has their `shares` too, whose cycles sum to its own: the words of
    each, and with the first the fetch and the latency.
    """
    origins = [
        index for index, origin in enumerate(program.origins) for _ in range(origin.instructions)
    ]
    instructions: list[dict[str, Any]] = []
    start = 0
    for index, inst in enumerate(program.instructions):
        phases = phases_of(inst)
        cycles = sum(phases.values())
        entry: dict[str, Any] = {
            "text": str(inst),
            "unit": inst.unit.value,
            "start": start,
            "cycles": cycles,
            "phases": {phase.value: n for phase, n in phases.items() if n},
            "origin": origins[index] if index < len(origins) else None,
        }
        if index in program.shares:
            entry["shares"] = [share._asdict() for share in program.shares[index]]
        instructions.append(entry)
        start += cycles
    return {
        "kind": "profile",
        "program": program.name,
        "chip": asdict(program.chip),
        "cycles": program.cycles,
        "cycles_by_unit": program.counters.by_unit(),
        "cycles_by_phase": dict(program.phases),
        "origins": [{"tensor": o.tensor, "text": o.text} for o in program.origins],
        "instructions": instructions,
    }
