"""What every test may use: the hypothesis profile, seeds and counts of random tests, commands."""

import gc
import os
import sys
from collections import Counter, defaultdict
from typing import Any, cast

import pytest
from hypothesis import settings
from tests.command import Cli, Result
from tests.selection import left_out

from capra.cli import main
from capra.cli.app import COLLECTOR_THRESHOLDS

settings.register_profile(
    "capra",
    derandomize=True,
    print_blob=True,
    deadline=None,
    max_examples=100,
    database=None,
)
settings.register_profile("quick", settings.get_profile("capra"), max_examples=30)

NOT_FULL = "not full"
"""The selection of `make test`, from pyproject.toml."""


def pytest_configure(config: pytest.Config) -> None:
    """Hypothesis tries a hundred examples in the full suite, and thirty without what is full."""
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    settings.load_profile("quick" if config.option.markexpr == NOT_FULL else "capra")


def pytest_collection_finish() -> None:
    """The collector need not look through four thousand tests again and again."""
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases full that `sample(n)` leaves out: all of a test but n, evenly spread."""
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample") is not None:
            cases[item.nodeid.partition("[")[0]].append(item)
    for several in cases.values():
        mark = several[0].get_closest_marker("sample")
        assert mark is not None
        for place in left_out(len(several), *mark.args):
            several[place].add_marker(pytest.mark.full)


def _seeds() -> list[Any]:
    chosen = os.environ.get("CAPRA_SEED")
    if chosen:
        return [int(chosen)]
    return [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2))]


@pytest.fixture(params=_seeds(), ids=lambda seed: f"seed{seed}")
def seed(request: pytest.FixtureRequest) -> int:
    """Seed of a random test, shown in its name: 0 (1 and 2 are full), or CAPRA_SEED if set."""
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
