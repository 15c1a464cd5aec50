"""A program executed on terms instead of numbers: does it compute its graph, whatever the data?

Every word of both memories holds a term or nothing. Each tensor of the program is compared with the
graph's when it is complete and when its life ends, so a wrong address, stride, order, constant or
an early reuse of a buffer is found at the tensor where it happens, without any test data.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from capra.certify.dataflow import Dataflow, Rows
from capra.certify.explain import Difference, explain
from capra.certify.terms import Terms
from capra.isa.instruction import Instruction, Region
from capra.isa.program import Program
from capra.isa.spec import Memory
from capra.numerics import Int64Array

_NOTHING: Final = -1
"""A word that nobody wrote; what the host leaves there is unknown."""


def check_instructions(
    program: Program,
    dataflow: Dataflow,
    inputs: Mapping[str, Rows],
    graph_rows: Mapping[str, Rows],
    outputs: Sequence[str],
) -> Difference | None:
    """The first tensor or output of a program that is not the graph's, or None.

    `inputs` is what the host writes into each input and weight of the program; `graph_rows` and
    `outputs` are the expansion and the outputs of the graph that it was compiled from.
    """
    stored = tuple(slot.name for slot in program.slots("output"))
    if stored != tuple(outputs):
        reason = f"stores {', '.join(stored)}, expected {', '.join(outputs)}"
        return Difference("the external map", reason)
    return _SymbolicRun(program, dataflow, graph_rows).run(inputs)


class _SymbolicRun:
    def __init__(
        self, program: Program, dataflow: Dataflow, graph_rows: Mapping[str, Rows]
    ) -> None:
        chip = program.chip
        self._program = program
        self._dataflow = dataflow
        self._terms = dataflow.terms
        self._known = len(self._terms)
        self._rows = graph_rows
        self._memory = {
            Memory.EXTERNAL: np.full(chip.external_words, _NOTHING, np.int64),
            Memory.SCRATCHPAD: np.full(chip.scratchpad_words, _NOTHING, np.int64),
        }
        self._expected: dict[str, Int64Array] = {}

    def run(self, inputs: Mapping[str, Rows]) -> Difference | None:
        for slot in self._program.slots("input", "weight"):
            self._of(slot.region)[...] = self._dataflow.array(inputs[slot.name])
        due: dict[int, dict[str, Region]] = defaultdict(dict)
        for home in self._program.tensors.values():
            if home.name in self._rows:
                due[home.ready][home.name] = due[home.until][home.name] = home.region
        for index, inst in enumerate(self._program.instructions):
            self._terms.origin = f"instruction {index} ({inst})"
            for region in inst.reads():
                if (self._of(region) == _NOTHING).any():
                    what = f"reads a word of {region.memory} {region.base} .. {region.end - 1}"
                    return Difference(self._terms.origin, f"{what} that nobody wrote")
            _execute(inst, self._terms, *(self._of(r) for r in (*inst.reads(), *inst.writes())))
            for name, region in due[index].items():
                found = self._compare(name, region, f"{name} after instruction {index}")
                if found is not None:
                    return found
        for slot in self._program.slots("output"):
            found = self._compare(slot.name, slot.region, f"output {slot.name}")
            if found is not None:
                return found
        return None

    def _of(self, region: Region) -> Int64Array:
        return region.of(self._memory[region.memory])

    def _compare(self, name: str, region: Region, what: str) -> Difference | None:
        found, expected = self._of(region), self._expect(name)
        if found.shape == expected.shape and (found == expected).all():
            return None
        if found.shape != expected.shape:
            shapes = (
                f"{found.shape[0]} x {found.shape[1]}",
                f"{expected.shape[0]} x {expected.shape[1]}",
            )
            return Difference(what, f"is {shapes[0]} words, expected {shapes[1]}")
        row = int((found != expected).any(axis=1).argmax())
        if (found[row] == _NOTHING).any():
            return Difference(what, f"row {row} holds words that nobody wrote")
        left, right = (self._terms.vector(array[row]) for array in (found, expected))
        difference = explain(self._terms, left, right, self._known)
        reason = f"row {row}: {difference.operation}: {difference.reason}"
        return Difference(what, reason)

    def _expect(self, name: str) -> Int64Array:
        if name not in self._expected:
            self._expected[name] = self._dataflow.array(self._rows[name])
        return self._expected[name]


def _execute(inst: Instruction, terms: Terms, *places: Int64Array) -> None:
    """One instruction on the words that it reads and then those that it writes."""
    source, target = places[0] if places else None, places[-1] if places else None
    if inst.mnemonic == "HALT":
        return
    assert source is not None and target is not None
    match inst.mnemonic:
        case "LD" | "ST":
            target[...] = source
        case "MM":  # a program's MM never writes what it reads
            right = terms.bytes_of(places[1])
            columns = [terms.vector(c) for c in (right if inst["t"] else right.T)]
            accumulates = inst["acc"]
            for i, left in enumerate(terms.bytes_of(source)):
                row = terms.vector(left)
                for j, column in enumerate(columns):
                    onto = int(target[i, j]) if accumulates else None
                    target[i, j] = terms.dot(row, column, onto)
        case "RQ":
            multiplier, shift = inst["mul"], inst["sh"]
            words = [terms.rescale(t, multiplier, shift) for t in source.ravel().tolist()]
            if inst["relu"]:
                words = [terms.relu(t) for t in words]
            target[...] = np.reshape(words, target.shape)
        case "VADD":
            left, right = (terms.bytes_of(place)[0].tolist() for place in places[:2])
            target[0] = [terms.add(a, b) for a, b in zip(left, right, strict=True)]
        case "SM":
            row = terms.vector(terms.bytes_of(source)[0])
            target[0] = terms.softmax(row, inst["mul"], inst["sh"])
        case "AMAX":
            target[0, 0] = terms.argmax(terms.vector(source[0]))
        case other:
            raise AssertionError(f"{other} has no meaning on terms")
