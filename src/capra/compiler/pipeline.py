"""The compiler: a graph and its ranges in, a checked program for one chip out.

Read `compile_graph` from top to bottom; each line is one pass, and the state after each can be
printed.
"""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from capra.compiler.ops import Op
from capra.compiler.optimization import O0, Optimization
from capra.compiler.overlap import check_buffers, check_program
from capra.compiler.passes.block_attention import block_attention
from capra.compiler.passes.buffers import allocate_buffers, fits
from capra.compiler.passes.emit import emit_program
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
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.ir.scales import Scales
from capra.ir.text import print_graph
from capra.isa.chip import Chip
from capra.isa.program import Program

PASSES: Final = (
    "graph", "scales", "attention", "views", "tiles", "transfers", "buffers", "emission",
)  # fmt: skip
"""Names of the states that can be printed, in order: the input, then one a pass."""

TAKES_ROOM: Final = {"block-attention", "shared-zeros"}
"""Passes whose programs may need more of the scratchpad; left out where it is too small."""

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
    lowered = _lower(graph, scales, chip, optimize)
    if optimize & TAKES_ROOM and not fits(lowered.ops, chip.scratchpad_words, reuse=reuse):
        lowered = _lower(graph, scales, chip, optimize - TAKES_ROOM)
    tiled, tiled_scales, places, ops = lowered
    observer("attention", lambda: print_graph(tiled))
    observer("views", lambda: print_places(places))
    observer("tiles", lambda: print_operations(ops))
    if "joined-transfers" in optimize:
        joined_places, joined = join_transfers(tiled, places, ops)
        if fits(joined, chip.scratchpad_words, reuse=reuse):
            places, ops = joined_places, joined
    observer("transfers", lambda: print_operations(ops))
    buffers = allocate_buffers(ops, chip.scratchpad_words, reuse=reuse)
    check_buffers(ops, buffers, chip.scratchpad_words)
    observer("buffers", lambda: print_buffers(buffers))
    program = emit_program(tiled, tiled_scales, places, ops, buffers, chip)
    check_program(program)
    observer("emission", lambda: print_program(program))
    return program


class _Lowered(NamedTuple):
    """A graph as operations on symbolic buffers."""

    graph: Graph
    scales: Scales
    places: Mapping[str, Place]
    ops: tuple[Op, ...]


def _lower(graph: Graph, scales: Scales, chip: Chip, optimize: Optimization) -> _Lowered:
    """The attention, views and tiles passes."""
    if "block-attention" in optimize:
        graph, scales = block_attention(graph, scales)
    places = place_tensors(graph)
    shared = "shared-zeros" in optimize
    ops = tile_operations(graph, scales, places, chip.operand_depth, shared_zeros=shared)
    return _Lowered(graph, scales, places, ops)
