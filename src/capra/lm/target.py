"""Targets: a language model that extends a text by one pass over a block of tokens.

A session holds the cache of one text. `forward` runs a block and appends its rows; `truncate` drops
rows again. What a target chooses after a row depends only on the tokens up to that row. Threads may
share a target, each with sessions of its own.
"""

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import RLock
from typing import Final, Literal

import numpy as np

from capra.compiler.optimization import O0, Optimization
from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import Room, compile_graph, find_room
from capra.errors import InputError
from capra.ir.graph import LEAVES, Graph
from capra.ir.interpreter import evaluate_int
from capra.ir.scales import Scales
from capra.isa.program import Program
from capra.isa.spec import Phase
from capra.isa.timing import Counters
from capra.lm.fit import RunShapes, check_run
from capra.lm.graphs import (
    CACHE_SUFFIX,
    cache_names,
    prefill_graph,
    step_graph,
    verifier_graph,
)
from capra.lm.model import LanguageModel, ModelConfig, check_token
from capra.lm.reference import block_logits
from capra.numerics import FloatArray, Int64Array, quantize
from capra.sim.device import Device, Execution, SimulatedDevice

PREFILL_ROWS: Final = 16
"""Prompt rows of one prefill program."""

CACHED_INSTRUCTIONS: Final = 400_000
"""Compiled programs are kept up to this many instructions in all (about 0.5 KiB each)."""

Role = Literal["step", "verify", "prefill", "draft"]


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One executed program: what it was for, its shape, and what it cost."""

    role: Role
    rows: int
    cache: int
    counters: Counters
    phases: Mapping[Phase, int] = field(default_factory=dict, compare=False)
    """What those cycles were spent on, where the device says so."""
    weight_words: int = 0
    """Words of weights that it loaded, one cycle each, where the device says so."""


def run_of(role: Role, rows: int, cache: int, execution: Execution) -> ProgramRun:
    """What an execution was for, and what it cost."""
    return ProgramRun(
        role, rows, cache, execution.counters, execution.phases, execution.weight_words
    )


@dataclass(frozen=True, slots=True)
class Forward:
    """The target's own choice after each row of a block, and the programs that it took."""

    choices: tuple[int, ...]
    logits: FloatArray
    """(rows, vocabulary); integers on the chip, real numbers in float."""
    runs: tuple[ProgramRun, ...] = ()


def model_graph(
    config: ModelConfig, role: Role, rows: int, cache: int, optimize: Optimization = O0
) -> Graph:
    """The graph of a role: a step has one row.

    With unread-outputs a verifier does not store the attention output, which no session reads.
    """
    if role == "step":
        return step_graph(config, cache)
    if role == "prefill":
        return prefill_graph(config, rows, cache)
    return verifier_graph(config, rows, cache, with_attention="unread-outputs" not in optimize)


class IntegerTarget(ABC):
    """A model in the chip's integers, whoever computes them."""

    def __init__(self, model: LanguageModel, optimize: Optimization = O0) -> None:
        self.model = model
        self.optimize = optimize
        self.vocab_size = model.config.vocab_size
        self.max_context = model.config.context
        self._weights: dict[str, Int64Array] = {}
        self._lock = RLock()  # of what sessions share: weights, and programs

    def session(self) -> "IntegerSession":
        """A new text, with an empty cache."""
        return IntegerSession(self)

    def graph(self, role: Role, rows: int, cache: int) -> Graph:
        """What is computed for a role."""
        return model_graph(self.model.config, role, rows, cache, self.optimize)

    def scales(self, graph: Graph) -> Scales:
        """The scales of such a graph: in every shape from the model's one Ranges value."""
        return assign_scales(graph, self.model.ranges)

    @abstractmethod
    def run(
        self, role: Role, rows: FloatArray, cached: int, cache: Mapping[str, Int64Array]
    ) -> Execution:
        """The outputs of a role on float rows and the first `cached` rows of the cache tensors."""

    def _leaves(
        self, leaves: Iterable[tuple[str, str, float | None]], rows: FloatArray, cached: int,
        cache: Mapping[str, Int64Array],
    ) -> dict[str, Int64Array]:  # fmt: skip
        """The integers of leaves given by name, kind and scale; a weight is quantized once."""
        values: dict[str, Int64Array] = {}
        for name, kind, scale in leaves:
            assert scale is not None, f"{name} is not int8"
            if kind == "weight":
                values[name] = self._weight(name, scale)
            elif name == "x":
                values[name] = quantize(rows, scale)
            else:
                values[name] = cache[name.removesuffix(CACHE_SUFFIX)][:cached]
        return values

    def _weight(self, name: str, scale: float) -> Int64Array:
        with self._lock:
            if name not in self._weights:
                self._weights[name] = quantize(self.model.weights[name], scale)
            return self._weights[name]


