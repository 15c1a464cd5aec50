"""What every test may use: the hypothesis profile, the seed of the random tests, their counts."""

import os
from collections import Counter, defaultdict
from typing import cast

import pytest
from hypothesis import settings

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
