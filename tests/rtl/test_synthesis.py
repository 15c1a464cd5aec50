"""Yosys finds no latch and keeps every memory; the netlist runs a program like the simulator."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.rtl.yosys import run_script

from capra.cosim.compare import difference, expected
from capra.cosim.jobs import Job
from capra.cosim.replay import replay
from capra.cosim.toolchain import CHECKOUT, RTL, Configuration, Simulator
from capra.isa.chip import Chip
from capra.isa.instruction import instruction
from capra.isa.program import Program
from capra.isa.spec import TABLE

SCRIPT = RTL / "syn/synthesis.py"
PAGE = CHECKOUT / "docs/reference/synthesis.md"


def netlist() -> Path:
    done = run_script(SCRIPT, "--netlist")
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def small_program() -> Job:
    """Every instruction once, each on the results of others."""
    code = (
        instruction("LD", d=0, s=16, n=24),
        instruction("MM", d=40, a=0, b=9, m=3, n=4, k=3, sd=4, sa=3, sb=4, t=0, acc=1),
        instruction("RQ", d=60, s=40, r=3, c=4, sd=4, ss=4, mul=50000, sh=23, relu=0),
        instruction("VADD", d=72, a=60, b=0, n=12),
        instruction("SM", d=90, s=72, n=5, mul=40000, sh=18),
        instruction("AMAX", d=100, s=40, n=12),
        instruction("ST", d=100, s=40, n=64),
        instruction("HALT"),
    )
    assert {inst.mnemonic for inst in code} == {op.mnemonic for op in TABLE}
    chip = Chip()
    bits = np.random.default_rng(3)
    external = bits.integers(-(2**31), 2**31, chip.external_words).astype(np.int32)
    scratchpad = bits.integers(-(2**31), 2**31, chip.scratchpad_words).astype(np.int32)
    return Job(Program("gates", chip, code), external, scratchpad)


def run_gates(path: Path) -> str | None:
    """The difference between the netlist in Icarus and the simulator."""
    job = small_program()
    configuration = Configuration(Simulator.ICARUS, job.program.chip, netlist=path)
    (outcome,) = replay(configuration, [job]).outcomes
    return difference(job, expected(job), outcome)


def test_no_latch_and_every_memory_before_gates() -> None:
    done = run_script(SCRIPT, "--quick")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") > 20, "a line for every module"


def test_the_page_is_of_these_sources() -> None:
    stated = re.search(r"digest `(\w+)`", PAGE.read_text())
    done = subprocess.run(  # noqa: S603
        [sys.executable, str(SCRIPT), "--digest"], capture_output=True, text=True, check=True
    )
    assert stated is not None
    assert stated[1] == done.stdout.strip(), "docs/reference/synthesis.md is stale: make synth"


@pytest.mark.full
def test_no_latch_and_every_memory_in_gates_as_on_the_page() -> None:
    done = run_script(SCRIPT)
    assert done.returncode == 0, done.stderr
    version = subprocess.run(["yosys", "-V"], capture_output=True, text=True, check=True).stdout  # noqa: S607
    if " ".join(version.split()[:2]) in PAGE.read_text():  # others may count other gates
        assert done.stdout in PAGE.read_text(), "docs/reference/synthesis.md is stale: make synth"


@pytest.mark.parametrize(
    ("file", "right", "wrong", "message"),
    [
        ("sequencer.sv", "default: unit = IDLE;", "default: ;", "Latch inferred"),
        (
            "operand_memory.sv", "logic [7:0] mem [0:DEPTH-1];",
            "(* mem2reg *) logic [7:0] mem [0:3];",
            "operand_memory: 0 memories, expected 4",
        ),
    ],
    ids=["latch", "exploded memory"],
)  # fmt: skip
def test_a_fault_is_found(tmp_path: Path, file: str, right: str, wrong: str, message: str) -> None:
    rtl = tmp_path / "rtl"
    shutil.copytree(RTL, rtl)
    text = (rtl / file).read_text()
    assert right in text
    (rtl / file).write_text(text.replace(right, wrong))
    done = run_script(SCRIPT, "--quick", "--rtl", str(rtl))
    assert done.returncode == 1
    assert message in done.stderr


@pytest.mark.full
def test_the_netlist_runs_a_program(icarus: Simulator) -> None:
    found = run_gates(netlist())
    assert found is None, found


@pytest.mark.full
def test_a_wrong_gate_is_found(icarus: Simulator, tmp_path: Path) -> None:
    text = netlist().read_text()
    start = text.index("module pe(")
    gate = re.search(r"  assign .* = .* (\^) .*;", text[start:])
    assert gate is not None
    place = start + gate.start(1)
    broken = tmp_path / "netlist.v"
    broken.write_text(text[:place] + "|" + text[place + 1 :])
    assert run_gates(broken) is not None
