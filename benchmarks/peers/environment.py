"""The peers' own virtual environment, below build/, made once per list of versions."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from benchmarks.records import say

BUILD: Final = Path(__file__).parents[2] / "build" / "peers"
PYTHON: Final = BUILD / "venv" / "bin" / "python"
CONSTRAINTS: Final = Path(__file__).with_name("constraints.txt")

WANTED: Final = {"scalesim": "scalesim", "zigzag-dse": "zigzag-dse six"}
"""Each peer, and the packages that it takes to run it."""


def install(package: str) -> str | None:
    """Install a peer unless it is there; a sentence says why it cannot be."""
    stamp = BUILD / f"{package}.installed"
    wanted = CONSTRAINTS.read_text()
    if stamp.exists() and stamp.read_text() == wanted and PYTHON.exists():
        return None
    say(f"installing {package}")
    BUILD.mkdir(parents=True, exist_ok=True)
    pip = [str(PYTHON), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    commands = [[*pip, "-c", str(CONSTRAINTS), *WANTED[package].split()]]
    if not PYTHON.exists():
        commands.insert(0, [sys.executable, "-m", "venv", str(PYTHON.parents[1])])
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return f"{package} could not be installed: {last}"
    stamp.write_text(wanted)
    return None


def version(package: str) -> str:
    """The version of an installed package."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    command = [str(PYTHON), "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def fresh_directory(name: str) -> Path:
    """An empty directory for the files of one run."""
    directory = BUILD / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory
