import os
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from capra.cosim.compare import difference, expected
from capra.cosim.jobs import Job, MemoryModel
from capra.cosim.replay import Replay, replay
from capra.cosim.toolchain import Configuration, Simulator, require
from capra.errors import CosimError

Check = Callable[..., Replay]

COVERAGE: Final = os.environ.get("CAPRA_COVERAGE")
"""A directory: everything that runs in Verilator leaves its line coverage there."""

_FILES: Final = count()


def _available(simulator: Simulator) -> Simulator:
    """The simulator; a missing one skips the test at home and fails it in CI."""
    try:
        require(simulator)
    except CosimError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    return simulator


@pytest.fixture(
    params=[Simulator.ICARUS, pytest.param(Simulator.VERILATOR, marks=pytest.mark.full)]
)
def simulator(request: pytest.FixtureRequest) -> Simulator:
    """Each simulator in turn; Verilator, with a bench to build per chip, in the full suite only."""
    return _available(Simulator(request.param))


@pytest.fixture(params=list(Simulator))
def each_simulator(request: pytest.FixtureRequest) -> Simulator:
    """Each simulator in turn, for tests on the chip that needs no bench of its own."""
    return _available(Simulator(request.param))


@pytest.fixture
def verilator() -> Simulator:
    return _available(Simulator.VERILATOR)


@pytest.fixture
def icarus() -> Simulator:
    return _available(Simulator.ICARUS)


def bench(
    simulator: Simulator,
    jobs: Sequence[Job],
    memory: MemoryModel | None = None,
    *,
    random_initial: bool = False,
    seed: int = 1,
) -> Replay:
    """Replays jobs in a simulator, and counts lines if asked to."""
    counted = COVERAGE is not None and simulator is Simulator.VERILATOR
    path = Path(COVERAGE) / f"{os.getpid()}-{next(_FILES)}.dat" if COVERAGE and counted else None
    configuration = Configuration(
        simulator, jobs[0].program.chip, random_initial=random_initial, coverage=counted
    )
    return replay(configuration, jobs, memory or MemoryModel(), seed=seed, coverage=path)


@pytest.fixture(scope="session")
def run() -> Check:
    """Replays jobs in a simulator, and leaves the comparison to the test."""
    return bench


@pytest.fixture(scope="session")
def check() -> Check:
    """Replays jobs in a simulator and fails on the first difference from Capra's own simulator."""

    def compare(
        simulator: Simulator,
        jobs: Sequence[Job],
        memory: MemoryModel | None = None,
        *,
        random_initial: bool = False,
        seed: int = 1,
    ) -> Replay:
        memory = memory or MemoryModel()
        result = bench(simulator, jobs, memory, random_initial=random_initial, seed=seed)
        for job, outcome in zip(jobs, result.outcomes, strict=True):
            found = difference(job, expected(job), outcome, any_dma=memory != MemoryModel())
            assert found is None, f"{simulator}: {found}"
        return result

    return compare
