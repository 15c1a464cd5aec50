"""The proofs of rtl/formal hold, and each of them fails when its module is broken."""

import shutil
from pathlib import Path

import pytest
from tests.rtl.yosys import run_script

from capra.cosim.toolchain import RTL

SCRIPT = RTL / "formal/prove.py"


LONG = ("dma", "sequencer", "walker")


@pytest.mark.parametrize(
    "module",
    [
        pytest.param(path.stem, marks=[pytest.mark.full] * (path.stem in LONG))
        for path in sorted((RTL / "formal").glob("*.svh"))
    ],
)
def test_every_proof_holds(module: str) -> None:
    done = run_script(SCRIPT, module)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(": proven in " in line for line in lines)
    modules = {line.split()[0].rstrip(":") for line in lines}
    assert modules == {module}


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("module", "right", "wrong"),
    [
        ("saturate", " && |x_i[6:0]);", ");"),
        ("requantizer", "halves + 48'd1", "halves"),
        ("requantizer", "$signed(product_q) >>>", "product_q >>"),
        ("sequencer", "default: unit = IDLE;", "default: unit = VECTOR;"),
        ("sequencer", "index_o + INDEX_BITS'(1)", "index_o + INDEX_BITS'(2)"),
        ("sequencer", "start_i && state_q == IDLE;", "start_i;"),
        ("walker", "next_row_q <= next_row_q + stride_q;", "next_row_q <= addr_o + stride_q;"),
        ("walker", "rows_i - COUNT_BITS'(1);", "rows_i;"),
        ("dma", "if (load_q ? retire : issue) sp_addr_q", "if (issue) sp_addr_q"),
        ("dma", "issue && to_issue_q == COUNT_BITS'(1)", "issue && to_issue_q == COUNT_BITS'(0)"),
    ],
)
def test_a_broken_module_is_not_proven(module: str, right: str, wrong: str, tmp_path: Path) -> None:
    for path in RTL.glob("*.sv"):
        shutil.copy(path, tmp_path)
    text = (RTL / f"{module}.sv").read_text()
    assert text.count(right) == 1
    (tmp_path / f"{module}.sv").write_text(text.replace(right, wrong))
    done = run_script(SCRIPT, "--rtl", str(tmp_path), module)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "NOT PROVEN" in done.stdout
