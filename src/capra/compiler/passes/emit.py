"""The emission pass: the only place where the IR meets the ISA.

External memory holds inputs and weights in the order in which the graph declares them, then the
outputs in theirs. Every operation becomes one instruction, or one for each row where the
instruction moves a vector and the rows do not follow each other, or several where a vector is
longer than its field can say. Every other field holds what a graph's dimensions allow.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from math import ceil

import numpy as np

from capra.compiler.ops import (
    AddRows,
    ArgmaxRow,
    Load,
    Op,
    Product,
    Requantize,
    SoftmaxRow,
    Store,
    writes,
)
from capra.compiler.passes.buffers import Buffer
from capra.compiler.passes.views import Place
from capra.errors import CapacityError
from capra.ir.graph import LEAVES, VIEWS, Graph, Kind
from capra.ir.scales import Scales
from capra.ir.text import print_node
from capra.isa.chip import Chip
from capra.isa.code import Code
from capra.isa.instruction import Row, row
from capra.isa.origin import Origin
from capra.isa.program import Program, Slot, SlotKind, TensorHome
from capra.isa.spec import ARRAY_SIZE, BY_MNEMONIC
from capra.numerics import Int64Array


def emit_program(
    graph: Graph,
    scales: Scales,
    places: Mapping[str, Place],
    ops: Sequence[Op],
    buffers: Mapping[str, Buffer],
    chip: Chip,
) -> Program:
    """The program: instructions with addresses, the external map, and where each tensor lives."""
    sources, outputs = _external_map(graph, scales, chip.external_words)
    code: list[Row | Int64Array] = []
    last_instruction: list[int] = []
    size = 0
    for op in ops:
        for part in _rows(op, buffers, outputs if isinstance(op, Store) else sources):
            code.append(part)
            size += len(part) if isinstance(part, np.ndarray) else 1
        last_instruction.append(size - 1)
    code.append(row("HALT"))
    return Program(
        name=graph.name,
        chip=chip,
        instructions=Code(code),
        external=(*sources.values(), *outputs.values()),
        tensors=_homes(graph, scales, places, ops, buffers, last_instruction),
        origins=_origins(graph, ops, last_instruction),
    )


def count_instructions(ops: Iterable[Op]) -> int:
    """Instructions of a program of these operations, HALT included."""
    return 1 + sum(map(_instructions_of, ops))


def _instructions_of(op: Op) -> int:
    match op:
        case Load():
            return len(list(_chunks("LD", op.dst)))
        case Store():
            return len(list(_chunks("ST", op.src)))
        case Product(a=a, dst=dst):
            inner = ceil(a.cols / op.depth)
            return ceil(dst.rows / ARRAY_SIZE) * ceil(dst.cols / ARRAY_SIZE) * inner
        case AddRows():
            return len(list(_chunks("VADD", op.dst, op.a, op.b)))
        case Requantize() | SoftmaxRow() | ArgmaxRow():
            return 1


def external_words(graph: Graph) -> int:
    """Words of external memory that a program of a graph needs."""
    slots = [node.name for node in graph if node.kind in LEAVES] + list(graph.outputs)
    return sum(graph[name].rows * graph[name].cols for name in slots)


def _external_map(
    graph: Graph, scales: Scales, external_words: int
) -> tuple[dict[str, Slot], dict[str, Slot]]:
    """(inputs and weights, outputs), each by tensor name.

    Raises CapacityError, naming the first tensor that does not fit.
    """
    address = 0

    def slot(name: str, kind: SlotKind) -> Slot:
        nonlocal address
        node = graph[name]
        made = Slot(name, kind, address, node.rows, node.cols, scales.scale.get(name))
        address = made.end
        if address > external_words:
            raise CapacityError(
                f"{graph.name}: external memory needs {address} words for {name}, expected at most "
                f"{external_words}"
            )
        return made

    leaves = [node for node in graph if node.kind in LEAVES]
    sources = {n.name: slot(n.name, "input" if n.kind is Kind.INPUT else "weight") for n in leaves}
    return sources, {name: slot(name, "output") for name in graph.outputs}


def _rows(
    op: Op, buffers: Mapping[str, Buffer], slots: Mapping[str, Slot]
) -> Iterator[Row | Int64Array]:
    """The instructions of an operation: rows, or a table of them."""

    def at(place: Place) -> int:
        return buffers[place.buffer].base + place.offset

    match op:
        case Load():
            for offset, chunk in _chunks("LD", op.dst):
                address = slots[op.tensor].address + offset
                yield row("LD", d=at(chunk[0]), s=address, n=chunk[0].cols)
        case Store():
            for offset, chunk in _chunks("ST", op.src):
                address = slots[op.tensor].address + offset
                yield row("ST", d=address, s=at(chunk[0]), n=chunk[0].cols)
        case Product():
            places = [_at_zero(place) for place in (op.a, op.b, op.dst)]
            corner = _corner(at(op.a), at(op.b), at(op.dst))
            yield _tiles(*places, op.transpose_b, op.depth) + corner
        case Requantize(src=src, dst=dst):
            yield row(
                "RQ", d=at(dst), s=at(src), r=dst.rows, c=dst.cols, sd=dst.stride, ss=src.stride,
                mul=op.rescale.multiplier, sh=op.rescale.shift, relu=int(op.relu),
            )  # fmt: skip
        case AddRows():
            for _, (dst, a, b) in _chunks("VADD", op.dst, op.a, op.b):
                yield row("VADD", d=at(dst), a=at(a), b=at(b), n=dst.cols)
        case SoftmaxRow(src=src, dst=dst):
            yield row(
                "SM", d=at(dst), s=at(src), n=src.cols,
                mul=op.rescale.multiplier, sh=op.rescale.shift,
            )  # fmt: skip
        case ArgmaxRow(src=src, dst=dst):
            yield row("AMAX", d=at(dst), s=at(src), n=src.cols)


@lru_cache(maxsize=4096)
def _tiles(a: Place, b: Place, dst: Place, transpose_b: bool, depth: int) -> Int64Array:
    """A product's tiles as a table.

    They are the same at all addresses, so layers and programs whose products have the same shape
    share them, those of neighbouring caches too.
    """
    product = Product("", a, b, dst, transpose_b, depth)
    return np.array([
        row(
            "MM", d=dst.offset, a=a.offset, b=b.offset, m=dst.rows, n=dst.cols, k=a.cols,
            sd=dst.stride, sa=a.stride, sb=b.stride, t=int(transpose_b), acc=int(accumulate),
        )
        for a, b, dst, accumulate in product.tiles()
    ])  # fmt: skip


def forget_tiles() -> None:
    """Make the next products from nothing, as in a fresh process."""
    _tiles.cache_clear()


def _corner(a: int, b: int, d: int) -> Int64Array:
    """What is added to the row of a tile to move it by these addresses."""
    corner = np.array(row("MM", a=a, b=b, d=d, m=0, n=0, k=0, sd=0, sa=0, sb=0, t=0, acc=0))
    corner[0] = 0
    return corner


def _at_zero(place: Place) -> Place:
    return place._replace(buffer="", offset=0)


def _chunks(mnemonic: str, *places: Place) -> Iterator[tuple[int, tuple[Place, ...]]]:
    """Equal places as vectors of an instruction: (offset in words, one-row places).

    One vector if none has gaps, else one for each row; several where one is too long for the
    instruction.
    """
    rows, cols = places[0].rows, places[0].cols
    if all(place.is_contiguous for place in places):
        rows, cols = 1, rows * cols
        places = tuple(Place(p.buffer, p.offset, rows, cols, cols) for p in places)
    longest = BY_MNEMONIC[mnemonic].limit("n")
    for index in range(rows):
        for start in range(0, cols, longest):
            part = (index, start, 1, min(longest, cols - start))
            yield index * cols + start, tuple(place.part(*part) for place in places)


def _homes(
    graph: Graph,
    scales: Scales,
    places: Mapping[str, Place],
    ops: Sequence[Op],
    buffers: Mapping[str, Buffer],
    last_instruction: Sequence[int],
) -> dict[str, TensorHome]:
    """Where and when each tensor lives; temporaries too, under names that start with '%'."""
    written: dict[str, tuple[int, int]] = {}  # by tensor or temporary: its first and last writer
    start = 0
    for op, end in zip(ops, last_instruction, strict=True):
        for name in _written_by(op):
            first, _ = written.get(name, (start, end))
            written[name] = (first, end)
        start = end + 1

    homes: dict[str, TensorHome] = {}

    def add(name: str, place: Place, scale: float | None) -> None:
        buffer = buffers[place.buffer]
        homes[name] = TensorHome(
            name, buffer.base + place.offset, place.rows, place.cols, place.stride, scale,
            *written[name], last_instruction[buffer.last],
        )  # fmt: skip

    for node in graph:
        if node.kind in VIEWS and all(part in written for part in node.inputs):
            writers = [written[part] for part in node.inputs]
            written[node.name] = min(w[0] for w in writers), max(w[1] for w in writers)
        # Else nothing writes it: a leaf that nothing reads, or a product fused into its relu.
        if node.name in written:
            add(node.name, places[node.name], scales.scale.get(node.name))
    for name in filter(_is_temporary, written):
        words = buffers[name].words
        add(name, Place(name, 0, 1, words, words), None)
    return homes


def _written_by(op: Op) -> tuple[str, ...]:
    """The tensors or temporaries that an operation writes."""
    if isinstance(op, Load):
        return op.tensor, *_followers(op)
    return tuple(p.buffer if _is_temporary(p.buffer) else op.tensor for p in writes(op))


def _origins(
    graph: Graph, ops: Sequence[Op], last_instruction: Sequence[int]
) -> tuple[Origin, ...]:
    """The tensor that each operation loads, computes or stores, one entry a run of operations.

    A transfer of several tensors is a run of its own, whose followers have no instructions.
    """
    origins: list[Origin] = []
    start = 0
    for (tensor, _), run in groupby(enumerate(ops), _run_of):
        *_, (index, op) = run
        end = last_instruction[index] + 1
        origins.append(Origin(tensor, _graph_lines(graph, tensor), end - start))
        origins += [Origin(name, _graph_lines(graph, name), 0) for name in _followers(op)]
        start = end
    return tuple(origins)


def _run_of(numbered: tuple[int, Op]) -> tuple[str, int]:
    """Equal for operations that are one run, given with their index."""
    index, op = numbered
    return op.tensor, index if _followers(op) else -1


def _followers(op: Op) -> tuple[str, ...]:
    """What a transfer moves besides its first tensor."""
    return op.followers if isinstance(op, Load | Store) else ()


def _graph_lines(graph: Graph, tensor: str) -> str:
    """The tensor's line in the text form, after that of the product that is fused into it."""
    node = graph[tensor]
    if node.kind is Kind.RELU and not graph.is_materialized(node.inputs[0]):
        return f"{print_node(graph[node.inputs[0]])}\n{print_node(node)}"
    return print_node(node)


def _is_temporary(name: str) -> bool:
    return name.startswith("%")
