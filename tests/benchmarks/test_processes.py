"""A process is measured, its output read, and its failure said."""

import sys
from pathlib import Path

import pytest
from benchmarks.processes import MeasureError, measure, measure_output

BUSY = "import time; end = time.process_time() + 0.2\nwhile time.process_time() < end: pass"


def test_processor_time_and_memory_count() -> None:
    found = measure((sys.executable, "-c", f"held = bytearray(b'x') * (80 << 20); {BUSY}"), 2)
    assert len(found["runs"]) == 2
    assert 0.2 <= found["process_seconds"] < 5
    assert 80 < found["peak_mib"] < 120
    assert found["wall_seconds"] == min(run["wall_seconds"] for run in found["runs"])


def test_output_directory_and_environment(tmp_path: Path) -> None:
    code = "import json, os; print(json.dumps(os.environ['SIZE']))"
    _, printed = measure_output((sys.executable, "-c", code), environment={"SIZE": "7"})
    assert printed == "7"
    measure((sys.executable, "-c", "open('here', 'w')"), 1, directory=tmp_path)
    assert (tmp_path / "here").exists()


def test_bytecode_is_kept_whatever_the_shell_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    code = "import json, sys; print(json.dumps(sys.dont_write_bytecode))"
    assert measure_output((sys.executable, "-c", code))[1] is False


def test_a_failure_has_its_last_lines() -> None:
    with pytest.raises(MeasureError, match=r"ended with 3: the reason"):
        measure((sys.executable, "-c", "import sys; print('the reason', file=sys.stderr); exit(3)"))


def test_the_memory_of_this_process_does_not_count() -> None:
    held = bytearray(b"x") * (150 << 20)
    assert measure((sys.executable, "-S", "-c", "pass"), 1)["peak_mib"] < len(held) / (1 << 20) / 2
