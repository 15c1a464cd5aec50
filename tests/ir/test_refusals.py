"""Random constructions, legal and illegal: the builder refuses what an oracle calls illegal.

The oracle keeps a table of its own and says why a call is illegal, in the words that the message
must hold: the node, and the range or the shapes that were found.
"""

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest

from capra.errors import GraphError
from capra.ir.graph import MAX_DIMENSION, Graph
from capra.ir.text import print_graph

Verdict = tuple[str, tuple[str, ...]]
"""Why a call is illegal, and what its message must hold."""


@dataclass
class Oracle:
    """What the calls so far have built."""

    shapes: dict[str, tuple[int, int]] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    owner: dict[str, str] = field(default_factory=dict)
    outputs: set[str] = field(default_factory=set)

    def show(self, name: str) -> str:
        rows, cols = self.shapes[name]
        return f"{name} ({rows}x{cols})"

    def judge(
        self, kind: str, name: str, operands: list[str], numbers: list[int]
    ) -> Verdict | None:
        if kind == "output":
            if operands[0] not in self.shapes:
                return "unknown", (repr(operands[0]),)
            return ("output twice", (operands[0],)) if operands[0] in self.outputs else None
        for operand in operands:
            if operand not in self.shapes:
                return "unknown", (f"{name}:", repr(operand))
            if self.kinds[operand] == "argmax":
                return "indices", (f"{name}:", operand)
        shown = tuple(self.show(operand) for operand in operands)
        illegal = self._judge_shapes(kind, operands, numbers, shown)
        if illegal is not None:
            return illegal[0], (f"{name}:", *illegal[1])
        if name in self.shapes:
            return "name taken", (repr(name),)
        for size, axis in zip(
            self.shape_of(kind, operands, numbers), ("rows", "columns"), strict=True
        ):
            if not 1 <= size <= MAX_DIMENSION:
                return "size", (f"{name}:", f"{size} {axis}", f"1 .. {MAX_DIMENSION}")
        return None

    def _judge_shapes(
        self, kind: str, operands: list[str], numbers: list[int], shown: tuple[str, ...]
    ) -> Verdict | None:
        shapes = [self.shapes[operand] for operand in operands]
        cut = [operand for operand in operands if self.kinds[operand].startswith("slice")]
        match kind:
            case "matmul" if shapes[0][1] != shapes[1][0]:
                return "inner sizes", (*shown, f"{shapes[0][1]} and {shapes[1][0]}")
            case "matmul_t" | "scores" if shapes[0][1] != shapes[1][1]:
                return "inner sizes", (*shown, f"{shapes[0][1]} and {shapes[1][1]}")
            case "add" if shapes[0] != shapes[1]:
                return "unequal shapes", shown
            case "relu" if cut:
                return "relu of a slice", shown
            case "slice_rows" | "slice_cols":
                start, count = numbers
                size = shapes[0][kind == "slice_cols"]
                inside = set(range(start, start + count)) <= set(range(size))
                if count < 1 or not inside or start < 0:
                    return "range", (*shown, f"{start} .. {start + count - 1} ({count} of them)")
            case "concat_rows" | "concat_cols":
                if not operands:
                    return "nothing", ()
                side = kind == "concat_rows"
                for operand, shape in zip(operands, shapes, strict=True):  # the first is named
                    if shape[side] != shapes[0][side]:
                        return "parts do not match", (shown[0], self.show(operand))
                    if operand in cut:
                        return "part is a slice", (self.show(operand),)
                for i, operand in enumerate(operands):
                    if operand in self.owner or operand in operands[:i] + operands[i + 1 :]:
                        return "part of two", (self.show(operand), self.owner.get(operand, ""))
        return None

    def shape_of(self, kind: str, operands: list[str], numbers: list[int]) -> tuple[int, int]:
        shapes = [self.shapes[operand] for operand in operands]
        match kind:
            case "input" | "weight":
                return numbers[0], numbers[1]
            case "matmul":
                return shapes[0][0], shapes[1][1]
            case "matmul_t" | "scores":
                return shapes[0][0], shapes[1][0]
            case "slice_rows":
                return numbers[1], shapes[0][1]
            case "slice_cols":
                return shapes[0][0], numbers[1]
            case "concat_rows":
                return sum(shape[0] for shape in shapes), shapes[0][1]
            case "concat_cols":
                return shapes[0][0], sum(shape[1] for shape in shapes)
            case "argmax":
                return shapes[0][0], 1
        return shapes[0]

    def built(self, kind: str, name: str, operands: list[str], numbers: list[int]) -> None:
        if kind == "output":
            self.outputs.add(operands[0])
            return
        self.shapes[name] = self.shape_of(kind, operands, numbers)
        self.kinds[name] = kind
        if kind.startswith("concat"):
            self.owner.update(dict.fromkeys(operands, name))


