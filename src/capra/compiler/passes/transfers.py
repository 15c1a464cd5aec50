"""The joined-transfers pass: tensors that follow each other in external memory, moved as one.

A load costs 11 cycles and a store 4 whatever its length. Where a buffer ends with a tensor and
another one begins with the tensor behind it in external memory, the two become one buffer, so that
the tensors follow each other in the scratchpad as well; one instruction then moves both. Inputs and
weights are loaded when the first of them is needed, outputs stored when the last is complete.

The integers are the same: the same words go to the same tensors, at other times and addresses.
Joined buffers live longer than their parts did; where the program would no longer fit its chip, the
pipeline leaves this pass out.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from capra.compiler.ops import (
    AddRows,
    ArgmaxRow,
    Load,
    Op,
    Product,
    Requantize,
    SoftmaxRow,
    Store,
    reads,
    writes,
)
from capra.compiler.passes.views import Place
from capra.ir.graph import LEAVES, Graph
from capra.isa.spec import BY_MNEMONIC

_LONGEST: Final = min(BY_MNEMONIC[mnemonic].limit("n") for mnemonic in ("LD", "ST"))
"""Words that one transfer can move."""

_Runs = dict[str, tuple[str, ...]]
"""The tensors that are moved together, by each of them."""

_Moves = dict[str, tuple[str, int]]
"""By buffer, the one that it became a part of, and its first word there."""

_Computes = Product | Requantize | AddRows | SoftmaxRow | ArgmaxRow


def join_transfers(
    graph: Graph, places: Mapping[str, Place], ops: Sequence[Op]
) -> tuple[Mapping[str, Place], tuple[Op, ...]]:
    """Places in joined buffers, and the operations with joined loads and stores.

    `ops` are those of the tile pass, which moves every tensor by itself and once.
    """
    buffers = _Buffers(ops)
    leaves = [node.name for node in graph if node.kind in LEAVES]
    loaded = {op.tensor for op in ops if isinstance(op, Load)}
    loads = _runs(leaves, loaded, places, buffers)
    stores = _runs(graph.outputs, {*graph.outputs}, places, buffers)
    moves = buffers.moves()
    new_places = {name: _moved(place, moves) for name, place in places.items()}
    return new_places, tuple(_joined(ops, loads, stores, new_places, moves))


def _runs(
    names: Sequence[str], moved: set[str], places: Mapping[str, Place], buffers: "_Buffers"
) -> _Runs:
    """Runs of tensors, given in the order of external memory; joins the buffers that they are in.

    What is not moved keeps its neighbours apart.
    """
    runs: list[list[str]] = [[]]
    words = 0  # of the last run
    for name in names:
        before, place = runs[-1], places[name]
        size = place.rows * place.cols
        if name not in moved:
            runs.append([])
        elif before and words + size <= _LONGEST and buffers.join(places[before[-1]], place):
            before.append(name)
            words += size
        else:
            runs.append([name])
            words = size
    return {name: run for run in map(tuple, runs) for name in run}


def _joined(
    ops: Sequence[Op], loads: _Runs, stores: _Runs, places: Mapping[str, Place], moves: _Moves
) -> Iterator[Op]:  # fmt: skip
    """Every load where the first of its run was, every store where the last was."""
    loaded = set[str]()
    incomplete = {run[0]: len(run) for run in stores.values()}
    for op in ops:
        if isinstance(op, Load):
            if op.tensor not in loaded:
                run = loads[op.tensor]
                loaded.update(run)
                yield Load(run[0], _whole(run, places), run[1:])
        elif isinstance(op, Store):
            run = stores[op.tensor]
            incomplete[run[0]] -= 1
            if not incomplete[run[0]]:
                yield Store(run[0], _whole(run, places), run[1:])
        else:
            yield _moved_in(op, moves)


def _whole(run: Sequence[str], places: Mapping[str, Place]) -> Place:
    """The words of a run: one tensor as it is, several as a vector."""
    first = places[run[0]]
    if len(run) == 1:
        return first
    words = sum(places[name].rows * places[name].cols for name in run)
    return Place(first.buffer, first.offset, 1, words, words)


class _Buffers:
    """The buffers of some operations, which may be joined end to start."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self._words: dict[str, int] = {}
        for op in ops:
            for place in (*reads(op), *writes(op)):
                self._words[place.buffer] = max(place.end, self._words.get(place.buffer, 0))
        self._chain = {name: [name] for name in self._words}
        self._next: dict[str, str] = {}  # what was joined behind a buffer

    def join(self, left: Place, right: Place) -> bool:
        """Make the words of `right` follow those of `left`; False where that is impossible."""
        if not (left.is_contiguous and right.is_contiguous):
            return False
        if left.buffer == right.buffer:
            return right.offset == left.end
        before, after = self._chain[left.buffer], self._chain[right.buffer]
        if left.end != self._words[left.buffer] or right.offset != 0:
            return False
        if before is after:
            return self._next.get(left.buffer) == right.buffer
        if before[-1] != left.buffer or after[0] != right.buffer:
            return False
        self._next[left.buffer] = right.buffer
        before += after
        self._chain.update(dict.fromkeys(after, before))
        return True

    def moves(self) -> _Moves:
        """Where the buffers went that now lie behind another one."""
        moves: _Moves = {}
        for name, chain in self._chain.items():
            if name == chain[0]:
                start = 0
                for before, buffer in pairwise(chain):
                    start += self._words[before]
                    moves[buffer] = (name, start)
        return moves


def _moved(place: Place, moves: _Moves) -> Place:
    if place.buffer not in moves:
        return place
    buffer, start = moves[place.buffer]
    return Place(buffer, start + place.offset, place.rows, place.cols, place.stride)


def _moved_in(op: _Computes, moves: _Moves) -> Op:
    dst = _moved(op.dst, moves)
    match op:
        case Product() | AddRows():
            return op._replace(a=_moved(op.a, moves), b=_moved(op.b, moves), dst=dst)
        case Requantize() | SoftmaxRow() | ArgmaxRow():
            return op._replace(src=_moved(op.src, moves), dst=dst)
