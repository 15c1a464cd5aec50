"""Replays every program of a run on the RTL and reports what each simulator found.

The comparison is of all words of both memories and of all five counters, with what Capra's own
simulator held after the same program in the same run.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from threading import RLock
from typing import Any, Final, get_args

import numpy as np

from capra.cosim.compare import Expected, difference
from capra.cosim.jobs import Job
from capra.cosim.record import RecordingDevice
from capra.cosim.replay import Outcome, replay
from capra.cosim.toolchain import Configuration, Simulator, Wave, built, version
from capra.errors import InputError
from capra.files import check_writable
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.numerics import INT8_MAX

BATCH_WORDS: Final = 1 << 24
"""Jobs wait in memory up to this many words of images, about 64 MiB, and then run together."""

Progress = Callable[[str, int | None], AbstractContextManager[Callable[[], object]]]
"""Shows what is being done, and how much of it there is; what it gives is called for each one."""


def unseen(_what: str, _total: int | None) -> AbstractContextManager[Callable[[], object]]:
    """Progress that nobody watches."""
    return nullcontext(lambda: None)


@dataclass
class Findings:
    """What one simulator found so far."""

    programs: int = 0
    mismatches: int = 0
    cycles: int = 0
    wall_seconds: float = 0.0
    """Of the simulations alone: reading and writing the images counts, building does not."""
    first: str | None = None
    """The first mismatch as a sentence."""

    def add(self, found: str | None, outcome: Outcome) -> None:
        """Count one program, and its difference if there is one."""
        self.programs += 1
        self.cycles += outcome.total
        if found is not None:
            self.mismatches += 1
            self.first = self.first or found


class Verifier:
    """Replays what its devices execute, in batches, on some simulators.

    Every simulator is built when the first device is asked for, so a missing one raises CosimError
    before anything runs. Counts go up with every batch; `finish` runs the last one. `progress`
    hears of every build and of every program of a batch.
    """

    def __init__(
        self,
        simulators: Sequence[Simulator],
        wave: Path | None = None,
        progress: Progress = unseen,
    ) -> None:
        if wave is not None:
            _check_wave(wave, simulators)
        self.findings = {simulator: Findings() for simulator in simulators}
        self._wave = wave
        self._progress = progress
        self._batch: list[tuple[Job, Expected]] = []
        self._words = 0
        self._lock = RLock()  # devices of several threads may hand on at the same time

    def device(self, chip: Chip) -> RecordingDevice:
        """A simulated chip whose every execution will be replayed."""
        for simulator in self.findings:
            with self._progress(f"building the chip for {simulator}", None):
                built(self._configuration(simulator, chip))
        return RecordingDevice(chip, self.add)

    def add(self, job: Job, expected: Expected) -> None:
        """Take one execution; every word of it starts defined and is compared."""
        with self._lock:
            if self._batch and self._batch[0][0].program.chip != job.program.chip:
                self.finish()
            self._batch.append((replace(job, external_known=None), expected))
            self._words += 2 * (len(job.external) + len(expected.scratchpad))
            if self._words >= BATCH_WORDS:
                self.finish()

    def finish(self) -> None:
        """Replay and compare what was taken since the last batch."""
        with self._lock:
            batch, self._batch, self._words = self._batch, [], 0
            self._replay(batch)

    def _replay(self, batch: Sequence[tuple[Job, Expected]]) -> None:
        if not batch:
            return
        jobs = [job for job, _ in batch]
        for simulator, findings in self.findings.items():
            configuration = self._configuration(simulator, jobs[0].program.chip)
            with self._progress(f"programs on {simulator}", len(jobs)) as advance:
                result = replay(configuration, jobs, wave=self._wave, on_job=advance)
            findings.wall_seconds += result.seconds
            for (job, expected), outcome in zip(batch, result.outcomes, strict=True):
                findings.add(difference(job, expected, outcome), outcome)

    def _configuration(self, simulator: Simulator, chip: Chip) -> Configuration:
        wave: Wave | None = None
        if self._wave is not None:
            wave = "fst" if self._wave.suffix == ".fst" else "vcd"
        return Configuration(simulator, chip, wave)

    @property
    def first_mismatch(self) -> str | None:
        """The first mismatch of the first simulator that has one, with the simulator's name."""
        for simulator, findings in self.findings.items():
            if findings.first is not None:
                return f"{simulator}: {findings.first}"
        return None

    def record(self) -> dict[str, dict[str, Any]]:
        """Per simulator: programs, mismatches, cycles, wall_seconds, version."""
        return {
            simulator.value: {
                "programs": found.programs,
                "mismatches": found.mismatches,
                "cycles": found.cycles,
                "wall_seconds": found.wall_seconds,
                "version": version(simulator),
            }
            for simulator, found in self.findings.items()
        }


def replay_program(
    program: Program,
    simulators: Sequence[Simulator],
    seed: int = 1,
    wave: Path | None = None,
    progress: Progress = unseen,
) -> Verifier:
    """Run one program on the simulator and on each RTL simulator, on random data, and compare.

    Inputs and weights are int8 values -127 .. 127; every other word of both memories is any 32-bit
    word, which the program must not rely on. With `wave`, the only simulator writes a waveform.
    Raises InputError for a wave that cannot be written.
    """
    verifier = Verifier(simulators, wave, progress)
    chip, draw = program.chip, np.random.default_rng(seed)
    low, high = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    device = verifier.device(chip)
    device.fill(
        draw.integers(low, high, chip.external_words, endpoint=True),
        draw.integers(low, high, chip.scratchpad_words, endpoint=True),
    )
    device.execute(
        program,
        {
            slot.name: draw.integers(-INT8_MAX, INT8_MAX, (slot.rows, slot.cols), endpoint=True)
            for slot in program.slots("input", "weight")
        },
    )
    verifier.finish()
    return verifier


def _check_wave(wave: Path, simulators: Sequence[Simulator]) -> None:
    endings = [f".{format_}" for format_ in get_args(Wave)]
    if wave.suffix not in endings:
        raise InputError(f"waveform is {wave}, expected a file name that ends in .vcd or .fst")
    if len(simulators) != 1:
        raise InputError(
            f"a waveform of {' and '.join(simulators)} is asked for, expected a single simulator"
        )
    check_writable(wave)
