"""The certificate of a model: each row of every program is the plain step's at its position.

By induction over positions. A step at position p defines, for every layer, what row p of the cache
is: a function of the row that the host feeds and of the cache rows before p. A block of m rows
after c others is right if its row i makes the keys and values that the step at c + i makes, from
rows which are those of the steps before it, and the same logits and token. In the expansion a row
of keys or values, once compared, is therefore replaced by the cache row that it becomes.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, NoReturn

from capra.certify.dataflow import Cut, Dataflow, Rows
from capra.certify.explain import Difference, explain
from capra.certify.instructions import check_instructions
from capra.certify.terms import Terms
from capra.errors import InputError
from capra.ir.graph import Graph, Kind, Node
from capra.ir.scales import Scales
from capra.isa.program import Program, SlotKind
from capra.isa.spec import ARRAY_SIZE
from capra.lm.graphs import CACHE_SUFFIX, cache_names
from capra.lm.model import ModelConfig
from capra.lm.target import PREFILL_ROWS, ChipTarget, Role

_CHOICE: Final = ("logits", "token")

Covered = Literal["none", "some caches", "all caches"]
"""Which blocks have a program that is certified too, beside their graph."""


@dataclass(frozen=True)
class Subject:
    """What is certified: where graph, scales and program of a role, rows and cache come from."""

    config: ModelConfig
    graph: Callable[[Role, int, int], Graph]
    scales: Callable[[Graph], Scales]
    program: Callable[[Role, int, int], Program]

    @classmethod
    def of(cls, target: ChipTarget) -> "Subject":
        """A target itself: what it runs is what is certified."""
        return cls(target.model.config, target.graph, target.scales, target.program)


@dataclass(frozen=True, slots=True)
class Failure:
    """The first shape that could not be certified, and why."""

    program: str
    row: int | None
    """Row of the block; None where it is not a matter of one row."""
    tensor: str
    operation: str
    reason: str

    def __str__(self) -> str:
        where = self.tensor if self.row is None else f"row {self.row} of {self.tensor}"
        return f"{self.program}: {where} differs, first at {self.operation}: {self.reason}"


@dataclass
class Certificate:
    """What was certified so far."""

    graphs: dict[Role, int] = field(default_factory=dict)
    """Graphs whose every row is the step's, by role."""
    programs: dict[Role, int] = field(default_factory=dict)
    """Programs whose instructions are their graph, by role."""
    programs_covered: Covered = "none"
    """Whether the programs of blocks are part of it: at no cache, at some, or at all."""
    program_caches: tuple[int, ...] = ()
    """Caches of the blocks whose programs were to be certified."""
    terms: int = 0
    digest: str = ""
    """Of the terms of the steps at every position that a session reaches; alike on any machine."""
    failure: Failure | None = None

    def record(self) -> dict[str, Any]:
        """certified, counts by role, which programs, terms, digest, the failure or None."""
        return {
            "certified": self.failure is None,
            "programs_covered": self.programs_covered,
            "graphs": dict(self.graphs),
            "programs": dict(self.programs),
            "program_caches": list(self.program_caches),
            "terms": self.terms,
            "digest": self.digest,
            "failure": None if self.failure is None else asdict(self.failure),
        }


def certify(
    subject: Subject,
    max_context: int,
    max_rows: int,
    *,
    instruction_caches: int = 0,
    on_shape: Callable[[int], None] = lambda _total: None,
) -> Certificate:
    """Certify every cache of 0 .. max_context rows with every block of 1 .. max_rows rows.

    Prefills are certified up to the rows that a session gives them. With `instruction_caches`, the
    programs too: for every block at so many caches, spread evenly over those at which it fits the
    context, with the last cache of each remainder modulo the array's size that these leave out,
    and for the steps at the positions of its rows. Nothing is executed and no weight is
    read. Stops at the first failure. `on_shape` is called after each graph or program with the
    number there will be. Raises InputError for ranges outside the model's context, and what the
    compiler raises for a program that does not fit its chip.
    """
    context = subject.config.context
    for what, value, low in (("context", max_context, 0), ("number of rows", max_rows, 1)):
        if not low <= value <= context:
            raise InputError(
                f"the largest {what} is {value}, expected {low} .. {context}, the context of "
                f"{subject.config.name}"
            )
    return _Certifier(subject, max_context, max_rows, instruction_caches, on_shape).run()


