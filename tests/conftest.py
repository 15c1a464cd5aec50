"""What every test may use: the hypothesis profile, seeds and counts of random tests, commands."""

import os
import sys
from collections import Counter, defaultdict
from typing import cast

import pytest
from hypothesis import settings
from tests.command import Cli, Result

from capra.cli import main

settings.register_profile(
    "capra",
    derandomize=True,
    print_blob=True,
    deadline=None,
    max_examples=100,
    database=None,
)
settings.load_profile("capra")


def _seeds() -> list[int]:
    chosen = os.environ.get("CAPRA_SEED")
    return [int(chosen)] if chosen else [0, 1, 2]


@pytest.fixture(params=_seeds(), ids=lambda seed: f"seed{seed}")
def seed(request: pytest.FixtureRequest) -> int:
    """Seed of a random test, shown in its name: 0, 1 and 2, or CAPRA_SEED where that is set."""
    return cast(int, request.param)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs a command in this process."""

    def run(*args: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["capra", *map(str, args)])
        with pytest.raises(SystemExit) as stopped:
            main()
        captured = capsys.readouterr()
        assert isinstance(stopped.value.code, int)
        return Result(stopped.value.code, captured.out, captured.err)

    return run


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line a kind of random case: how many ran, with which seeds, how many tests failed.

    A test counts its cases with `record_property(kind, [seed, cases])`.
    """
    cases, failed = Counter[str](), Counter[str]()
    seeds: defaultdict[str, set[int]] = defaultdict(set)
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            counted = report.user_properties if report.when == "call" else []
            for kind, value in counted:
                if isinstance(value, list):  # other plugins leave strings
                    seeds[kind].add(value[0])
                    cases[kind] += value[1]
                    failed[kind] += outcome == "failed"
    for kind, count in cases.items():
        first, last = min(seeds[kind]), max(seeds[kind])
        terminalreporter.write_line(
            f"{kind}: {count}, seeds {first} .. {last}, {failed[kind]} tests failed"
        )
