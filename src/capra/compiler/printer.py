"""The state between passes as text, for `capra compile --emit` and for reading along."""

from collections.abc import Mapping, Sequence

from capra.compiler.ops import (
    AddRows,
    ArgmaxRow,
    Load,
    Op,
    Product,
    Requantize,
    SoftmaxRow,
    Store,
    Tile,
)
from capra.compiler.passes.buffers import Buffer
from capra.compiler.passes.views import Place
from capra.ir.graph import Graph
from capra.ir.scales import Scales
from capra.isa.assembler import disassemble
from capra.isa.program import Program
from capra.isa.timing import Counters
from capra.numerics import Rescale
from capra.text import printable


def print_scales(graph: Graph, scales: Scales) -> str:
    """One line per tensor, inside an attention too: its scale and the rescales that lead to it."""
    lines = []
    for node in graph.tensors():
        if node.is_index:
            continue
        words = [f"{node.name}: scale {scales.scale[node.name]:.6g}"]
        if node.name in scales.softmax_index:
            words.append(f"index {_rescale(scales.softmax_index[node.name])}")
        if node.name in scales.product:
            words.append(f"rescale {_rescale(scales.product[node.name])}")
        if node.name in scales.addends:
            words += [f"operand {_rescale(r)}" for r in scales.addends[node.name]]
        lines.append(", ".join(words))
    return _text(lines)


def print_places(places: Mapping[str, Place]) -> str:
    """One line a tensor: the rectangle of a buffer that it is."""
    return _text([f"{name}: {_place(place)}" for name, place in places.items()])


def print_operations(ops: Sequence[Op]) -> str:
    """One line an operation, with its index; the tiles of a product below it."""
    lines = list[str]()
    for index, op in enumerate(ops):
        lines.append(f"{index}: {_operation(op)}")
        if isinstance(op, Product):
            lines += [f"    {_tile(op, tile)}" for tile in op.tiles()]
    return _text(lines)


def print_buffers(buffers: Mapping[str, Buffer]) -> str:
    """One line a buffer: words and life."""
    return _text(
        [
            f"{b.name}: words {b.base} .. {b.base + b.words - 1}, operations {b.first} .. {b.last}"
            for b in buffers.values()
        ]
    )


def print_program(program: Program) -> str:
    """External map, tensors, then the disassembly."""
    lines = [f"; program {program.name}: {program.cycles} cycles"]
    lines += [
        f"; {slot.kind} {slot.name} {slot.rows}x{slot.cols} at {slot.address}"
        for slot in program.external
    ]
    lines += [
        f"; {home.name} {home.rows}x{home.cols} stride {home.stride} at {home.base}, "
        f"whole after {home.ready}, kept until {home.until}"
        for home in program.tensors.values()
    ]
    return _text(list(map(printable, lines))) + disassemble(program.instructions)


def print_bound(counters: Counters, bound: Counters) -> str:
    """One line a unit and one for all: cycles, the lower bound, and the distance to it."""
    units = {**counters.by_unit(), "total": counters.total}
    bounds = {**bound.by_unit(), "total": bound.total}
    lines = ["unit        cycles       bound  distance"]
    for unit, cycles in units.items():
        distance = cycles / bounds[unit] - 1 if bounds[unit] else 0.0
        lines.append(f"{unit:<7} {cycles:>10,}  {bounds[unit]:>10,}  {distance:>8.1%}")
    return _text(lines)


def _operation(op: Op) -> str:
    match op:
        case Load():
            return f"{_place(op.dst)} = load {', '.join((op.tensor, *op.followers))}"
        case Store():
            return f"store {', '.join((op.tensor, *op.followers))} = {_place(op.src)}"
        case Product():
            return _tile(op, Tile(op.a, op.b, op.dst, accumulate=False))
        case Requantize():
            relu = " relu" if op.relu else ""
            return f"{_place(op.dst)} = requantize {_place(op.src)} {_rescale(op.rescale)}{relu}"
        case AddRows():
            return f"{_place(op.dst)} = {_place(op.a)} + {_place(op.b)}"
        case SoftmaxRow():
            return f"{_place(op.dst)} = softmax {_place(op.src)} index {_rescale(op.rescale)}"
        case ArgmaxRow():
            return f"{_place(op.dst)} = argmax {_place(op.src)}"


def _tile(product: Product, tile: Tile) -> str:
    sign = "+=" if tile.accumulate else "="
    right = f"{_place(tile.b)}{'^T' if product.transpose_b else ''}"
    return f"{_place(tile.dst)} {sign} {_place(tile.a)} . {right}"


def _place(place: Place) -> str:
    return f"{place.buffer}[{place.offset}: {place.rows}x{place.cols} stride {place.stride}]"


def _rescale(rescale: Rescale) -> str:
    return f"{rescale.multiplier} >> {rescale.shift}"


def _text(lines: Sequence[str]) -> str:
    return "".join(line + "\n" for line in lines)
