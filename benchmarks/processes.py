"""Measures a command as a process of its own, so that start-up and peak memory count.

Seconds are the minimum of the repeats: a machine has other things to do, and nothing makes a run
too fast. A record carries every repeat.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.records import Record

REPEATS: Final = 3
PYTHON: Final = (sys.executable, "-m")


class MeasureError(Exception):
    """A measured command failed; the message has its last lines."""


def measure(
    command: Sequence[str],
    repeats: int = REPEATS,
    *,
    environment: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Record:
    """Process seconds (user and system), wall seconds and peak MiB of a command, each repeat.

    Raises MeasureError when it fails.
    """
    runs = [_run(command, environment, directory)[0] for _ in range(repeats)]
    return _summary(runs)


def measure_output(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None
) -> tuple[Record, Any]:
    """`measure` once, and the JSON that the command prints."""
    run, printed = _run(command, environment, None)
    return _summary([run]), json.loads(printed)


def _summary(runs: list[Record]) -> Record:
    best = {key: min(run[key] for run in runs) for key in ("process_seconds", "wall_seconds")}
    return {**best, "peak_mib": max(run["peak_mib"] for run in runs), "runs": runs}


def _run(
    command: Sequence[str], environment: Mapping[str, str] | None, directory: Path | None
) -> tuple[Record, str]:
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603
            command, stdout=output, stderr=errors, cwd=directory,
            env={**os.environ, **(environment or {})},
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        if process.returncode:
            tail = " | ".join(errors.read().splitlines()[-3:])
            raise MeasureError(f"{' '.join(command)} ended with {process.returncode}: {tail}")
        output.seek(0)
        run = {
            "process_seconds": usage.ru_utime + usage.ru_stime,
            "wall_seconds": wall,
            "peak_mib": usage.ru_maxrss / 1024,
        }
        return run, output.read()
