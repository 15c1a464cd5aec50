"""Nothing depends on a word that is not the run's own: garbage in its place changes nothing."""

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import numpy as np
import pytest
from tests.lm.samples import MODELS
from tests.system.cases import Case
from tests.system.rows import (
    Steps,
    Watched,
    WatchedSession,
    assert_same_rows,
    cached_rows,
    take_steps,
)

from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.isa.timing import Counters
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram
from capra.lm.target import ChipTarget, FloatSession, IntegerSession, InterpretedTarget, ProgramRun
from capra.numerics import IntArray
from capra.sim.device import Execution, SimulatedDevice
from capra.spec_decode.decode import Decoded, decode
from capra.spec_decode.proposers import ChainProposer, Proposer, ScriptedProposer

WORD = np.iinfo(np.int32)
PROMPT = (0, 3, 1)
SCRIPT = (1, 0, None, 2)
K = 3


class _GarbageSession(WatchedSession):
    """Overwrites the rows behind the kept ones, which were rejected or never used."""

    overwritten = 0

    def truncate(self, length: int) -> None:
        super().truncate(length)
        assert isinstance(self.inner, IntegerSession)
        draw = np.random.default_rng(length)
        for tensor in self.inner._cache.values():
            free = tensor[length:]
            free[:] = draw.integers(-(1 << 40), 1 << 40, free.shape)
            self.overwritten += free.size


class _GarbageRows(Watched):
    """A target whose sessions keep no rejected row."""

    def watch(self, session: IntegerSession | FloatSession) -> WatchedSession:
        return _GarbageSession(session)


class _GarbageDevice(SimulatedDevice):
    """Before each program, every word of both memories that the host did not feed is garbage."""

    def __init__(self, chip: Chip) -> None:
        super().__init__(chip)
        self._draw = np.random.default_rng(8)
        self.programs = 0

    def _run(self, program: Program) -> Counters:
        machine, fed = self._machine, np.zeros(self._machine.chip.external_words, dtype=bool)
        for slot in program.slots("input", "weight"):
            fed[slot.address : slot.end] = True
        for memory, keep in ((machine.external, fed), (machine.scratchpad, None)):
            garbage = self._draw.integers(WORD.min, WORD.max, memory.shape, endpoint=True)
            memory[:] = garbage if keep is None else np.where(keep, memory, garbage)
        self.programs += 1
        return super()._run(program)


class _PoisonedDevice:
    """A new machine for each program, on which reading a word that nobody wrote is an error."""

    def __init__(self, chip: Chip) -> None:
        self._chip = chip
        self.programs = 0

    def execute(self, program: Program, feeds: Mapping[str, IntArray]) -> Execution:
        self.programs += 1
        return SimulatedDevice(self._chip, poison=True).execute(program, feeds)


@cache
def _steps(name: str) -> Steps:
    return take_steps(ChipTarget(MODELS[name]()), PROMPT, 20)


def _scripted(name: str) -> Proposer:
    return ScriptedProposer(_steps(name).text, MODELS[name]().config.vocab_size, SCRIPT)


def _checked(name: str, watched: Watched, proposer: Proposer) -> Decoded:
    run = decode(watched, PROMPT, 12, proposer=proposer, num_speculative_tokens=K)
    assert_same_rows(run, watched, _steps(name))
    return run


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("make", [ChipTarget, InterpretedTarget])
def test_rejected_and_free_cache_rows_do_not_matter(
    name: str, make: type[ChipTarget] | type[InterpretedTarget]
) -> None:
    watched = _GarbageRows(make(MODELS[name]()))
    run = _checked(name, watched, _scripted(name))
    assert any(block.accepted < len(block.proposed) for block in run.blocks)
    assert isinstance(watched.last, _GarbageSession) and watched.last.overwritten > 0


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("make", [_GarbageDevice, _PoisonedDevice])
def test_no_word_that_the_host_did_not_feed_matters(
    name: str, make: Callable[[Chip], _GarbageDevice | _PoisonedDevice]
) -> None:
    """Target and draft share the memories, the cache holds garbage as well."""
    model = MODELS[name]()
    device = make(model.config.chip)
    chain = ChainProposer(ChipBigram(load_bigram(model, 3.0, 1), model.config.chip, device))
    for proposer in (_scripted(name), chain):
        run = _checked(name, _GarbageRows(ChipTarget(model, device)), proposer)
        assert device.programs >= len(run.runs) > len(run.blocks)


FIRST = ((2, 0, 4, 4, 1, 3), (0, None))
SECOND = ((1, 5), (None, 2, 0))
SHARED = Case(seed=3, vocab_size=7, heads=2, hidden=5, layers=2, context=16, has_positions=True)


Told = tuple[tuple[int, ...], tuple[bytes, ...], tuple[ProgramRun, ...]]


def _told(target: ChipTarget, prompt: Sequence[int], script: Sequence[int | None]) -> Told:
    """Tokens, bytes of every row in the cache, and what every program was and cost."""
    watched = Watched(target)
    whole = (*prompt, *decode(target, prompt, 99).tokens)
    proposer = ScriptedProposer(whole, target.vocab_size, script)
    run = decode(watched, prompt, 9, proposer=proposer, num_speculative_tokens=K)
    logits = [row for row in watched.last.logits if row is not None]
    rows = [*logits, *cached_rows(target, watched.last.inner).values()]
    return run.tokens, tuple(row.tobytes() for row in rows), run.runs


def _alone(prompt: Sequence[int], script: Sequence[int | None]) -> Told:
    return _told(ChipTarget(SHARED.model()), prompt, script)


def test_a_second_prompt_gives_the_bytes_that_it_gives_alone_in_a_new_process() -> None:
    target = ChipTarget(SHARED.model())
    together = [_told(target, *FIRST), _told(target, *SECOND), _told(target, *FIRST)]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, context, max_tasks_per_child=1) as processes:
        alone = [processes.submit(_alone, *run) for run in (FIRST, SECOND)]
        first, second = (future.result() for future in alone)
    assert together == [first, second, first]
    assert first[0] != second[0]
