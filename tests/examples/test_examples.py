"""The examples run as they are, and fit a page."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.sample(1)
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example_runs(example: Path) -> None:
    run = subprocess.run([sys.executable, example], capture_output=True, text=True)  # noqa: S603
    assert run.returncode == 0, run.stderr
    assert run.stdout
    assert len(example.read_text().splitlines()) <= 100


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
