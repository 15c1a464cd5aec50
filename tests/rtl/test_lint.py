"""The RTL is clean in Verilator's lint and in Icarus, and has no comparison that may go wrong."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.rtl.declarations import declared_widths

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


def odd_comparisons(text: str) -> list[str]:
    """Signed comparisons in a source whose operands are not known to have 8, 16 or 32 bits.

    As far as a scan can tell: `$signed(name)` on either side of an operator, with the width from
    the declaration of the name. Anything else in the parentheses, and any `signed` declaration, is
    reported too.
    """
    text = re.sub(r"//.*", "", text)
    widths = declared_widths(text)
    found = re.findall(r"(?<!\$)\bsigned\b[^;]*", text)
    assignment = r"(^|;|\)|\bbegin\b|\belse\b)\s*(?!begin|else)\w+(?:\[[^]]*\])*\s*<="
    text = re.sub(assignment, r"\1", text, flags=re.MULTILINE)
    operand = r"\$signed\(([^()]*(?:\([^()]*\)[^()]*)*)\)"
    operator = r"\s*(?<![<>])[<>]=?(?![<>=])\s*"
    sides = re.findall(operand + operator, text) + re.findall(operator + operand, text)
    return found + [side for side in sides if widths.get(side.strip()) not in (8, 16, 32)]


@pytest.mark.parametrize("path", sorted(RTL.glob("*.sv")), ids=lambda path: path.name)
def test_signed_comparisons_have_8_16_or_32_bits(path: Path) -> None:
    """Verilator 5.006 is said to get those of other widths wrong."""
    assert odd_comparisons(path.read_text()) == []


@pytest.mark.parametrize(
    "line",
    [
        "logic [46:0] x, y; assign z = $signed(x) > $signed(y);",
        "logic [46:0] x; logic [31:0] y; assign z = $signed(y) < $signed(x);",
        "logic [31:0] y; assign z = $signed(y[16:0]) <= 17'sd3;",
        "logic [31:0] y;\n  z <= 5 >= $signed({y, f(y)});",
        "logic signed [8:0] x;",
        "logic [W-1:0] x; assign z = $signed(x) >= 0;",
    ],
)
def test_an_odd_comparison_is_found(line: str) -> None:
    assert odd_comparisons(line)


def test_an_even_comparison_is_none() -> None:
    good = "logic [31:0] x, y; z <= $signed(x) > $signed(y); z <= $signed(w) >>> 3; // signed 9"
    assert odd_comparisons(good) == []
