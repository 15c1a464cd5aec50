"""The coverage report adds up what runs left, and fails below its threshold."""

import subprocess
import sys
from pathlib import Path

import pytest

from capra.cosim.jobs import Job
from capra.cosim.random_programs import random_job
from capra.cosim.replay import replay
from capra.cosim.toolchain import RTL, Configuration, Simulator
from capra.isa.chip import Chip

SCRIPT = RTL / "cov/coverage.py"


def counter(lines: str, kind: str, count: int, where: str = "TOP.a") -> str:
    """One counter of pe.sv as Verilator writes it."""
    first = lines.split("-")[0].split(",")[0]
    keys = {
        "f": "rtl/pe.sv", "l": first, "n": kind, "page": f"v_{kind}/pe", "o": kind, "S": lines,
        "h": where,
    }  # fmt: skip
    return f"C '{''.join(f'{chr(1)}{k}{chr(2)}{v}' for k, v in keys.items())}' {count}\n"


def report(directory: Path, *runs: str) -> subprocess.CompletedProcess[str]:
    for number, text in enumerate(runs):
        (directory / f"{number}.dat").write_text("# SystemC::Coverage-3\n" + text)
    command = [sys.executable, str(SCRIPT), "--counts", str(directory)]
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603


def test_a_line_counts_when_any_run_and_instance_reaches_it(tmp_path: Path) -> None:
    done = report(
        tmp_path,
        counter("3-11", "line", 5) + counter("12", "branch", 0),
        counter("3-11", "line", 0) + counter("12", "branch", 0) + counter("12", "branch", 1, "b"),
    )
    assert done.returncode == 0, done.stderr
    total = done.stdout.splitlines()[-1].split()
    assert total == ["total", "10/10", "100.0", "1/1", "100.0"]


def test_too_little_fails_and_names_the_holes(tmp_path: Path) -> None:
    done = report(tmp_path, counter("3-11", "line", 5) + counter("12,14", "branch", 0))
    assert done.returncode == 1
    assert "line coverage is 81.8 %, expected 95 %" in done.stderr
    assert done.stdout.splitlines()[1].split() == [
        "pe.sv", "9/11", "81.8", "0/1", "0.0", "12", "14",
    ]  # fmt: skip


def test_no_counts_fail(tmp_path: Path) -> None:
    assert report(tmp_path).returncode == 1


@pytest.fixture
def job() -> Job:
    chip = Chip(external_words=1000, scratchpad_words=1024, operand_depth=300, program_entries=64)
    return random_job(1, chip, instructions=2)


@pytest.mark.full
def test_verilator_leaves_counts(verilator: Simulator, job: Job, tmp_path: Path) -> None:
    configuration = Configuration(verilator, job.program.chip, coverage=True)
    replay(configuration, [job], coverage=tmp_path / "1.dat")
    done = report(tmp_path)
    assert done.returncode == 1, "two instructions do not reach 95 %"
    assert "sequencer.sv" in done.stdout
