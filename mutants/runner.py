"""Runs mutants: copies of the checkout, one change at a time, and the checks that should notice."""

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from mutants.mutant import Group, Mutant, MutantError, Outcome, Result

WORKERS: Final = 2
TIMEOUT_SECONDS: Final = 120
"""No check takes as long. A mutant that does is no evidence: a busy machine is slow, too."""

_NOT_COPIED: Final = (".git", ".venv", "build", "__pycache__", ".*_cache")
_FAILED: Final = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)
_BROKEN: Final = re.compile(r"(?:iverilog|verilator|yosys) ended with")

OnResult = Callable[[Result], None]


class BrokenMutantError(MutantError):
    """The checks could not run with this change."""


class Verdict(NamedTuple):
    """What the checks said: the first test that failed, or None when all passed."""

    failed: str | None
    seconds: float


class Copy:
    """A copy of the checkout in which checks run; bytecode goes to a directory of its own."""

    def __init__(self, checkout: Path, directory: Path) -> None:
        self._root = directory / "checkout"
        self._bytecode = directory / "bytecode"
        shutil.copytree(checkout, self._root, ignore=shutil.ignore_patterns(*_NOT_COPIED))

    @contextmanager
    def mutated(self, file: str, text: str) -> Iterator[None]:
        """The copy with one other text, until the block ends.

        The changed file is given a time of its own: Python takes bytecode for fresh when time and
        size are equal. Bytecode of a mutant is never written.
        """
        path = self._root / file
        before, status = path.read_bytes(), path.stat()
        path.write_text(text)
        os.utime(path, (0, 0))
        try:
            yield
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def run(self, checks: Sequence[str], keyword: str, *, healthy: bool = False) -> Verdict:
        """Run checks up to the first that fails.

        Raises BrokenMutantError when they cannot run: a check that does not exist, a source that
        cannot be imported or built, a crash of the interpreter, or no end.
        """
        begin = time.perf_counter()
        keywords = ["-k", keyword] if keyword else []
        done = self.pytest(["-x", "-rf", *keywords, *checks], healthy=healthy)
        seconds = time.perf_counter() - begin
        if done.returncode == 0:
            return Verdict(None, seconds)
        expect_to_run(done)
        failed = _FAILED.search(done.stdout)
        assert failed is not None
        return Verdict(failed[1], seconds)

    def pytest(
        self, arguments: Sequence[str], *, healthy: bool = False
    ) -> subprocess.CompletedProcess[str]:
        """Pytest in the copy; BrokenMutantError when it does not end."""
        command = [
            sys.executable, "-m", "pytest", "-q", "--tb=short", "-p", "no:cacheprovider",
            "-p", "no:xdist", *arguments,
        ]  # fmt: skip
        try:
            return subprocess.run(  # noqa: S603
                command, cwd=self._root, env=self._environment(healthy), capture_output=True,
                text=True, timeout=TIMEOUT_SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise BrokenMutantError(f"no end after {TIMEOUT_SECONDS} s") from None

    def _environment(self, healthy: bool) -> dict[str, str]:
        """Settings of the tests do not reach the checks, and a missing tool fails them."""
        ours = {key: value for key, value in os.environ.items() if not key.startswith("CAPRA_")}
        ours.pop("PYTHONDONTWRITEBYTECODE", None)
        ours |= {
            "CI": "1",
            "COLUMNS": "500",
            "PYTHONPATH": str(self._root / "src"),
            "PYTHONPYCACHEPREFIX": str(self._bytecode),
        }
        return ours if healthy else ours | {"PYTHONDONTWRITEBYTECODE": "1"}


def expect_to_run(done: subprocess.CompletedProcess[str]) -> None:
    """Raise BrokenMutantError unless pytest ran tests, of which some may have failed."""
    ran = done.returncode == 0 or (done.returncode == 1 and _FAILED.search(done.stdout))
    if not ran or _BROKEN.search(done.stdout):
        errors = [x for x in done.stdout.splitlines() if x.startswith(("E  ", "ERROR"))]
        tail = "\n".join([*errors, *done.stderr.splitlines()][:8])
        raise BrokenMutantError(
            f"pytest ended with {done.returncode}, expected tests to run:\n{tail}"
        )


class Runner:
    """Runs the mutants of a group in copies of a checkout, two at a time."""

    def __init__(self, checkout: Path, directory: Path, on_result: OnResult) -> None:
        self._on_result = on_result
        self._free: SimpleQueue[Copy] = SimpleQueue()
        for worker in range(WORKERS):
            self._free.put(Copy(checkout, directory / str(worker)))
        self._checkout = checkout
        self._lock = threading.Lock()
        self._full_passed: set[str] = set()

    def run(self, group: Group) -> list[Result]:
        """The results in the order of the group.

        Raises MutantError when a check fails on the healthy copy: then "caught" means nothing.
        """
        checks = list(dict.fromkeys(check for m in group.mutants for check in m.checks))
        halves = [half for half in (checks[::2], checks[1::2]) if half]
        with ThreadPoolExecutor(WORKERS) as pool:
            for _ in pool.map(lambda half: self._expect_healthy(group, half), halves):
                pass
            return list(pool.map(lambda mutant: self._judge(group, mutant), group.mutants))

    def _expect_healthy(self, group: Group, checks: Sequence[str]) -> None:
        with self._copy() as copy:
            failed = copy.run(checks, group.keyword, healthy=True).failed
        if failed is not None:
            raise MutantError(f"{failed} fails without any mutant, expected it to pass")

    def _judge(self, group: Group, mutant: Mutant) -> Result:
        argument, full, seconds, failed = mutant.argument, False, 0.0, None
        outcome: Outcome = "equivalent" if argument else "survived"
        try:
            failed, seconds = self._check_mutant(group, mutant, mutant.checks)
            if failed is None and group.full:
                self._expect_full_to_pass(group)
                failed, more = self._check_mutant(group, mutant, group.full)
                full, seconds = True, seconds + more
            if failed is not None:
                outcome = "caught"
        except BrokenMutantError as error:
            outcome, argument = "broken", str(error)
        result = Result(
            mutant.name, mutant.file, mutant.reason, outcome, failed, round(seconds, 1), full,
            argument,
        )  # fmt: skip
        self._on_result(result)
        return result

    def _expect_full_to_pass(self, group: Group) -> None:
        with self._lock:
            if group.name not in self._full_passed:
                self._expect_healthy(group, group.full)
                self._full_passed.add(group.name)

    def _check_mutant(self, group: Group, mutant: Mutant, checks: Sequence[str]) -> Verdict:
        text = mutant.applied(self._checkout)
        with self._copy() as copy, copy.mutated(mutant.file, text):
            return copy.run(checks, group.keyword)

    @contextmanager
    def _copy(self) -> Iterator[Copy]:
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)


def run_groups(
    groups: Sequence[Group], checkout: Path, on_result: OnResult = lambda _result: None
) -> Iterator[tuple[Group, list[Result], float]]:
    """Each group with its results and the seconds that it took."""
    with TemporaryDirectory(prefix="mutants-") as directory:
        runner = Runner(checkout, Path(directory), on_result)
        for group in groups:
            begin = time.perf_counter()
            results = runner.run(group)
            yield group, results, time.perf_counter() - begin
