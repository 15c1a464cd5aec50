"""Runs jobs on the RTL and reads back what they left: no Python while the bench runs."""

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast, get_args

import numpy as np
import numpy.typing as npt

from capra.cosim.jobs import Job, MemoryModel, Words, parse_memory, write_jobs
from capra.cosim.toolchain import Configuration, built
from capra.cosim.tools import as_cosim_error, ended, last_words, start, temporary_folder
from capra.errors import CosimError
from capra.isa.chip import Chip
from capra.isa.timing import Counters

Verdict = Literal["done", "hang", "illegal", "undefined"]
"""How a job ended: at HALT, by the watchdog, at an unknown opcode, or with x on an output."""

STANDARD_MEMORY: Final = MemoryModel()

_RESULT: Final = re.compile(
    rf"(\d+) ({'|'.join(get_args(Verdict))})" + r" (\d{1,10})" * 6, re.ASCII
)
"""A line of the bench's report: job, verdict, index, and the five counters."""

_POLL_SECONDS: Final = 0.1


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
    on_job: Callable[[], object] = lambda: None,
) -> Replay:
    """Run the jobs, one after the other, on one chip in one simulator.

    `seed` is that of the initial values in a configuration with random_initial; `coverage` takes
    the counts of a configuration with coverage; `on_job` is called after each job. Raises
    CosimError when the simulation breaks down; a hanging program is an Outcome, not an error.
    """
    for job in jobs:
        assert job.program.chip == configuration.chip
    command = built(configuration)
    simulator = configuration.simulator
    with (
        as_cosim_error(f"replay on {simulator}"),
        tempfile.TemporaryDirectory(prefix="capra-replay-", dir=temporary_folder()) as name,
    ):
        folder = Path(name)
        inputs, outputs = folder / "jobs", folder / "out"
        inputs.mkdir()
        outputs.mkdir()
        write_jobs(inputs, jobs, memory)
        # Verilator reads names up to a space, so that all of them are of this folder.
        arguments = [
            "+jobs=jobs", "+out=out", f"+stall={memory.stall_percent}", f"+seed={memory.seed}",
            f"+latency={memory.latency}",
        ]  # fmt: skip
        if configuration.random_initial:
            arguments += ["+verilator+rand+reset+2", f"+verilator+seed+{seed}"]
        kept = {option: path for option, path in (("wave", wave), ("coverage", coverage)) if path}
        arguments += [f"+{option}=new{path.suffix}" for option, path in kept.items()]
        begin = time.perf_counter()
        with start([*command, *arguments], folder) as process:
            log = _watched(process, outputs, len(jobs), on_job)
        seconds = time.perf_counter() - begin
        if process.returncode:
            raise CosimError(f"{simulator} {ended(process.returncode)}: {last_words(log)}")
        outcomes = _read_outcomes(outputs, jobs, log)
        for path in kept.values():
            shutil.move(folder / f"new{path.suffix}", path.resolve())
    return Replay(outcomes, seconds)


def _watched(
    process: "subprocess.Popen[str]", outputs: Path, jobs: int, on_job: Callable[[], object]
) -> str:
    """What a simulation printed, at its end; `on_job` is called for each job that it reports."""
    done = 0
    while True:
        try:
            log, _ = process.communicate(timeout=_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            log = None
        while done < jobs and (outputs / f"{done}.scratchpad.hex").exists():
            done += 1
            on_job()
        if log is not None:
            return log


def _read_outcomes(outputs: Path, jobs: Sequence[Job], log: str) -> tuple[Outcome, ...]:
    results = outputs / "results.txt"
    lines = results.read_text(errors="replace").splitlines() if results.exists() else []
    if len(lines) != len(jobs) + 1 or lines[-1] != "end":
        raise CosimError(
            f"the bench reported {len(lines)} lines, expected {len(jobs)} jobs and an end: "
            f"{last_words(log)}"
        )
    return tuple(
        _outcome(outputs, number, line, job.program.chip)
        for number, (line, job) in enumerate(zip(lines[:-1], jobs, strict=True))
    )


def _outcome(outputs: Path, number: int, line: str, chip: Chip) -> Outcome:
    found = _RESULT.fullmatch(line)
    if found is None or found[1] != str(number):
        raise CosimError(f"the bench reported {line!r}, expected defined numbers of job {number}")
    index, total, matrix, dma, vector, control = map(int, found.groups()[2:])
    counters = Counters(matrix=matrix, dma=dma, vector=vector, control=control)
    return Outcome(
        cast(Verdict, found[2]), index, total, counters,
        *_memory(outputs / f"{number}.external.hex", chip.external_words),
        *_memory(outputs / f"{number}.scratchpad.hex", chip.scratchpad_words),
    )  # fmt: skip


def _memory(path: Path, size: int) -> tuple[Words, npt.NDArray[np.bool_]]:
    """A memory as the bench left it."""
    try:
        return parse_memory(path.read_text(), size)
    except ValueError as error:
        raise CosimError(
            f"the bench wrote {path.name}, expected at most {size} words: {error}"
        ) from None
