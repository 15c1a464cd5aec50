"""Keeps compiled benches: each is built once, used as long as it is whole, and built anew when not.

A build is a folder with the bench, its digest, written last, and the log. Whatever else is found
there (an empty or damaged bench, what a killed build left) is thrown away.
"""

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from capra.cosim.tools import as_cosim_error, ended, last_words, run, temporary_folder
from capra.errors import CosimError

BENCH: Final = "bench"
_DIGEST: Final = "bench.sha256"


def kept(
    command: Sequence[str], sources: Mapping[str, bytes], directory: Path, *, program: bool
) -> Path:
    """The bench in a build folder, compiled now unless it is there and whole.

    `command` compiles the sources, by name, in its working folder, and leaves the bench in `new`;
    with `program`, that is something to execute. Raises CosimError when it cannot be built.
    """
    bench = directory / BENCH
    if not _is_whole(bench, program):
        with as_cosim_error(f"build the testbench in {directory}"):
            directory.parent.mkdir(parents=True, exist_ok=True)
            # Two processes never build the same thing; the lock of a killed one is free.
            with directory.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not _is_whole(bench, program):
                    _build(command, sources, directory)
    return bench


def _is_whole(bench: Path, program: bool) -> bool:
    """Whether a bench is what was built."""
    try:
        digest = bench.with_name(_DIGEST).read_text()
        return digest == _digest(bench) and (not program or os.access(bench, os.X_OK))
    except (OSError, UnicodeDecodeError):
        return False


def _digest(bench: Path) -> str:
    return hashlib.sha256(bench.read_bytes()).hexdigest()


def _build(command: Sequence[str], sources: Mapping[str, bytes], directory: Path) -> None:
    if directory.is_dir() and not directory.is_symlink():
        shutil.rmtree(directory, ignore_errors=True)
    else:
        directory.unlink(missing_ok=True)
    directory.mkdir()
    log, new = directory / "build.log", directory / "new"
    with tempfile.TemporaryDirectory(prefix="capra-build-", dir=_roomy(directory)) as name:
        work = Path(name)
        for source, content in sources.items():
            (work / source).write_bytes(content)
        code, output = run(command, work)
        log.write_text(output)
        tool = command[0]
        if code:
            raise CosimError(f"{tool} {ended(code)}: {last_words(output)} (see {log})")
        if not (work / "new").is_file():
            raise CosimError(f"{tool} ended with 0 and left no testbench: {last_words(output)}")
        shutil.copy(work / "new", new)
    digest = new.with_name(f"{_DIGEST}.new")
    digest.write_text(_digest(new))
    new.rename(directory / BENCH)
    digest.rename(directory / _DIGEST)


def _roomy(directory: Path) -> Path:
    """Where to build: make cannot in a path with spaces, so that a checkout may have them."""
    spaces = re.search(r"\s", str(directory.resolve()))
    return temporary_folder() if spaces else directory
