"""The README's library example runs, and its table is that of the record, which is measured."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from capra.compiler.optimization import O1
from capra.lab.bench import bench, built_in_prompts, summary
from capra.lm.models import load_model
from capra.lm.target import ChipTarget
from capra.report.records import check_record
from capra.spec_decode.drafts import draft_maker

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
RECORD: dict[str, Any] = json.loads((ROOT / "docs/reference/speculation.json").read_text())


def test_the_library_example_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)  # noqa: S603
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("(5, 3, 13, 9, 1, 11, 11")


def test_the_table_is_that_of_the_record() -> None:
    for entry in RECORD["by_k"]:
        line = (
            f"| {entry['k']} | {entry['mean']:.2f} ({entry['low']:.2f} .. {entry['high']:.2f}) "
            f"| {entry['median']:.2f} | {entry['min']:.2f} .. {entry['max']:.2f} "
            f"| {entry['losses']} of {entry['runs']} | {entry['acceptance_rate']:.0%} "
            f"| {entry['resident_mean']:.2f} ({entry['resident_losses']}) |"
        )
        assert line in README
    assert f"{RECORD['repeated_8grams']:.0%}".replace("%", " %") + " of the 8-grams" in README
    assert RECORD["tokens_equal"] and len(RECORD["runs"]) == 420
    assert "All 420\nspeculative texts are the plain texts" in README
    assert len(RECORD["prompts"]) == 28 and RECORD["new_tokens"] == [32, 64, 96]
    chip = RECORD["settings"]["chip"]
    assert f"{chip['scratchpad_words']:,} words of scratchpad" in README
    run = decode_record()
    assert f"for {run['resident_weights']['weight_words']:,} words of weights" in README


def decode_record() -> dict[str, Any]:
    command = [sys.executable, "-m", "capra", "decode", "-n", "4", "--json"]
    run = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    record: dict[str, Any] = json.loads(run.stdout)
    return record


def test_the_records_statistics_are_those_of_its_runs() -> None:
    found = summary(RECORD["runs"], 28, RECORD["new_tokens"], RECORD["ks"])
    assert found == {key: RECORD[key] for key in found}


def test_the_record_is_a_whole_record() -> None:
    check_record("speculation.json", RECORD)
    assert RECORD["command"] == ["bench", "--json"], "without options"


def measured(prompts: list[int], lengths: list[int], ks: list[int]) -> list[dict[str, Any]]:
    """The runs of some cells of the record, executed now."""
    model = load_model("pydoc")
    target = ChipTarget(model, optimize=O1)
    draft = draft_maker("bigram", model, 0.0, 1, optimize=O1)
    chosen = built_in_prompts(model)
    found = bench(target, draft, [chosen[number] for number in prompts], lengths, ks)
    return [run | {"prompt": prompts[run["prompt"]]} for run in found["runs"]]


def test_some_runs_of_the_record_are_what_is_measured() -> None:
    for run in measured([0, 5, 20], [32], [1, 3]):
        assert run in RECORD["runs"], "make it again: capra bench --json"


@pytest.mark.full
def test_all_runs_of_the_record_are_what_is_measured() -> None:
    assert measured([*range(28)], RECORD["new_tokens"], RECORD["ks"]) == RECORD["runs"]
