"""Runs mutants: copies of the checkout, one change at a time, and the checks that should notice."""

import json
import os
import re
import shutil
import signal
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
TIMEOUT_SECONDS: Final = 300
"""No check takes as long. A mutant that does is no evidence: a busy machine is slow, too."""

_NOT_COPIED: Final = (".git", ".venv", "build", "__pycache__", ".*_cache")
_FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", re.MULTILINE)
"""A test that failed, or could not begin; a file that cannot be imported has no test's name."""
_BROKEN: Final = re.compile(r"(?:iverilog|verilator|yosys) ended with")

OnResult = Callable[[Result], None]


class BrokenMutantError(MutantError):
    """The checks could not run with this change."""


class Verdict(NamedTuple):
    """What the checks said: the first test that failed, or None when all passed."""

    failed: str | None
    seconds: float


class Done(NamedTuple):
    """How a run of pytest ended."""

    code: int | None
    """Pytest's return code, minus a signal, or None when there was no end."""
    stdout: str


class Copy:
    """A copy of the checkout in which checks run, and the process that runs them."""

    def __init__(self, checkout: Path, directory: Path) -> None:
        self._root = directory
        self._mutants = 0
        shutil.copytree(checkout, self._root, ignore=shutil.ignore_patterns(*_NOT_COPIED))
        self._server = subprocess.Popen(  # noqa: S603
            [sys.executable, "-P", str(Path(__file__).with_name("server.py"))],
            cwd=self._root, env=self._environment(), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def close(self) -> None:
        """End the process that runs the checks."""
        self._server.communicate()

    @contextmanager
    def mutated(self, file: str, text: str) -> Iterator[Path]:
        """The copy with one other text, until the block ends; yields the changed file.

        The changed file is given a time of its own: Python takes bytecode, and numba machine code,
        for fresh when time and size are equal. Bytecode of a mutant is never written.
        """
        path = self._root / file
        before, status = path.read_bytes(), path.stat()
        path.write_text(text)
        self._mutants += 1
        os.utime(path, (self._mutants, self._mutants))
        try:
            yield path
        finally:
            path.write_bytes(before)
            os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    def run(
        self,
        checks: Sequence[str],
        keyword: str,
        *,
        healthy: bool = False,
        processor_seconds: int | None = None,
    ) -> Verdict:
        """Run checks up to the first that fails; one that takes too much processor time has failed.

        Raises BrokenMutantError when they cannot run: a check that does not exist, a source that
        cannot be imported or built, a crash of the interpreter, or no end.
        """
        begin = time.perf_counter()
        keywords = ["-k", keyword] if keyword else []
        done = self.pytest(
            ["-x", "-rfE", *keywords, *checks], healthy=healthy, processor_seconds=processor_seconds
        )
        seconds = time.perf_counter() - begin
        if done.code == 0:
            return Verdict(None, seconds)
        if processor_seconds is not None and done.code in (-signal.SIGXCPU, -signal.SIGKILL):
            return Verdict(f"no end in {processor_seconds} s of processor time", seconds)
        expect_to_run(done)
        failed = _FAILED.search(done.stdout)
        assert failed is not None
        return Verdict(failed[1], seconds)

    def pytest(
        self,
        arguments: Sequence[str],
        *,
        healthy: bool = False,
        processor_seconds: int | None = None,
    ) -> Done:
        """Pytest in the copy; BrokenMutantError when it does not end.

        Assertions are taken as they are written: why one failed is nobody's question here.
        """
        options = [
            "-q",
            "-m",
            "",
            "--tb=short",
            "--assert=plain",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:xdist",
        ]
        request = {
            "arguments": [*options, *arguments],
            "bytecode": healthy,
            "seconds": TIMEOUT_SECONDS,
            "processor_seconds": processor_seconds,
        }
        assert self._server.stdin is not None and self._server.stdout is not None
        print(json.dumps(request), file=self._server.stdin, flush=True)
        done = Done(**json.loads(self._server.stdout.readline()))
        if done.code is None:
            raise BrokenMutantError(f"no end after {TIMEOUT_SECONDS} s")
        return done

    def _environment(self) -> dict[str, str]:
        """Settings of the tests do not reach the checks, and a missing tool fails them."""
        ours = {key: value for key, value in os.environ.items() if not key.startswith("CAPRA_")}
        ours.pop("PYTHONDONTWRITEBYTECODE", None)
        return ours | {
            "CI": "1",
            "CAPRA_ENGINE": "readable",  # numba would translate anew for every copy
            "COLUMNS": "500",
            "OPENBLAS_NUM_THREADS": "1",  # threads of a library do not survive a fork
            "PYTHONPATH": str(self._root / "src"),
        }


class Copies:
    """As many copies of a checkout as there are workers, each used by one of them at a time."""

    def __init__(self, checkout: Path, directory: Path) -> None:
        self._free: SimpleQueue[Copy] = SimpleQueue()
        for worker in range(WORKERS):
            self._free.put(Copy(checkout, directory / str(worker)))

    @contextmanager
    def one(self) -> Iterator[Copy]:
        """A copy that nobody else uses until the block ends."""
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)

    def close(self) -> None:
        """End what runs in them."""
        for _ in range(WORKERS):
            self._free.get().close()


