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
from dataclasses import replace
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

_LONGEST: Final = min(
    op.fields[op.index("n")].limit for op in (BY_MNEMONIC["LD"], BY_MNEMONIC["ST"])
)
"""Words that one transfer can move."""

_Runs = dict[str, tuple[str, ...]]
"""The tensors that are moved together, by each of them."""


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
    new_places = {name: buffers.moved(place) for name, place in places.items()}
    return new_places, tuple(_joined(ops, loads, stores, new_places, buffers))


def _runs(
    names: Sequence[str], moved: set[str], places: Mapping[str, Place], buffers: "_Buffers"
) -> _Runs:
    """Runs of tensors, given in the order of external memory; joins the buffers that they are in.

    What is not moved keeps its neighbours apart.
    """
    runs: list[list[str]] = [[]]
    for name in names:
        before, place = runs[-1], places[name]
        words = sum(places[each].rows * places[each].cols for each in (*before, name))
        if name not in moved:
            runs.append([])
        elif before and words <= _LONGEST and buffers.join(places[before[-1]], place):
            before.append(name)
        else:
            runs.append([name])
    return {name: tuple(run) for run in runs for name in run}


def _joined(
    ops: Sequence[Op], loads: _Runs, stores: _Runs, places: Mapping[str, Place],
    buffers: "_Buffers",
) -> Iterator[Op]:  # fmt: skip
    """Every load where the first of its run was, every store where the last was."""
    loaded, stored = set[str](), set[str]()
    for op in ops:
        if isinstance(op, Load):
            if op.tensor not in loaded:
                run = loads[op.tensor]
                loaded.update(run)
                yield Load(run[0], _whole(run, places), run[1:])
        elif isinstance(op, Store):
            run = stores[op.tensor]
            stored.add(op.tensor)
            if stored.issuperset(run):
                yield Store(run[0], _whole(run, places), run[1:])
        else:
            yield buffers.moved_in(op)


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
            return before.index(right.buffer) == before.index(left.buffer) + 1
        if before[-1] != left.buffer or after[0] != right.buffer:
            return False
        before += after
        self._chain.update(dict.fromkeys(after, before))
        return True

    def moved(self, place: Place) -> Place:
        """A place of a buffer in the joined one, which has the name of its first part."""
        chain = self._chain.get(place.buffer)
        if chain is None:  # nothing uses it
            return place
        start = sum(self._words[name] for name in chain[: chain.index(place.buffer)])
        return place._replace(buffer=chain[0], offset=start + place.offset)

    def moved_in(self, op: Op) -> Op:
        """An operation on the joined buffers."""
        match op:
            case Product() | AddRows():
                return replace(op, a=self.moved(op.a), b=self.moved(op.b), dst=self.moved(op.dst))
            case Requantize() | SoftmaxRow() | ArgmaxRow():
                return replace(op, src=self.moved(op.src), dst=self.moved(op.dst))
            case Load():
                return replace(op, dst=self.moved(op.dst))
            case Store():
                return replace(op, src=self.moved(op.src))
