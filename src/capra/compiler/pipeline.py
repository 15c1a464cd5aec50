"""The compiler: a graph and its ranges in, a checked program for one chip out.

Read `compile_graph` and the `_lower` in its middle from top to bottom; each line is one pass, and
the state after each can be printed.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from capra.compiler.ops import Op
from capra.compiler.optimization import O0, Optimization
from capra.compiler.overlap import check_buffers, check_program
from capra.compiler.passes.buffers import allocate_buffers, words_piled, words_stacked
from capra.compiler.passes.emit import count_instructions, emit_program, external_words
from capra.compiler.passes.scales import assign_scales
from capra.compiler.passes.tile import tile_operations
from capra.compiler.passes.transfers import join_transfers
from capra.compiler.passes.views import Place, place_tensors
from capra.compiler.printer import (
    print_buffers,
    print_operations,
    print_places,
    print_program,
    print_scales,
)
from capra.errors import CapacityError
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.ir.scales import Scales
from capra.ir.text import print_graph
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.isa.spec import ARRAY_SIZE

PASSES: Final = (
    "graph", "scales", "views", "tiles", "transfers", "buffers", "emission",
)  # fmt: skip
"""Names of the states that can be printed, in order: the input, then one a pass."""

_JOINED: Final = frozenset({"joined-transfers"})
_BLOCKS: Final = frozenset({"block-attention", "shared-zeros"})
LEFT_OUT: Final = (frozenset[str](), _JOINED, _BLOCKS, _JOINED | _BLOCKS)
"""Passes whose programs may need more of the scratchpad: what is left out until one fits."""

Observer = Callable[[str, Callable[[], str]], None]
"""Called after each pass with its name and a function that prints the state."""


def compile_graph(
    graph: Graph,
    ranges: Ranges,
    chip: Chip,
    *,
    reuse: bool = True,
    optimize: Optimization = O0,
    observer: Observer = lambda _name, _text: None,
) -> Program:
    """The program that computes a graph's outputs in int8 on a chip.

    With `reuse` off no two buffers share a word. Whatever `optimize` names, every tensor holds the
    same integers; with nothing, the cycles are those that the reference recorded.

    Raises GraphError for a graph without an output, RangeError for missing or incompatible ranges,
    CapacityError for what does not fit the chip.
    """
    graph.check_complete()
    observer("graph", lambda: print_graph(graph))
    scales = assign_scales(graph, ranges)
    observer("scales", lambda: print_scales(graph, scales))
    for attempt in _attempts(optimize):
        lowered = _lower(graph, scales, chip, attempt)
        try:
            buffers = allocate_buffers(lowered.ops, chip.scratchpad_words, reuse=reuse)
        except CapacityError as error:
            buffers, refusal = None, CapacityError(f"{graph.name}: {error}")
        else:
            break
    for name, text in lowered.states:
        observer(name, text)
    if buffers is None:
        raise refusal
    check_buffers(lowered.ops, buffers, chip.scratchpad_words)
    observer("buffers", lambda: print_buffers(buffers))
    program = emit_program(*lowered[:4], buffers, chip)
    check_program(program)
    observer("emission", lambda: print_program(program))
    return program


class Room(NamedTuple):
    """Which programs surely fit a chip if they are like one that was looked at, but smaller.

    That is, programs of graphs that a model builds in the same way. False says nothing.
    """

    for_all: bool
    """Those of as many rows or fewer, and of as long a cache or a shorter one."""
    for_shorter_caches: bool
    """If that program fits: those of as many rows and a cache that is shorter, but not empty."""


def find_room(graph: Graph, ranges: Ranges, chip: Chip, optimize: Optimization = O0) -> Room:
    """What a chip has room for, without emitting anything."""
    scales = assign_scales(graph, ranges)
    attempts = _attempts(optimize)
    # The last attempt has the most instructions. Row by row, fewer rows are some of its operations.
    plain = _lower(graph, scales, chip, attempts[-1]).ops
    words, entries = chip.scratchpad_words, chip.program_entries
    if (
        external_words(graph) <= chip.external_words
        and count_instructions(plain) <= entries
        and words_piled(plain) <= words
    ):
        return Room(for_all=True, for_shorter_caches=True)
    lowered = (_lower(graph, scales, chip, attempt).ops for attempt in attempts)
    return Room(False, any(words_stacked(ops) <= words for ops in lowered))


def _attempts(optimize: Optimization) -> tuple[Optimization, ...]:
    """What to switch on, in the order in which it is tried until a program fits."""
    return tuple(dict.fromkeys(optimize - left_out for left_out in LEFT_OUT))


class _Lowered(NamedTuple):
    """A graph as operations on symbolic buffers, and how to print what it was on the way."""

    graph: Graph
    scales: Scales
    places: Mapping[str, Place]
    ops: tuple[Op, ...]
    states: tuple[tuple[str, Callable[[], str]], ...]


def _lower(graph: Graph, scales: Scales, chip: Chip, optimize: Optimization) -> _Lowered:
    """The passes from views to transfers."""
    places = apart = place_tensors(graph)
    ops = tiled = tile_operations(
        graph, scales, places, chip.operand_depth,
        attention_rows=ARRAY_SIZE if "block-attention" in optimize else 1,
        shared_zeros="shared-zeros" in optimize,
    )  # fmt: skip
    if "joined-transfers" in optimize:
        places, ops = join_transfers(graph, places, ops)
    states = (
        ("views", lambda: print_places(apart)),
        ("tiles", lambda: print_operations(tiled)),
        ("transfers", lambda: print_operations(ops)),
    )
    return _Lowered(graph, scales, places, ops, states)
