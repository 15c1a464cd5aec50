"""Stubs: every part has one, those of the RTL build, and a file that looks away is named."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from mutants.mutant import MutantError
from mutants.stubs import CLAIMS, QUICK, Stub, rtl_stub, run_stubs

from capra.cosim.toolchain import BENCH, CHECKOUT, RTL

MODULES = [path.stem for path in sorted(RTL.glob("*.sv")) if path.stem != "ga2_pkg"]
PASSES = [path.stem for path in (CHECKOUT / "src/capra/compiler/passes").glob("[a-z]*.py")]


def test_every_module_and_every_pass_is_claimed() -> None:
    assert set(MODULES) | set(PASSES) <= set(CLAIMS)
    assert set(QUICK) <= set(CLAIMS)


@pytest.mark.parametrize("part", CLAIMS)
def test_a_claim_names_files_and_a_stub_of_one(part: str) -> None:
    stub, checks = CLAIMS[part]
    assert checks
    for file in (stub.file, *(check.split("::")[0] for check in checks)):
        assert (CHECKOUT / file).is_file()
    before = (CHECKOUT / stub.file).read_text()
    assert stub.text(before) != before


@pytest.mark.parametrize(
    "command",
    [
        ["iverilog", "-g2012", "-t", "null", "-s", "tb"],
        [
            "verilator",
            "--lint-only",
            "-Wno-lint",
            "-Wno-MULTITOP",
            "--timing",
            "--top-module",
            "tb",
        ],
    ],
    ids=lambda command: command[0],
)
def test_the_stubs_of_the_rtl_build_together(command: list[str], tmp_path: Path) -> None:
    if shutil.which(command[0]) is None and not os.environ.get("CI"):
        pytest.skip(f"{command[0]} is not installed")
    files = [str(RTL / "ga2_pkg.sv"), *(str(RTL / name) for name in BENCH)]
    for name in MODULES:
        path = tmp_path / f"{name}.sv"
        path.write_text(CLAIMS[name][0].text((RTL / path.name).read_text()))
        files.append(str(path))
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr


def test_an_rtl_stub_is_the_header_with_outputs_of_0() -> None:
    text = rtl_stub(
        "// two(a);\nmodule two #(\n    parameter int W = 2  // bits\n) (\n"
        "    input  logic         a_i,\n    output logic [W-1:0] b_o,\n    output logic c_o\n);\n"
        "  assign b_o = W'(a_i);\n  assign c_o = output_q;\nendmodule\n"
    )
    assert text.count("assign") == 2
    assert "  assign b_o = '0;\n  assign c_o = '0;\n" in text and "input  logic         a_i" in text


@pytest.mark.parametrize("source", ["", "package p;\nendpackage\n", "module m (\n  input a\n);\n"])
def test_what_has_no_outputs_has_no_stub(source: str) -> None:
    with pytest.raises(MutantError, match="no module with outputs"):
        rtl_stub(source)


STUB = Stub("src/thing.py", lambda source: source + "\n\ndef double(_x):\n    return 0\n")
LOOKS = "from thing import double\n\n\ndef test_3():\n    assert double(3) == 6\n"
LOOKS_AWAY = "from thing import double\n\n\ndef test_0():\n    assert double(0) == 0\n"


@pytest.fixture(autouse=True)
def one_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker is enough for one stub."""
    monkeypatch.setattr("mutants.runner.WORKERS", 1)
    monkeypatch.setattr("mutants.stubs.WORKERS", 1)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    (root / "src").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "src/thing.py").write_text("def double(x):\n    return x + x\n")
    (root / "tests/test_looks.py").write_text(LOOKS + LOOKS.replace("test_3", "test_three")[25:])
    (root / "tests/test_away.py").write_text(LOOKS_AWAY)
    return root


def test_each_file_of_a_claim_is_judged_by_itself(checkout: Path) -> None:
    files = ("tests/test_looks.py", "tests/test_away.py")
    (outcome,) = run_stubs({"double": (STUB, files)}, checkout)
    assert (dict(outcome.failed), outcome.passed) == ({files[0]: 2, files[1]: 0}, 1)
    assert list(outcome.faults()) == [
        "tests/test_away.py claims to cover double and passes with a stub of it"
    ]
    (outcome,) = run_stubs({"double": (STUB, files[:1])}, checkout)
    assert list(outcome.faults()) == []


def test_a_stub_that_is_no_program_proves_nothing(checkout: Path) -> None:
    broken = Stub("src/thing.py", lambda source: source + "\ndef double(:\n")
    (outcome,) = run_stubs({"double": (broken, ("tests/test_looks.py",))}, checkout)
    (fault,) = outcome.faults()
    assert fault.startswith("double: pytest ended with") and "SyntaxError" in fault


def test_a_claim_that_fails_without_a_stub_means_nothing(checkout: Path) -> None:
    (checkout / "src/thing.py").write_text("def double(x):\n    return x\n")
    with pytest.raises(MutantError, match="test_3 fails without any stub"):
        run_stubs({"double": (STUB, ("tests/test_looks.py",))}, checkout)