class ChipTarget(IntegerTarget):
    """A model on a device: programs compiled per shape from the model's one Ranges value."""

    def __init__(
        self, model: LanguageModel, device: Device | None = None, *, optimize: Optimization = O0
    ) -> None:
        super().__init__(model, optimize)
        self._device: Device = device or SimulatedDevice(model.config.chip)
        self._programs: OrderedDict[tuple[Role, int, int], Program] = OrderedDict()
        self._kept_instructions = 0
        self._fitting: set[RunShapes] = set()

    def program(self, role: Role, rows: int, cache: int) -> Program:
        """The compiled program of a shape; CapacityError if it does not fit the chip."""
        key = (role, rows, cache)
        with self._lock:
            program = self._programs.pop(key, None)
            if program is None:
                program = self._compile(role, rows, cache)
                self._kept_instructions += len(program.instructions)
                while self._programs and self._kept_instructions > CACHED_INSTRUCTIONS:
                    _, dropped = self._programs.popitem(last=False)
                    self._kept_instructions -= len(dropped.instructions)
            self._programs[key] = program
        return program

    def _compile(self, role: Role, rows: int, cache: int) -> Program:
        graph, chip = self.graph(role, rows, cache), self.model.config.chip
        return compile_graph(graph, self.model.ranges, chip, optimize=self.optimize)

    def room(self, role: Role, rows: int, cache: int) -> Room:
        """Which programs like that of a shape, but smaller, surely fit the chip."""
        graph, chip = self.graph(role, rows, cache), self.model.config.chip
        return find_room(graph, self.model.ranges, chip, self.optimize)

    def check_fit(
        self, prompt: int, new_tokens: int, speculative_tokens: int,
        *, shorten_last_block: bool = False,
    ) -> None:  # fmt: skip
        """Raise CapacityError unless every program that a run may need fits the chip."""
        if new_tokens > 0 and 0 < prompt <= self.max_context:
            shapes = RunShapes(
                prompt, new_tokens, speculative_tokens, self.max_context, PREFILL_ROWS,
                is_shortened=shorten_last_block,
            )  # fmt: skip
            if shapes not in self._fitting:
                check_run(self, shapes)
                self._fitting.add(shapes)

    def run(
        self, role: Role, rows: FloatArray, cached: int, cache: Mapping[str, Int64Array]
    ) -> Execution:
        """Run a program on float rows and the first `cached` rows of the cache tensors."""
        program = self.program(role, len(rows), cached)
        slots = ((slot.name, slot.kind, slot.scale) for slot in program.slots("input", "weight"))
        return self._device.execute(program, self._leaves(slots, rows, cached, cache))


class InterpretedTarget(IntegerTarget):
    """The same integers from the graph interpreter, with no programs and no cycles."""

    def run(
        self, role: Role, rows: FloatArray, cached: int, cache: Mapping[str, Int64Array]
    ) -> Execution:
        """Interpret the graph of a role on float rows and the first `cached` cached rows."""
        graph = self.graph(role, len(rows), cached)
        scales = self.scales(graph)
        nodes = ((n.name, n.kind, scales.scale[n.name]) for n in graph if n.kind in LEAVES)
        values = evaluate_int(graph, scales, self._leaves(nodes, rows, cached, cache))
        return Execution({name: values[name] for name in graph.outputs}, Counters())


