"""The demo replays the table on one simulator, and says which and what it skips."""

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts/demo_rtl.sh"
VERILATOR = ("verilator", "g++", "make")
ICARUS = ("iverilog", "vvp")


def demo(folder: Path, tools: tuple[str, ...], code: int = 0) -> "subprocess.CompletedProcess[str]":
    """The script where only some tools are there, with a capra that says what it is asked for."""
    for name in tools:
        (folder / name).write_text("")
        (folder / name).chmod(0o755)
    capra = folder / "capra"
    capra.write_text(f'#!/bin/sh\necho "capra $*"; exit {code}\n')
    capra.chmod(0o755)
    return subprocess.run(  # noqa: S603
        [str(shutil.which("sh")), str(SCRIPT), str(capra)], env={"PATH": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("tools", [VERILATOR, (*VERILATOR, *ICARUS)])
def test_verilator_alone_where_it_is_installed(tmp_path: Path, tools: tuple[str, ...]) -> None:
    done = demo(tmp_path, tools)
    assert (done.returncode, done.stdout) == (0, "\ncapra table --rtl verilator\n")
    assert "replayed on the RTL in Verilator" in done.stderr
    assert "to replay in Icarus too (a minute or two): " in done.stderr
    assert done.stderr.endswith("capra table --rtl icarus\n")


@pytest.mark.parametrize("tools", [ICARUS, (*ICARUS, *VERILATOR[:-1]), (*ICARUS, *VERILATOR[1:])])
def test_icarus_where_verilator_or_what_it_needs_is_missing(
    tmp_path: Path, tools: tuple[str, ...]
) -> None:
    done = demo(tmp_path, tools)
    assert (done.returncode, done.stdout) == (0, "\ncapra table --rtl icarus\n")
    assert "replayed on the RTL in Icarus" in done.stderr
    assert "Verilator, which takes seconds, is not installed and was skipped" in done.stderr


@pytest.mark.parametrize("tools", [(), ("iverilog",), ("verilator", "g++")])
def test_without_a_simulator_the_replay_is_skipped(tmp_path: Path, tools: tuple[str, ...]) -> None:
    done = demo(tmp_path, tools)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.endswith("the replay on the RTL is skipped\n")


def test_a_mismatch_fails_the_demo(tmp_path: Path) -> None:
    assert demo(tmp_path, ICARUS, code=1).returncode == 1
