"""Several threads on one target, and on one device: the tokens and counters of runs alone."""

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import TypeVar

import pytest
from tests.lm.samples import text_model

from capra.compiler.optimization import O1
from capra.lm import target as target_module
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram
from capra.lm.target import ChipTarget, FloatTarget, InterpretedTarget
from capra.sim.device import SimulatedDevice
from capra.sim.machine import has_numba
from capra.spec_decode.decode import Decoded, Target, decode
from capra.spec_decode.proposers import ChainProposer, ConstantProposer, Proposer, RandomProposer

THREADS = 4
PROMPTS = ([0, 5, 2], [7], [3, 3, 9, 1, 4], [11, 10])
_Result = TypeVar("_Result")


@pytest.fixture(autouse=True)
def frequent_switches() -> Iterator[None]:
    """Threads take turns after microseconds, so that each is interrupted everywhere."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(params=["readable", "compiled"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What every simulated device executes with."""
    if request.param == "compiled" and not has_numba():
        pytest.skip("numba is not installed")
    monkeypatch.setenv("CAPRA_ENGINE", request.param)
    return str(request.param)


def together(*jobs: Callable[[], _Result]) -> list[_Result]:
    """The results of jobs that start at the same time, each in its own thread."""
    barrier = Barrier(len(jobs))

    def run(job: Callable[[], _Result]) -> _Result:
        barrier.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as pool:
        return list(pool.map(run, jobs))


def texts(target: Target, make: Callable[[int], Proposer]) -> list[Callable[[], Decoded]]:
    """A run for every thread, each of its own prompt and draft."""
    return [
        partial(decode, target, PROMPTS[i], 10, proposer=make(i), num_speculative_tokens=i % 3 + 1)
        for i in range(THREADS)
    ]


@pytest.mark.parametrize("draft", ["bigram", "constant", "random"])
def test_a_chip_target_and_its_drafts_are_shared(draft: str, engine: str) -> None:
    model = text_model()

    def runs() -> list[Callable[[], Decoded]]:
        device = SimulatedDevice(model.config.chip)
        bigram = ChipBigram(load_bigram(model), model.config.chip, device, optimize=O1)
        makers: dict[str, Callable[[int], Proposer]] = {
            "bigram": lambda _: ChainProposer(bigram),
            "constant": ConstantProposer,
            "random": lambda seed: RandomProposer(12, seed),
        }
        return texts(ChipTarget(model, device, optimize=O1), makers[draft])

    alone = [run() for run in runs()]
    for _ in range(3):
        assert together(*runs()) == alone


@pytest.mark.parametrize("kind", [InterpretedTarget, FloatTarget])
def test_a_target_without_programs_is_shared(kind: type[InterpretedTarget | FloatTarget]) -> None:
    alone = [run() for run in texts(kind(text_model()), ConstantProposer)]
    assert together(*texts(kind(text_model()), ConstantProposer)) == alone


def test_threads_that_need_a_shape_get_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where others are dropped for it."""
    target = ChipTarget(text_model())
    size = len(target.program("verify", 3, 9).instructions)
    made = together(*[partial(target.program, "verify", 3, 5)] * THREADS)
    assert all(program is made[0] for program in made)
    monkeypatch.setattr(target_module, "CACHED_INSTRUCTIONS", size)

    def all_shapes() -> list[int]:
        return [len(target.program("verify", 3, cache).instructions) for cache in range(10)]

    expected = all_shapes()
    assert together(*[all_shapes] * THREADS) == [expected] * THREADS