class _Bounds:
    """What a session refuses before anything runs; a refused call leaves it as it was."""

    def __init__(self, model: LanguageModel) -> None:
        self._context = model.config.context
        self._vocab_size = model.config.vocab_size

    def block(self, tokens: Iterable[int], cached: int) -> list[int]:
        """The tokens as plain integers; InputError unless they may follow so many cached rows."""
        block = list(tokens)
        if cached + len(block) > self._context:
            raise InputError(
                f"{len(block)} rows after {cached} cached ones, expected at most "
                f"{self._context - cached}: the context has {self._context} rows"
            )
        for token in block:
            check_token("token", token, self._vocab_size)
        return [int(token) for token in block]

    def filled_block(self, tokens: Iterable[int], cached: int) -> list[int]:
        """The same of a block that has rows; InputError for an empty one."""
        found = self.block(tokens, cached)
        if not found:
            raise InputError("the block is empty, expected at least one token")
        return found

    def check_kept(self, length: int, cached: int) -> None:
        """Raise InputError unless so many of the cached rows can be kept."""
        if not (isinstance(length, int | np.integer) and 0 <= length <= cached):
            raise InputError(f"{length} rows to be kept, expected 0 .. {cached}, those cached")


class IntegerSession:
    """One text as integers: the cached keys and values of every layer, up to the context.

    A call that raises leaves the session as it was.
    """

    def __init__(self, target: IntegerTarget) -> None:
        config = target.model.config
        self._target = target
        self._bounds = _Bounds(target.model)
        self._cache: dict[str, Int64Array] = {
            name: np.zeros((config.context, config.width), np.int64) for name in cache_names(config)
        }
        self.length = 0

    def prefill(self, tokens: Iterable[int]) -> tuple[ProgramRun, ...]:
        """Append prompt tokens whose next tokens nobody asks for, 16 rows a program.

        Raises InputError for rows beyond the context and tokens outside the vocabulary.
        """
        block = self._bounds.block(tokens, self.length)
        chunks = (block[i : i + PREFILL_ROWS] for i in range(0, len(block), PREFILL_ROWS))
        before = self.length
        try:
            return tuple(self._run("prefill", chunk)[0] for chunk in chunks)
        except BaseException:
            self.length = before
            raise

    def forward(self, tokens: Iterable[int]) -> Forward:
        """Append a block and return the choice after each of its rows.

        Raises InputError for a block that is empty or reaches beyond the context, and for tokens
        outside the vocabulary.
        """
        block = self._bounds.filled_block(tokens, self.length)
        run, execution = self._run("step" if len(block) == 1 else "verify", block)
        choices = tuple(execution.outputs["token"][:, 0].tolist())
        return Forward(choices, execution.outputs["logits"].astype(np.float64), (run,))

    def truncate(self, length: int) -> None:
        """Keep the first `length` rows of the cache. Raises InputError where there are fewer."""
        self._bounds.check_kept(length, self.length)
        self.length = length

    def cached(self, name: str) -> Int64Array:
        """A copy of the rows of one cached tensor, such as l0.k."""
        return self._cache[name][: self.length].copy()

    def _run(self, role: Role, tokens: Sequence[int]) -> tuple[ProgramRun, Execution]:
        start, end = self.length, self.length + len(tokens)
        rows = self._target.model.embed(tokens, start)
        execution = self._target.run(role, rows, start, self._cache)
        for name, tensor in self._cache.items():
            tensor[start:end] = execution.outputs[name]
        self.length = end
        return run_of(role, len(tokens), start, execution), execution


class FloatTarget:
    """The same model in float64, with no programs and no cycles."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.vocab_size = model.config.vocab_size
        self.max_context = model.config.context

    def session(self) -> "FloatSession":
        """A new text."""
        return FloatSession(self.model)


class FloatSession:
    """One text in float; every block is computed with the whole text before it.

    It refuses what an IntegerSession refuses.
    """

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._bounds = _Bounds(model)
        self._tokens: list[int] = []

    @property
    def length(self) -> int:
        """Rows in the cache."""
        return len(self._tokens)

    def prefill(self, tokens: Iterable[int]) -> tuple[ProgramRun, ...]:
        """Append prompt tokens."""
        self._tokens += self._bounds.block(tokens, self.length)
        return ()

    def forward(self, tokens: Iterable[int]) -> Forward:
        """Append a block and return the choice after each of its rows."""
        block = self._bounds.filled_block(tokens, self.length)
        text = [*self._tokens, *block]
        logits = block_logits(self._model, text)[-len(block) :]
        self._tokens = text
        return Forward(tuple(logits.argmax(axis=1).tolist()), logits)

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens. Raises InputError where there are fewer."""
        self._bounds.check_kept(length, self.length)
        del self._tokens[length:]
