"""A chip for a graph: the smallest of the usual sizes that holds its program."""

from typing import Final

from capra.compiler.optimization import O0, Optimization
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.isa.chip import (
    MAX_EXTERNAL_WORDS,
    MAX_PROGRAM_ENTRIES,
    MAX_SCRATCHPAD_WORDS,
    Chip,
)
from capra.isa.spec import Memory

_LARGEST: Final = Chip(
    external_words=MAX_EXTERNAL_WORDS,
    scratchpad_words=MAX_SCRATCHPAD_WORDS,
    program_entries=MAX_PROGRAM_ENTRIES,
)


def fitting_chip(graph: Graph, ranges: Ranges, optimize: Optimization = O0) -> Chip:
    """A chip with memories of powers of two, no smaller than the default, that hold the program.

    Raises what `compile_graph` raises, CapacityError only where no chip of the family is enough.
    """
    program, usual = compile_graph(graph, ranges, _LARGEST, optimize=optimize), Chip()
    used = max(
        region.end
        for instruction in program.instructions
        for region in (*instruction.reads(), *instruction.writes())
        if region.memory is Memory.SCRATCHPAD
    )
    return Chip(
        external_words=_power_of_two(program.external[-1].end, usual.external_words),
        scratchpad_words=_power_of_two(used, usual.scratchpad_words),
        program_entries=_power_of_two(len(program.instructions), usual.program_entries),
    )


def _power_of_two(needed: int, least: int) -> int:
    return max(1 << (needed - 1).bit_length(), least)
