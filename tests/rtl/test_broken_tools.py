"""Simulators that are installed badly: one sentence with their own words and exit code 2.

Scripts that stand for a broken tool come first on PATH; all else is the real one. A checkout in a
folder with any name works.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.command import Cli

from capra.cosim import toolchain
from capra.cosim.random_programs import random_job
from capra.cosim.toolchain import RTL, Simulator
from capra.isa.chip import Chip
from capra.isa.program import save_program

CHIP = Chip(external_words=1000, scratchpad_words=1024, operand_depth=300, program_entries=64)
MISSING = "error while loading shared libraries: libbz2.so.1.0: cannot open shared object file"
VERSIONS = {"iverilog": "Icarus Verilog version 11.0", "verilator": "Verilator 5.006"}

Tool = Callable[[str, str], Path]


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Puts a script in the place of a program, and lets nothing that was built be used."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(toolchain, "BUILD", tmp_path / "build")

    def replace(name: str, script: str) -> Path:
        path = folder / name
        path.write_text(script if script.startswith("#!") else f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    return replace


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "random.ga2"
    save_program(random_job(1, CHIP, instructions=2).program, path)
    return path


def refusal(cli: Cli, program: Path, simulator: str) -> str:
    """The sentence with which a replay ends."""
    result = cli("replay", program, "--rtl", simulator)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ") and result.err.count("\n") == 1
    return result.err.removeprefix("error: ").rstrip()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 1", "ended with 1: it printed nothing"),
        ("exit 0", "has no line {first}..., expected its version: it printed nothing"),
        ("echo hello", "has no line {first}..., expected its version: hello"),
        (f"echo {MISSING} >&2; exit 127", f"ended with 127: {MISSING}"),
        ("kill -SEGV $$", "was ended by SIGSEGV: it printed nothing"),
        (r"printf '\377'; exit 1", "ended with 1: \N{REPLACEMENT CHARACTER}"),
    ],
)
@pytest.mark.parametrize("name", ["iverilog", "verilator"])
def test_a_simulator_that_does_not_tell_its_version(
    cli: Cli, tool: Tool, program: Path, name: str, script: str, reason: str
) -> None:
    simulator, flag = ("icarus", "-V") if name == "iverilog" else ("verilator", "--version")
    if not shutil.which("g++"):
        tool("g++", "exit 1")
    path = tool(name, script)
    reason = reason.format(first="Icarus Verilog " if simulator == "icarus" else "Verilator ")
    assert refusal(cli, program, simulator) == f"{path} {flag} {reason}"


def test_a_simulator_that_cannot_be_started(cli: Cli, tool: Tool, program: Path) -> None:
    path = tool("iverilog", "#!/nowhere/sh\n")
    assert refusal(cli, program, "icarus") == f"cannot start {path}: No such file or directory"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo no licence; exit 3", "ended with 3: no licence (see "),
        ("exit 1", "ended with 1: it printed nothing (see "),
        ("exit 0", "ended with 0 and left no testbench: it printed nothing"),
        ("kill -9 $$", "was ended by SIGKILL: it printed nothing (see "),
    ],
)
@pytest.mark.parametrize("name", ["iverilog", "verilator"])
def test_a_simulator_that_does_not_compile(
    cli: Cli, tool: Tool, program: Path, name: str, script: str, reason: str
) -> None:
    for other in ("g++", "vvp"):
        if not shutil.which(other):
            tool(other, "exit 1")
    version = f'case "$*" in *-V|*--version) echo "{VERSIONS[name]}"; exit;; esac'
    tool(name, f"{version}\n{script}")
    simulator = "icarus" if name == "iverilog" else "verilator"
    assert refusal(cli, program, simulator).startswith(f"{name} {reason}")


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 1", "icarus ended with 1: it printed nothing"),
        (f"echo vvp: {MISSING} >&2; exit 127", f"icarus ended with 127: vvp: {MISSING}"),
        (
            "echo quiet",
            "the bench reported 0 lines, expected 1 jobs and an end: quiet",
        ),
        ("#!/nowhere/sh\n", "cannot start vvp: No such file or directory"),
    ],
)
def test_a_simulation_that_does_not_run(
    icarus: Simulator, cli: Cli, tool: Tool, program: Path, script: str, reason: str
) -> None:
    tool("vvp", script)
    assert refusal(cli, program, icarus) == reason


@pytest.mark.parametrize(
    ("name", "script", "reason"),
    [
        ("g++", "echo no licence; exit 1", "verilator ended with 2: no licence (see "),
        ("g++", "exit 1", "verilator ended with 2: make: *** ["),
        ("g++", "exit 0", "verilator ended with 0 and left no testbench: ar: "),
        ("make", "echo no licence; exit 1", "verilator ended with 1: no licence (see "),
        ("make", "exit 0", "verilator ended with 0 and left no testbench: it printed nothing"),
    ],
)
def test_a_compiler_or_make_that_fails_below_verilator(
    verilator: Simulator, cli: Cli, tool: Tool, program: Path,
    name: str, script: str, reason: str,
) -> None:  # fmt: skip
    tool(name, script)
    assert refusal(cli, program, verilator).startswith(reason)


def test_a_root_of_verilator_that_is_not_there(
    verilator: Simulator, cli: Cli, tool: Tool, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain._version.cache_clear()
    monkeypatch.setenv("VERILATOR_ROOT", "/nowhere")
    said = refusal(cli, program, verilator)
    assert said.startswith(f"{shutil.which('verilator')} --version ended with 127: ")
    assert said.endswith("/nowhere/verilator_bin: not found")


def capra(
    *arguments: object, limit: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    """A command as a process of its own, below a limit of the shell's."""
    command = [sys.executable, "-m", "capra", *map(str, arguments)]
    return subprocess.run(  # noqa: S603
        ["sh", "-c", f'{limit or ":"}; exec "$@"', "sh", *command],  # noqa: S607
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_temporary_folder_that_is_not_there_is_not_needed(
    icarus: Simulator, program: Path
) -> None:
    """Icarus takes TMPDIR as it is; Python looks for another one."""
    done = capra("replay", program, "--rtl", icarus, TMPDIR="/nowhere")
    assert (done.returncode, done.stderr) == (0, "")
    assert "all equal" in done.stdout


def test_a_disk_without_space_is_one_sentence(icarus: Simulator, program: Path) -> None:
    assert capra("replay", program, "--rtl", icarus).returncode == 0
    done = capra("replay", program, "--rtl", icarus, limit="ulimit -f 8")
    assert done.returncode == 2
    assert done.stderr == "error: cannot replay on icarus: File too large\n"


def test_no_temporary_folder_is_one_sentence(
    icarus: Simulator, cli: Cli, program: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toolchain.built(toolchain.Configuration(icarus, CHIP))
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    said = refusal(cli, program, icarus)
    assert said.startswith("cannot replay on icarus: /nowhere/capra-replay-")
    assert said.endswith("No such file or directory")


def test_a_damaged_bench_is_built_anew(
    icarus: Simulator, cli: Cli, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "BUILD", tmp_path / "build")
    assert cli("replay", program, "--rtl", icarus).code == 0
    (bench,) = tmp_path.glob("build/*/bench")
    whole = bench.read_bytes()
    bench.write_bytes(whole[: len(whole) // 2])
    result = cli("replay", program, "--rtl", icarus)
    assert (result.code, result.err) == (0, "")
    assert len(bench.read_bytes()) == len(whole), "some addresses in it change"


def test_a_bench_of_another_machine_is_not_used(
    icarus: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolchain, "BUILD", tmp_path)
    configuration = toolchain.Configuration(icarus, CHIP)
    here = toolchain.built(configuration)
    assert toolchain.built(configuration) == here
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert toolchain.built(configuration) != here


NAME = """a copy's "$HOME" #1 (new); 100% `x` & \\n"""


def test_any_name_of_a_checkout_a_temporary_folder_and_a_waveform_will_do(
    simulator: Simulator, cli: Cli, program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout, temporary = tmp_path / NAME, tmp_path / f"temporary {NAME}"
    shutil.copytree(RTL, checkout / "rtl")
    monkeypatch.setattr(toolchain, "RTL", checkout / "rtl")
    monkeypatch.setattr(toolchain, "BUILD", checkout / "build/rtl")
    temporary.mkdir()
    wave = checkout / f"{NAME}.vcd"
    for folder in (None, str(temporary)):  # Verilator builds in the usual one, if need be
        monkeypatch.setattr("tempfile.tempdir", folder)
        result = cli("replay", program, "--rtl", simulator, "--wave", wave)
        assert (result.code, result.err) == (0, "")
        assert "all equal" in result.out
        assert wave.read_bytes().startswith(b"$")
        wave.unlink()
    assert len(list((checkout / "build/rtl").glob("*/bench"))) == 1


def test_a_build_where_every_folder_has_a_space_is_one_sentence(
    verilator: Simulator, cli: Cli, tool: Tool, program: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "a b").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "a b"))
    monkeypatch.setattr(toolchain, "BUILD", tmp_path / "a b" / "build")
    said = refusal(cli, program, verilator)
    assert "GNU Make cannot build in directories containing spaces" in said
