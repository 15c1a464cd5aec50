"""What is said of a tool that fails: its own words, without the noise around them."""

import os
import tempfile
from pathlib import Path

import pytest

from capra.cosim.tools import ended, last_words, run, temporary_folder
from capra.errors import CosimError

ICARUS = """\
dma.sv:122: error: Invalid module instantiation
I give up.
"""
ELABORATION = """\
tb.sv:38: error: Unknown module type: ga2
2 error(s) during elaboration.
"""
FATAL = """\
FATAL: tb.sv:180: cannot open jobs/jobs.txt
       Time: 0 Scope: tb
"""
VERILATOR = """\
%Error: dma.sv:122:1: syntax error, unexpected end of file
  122 | endmodul
      | ^~~~~~~~
%Error: Cannot continue
        ... See the manual at https://verilator.org/verilator_doc.html for more assistance.
%Error: Exiting due to 1 error(s)
%Error: Command Failed ulimit -s unlimited 2>/dev/null; exec /usr/bin/verilator_bin --binary
"""
STOPPED = """\
[0] %Fatal: tb.sv:180: Assertion failed in tb: cannot open jobs/jobs.txt
%Error: tb.sv:180: Verilog $stop
Aborting...
"""
ROOT = """\
sh: 1: exec: /nowhere/verilator_bin: not found
%Error: Command Failed ulimit -s unlimited 2>/dev/null; exec /nowhere/verilator_bin --version
"""
COMPILER = """\
g++: error: unrecognized command-line option '-fcoroutines'
make: *** [/usr/share/verilator/include/verilated.mk:245: verilated.o] Error 1
make[1]: Leaving directory '/x/obj'
%Error: make -C obj -f Vtb.mk -j 1 -s exited with 2
%Error: Command Failed ulimit -s unlimited 2>/dev/null; exec /usr/bin/verilator_bin --binary

"""
LIBRARY = "vvp: error while loading shared libraries: libbz2.so.1.0: cannot open shared object file"


@pytest.mark.parametrize(
    ("output", "words"),
    [
        (ICARUS, "dma.sv:122: error: Invalid module instantiation"),
        (ELABORATION, "tb.sv:38: error: Unknown module type: ga2"),
        (FATAL, "FATAL: tb.sv:180: cannot open jobs/jobs.txt"),
        (VERILATOR, "%Error: dma.sv:122:1: syntax error, unexpected end of file"),
        (STOPPED, "[0] %Fatal: tb.sv:180: Assertion failed in tb: cannot open jobs/jobs.txt"),
        (ROOT, "sh: 1: exec: /nowhere/verilator_bin: not found"),
        (COMPILER, "g++: error: unrecognized command-line option '-fcoroutines'"),
        (
            "make: *** [verilated.mk:245: verilated.o] Error 1\n%Error: make -C obj exited with 2",
            "make: *** [verilated.mk:245: verilated.o] Error 1",
        ),
        (LIBRARY, LIBRARY),
        ("", "it printed nothing"),
        (" \n\n", "it printed nothing"),
        ("%Error: Exiting due to 1 error(s)", "it printed nothing"),
    ],
)
def test_the_last_line_that_says_something(output: str, words: str) -> None:
    assert last_words(output) == words


def test_how_a_program_ended() -> None:
    assert [ended(code) for code in (0, 127, -9, -40)] == [
        "ended with 0", "ended with 127", "was ended by SIGKILL", "was ended by signal 40"
    ]  # fmt: skip


def test_a_tool_runs_in_its_folder_and_keeps_its_temporary_files_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setenv("MAKEFLAGS", "-j9")
    monkeypatch.setenv("MAKELEVEL", "1")
    script = 'pwd; echo "$TMPDIR$TMP$TEMP$MAKEFLAGS$MAKELEVEL"; read line || echo no input; exit 4'
    assert run(["sh", "-c", script], tmp_path) == (4, f"{tmp_path}\n...\nno input\n")


def test_bytes_that_are_no_text_are_read(tmp_path: Path) -> None:
    assert run(["printf", r"\377\n"], tmp_path) == (0, "\N{REPLACEMENT CHARACTER}\n")


def test_a_tool_is_found_where_the_path_is_relative(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tool").write_text("#!/bin/sh\necho here\n")
    (tmp_path / "bin/tool").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"bin{os.pathsep}{os.environ['PATH']}")
    assert run(["tool"], tmp_path / "bin") == (0, "here\n")


@pytest.mark.parametrize(
    ("content", "reason"), [("#!/nowhere/sh\n", "No such file"), ("", "Exec format error")]
)
def test_a_tool_that_cannot_be_started_is_refused(
    tmp_path: Path, content: str, reason: str
) -> None:
    tool = tmp_path / "tool"
    tool.write_text(content)
    tool.chmod(0o755)
    with pytest.raises(CosimError, match=f"^cannot start {tool}: {reason}"):
        run([str(tool)], tmp_path)


def test_a_machine_without_a_temporary_folder_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(CosimError, match=r"^cannot make a temporary file: No usable temporary dir"):
        temporary_folder()
