"""The RTL is clean in Verilator's lint, and Yosys finds no latch and infers every memory."""

import os
import re
import shutil
import subprocess

import pytest

from capra.cosim.toolchain import BENCH, RTL

FILES = (RTL / "files.f").read_text().split()


def run(*command: str) -> str:
    """The output of a tool, which must succeed; a missing tool skips at home and fails in CI."""
    if shutil.which(command[0]) is None and not os.environ.get("CI"):
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(command, cwd=RTL, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_every_file_is_listed() -> None:
    assert sorted(FILES) == sorted(path.name for path in RTL.glob("*.sv"))


@pytest.mark.parametrize(
    "parameters",
    [
        (),
        ("-GSCRATCHPAD_WORDS=16", "-GEXTERNAL_WORDS=16", "-GPROGRAM_ENTRIES=1"),
        ("-GSCRATCHPAD_WORDS=1048576", "-GEXTERNAL_WORDS=16777216", "-GOPERAND_DEPTH=32768"),
    ],
)
def test_verilator_lint(parameters: tuple[str, ...]) -> None:
    out = run(
        "verilator", "--lint-only", "-Wall", "lint/waivers.vlt", *FILES, "--top-module", "ga2",
        *parameters,
    )  # fmt: skip
    assert "Warning" not in out


def test_icarus_warns_of_nothing() -> None:
    out = run("iverilog", "-g2012", "-Wall", "-t", "null", "-s", "tb", *FILES, *BENCH)
    assert out == ""


def test_yosys_finds_no_latch() -> None:
    script = (
        f"read_verilog -sv {' '.join(FILES)}; hierarchy -top ga2; proc; check -assert; "
        "select -assert-none t:$dlatch t:$adlatch t:$dlatchsr; stat"
    )
    out = run("yosys", "-Q", "-p", script)
    memories = re.findall(r"^=== (\S+) ===|Number of memories:\s+(\d+)", out, re.MULTILINE)
    assert sum(int(count) for _, count in memories if count) >= 10
    assert "Warning" not in out, [line for line in out.splitlines() if "Warning" in line]
