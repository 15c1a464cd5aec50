"""Measures a command as a process of its own, so that start-up and peak memory count.

Seconds are the minimum of the repeats: a machine has other things to do, and nothing makes a run
too fast. A record carries every repeat. Python may keep its bytecode, whatever the caller's shell
says: that is a cache on disk like numba's, which a first run fills.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.records import Record

REPEATS: Final = 5
PYTHON: Final = (sys.executable, "-m")
LAUNCH: Final = Path(__file__).with_name("launch.py")


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
    return summary(runs)


def measure_output(
    command: Sequence[str], *, environment: Mapping[str, str] | None = None
) -> tuple[Record, Any]:
    """`measure` once, and the JSON that the command prints."""
    run, printed = _run(command, environment, None)
    return summary([run]), json.loads(printed)


def summary(runs: Sequence[Record]) -> Record:
    """The least seconds, the most memory, and all runs."""
    best = {key: min(run[key] for run in runs) for key in ("process_seconds", "wall_seconds")}
    return {**best, "peak_mib": max(run["peak_mib"] for run in runs), "runs": [*runs]}


def _run(
    command: Sequence[str], environment: Mapping[str, str] | None, directory: Path | None
) -> tuple[Record, str]:
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "run.json"
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-I", "-S", str(LAUNCH), str(result), *command],
            capture_output=True, text=True, cwd=directory, check=False,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **(environment or {})},
        )  # fmt: skip
        if done.returncode:
            tail = " | ".join(done.stderr.splitlines()[-3:])
            raise MeasureError(f"{' '.join(command)} ended with {done.returncode}: {tail}")
        return json.loads(result.read_text()), done.stdout
