"""The record of what the replays found, without any simulator."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from capra.cosim import verify
from capra.cosim.compare import Expected
from capra.cosim.jobs import Job
from capra.cosim.replay import Outcome, Replay
from capra.cosim.toolchain import Configuration, Simulator
from capra.cosim.verify import Verifier
from capra.isa.chip import Chip
from capra.isa.instruction import instruction
from capra.isa.program import Program, Slot
from capra.isa.timing import Counters
from capra.sim.machine import Machine

CODE = (
    instruction("LD", d=0, s=0, n=4), instruction("ST", d=8, s=0, n=4), instruction("HALT"),
)  # fmt: skip
SLOTS = (Slot("x", "input", 0, 1, 4, 0.1), Slot("y", "output", 8, 1, 4, 0.1))
SMALL, LARGE = (
    Program("copy", Chip(external_words=words, scratchpad_words=32), CODE, SLOTS)
    for words in (16, 64)
)


class FakeChip:
    """Stands for the RTL: runs the jobs on the simulator, with a counter off where asked."""

    def __init__(self) -> None:
        self.batches: list[list[Job]] = []
        self.wrong: set[int] = set()
        self._ran = 0

    def replay(
        self,
        _configuration: Configuration,
        jobs: list[Job],
        on_job: Callable[[], object],
        **_: Any,
    ) -> Replay:
        self.batches.append(jobs)
        for _job in jobs:
            on_job()
        return Replay(tuple(self._outcome(job) for job in jobs), 0.5)

    def _outcome(self, job: Job) -> Outcome:
        machine = Machine(job.program.chip)
        machine.external[:] = job.external
        assert job.scratchpad is not None
        machine.scratchpad[:] = job.scratchpad
        counters = machine.run(job.program)
        if self._ran in self.wrong:
            counters = replace(counters, dma=counters.dma + 1)
        self._ran += 1
        return Outcome(
            "done", 2, counters.total, counters, machine.external,
            np.ones(job.program.chip.external_words, bool), machine.scratchpad, np.ones(32, bool),
        )  # fmt: skip


@pytest.fixture
def chip(monkeypatch: pytest.MonkeyPatch) -> FakeChip:
    fake = FakeChip()
    monkeypatch.setattr(verify, "replay", fake.replay)
    monkeypatch.setattr(verify, "built", lambda _configuration: ())
    monkeypatch.setattr(verify, "version", lambda simulator: f"{simulator} 1.0")
    return fake


def run(verifier: Verifier, program: Program, times: int) -> None:
    device = verifier.device(program.chip)
    for value in range(times):
        feeds = {"x": np.full((1, 4), value)}
        assert device.execute(program, feeds).outputs["y"].tolist() == [[value] * 4]


def test_every_execution_is_replayed_from_the_memories_before_it(chip: FakeChip) -> None:
    verifier = Verifier([Simulator.ICARUS])
    run(verifier, SMALL, 3)
    verifier.finish()
    (jobs,) = chip.batches
    assert [job.external[:12].tolist() for job in jobs] == [
        [0] * 12, [1] * 4 + [0] * 8, [2] * 4 + [0] * 4 + [1] * 4
    ]  # fmt: skip
    assert [job.scratchpad[0] for job in jobs if job.scratchpad is not None] == [0, 0, 1]
    assert all(job.external_known is None for job in jobs), "every word is compared"
    assert verifier.record() == {
        "icarus": {"programs": 3, "mismatches": 0, "cycles": 3 * SMALL.cycles,
                   "wall_seconds": 0.5, "version": "icarus 1.0"}
    }  # fmt: skip
    assert verifier.first_mismatch is None
    verifier.finish()
    assert len(chip.batches) == 1, "nothing is left"


def test_mismatches_are_counted_and_the_first_is_kept(chip: FakeChip) -> None:
    chip.wrong = {4, 5}
    verifier = Verifier([Simulator.ICARUS, Simulator.VERILATOR])
    run(verifier, SMALL, 3)
    verifier.finish()
    assert [found["mismatches"] for found in verifier.record().values()] == [0, 2]
    dma = SMALL.counters.dma
    assert verifier.first_mismatch == (
        f"verilator: program copy: counter dma is {dma + 1}, expected {dma}"
    )


def test_batches_end_when_they_are_large_or_the_chip_is_another(
    chip: FakeChip, monkeypatch: pytest.MonkeyPatch
) -> None:
    verifier = Verifier([Simulator.ICARUS])
    run(verifier, SMALL, 2)
    run(verifier, LARGE, 1)
    assert [len(jobs) for jobs in chip.batches] == [2]
    monkeypatch.setattr(verify, "BATCH_WORDS", 2 * 2 * (64 + 32))
    run(verifier, LARGE, 2)
    assert [len(jobs) for jobs in chip.batches] == [2, 2]
    verifier.finish()
    assert [len(jobs) for jobs in chip.batches] == [2, 2, 1]


def test_builds_and_programs_are_told(chip: FakeChip) -> None:
    told: list[str] = []

    @contextmanager
    def progress(what: str, total: int | None) -> Iterator[Callable[[], None]]:
        told.append(f"{what}, {total}")
        yield lambda: told.append("one")

    verifier = Verifier([Simulator.ICARUS, Simulator.VERILATOR], progress=progress)
    run(verifier, SMALL, 2)
    assert told == [f"building the chip for {each}, None" for each in ("icarus", "verilator")]
    verifier.finish()
    assert told[2:] == ["programs on icarus, 2", "one", "one", "programs on verilator, 2", "one",
                        "one"]  # fmt: skip


def test_a_comparison_with_what_the_run_left(chip: FakeChip) -> None:
    verifier = Verifier([Simulator.ICARUS])
    words = np.zeros(16, np.int32)
    left = Expected(words.copy(), np.zeros(32, np.int32), Counters())
    verifier.add(Job(SMALL, words + 5, np.zeros(32, np.int32)), left)
    verifier.finish()
    assert verifier.first_mismatch is not None
    assert "is 00000005, expected 00000000" in verifier.first_mismatch
