"""Runs the programs of a hardware simulator, and says in one sentence why one of them failed."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from capra.errors import CosimError

_MAKE: Final = re.compile(r"(\S*/)?make(\[\d+\])?: ")
_NOISE: Final = re.compile(
    r"""\s*$                                              # nothing
    | \s*\d*\s*\|                                         # a quoted line of source
    | %Error:\ (Exiting|Command\ Failed|Cannot\ continue|make\ |.*\ Verilog\ \$stop)
    | Aborting\.\.\. | Archive\ ar\ | \s*:?\s*\.\.\.\     # Verilator's
    | I\ give\ up | \d+\ error\(s\)\ during | \s+Time:    # Icarus's
    """,
    re.VERBOSE,
)
"""Lines that only say that something failed, or where the tool was."""


def last_words(output: str) -> str:
    """The last line that says what went wrong; make's own line where it is the only one."""
    lines = [line.strip() for line in output.splitlines() if not _NOISE.match(line)]
    said = [line for line in lines if not _MAKE.match(line)]
    return (said or lines or ["it printed nothing"])[-1]


def ended(code: int) -> str:
    """How a program ended, from its return code: 'ended with 3', 'was ended by SIGKILL'."""
    if code >= 0:
        return f"ended with {code}"
    names = {number.value: number.name for number in signal.Signals}
    return f"was ended by {names.get(-code, f'signal {-code}')}"


@contextmanager
def as_cosim_error(doing: str) -> Iterator[None]:
    """Raise CosimError 'cannot DOING: REASON' for a full disk, a read-only folder and the like."""
    try:
        yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise CosimError(f"cannot {doing}: {where}{error.strerror}") from None


def temporary_folder() -> Path:
    """The folder for temporary files; CosimError when the machine has none that can be written."""
    with as_cosim_error("make a temporary file"):
        return Path(tempfile.gettempdir())


def start(command: Sequence[str], cwd: Path) -> "subprocess.Popen[str]":
    """Start a tool in a folder, both of its outputs as one text.

    Its temporary files go to the same folder, whatever TMPDIR says. Raises CosimError when it
    cannot be started.
    """
    here = dict.fromkeys(("TMPDIR", "TMP", "TEMP"), ".")
    # A make around us must not share its jobs, nor be counted.
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL")}
    program = Path(shutil.which(command[0]) or command[0]).absolute()  # PATH may be relative
    try:
        return subprocess.Popen(  # noqa: S603
            [str(program), *command[1:]], cwd=cwd, env=environment | here, encoding="utf-8",
            errors="replace", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )  # fmt: skip
    except OSError as error:
        where = f"{cwd}: " if error.filename == str(cwd) else ""
        raise CosimError(f"cannot start {command[0]}: {where}{error.strerror}") from None


def run(command: Sequence[str], cwd: Path) -> tuple[int, str]:
    """The return code of a tool and all that it printed."""
    with start(command, cwd) as process:
        output, _ = process.communicate()
    return process.returncode, output