OPERANDS = {
    "input": 0, "weight": 0, "matmul": 2, "matmul_t": 2, "scores": 2, "add": 2, "softmax": 1,
    "relu": 1, "argmax": 1, "slice_rows": 1, "slice_cols": 1, "concat_rows": 3, "concat_cols": 3,
    "output": 1,
}  # fmt: skip
REASONS = {
    "unknown", "indices", "inner sizes", "unequal shapes", "relu of a slice", "range", "nothing",
    "parts do not match", "part is a slice", "part of two", "name taken", "size", "output twice",
}  # fmt: skip


def call(graph: Graph, kind: str, name: str, operands: list[str], numbers: list[int]) -> None:
    if kind == "matmul_t":
        graph.matmul(name, *operands, transpose_b=True)
    elif kind.startswith("concat"):
        getattr(graph, kind)(name, operands)
    elif kind == "output":
        graph.output(*operands)
    else:
        getattr(graph, kind)(name, *operands, *numbers)


def random_call(
    draw: random.Random, oracle: Oracle, index: int
) -> tuple[str, str, list[str], list[int]]:
    """Small sides, so that they often match; now and then a name or a number that is wrong."""
    kind = draw.choice(list(OPERANDS))
    names = list(oracle.shapes)
    count = draw.randint(0, 3) if kind.startswith("concat") else OPERANDS[kind]
    operands = [
        draw.choice(names) if names and draw.random() < 0.97 else "nowhere" for _ in range(count)
    ]
    numbers: list[int] = []
    if kind in ("input", "weight"):
        numbers = [draw.choice((0, -1, 1, 2, 3, 3, MAX_DIMENSION, MAX_DIMENSION + 1)) for _ in "rc"]
    elif kind.startswith("slice"):
        numbers = [draw.randint(-1, 3), draw.randint(-1, 4)]
    name = draw.choice(names) if names and draw.random() < 0.05 else f"n{index}"
    return kind, name, operands, numbers


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_what_is_refused_is_what_the_oracle_calls_illegal(first: int) -> None:
    refused, built = Counter[str](), Counter[str]()
    for seed in range(first, first + 10):
        draw, graph, oracle = random.Random(seed), Graph("g"), Oracle()
        for index in range(150):
            attempt = random_call(draw, oracle, index)
            verdict, before = oracle.judge(*attempt), print_graph(graph)
            if verdict is None:
                call(graph, *attempt)
                oracle.built(*attempt)
                built[attempt[0]] += 1
                continue
            reason, fragments = verdict
            with pytest.raises(GraphError, match="expected") as caught:
                call(graph, *attempt)
            for fragment in fragments:
                assert fragment in str(caught.value), (seed, attempt, verdict)
            assert print_graph(graph) == before, "a refused call changes nothing"
            refused[reason] += 1
        assert {node.name: node.shape for node in graph} == oracle.shapes
        assert set(graph.outputs) == oracle.outputs
    assert set(refused) == REASONS
    assert set(built) == set(OPERANDS)
