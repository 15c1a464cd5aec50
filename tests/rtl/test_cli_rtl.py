"""The command line with --rtl: what it compares, prints and refuses, and that it finds faults.

The faults are injected into a copy of the RTL, so that the whole way is tested: build, run, read,
compare, say.
"""

import os
import pty
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.command import Cli, Result

from capra.compiler.optimization import O1
from capra.cosim import toolchain
from capra.cosim.toolchain import RTL, Simulator, version
from capra.isa.program import load_program, save_program
from capra.lm.models import load_model
from capra.lm.target import ChipTarget

FIELDS = {"programs", "mismatches", "cycles", "wall_seconds", "version"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small verifier as a program file."""
    path = tmp_path_factory.mktemp("programs") / "verify.ga2"
    target = ChipTarget(load_model("random", seed=1), optimize=O1)
    save_program(target.program("verify", 2, 1), path)
    return path


def assert_equal(found: dict[str, Any], programs: int, cycles: int, which: Simulator) -> None:
    assert found.keys() == FIELDS
    assert (found["programs"], found["mismatches"], found["cycles"]) == (programs, 0, cycles)
    assert found["wall_seconds"] > 0
    assert found["version"] == version(which)


def test_table_on_verilator(verilator: Simulator, cli: Cli) -> None:
    plain, record = cli("table", "--json").json(), cli("table", "--rtl", "verilator", "--json")
    checked = record.json()
    assert checked["runs"] == plain["runs"]
    programs = sum(run["programs"] for run in plain["runs"])
    cycles = sum(run["cycles"] for run in plain["runs"])
    assert list(checked["rtl"]) == ["verilator"]
    assert_equal(checked["rtl"]["verilator"], programs, cycles, verilator)


def test_decode_on_both(icarus: Simulator, verilator: Simulator, cli: Cli) -> None:
    options = ("decode", "--model", "random", "--max-new-tokens", 5, "--certify")
    plain = cli(*options, "--json").json()
    checked = cli(*options, "--rtl", "icarus,verilator", "--json").json()
    rtl = checked.pop("rtl")
    assert checked["settings"].pop("rtl") == "icarus,verilator"
    assert plain["settings"].pop("rtl") is None
    for made in ("command", "date"):
        del plain[made], checked[made]
    assert checked == plain and plain["certificate"]["equal"]
    runs = plain["plain"], plain["speculative"]
    for which in (icarus, verilator):
        assert_equal(
            rtl[which], sum(r["programs"] for r in runs), sum(r["cycles"] for r in runs), which
        )


@pytest.mark.full
def test_decode_of_the_pydoc_model_says_what_was_compared(verilator: Simulator, cli: Cli) -> None:
    result = cli("decode", "--max-new-tokens", 2, "--rtl", verilator)
    assert result.code == 0
    last = result.out.splitlines()[-1]
    assert last.startswith("verilator: ")
    assert "replayed on the RTL, all equal in every word and counter" in last


def test_replay(each_simulator: Simulator, cli: Cli, program: Path) -> None:
    simulator = each_simulator
    counters = load_program(program).counters
    record = cli("replay", program, "--rtl", simulator, "--seed", 7, "--json").json()
    assert (record["program"], record["seed"]) == ("verify_m2_c1", 7)
    assert (record["cycles"], record["cycles_by_unit"]) == (counters.total, counters.by_unit())
    assert_equal(record["rtl"][simulator], 1, counters.total, simulator)
    text = cli("replay", program, "--rtl", simulator)
    assert text.code == 0
    assert f"{simulator}: 1 program replayed on the RTL, all equal" in text.out


@pytest.mark.parametrize(("ending", "start"), [("vcd", b"$"), ("fst", b"\0")])
def test_waveforms(
    simulator: Simulator, cli: Cli, program: Path, tmp_path: Path, ending: str, start: bytes
) -> None:
    wave = tmp_path / f"out.{ending}"
    assert cli("replay", program, "--rtl", simulator, "--wave", wave).code == 0
    content = wave.read_bytes()
    assert content.startswith(start)
    assert len(content) > 10_000
    if ending == "vcd":
        assert b"u_sequencer" in content


def on_a_terminal(*arguments: object) -> str:
    """What a command shows on a terminal of its own; it must succeed."""
    main, other = pty.openpty()
    command = [sys.executable, "-m", "capra", *map(str, arguments)]
    with subprocess.Popen(  # noqa: S603
        command, stdin=other, stdout=other, stderr=other, env={**os.environ, "TERM": "xterm"}
    ) as process:
        os.close(other)
        shown = b""
        try:
            while part := os.read(main, 1 << 16):
                shown += part
        except OSError:  # the end, as Linux tells it
            pass
    os.close(main)
    assert process.returncode == 0, shown
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.decode())


@pytest.mark.parametrize("command", ["decode", pytest.param("replay", marks=pytest.mark.full)])
def test_replays_show_how_far_they_are(icarus: Simulator, program: Path, command: str) -> None:
    options = ("--model", "random", "-n", 3) if command == "decode" else (program,)
    shown = on_a_terminal(command, *options, "--rtl", icarus)
    replayed = re.search(r"icarus: (\d+) programs? replayed on the RTL, all equal", shown)
    assert replayed
    bars = re.findall(r"programs on icarus[^\r\n]*? (\d+)/(\d+) ", shown)
    assert bars[0] == ("0", replayed[1])
    assert bars[-1] == (replayed[1], replayed[1])
    if command == "decode":
        assert shown.count("[plain] 0 ") == shown.count("[speculative] 0 ") == 1


def assert_refused(result: Result, *parts: str) -> None:
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ") and result.err.count("\n") == 1
    for part in parts:
        assert part in result.err


@pytest.mark.parametrize(
    ("rtl", "package"), [("icarus", "iverilog"), ("verilator", "verilator")]
)  # fmt: skip
@pytest.mark.parametrize("command", ["decode", "table", "replay"])
def test_a_missing_simulator_is_refused(
    cli: Cli, program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
    command: str, rtl: str, package: str,
) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", str(tmp_path))
    arguments = [program] if command == "replay" else []
    result = cli(command, *arguments, "--rtl", rtl)
    assert_refused(result, f"install the package {package}")


def test_verilator_without_a_compiler_is_refused(
    cli: Cli, program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "verilator").write_text("#!/bin/sh\n")
    (tmp_path / "verilator").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert_refused(cli("replay", program, "--rtl", "verilator"), "install the package g++")


@pytest.mark.sample(4)
@pytest.mark.parametrize("names", ["modelsim", "", "icarus,", "Icarus"])
@pytest.mark.parametrize("command", ["decode", "table", "replay"])
def test_an_unknown_simulator_is_refused(cli: Cli, program: Path, command: str, names: str) -> None:
    arguments = [program] if command == "replay" else []
    assert_refused(
        cli(command, *arguments, "--rtl", names), "expected one or more of icarus, verilator"
    )


def test_waveforms_that_are_refused(cli: Cli, program: Path, tmp_path: Path) -> None:
    one = ("replay", program, "--rtl", "verilator", "--wave")
    assert_refused(cli(*one, tmp_path / "out.png"), "out.png", "ends in .vcd or .fst")
    assert_refused(cli(*one, tmp_path / "none" / "out.vcd"), "cannot write")
    assert_refused(
        cli("replay", program, "--wave", tmp_path / "out.vcd"),
        "icarus and verilator", "expected a single simulator",
    )  # fmt: skip


def test_replay_of_no_program_file(cli: Cli, tmp_path: Path) -> None:
    assert_refused(cli("replay", tmp_path / "none.ga2"), "program file", "No such file")


@pytest.mark.parametrize(
    "command", ["decode --model random -n 2", pytest.param("table", marks=pytest.mark.full)]
)
def test_nothing_of_it_is_imported_without_the_option(command: str) -> None:
    code = (
        f"import sys; sys.argv = 'capra {command}'.split()\n"
        "from capra.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(sorted(m for m in sys.modules if 'cosim' in m))"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def broken(
    monkeypatch: pytest.MonkeyPatch, folder: Path, file: str, right: str, wrong: str
) -> None:
    """Make the tool build a copy of the chip in which one line of one file is wrong."""
    copy = folder / "rtl"
    shutil.copytree(RTL, copy)
    text = (copy / file).read_text()
    assert text.count(right) == 1
    (copy / file).write_text(text.replace(right, wrong))
    monkeypatch.setattr(toolchain, "RTL", copy)
    monkeypatch.setattr(toolchain, "BUILD", folder / "build")


def test_a_wrong_word_is_found_and_named(
    icarus: Simulator, cli: Cli, program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken(monkeypatch, tmp_path, "dma.sv", "request_q <= sp_rdata_i;",
           "request_q <= sp_rdata_i ^ 32'h10;")  # fmt: skip
    result = cli("replay", program, "--rtl", icarus, "--json")
    found = result.json(code=1)["rtl"]["icarus"]
    assert (found["programs"], found["mismatches"]) == (1, 1)
    loaded = load_program(program)
    index, store = next(
        (i, inst) for i, inst in enumerate(loaded.instructions) if inst.mnemonic == "ST"
    )
    slot = next(slot for slot in loaded.slots("output") if slot.address == store["d"])
    assert result.err.startswith(
        f"mismatch: icarus: program verify_m2_c1: external word {slot.address} "
        f"(output {slot.name}[0, 0]), last written by instruction {index} ({store}; retires in "
    )
    bits, wanted = result.err.rsplit("is ", 1)[1].strip().split(", expected ")
    assert int(bits, 16) ^ int(wanted, 16) == 0x10


@pytest.mark.full
def test_a_wrong_counter_is_found_in_every_program_of_a_run(
    icarus: Simulator, cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken(monkeypatch, tmp_path, "counters.sv", "vector_o <= vector_o + WIDTH'(1)",
           "vector_o <= vector_o + WIDTH'(2)")  # fmt: skip
    options = ("--model", "random", "--max-new-tokens", 2, "--rtl", icarus)
    result = cli("decode", *options, "--json")
    record = result.json(code=1)
    found = record["rtl"]["icarus"]
    assert found["programs"] == found["mismatches"] > 2
    assert record["tokens_equal"], "the run itself is the simulator's"
    head, tail = result.err.split("counter vector is ")
    assert head == "mismatch: icarus: program step_c0: "
    twice, once = tail.strip().split(", expected ")
    assert int(twice) == 2 * int(once)
    text = cli("decode", *options)
    assert text.code == 1
    assert f"{found['mismatches']} of them NOT EQUAL" in text.out


def test_a_hang_is_named_by_its_instruction(
    icarus: Simulator, cli: Cli, program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken(monkeypatch, tmp_path, "sequencer.sv", "if (unit_done_i) begin",
           "if (unit_done_i && index_o != INDEX_BITS'(7)) begin")  # fmt: skip
    result = cli("replay", program, "--rtl", icarus)
    assert result.code == 1
    loaded = load_program(program)
    cycle = sum(inst.cycles + 2 for inst in loaded.instructions[:8])
    assert result.err.startswith(
        f"mismatch: icarus: program verify_m2_c1: hang at instruction 7 "
        f"({loaded.instructions[7]}; retires in cycle {cycle}) in cycle "
    )
    assert "NOT EQUAL" in result.out


def test_a_chip_that_does_not_compile_is_an_error(
    icarus: Simulator, cli: Cli, program: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken(monkeypatch, tmp_path, "dma.sv", "endmodule", "endmodul")
    assert_refused(cli("replay", program, "--rtl", icarus), "iverilog ended with", "dma.sv")
