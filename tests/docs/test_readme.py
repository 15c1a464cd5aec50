"""The README's library example and its headline figures are what runs here."""

import json
import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text()


def test_the_library_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)  # noqa: S603
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("(5, 3, 13, 9, 1, 11, 11")


def test_the_headline_figures_are_measured() -> None:
    command = [sys.executable, "-m", "capra", "decode", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    record = json.loads(run.stdout)
    text = " ".join(README.split())
    plain, speculative = record["plain"]["cycles"], record["speculative"]["cycles"]
    assert f"tokens in {plain:,} cycles plainly and in {speculative:,} speculatively" in text
    assert record["tokens_equal"]
