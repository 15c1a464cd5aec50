"""Runs jobs on the RTL and reads back what they left: no Python while the bench runs."""

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from capra.cosim.jobs import Job, MemoryModel, Words, parse_memory, write_jobs
from capra.cosim.toolchain import Configuration, built
from capra.errors import CosimError
from capra.isa.chip import Chip
from capra.isa.timing import Counters

Verdict = Literal["done", "hang", "illegal", "undefined"]
"""How a job ended: at HALT, by the watchdog, at an unknown opcode, or with x on an output."""

STANDARD_MEMORY: Final = MemoryModel()


@dataclass(frozen=True)
class Outcome:
    """What one job left on the chip."""

    verdict: Verdict
    index: int
    """The instruction at which it stopped, or was when the watchdog ended it."""
    total: int
    counters: Counters
    """The four unit counters; `total` is the chip's own fifth one."""
    external: Words
    external_known: npt.NDArray[np.bool_]
    scratchpad: Words
    scratchpad_known: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Replay:
    """The outcomes of a list of jobs, and the wall time of the simulation."""

    outcomes: tuple[Outcome, ...]
    seconds: float

    @property
    def cycles(self) -> int:
        """Chip cycles of all jobs."""
        return sum(outcome.total for outcome in self.outcomes)


def replay(
    configuration: Configuration,
    jobs: Sequence[Job],
    memory: MemoryModel = STANDARD_MEMORY,
    *,
    seed: int = 1,
    wave: Path | None = None,
    coverage: Path | None = None,
) -> Replay:
    """Run the jobs, one after the other, on one chip in one simulator.

    `seed` is that of the initial values in a configuration with random_initial; `coverage` takes
    the counts of a configuration with coverage. Raises CosimError when the simulation breaks down;
    a hanging program is an Outcome, not an error.
    """
    for job in jobs:
        assert job.program.chip == configuration.chip
    command = built(configuration)
    with tempfile.TemporaryDirectory(prefix="capra-replay-") as name:
        inputs, outputs = Path(name) / "jobs", Path(name) / "out"
        inputs.mkdir()
        outputs.mkdir()
        write_jobs(inputs, jobs, memory)
        arguments = [
            f"+jobs={inputs}", f"+out={outputs}", f"+stall={memory.stall_percent}",
            f"+seed={memory.seed}", f"+latency={memory.latency}",
        ]  # fmt: skip
        if configuration.random_initial:
            arguments += ["+verilator+rand+reset+2", f"+verilator+seed+{seed}"]
        if wave is not None:
            arguments.append(f"+wave={wave}")
        if coverage is not None:
            arguments.append(f"+coverage={coverage}")
        start = time.perf_counter()
        done = subprocess.run(  # noqa: S603
            [*command, *arguments], capture_output=True, text=True, check=False
        )
        seconds = time.perf_counter() - start
        if done.returncode:
            raise CosimError(
                f"{configuration.simulator} ended with {done.returncode}: "
                f"{(done.stdout + done.stderr)[-2000:]}"
            )
        outcomes = _read_outcomes(outputs, jobs, done.stdout + done.stderr)
    return Replay(outcomes, seconds)


def _read_outcomes(outputs: Path, jobs: Sequence[Job], log: str) -> tuple[Outcome, ...]:
    results = outputs / "results.txt"
    lines = results.read_text().splitlines() if results.exists() else []
    if len(lines) != len(jobs) + 1 or lines[-1] != "end":
        raise CosimError(
            f"the bench reported {len(lines)} lines, expected {len(jobs)} jobs and an end: "
            f"{log[-2000:]}"
        )
    return tuple(
        _outcome(outputs, number, line, job.program.chip)
        for number, (line, job) in enumerate(zip(lines[:-1], jobs, strict=True))
    )


def _outcome(outputs: Path, number: int, line: str, chip: Chip) -> Outcome:
    job, verdict, *values = line.split()
    if job != str(number) or verdict not in get_args(Verdict) or not "".join(values).isdigit():
        raise CosimError(f"the bench reported {line!r}, expected defined numbers of job {number}")
    index, total, matrix, dma, vector, control = map(int, values)
    external = (outputs / f"{number}.external.hex").read_text()
    scratchpad = (outputs / f"{number}.scratchpad.hex").read_text()
    counters = Counters(matrix=matrix, dma=dma, vector=vector, control=control)
    return Outcome(
        cast(Verdict, verdict), index, total, counters,
        *parse_memory(external, chip.external_words),
        *parse_memory(scratchpad, chip.scratchpad_words),
    )  # fmt: skip
