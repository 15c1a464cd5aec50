"""Every command of the documentation runs, and has the exit code that the text says.

The tutorial's commands and Python also print what it quotes.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest
from tests.command import Cli

from capra.cli.app import app
from capra.cosim.toolchain import Simulator, is_installed
from capra.lab.sweep.spec import load_sweep

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TUTORIAL = ROOT / "docs/guides/tutorial.md"
SET_UP = ("make ", ".venv/bin/pip ")
"""Commands that make the environment that this test runs in."""

MINUTES = ("capra train", "capra eval --model my", "capra decode --model my")
"""Commands that take minutes or need what such a command makes."""


LONG = (
    "rtl.md", "report.md", "planner.md", "integers.md", "exactness.md", "speculation.md",
    "sweeps.md", "optimization.md",
)  # fmt: skip
"""Pages whose commands take seconds; README.md and the tutorial have the same kinds."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_extras_are_installed_from_the_checkout(page: Path) -> None:
    assert "capra[" not in page.read_text(), "no index has it"


def console_lines(page: Path) -> Iterator[str]:
    for block in re.findall(r"```console\n(.*?)```", page.read_text(), flags=re.DOTALL):
        yield from (line[2:] for line in block.splitlines() if line.startswith("$ "))


def commands_of(page: Path) -> list[str]:
    return [line for line in console_lines(page) if not line.startswith(SET_UP + MINUTES)]


def new_commands_of(page: Path) -> list[str]:
    """Those that no earlier page has in the same words; what a page's files are made by stays."""
    earlier = {line for other in PAGES[: PAGES.index(page)] for line in commands_of(other)}
    files = re.compile(r">|-o\b|--(output|csv|parquet|figures|traces|wave)\b")
    return [line for line in commands_of(page) if line not in earlier or files.search(line)]


def can_run(line: str) -> bool:
    """Whether its simulators are installed; in CI they must be."""
    named = [which for which in Simulator if which in line and "--rtl" in line]
    if line.startswith("capra replay") and not named:
        named = list(Simulator)  # its default
    return bool(os.environ.get("CI")) or all(is_installed(which) for which in named)


def run_command(line: str, cli: Cli) -> str:
    """What a command prints, stderr and stdout, once its exit code is what the line says.

    It runs in this process and folder; only `> FILE` is left of the shell.
    """
    expected = re.search(r"# exit code (\d)", line)
    command, *arguments = shlex.split(line.split("  #")[0])
    assert command == "capra", f"unknown kind of command: {line}"
    file = None
    if ">" in arguments:
        *arguments, arrow, file = arguments
        assert arrow == ">", line
    assert not {"|", "<", ">", ";", "&&"} & {*arguments}, f"unknown kind of command: {line}"
    run = cli(*arguments)
    assert run.code == (int(expected[1]) if expected else 0), f"{line}\n{run.err}"
    if file is None:
        return run.err + run.out
    Path(file).write_text(run.out)
    return run.err


def run_python(code: str) -> str:
    """What a few lines of Python print."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout  # noqa: S603


def assert_quoted(quote: str, printed: str) -> None:
    """Every line of a quote is printed, in this order; spaces and `...` do not count."""
    rest = " ".join(printed.split())
    for line in quote.splitlines():
        if line == "...":
            continue
        _, found, rest = rest.partition(" ".join(line.split()))
        assert found, f"not printed, or not in this order: {line}"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.full] * (page.name in LONG), id=page.name)
        for page in PAGES
        if new_commands_of(page) and page != TUTORIAL
    ],
)
def test_commands_run(
    page: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for line in filter(can_run, new_commands_of(page)):
        run_command(line, cli)


def test_the_tutorial_prints_what_it_quotes(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```(\w+)\n(.*?)```", TUTORIAL.read_text(), flags=re.DOTALL)
    assert {kind for kind, _ in blocks} == {"console", "python", "text"}
    printed = ""
    for kind, block in blocks:
        if kind == "text":
            assert_quoted(block, printed)
        elif kind == "python":
            printed = run_python(block)
        else:
            lines = block.splitlines()
            assert all(line.startswith("$ ") for line in lines), block
            printed = "".join(run_command(line[2:], cli) for line in lines)


def test_git_leaves_alone_what_the_commands_write_in_a_checkout() -> None:
    option = r"(?:>|-o|--output|--csv|--parquet|--figures|--traces|--wave) (\S+)"
    written = {name for page in PAGES for line in console_lines(page)
               for name in re.findall(option, line)}  # fmt: skip
    assert {"table.json", "figures", "rows.csv", "my.safetensors", "verify.vcd"} <= written
    patterns = [line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines()]
    refused = {"verify.png"}
    assert [name for name in sorted(written - refused)
            if not any(fnmatch(name, pattern) for pattern in patterns)] == []  # fmt: skip


def test_the_spec_of_the_sweep_page_is_the_first_grid_of_the_example() -> None:
    text = (ROOT / "docs/guides/sweeps.md").read_text()
    (spec,) = re.findall(r"```toml\n(.*?)```", text, flags=re.DOTALL)
    example = ROOT / "examples/sweep.toml"
    assert tomllib.loads(spec)["grid"] == tomllib.loads(example.read_text())["grid"][:1]
    said = re.search(r"here (\d+) cells.*?(\d+) cells.*?(\d+) in all", text, flags=re.DOTALL)
    assert said
    first, second, both = map(int, said.groups())
    assert first + second == both == len(load_sweep(example).cells)


def test_pages_name_only_commands_that_exist() -> None:
    lines = [line for page in PAGES for line in console_lines(page)]
    assert any(line.startswith("capra decode") for line in lines)
    known = {c.name or c.callback.__name__ for c in app.registered_commands if c.callback}
    used = {line.split()[1] for line in lines if line.startswith("capra ")}
    assert used <= known
