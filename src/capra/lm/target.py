"""Targets: a language model that extends a text by one pass over a block of tokens.

A session holds the cache of one text. `forward` runs a block and appends its rows; `truncate` drops
rows again. What a target chooses after a row depends only on the tokens up to that row.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from capra.compiler.pipeline import compile_graph
from capra.isa.program import Program
from capra.isa.timing import Counters
from capra.lm.graphs import cache_names, prefill_graph, step_graph, verifier_graph
from capra.lm.model import LanguageModel
from capra.lm.reference import block_logits
from capra.numerics import FloatArray, Int64Array, quantize
from capra.sim.device import Device, Execution, SimulatedDevice

PREFILL_ROWS: Final = 16
"""Prompt rows of one prefill program."""

CACHED_INSTRUCTIONS: Final = 200_000
"""Compiled programs are kept up to this many instructions in all."""

Role = Literal["step", "verify", "prefill", "draft"]


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """One executed program: what it was for, its shape, and what it cost."""

    role: Role
    rows: int
    cache: int
    counters: Counters


@dataclass(frozen=True, slots=True)
class Forward:
    """The target's own choice after each row of a block, and the programs that it took."""

    choices: tuple[int, ...]
    logits: FloatArray
    """(rows, vocabulary); integers on the chip, real numbers in float."""
    runs: tuple[ProgramRun, ...] = ()


class ChipTarget:
    """A model on a device: programs compiled per shape from the model's one Ranges value."""

    def __init__(self, model: LanguageModel, device: Device | None = None) -> None:
        self.model = model
        self.vocab_size = model.config.vocab_size
        self.max_context = model.config.context
        self.device: Device = device or SimulatedDevice(model.config.chip)
        self._programs: OrderedDict[tuple[Role, int, int], Program] = OrderedDict()
        self._weights: dict[str, Int64Array] = {}

    def session(self) -> "ChipSession":
        """A new text, with an empty cache."""
        return ChipSession(self)

    def program(self, role: Role, rows: int, cache: int) -> Program:
        """The compiled program of a shape; CapacityError if it does not fit the chip."""
        key = (role, rows, cache)
        program = self._programs.pop(key, None)
        if program is None:
            config = self.model.config
            if role == "step":
                graph = step_graph(config, cache)
            else:
                graph = (prefill_graph if role == "prefill" else verifier_graph)(
                    config, rows, cache
                )
            program = compile_graph(graph, self.model.ranges, config.chip)
        self._programs[key] = program
        while sum(len(p.instructions) for p in self._programs.values()) > CACHED_INSTRUCTIONS:
            if len(self._programs) == 1:
                break
            self._programs.popitem(last=False)
        return program

    def execute(self, program: Program, rows: FloatArray, cache: "KeyValueCache") -> Execution:
        """Run a program on float rows and a cache, with the model's weights."""
        feeds: dict[str, Int64Array] = {}
        for slot in program.slots("input", "weight"):
            if slot.name == "x":
                assert slot.scale is not None
                feeds["x"] = quantize(rows, slot.scale)
            elif slot.kind == "input":
                feeds[slot.name] = cache.rows(slot.name.removesuffix(".cache"), slot.rows)
            else:
                if slot.name not in self._weights:
                    assert slot.scale is not None
                    self._weights[slot.name] = quantize(self.model.weights[slot.name], slot.scale)
                feeds[slot.name] = self._weights[slot.name]
        return self.device.execute(program, feeds)


class KeyValueCache:
    """The integer keys and values of every layer, up to the context limit."""

    def __init__(self, model: LanguageModel) -> None:
        shape = (model.config.context, model.config.width)
        self._tensors = {name: np.zeros(shape, np.int64) for name in cache_names(model.config)}

    def rows(self, name: str, count: int) -> Int64Array:
        """The first `count` rows of a cached tensor."""
        return self._tensors[name][:count]

    def write(self, start: int, execution: Execution) -> None:
        """Store the new rows of every tensor from row `start` on."""
        for name, tensor in self._tensors.items():
            new = execution.outputs[name]
            tensor[start : start + len(new)] = new


class ChipSession:
    """One text on the chip."""

    def __init__(self, target: ChipTarget) -> None:
        self._target = target
        self._cache = KeyValueCache(target.model)
        self.length = 0

    def prefill(self, tokens: Sequence[int]) -> tuple[ProgramRun, ...]:
        """Append prompt tokens whose next tokens nobody asks for."""
        runs: list[ProgramRun] = []
        for start in range(0, len(tokens), PREFILL_ROWS):
            run, _ = self._run("prefill", tokens[start : start + PREFILL_ROWS])
            runs.append(run)
        return tuple(runs)

    def forward(self, tokens: Sequence[int]) -> Forward:
        """Append a block and return the choice after each of its rows."""
        run, execution = self._run("step" if len(tokens) == 1 else "verify", tokens)
        choices = tuple(execution.outputs["token"][:, 0].tolist())
        return Forward(choices, execution.outputs["logits"].astype(np.float64), (run,))

    def truncate(self, length: int) -> None:
        """Keep the first `length` rows of the cache."""
        assert 0 <= length <= self.length
        self.length = length

    def _run(self, role: Role, tokens: Sequence[int]) -> tuple[ProgramRun, Execution]:
        target, start = self._target, self.length
        rows = target.model.embed(tokens, start)
        program = target.program(role, len(tokens), start)
        execution = target.execute(program, rows, self._cache)
        self._cache.write(start, execution)
        self.length += len(tokens)
        return ProgramRun(role, len(tokens), start, execution.counters), execution


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
    """One text in float; every block is computed with the whole text before it."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._tokens: list[int] = []

    @property
    def length(self) -> int:
        """Rows in the cache."""
        return len(self._tokens)

    def prefill(self, tokens: Sequence[int]) -> tuple[ProgramRun, ...]:
        """Append prompt tokens."""
        self._tokens += tokens
        return ()

    def forward(self, tokens: Sequence[int]) -> Forward:
        """Append a block and return the choice after each of its rows."""
        self._tokens += tokens
        logits = block_logits(self._model, self._tokens)[-len(tokens) :]
        return Forward(tuple(logits.argmax(axis=1).tolist()), logits)

    def truncate(self, length: int) -> None:
        """Keep the first `length` tokens."""
        assert 0 <= length <= self.length
        del self._tokens[length:]
