"""Every command of the documentation runs, and has the exit code that the text says."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from capra.cosim.toolchain import Simulator, is_installed

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SET_UP = ("make ", ".venv/bin/pip ")
"""Commands that make the environment that this test runs in."""

MINUTES = ("capra train", "capra eval --model my", "capra decode --model my")
"""Commands that take minutes or need what such a command makes."""


def console_lines(page: Path) -> Iterator[str]:
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.DOTALL):
        yield from (line[2:] for line in block.splitlines() if line.startswith("$ "))


def commands_of(page: Path) -> list[str]:
    return [line for line in console_lines(page) if not line.startswith(SET_UP + MINUTES)]


def can_run(line: str) -> bool:
    """Whether its simulators are installed; in CI they must be."""
    named = [which for which in Simulator if which in line and "--rtl" in line]
    if line.startswith("capra replay") and not named:
        named = list(Simulator)  # its default
    return bool(os.environ.get("CI")) or all(is_installed(which) for which in named)


@pytest.mark.parametrize("page", [p for p in PAGES if commands_of(p)], ids=lambda page: page.name)
def test_commands_run(page: Path, tmp_path: Path) -> None:
    for line in filter(can_run, commands_of(page)):
        expected = re.search(r"# exit code (\d)", line)
        command = line.split("  #")[0].replace("capra ", "-m capra ", 1)
        assert command.startswith("-m capra "), f"{page}: unknown kind of command: {line}"
        shell = f"{sys.executable} {command}"
        run = subprocess.run(shell, shell=True, cwd=tmp_path, capture_output=True, text=True)  # noqa: S602
        assert run.returncode == (int(expected[1]) if expected else 0), f"{line}\n{run.stderr}"


def test_pages_name_only_commands_that_exist() -> None:
    lines = [line for page in PAGES for line in console_lines(page)]
    assert any(line.startswith("capra decode") for line in lines)
    known = {
        "decode", "certify", "table", "grid", "trace", "anatomy", "causality", "serving", "plan",
        "compile", "dis", "eval", "replay", "train",
    }  # fmt: skip
    used = {line.split()[1] for line in lines if line.startswith("capra ")}
    assert used <= known
