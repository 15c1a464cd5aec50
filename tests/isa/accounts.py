"""What the cycles of any program must be like, from a second table of phases, written here."""

from collections import Counter
from collections.abc import Mapping, Sequence

from capra.isa.instruction import Instruction
from capra.isa.spec import Phase
from capra.isa.timing import Counters

PHASES_OF: Mapping[str, tuple[str, ...]] = {
    "HALT": (),
    "LD": ("load", "load_latency"),
    "ST": ("store", "store_latency"),
    "MM": ("operand_load", "array", "array_fill", "drain"),
    "RQ": ("requantize", "vector_pipeline"),
    "VADD": ("add", "vector_pipeline"),
    "SM": ("softmax", "softmax_division"),
    "AMAX": ("argmax", "vector_pipeline"),
}
UNIT_OF: Mapping[str, str] = {
    "load": "dma", "load_latency": "dma", "store": "dma", "store_latency": "dma",
    "operand_load": "matrix", "array": "matrix", "array_fill": "matrix", "drain": "matrix",
    "sum_load": "matrix", "requantize": "vector", "add": "vector", "softmax": "vector",
    "softmax_division": "vector", "argmax": "vector", "vector_pipeline": "vector",
    "fetch": "control",
}  # fmt: skip


def phases_in(code: Sequence[Instruction]) -> set[str]:
    """The phases that some of these instructions have, and no other."""
    found = {phase for inst in code for phase in PHASES_OF[inst.mnemonic]}
    if any(inst.mnemonic == "MM" and inst["acc"] for inst in code):
        found.add("sum_load")
    return found | ({"fetch"} if code else set())


def check_accounts(
    code: Sequence[Instruction],
    counters: Counters,
    phases: Mapping[Phase, int] | Mapping[str, int],
) -> None:
    """Assert that every phase is of an instruction of the code, that none is negative or 0, that
    phases sum to units and units to the total, and that fetches are two cycles each."""
    assert {str(phase) for phase in phases} == phases_in(code)
    assert all(type(cycles) is int and cycles > 0 for cycles in phases.values())
    units = Counter[str]()
    for phase, cycles in phases.items():
        units[UNIT_OF[phase]] += cycles
    assert {unit: n for unit, n in counters.by_unit().items() if n} == units
    assert all(cycles >= 0 for cycles in counters.by_unit().values())
    assert sum(counters.by_unit().values()) == counters.total == sum(phases.values())
    assert units["control"] == counters.control == 2 * len(code)