@contextmanager
def copies_of(checkout: Path) -> Iterator[Copies]:
    """Copies in a temporary directory."""
    with TemporaryDirectory(prefix="mutants-") as directory:
        copies = Copies(checkout, Path(directory))
        try:
            yield copies
        finally:
            copies.close()


def expect_to_run(done: Done) -> None:
    """Raise BrokenMutantError unless pytest ran tests, of which some may have failed."""
    ran = done.code == 0 or (done.code == 1 and _FAILED.search(done.stdout))
    if not ran or _BROKEN.search(done.stdout):
        errors = [x for x in done.stdout.splitlines() if x.startswith(("E  ", "ERROR"))]
        tail = "\n".join(errors[:8] or done.stdout.splitlines()[-8:])
        raise BrokenMutantError(f"pytest ended with {done.code}, expected tests to run:\n{tail}")


class Runner:
    """Runs the mutants of a group in copies of a checkout, one in each at a time."""

    def __init__(self, checkout: Path, copies: Copies, on_result: OnResult) -> None:
        self._checkout = checkout
        self._copies = copies
        self._on_result = on_result
        self._lock = threading.Lock()
        self._full_passed: set[tuple[tuple[str, ...], str]] = set()

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
        """Within half of the processor time of a mutant: where time is evidence, it is ample."""
        half = None if group.processor_seconds is None else max(1, group.processor_seconds // 2)
        with self._copies.one() as copy:
            failed = copy.run(checks, group.keyword, healthy=True, processor_seconds=half).failed
        if failed is not None:
            raise MutantError(
                f"the checks fail without any mutant ({failed}), expected all to pass"
            )

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
            if (group.full, group.keyword) not in self._full_passed:
                self._expect_healthy(group, group.full)
                self._full_passed.add((group.full, group.keyword))

    def _check_mutant(self, group: Group, mutant: Mutant, checks: Sequence[str]) -> Verdict:
        text = mutant.applied(self._checkout)
        with self._copies.one() as copy, copy.mutated(mutant.file, text):
            return copy.run(checks, group.keyword, processor_seconds=group.processor_seconds)


def run_groups(
    groups: Sequence[Group], checkout: Path, on_result: OnResult = lambda _result: None
) -> Iterator[tuple[Group, list[Result], float]]:
    """Each group with its results and the seconds that it took."""
    with copies_of(checkout) as copies:
        runner = Runner(checkout, copies, on_result)
        for group in groups:
            begin = time.perf_counter()
            results = runner.run(group)
            yield group, results, time.perf_counter() - begin