class _Failed(Exception):  # noqa: N818  (a way out, not an error)
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class _Certifier:
    def __init__(
        self,
        subject: Subject,
        max_context: int,
        max_rows: int,
        instruction_caches: int,
        on_shape: Callable[[int], None],
    ) -> None:
        self._subject, context = subject, subject.config.context
        prefill_rows = min(PREFILL_ROWS, context)
        blocks: list[tuple[Role, int]] = [("verify", rows) for rows in range(1, max_rows + 1)]
        blocks += [("prefill", rows) for rows in range(1, prefill_rows + 1)]
        self._shapes = [
            (role, rows, cache) for role, rows in blocks for cache in range(max_context + 1)
        ]
        self._positions = range(max_context + max(max_rows, prefill_rows))
        self._reached = min(max_context + max_rows, context)
        self._programs: list[tuple[Role, int, int]] = [
            (role, rows, cache)
            for role, rows in blocks
            for cache in _spread(instruction_caches, min(max_context, context - rows))
        ]
        caches = sorted({cache for _, _, cache in self._programs})
        fitting = sum(rows + cache <= context for _, rows, cache in self._shapes)
        covered: Covered = "all caches" if len(self._programs) == fitting else "some caches"
        steps = sorted({cache + row for _, rows, cache in self._programs for row in range(rows)})
        self._programs[:0] = [("step", 1, position) for position in steps]
        total = len(self._positions) + len(self._shapes) + len(self._programs)
        self._on_shape: Callable[[], None] = lambda: on_shape(total)
        self._dataflow = Dataflow(Terms())
        self._steps: list[dict[str, Rows]] = []
        self._done = Certificate(
            programs_covered=covered if caches else "none", program_caches=tuple(caches)
        )

    def run(self) -> Certificate:
        try:
            self._certify_graphs()
            self._certify_programs()
        except _Failed as failed:
            self._done.failure = failed.failure
        self._done.terms = len(self._dataflow.terms)
        steps = self._steps[: self._reached]
        rows = (row for step in steps for tensor in step.values() for row in tensor)
        self._done.digest = self._dataflow.terms.digest(rows)
        return self._done

    # From rows of a block to steps

    def _certify_graphs(self) -> None:
        for position in self._positions:
            self._define_step(position)
        for shape in self._shapes:
            self._compare_with_steps(*shape)

    def _define_step(self, position: int) -> None:
        """Expand the step at a position: its rows are what blocks are compared with."""
        names, defined = cache_names(self._subject.config), dict[str, Rows]()

        def cut(node: Node, rows: Rows) -> Rows:
            if node.name not in names:
                return rows
            defined[node.name] = rows
            return self._cached(node, position, 1)

        graph = self._subject.graph("step", 1, position)
        self._check_ends(graph, names + _CHOICE, 1, position)
        values = self._expand(graph, position, cut)
        self._steps.append(defined | {name: values[name] for name in _CHOICE})
        self._count(self._done.graphs, "step")

    def _compare_with_steps(self, role: Role, rows: int, cache: int) -> None:
        names, known = cache_names(self._subject.config), len(self._dataflow.terms)
        graph = self._subject.graph(role, rows, cache)
        compared = names if role == "prefill" else names + _CHOICE
        self._check_ends(graph, compared, rows, cache)

        def compare(node: Node, found: Rows) -> Rows:
            if node.name not in compared:
                return found
            for index, row in enumerate(found):
                (expected,) = self._steps[cache + index][node.name]
                if row != expected:
                    difference = explain(self._dataflow.terms, row, expected, known)
                    self._fail(graph, index, node.name, difference)
            return self._cached(node, cache, rows) if node.name in names else found

        self._expand(graph, cache, compare)
        self._count(self._done.graphs, role)

    def _check_ends(self, graph: Graph, outputs: Sequence[str], rows: int, cache: int) -> None:
        """Fail where the host finds no such output, or other rows than it feeds and takes."""
        for name in outputs:
            if name not in graph.outputs:
                self._fail(
                    graph, None, name, Difference("the outputs", f"{name} is not among them")
                )
        inputs = [node.name for node in graph if node.kind is Kind.INPUT]
        for name in (*inputs, *outputs):
            expected = cache if name.endswith(CACHE_SUFFIX) else rows
            if graph[name].rows != expected:
                reason = f"has {graph[name].rows} rows, expected {expected}"
                self._fail(graph, None, name, Difference(name, reason))

    # From graphs to instructions

    def _certify_programs(self) -> None:
        for role, rows, cache in self._programs:
            graph, mark = self._subject.graph(role, rows, cache), self._dataflow.mark()
            values = self._expand(graph, cache, lambda _node, found: found)
            try:
                program = self._subject.program(role, rows, cache)
            except AssertionError as error:  # the compiler's own checks
                self._fail(graph, None, "the program", Difference("the compiler", str(error)))
            inputs = {
                slot.name: self._written(
                    slot.kind, slot.name, slot.rows, slot.cols, slot.scale, cache
                )
                for slot in program.slots("input", "weight")
            }
            difference = check_instructions(program, self._dataflow, inputs, values, graph.outputs)
            if difference is not None:
                self._fail(graph, None, "the program", difference)
            self._dataflow.forget_since(mark)
            self._count(self._done.programs, role)

    # What the host writes, and counts

    def _expand(self, graph: Graph, cache: int, cut: Cut) -> dict[str, Rows]:
        def leaf(node: Node, scale: float) -> Rows:
            kind: SlotKind = "weight" if node.kind is Kind.WEIGHT else "input"
            return self._written(kind, node.name, node.rows, node.cols, scale, cache)

        return self._dataflow.expand(graph, self._subject.scales(graph), leaf, cut)

    def _written(
        self, kind: SlotKind, name: str, rows: int, cols: int, scale: float | None, cache: int
    ) -> Rows:
        """What the host writes for an input or a weight, as `ChipTarget.run` does.

        The rows of x are the tokens after the cache. Keys and values need no scale: they go back as
        the integers that they were.
        """
        if name == "x":
            return self._dataflow.leaf(name, cache, rows, cols, scale)
        if kind == "weight":
            return self._dataflow.leaf(name, 0, rows, cols, scale)
        return self._dataflow.leaf(name.removesuffix(CACHE_SUFFIX), 0, rows, cols, None)

    def _cached(self, node: Node, start: int, count: int) -> Rows:
        return self._dataflow.leaf(node.name, start, count, node.cols, None)

    def _fail(self, graph: Graph, row: int | None, tensor: str, difference: Difference) -> NoReturn:
        raise _Failed(Failure(graph.name, row, tensor, difference.operation, difference.reason))

    def _count(self, counts: dict[Role, int], role: Role) -> None:
        counts[role] = counts.get(role, 0) + 1
        self._on_shape()


def _spread(count: int, last: int) -> list[int]:
    """`count` of 0 .. last, evenly spread, both ends from 2 on; then one of each missing remainder.

    Where a tile of the array ends depends on the remainder of the cache modulo its size, so caches
    of one remainder would leave faults in the others unseen. None for a count of 0.
    """
    if not count:
        return []
    count = min(count, last + 1)
    spread = {last} if count == 1 else {i * last // (count - 1) for i in range(count)}
    remainders = {cache % ARRAY_SIZE for cache in spread}
    tail = range(max(last - ARRAY_SIZE + 1, 0), last + 1)
    return sorted(spread | {cache for cache in tail if cache % ARRAY_SIZE not in remainders})
