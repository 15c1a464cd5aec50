"""capra sweep as a user runs it: killed, stopped, resumed, exported, refused."""

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.command import Cli
from tests.lab.sweeps import write_spec
from tests.lm.samples import text_model

from capra.cli import main
from capra.lab.sweep import export
from capra.lab.sweep.cell import COLUMNS
from capra.lm.checkpoint import save_checkpoint
from capra.report.records import check_record

SPEC = """
[[grid]]
model = "structured"
model_seed = [1, 2, 3, 4, 5, 6, 7, 8]
max_new_tokens = 4
k = [1, 2, 3]

[[grid]]
model = "random"
external_words = 2000
"""
CELLS = 25
"""Many targets: each takes a while to begin, so that there is time to interrupt the sweep."""

SECONDS = 300


def start(spec: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "capra", "sweep", str(spec), "--workers", "2", *options]
    return subprocess.Popen(  # noqa: S603
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def finish(spec: Path, *options: str) -> Any:
    out, err = (process := start(spec, "--json", *options)).communicate(timeout=SECONDS)
    assert process.returncode == 0, err
    return json.loads(out)


def stored(path: Path) -> list[tuple[Any, ...]]:
    """Rows with their ids, in the order in which they were stored."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT rowid, * FROM rows ORDER BY rowid").fetchall()
    except sqlite3.OperationalError:  # not there yet
        return []


def start_and_wait(spec: Path, rows: int) -> subprocess.Popen[str]:
    process, end = start(spec), time.monotonic() + SECONDS
    while len(stored(spec.with_suffix(".sqlite"))) < rows:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no rows came"
        time.sleep(0.01)
    return process


def in_group(group: int) -> list[str]:
    """Processes of a group that still run, by /proc."""
    stats = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # gone meanwhile
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            stats.append(path.parent.name)
    return stats


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The CSV of the sweep run at once."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    record = finish(write_spec(folder, SPEC), "--csv", str(folder / "rows.csv"))
    assert (record["stored_before"], record["executed"], record["refused"]) == (0, CELLS, 1)
    return (folder / "rows.csv").read_text()


@pytest.mark.sample(1)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_an_interrupted_sweep_goes_on(
    how: signal.Signals, tmp_path: Path, uninterrupted: str
) -> None:
    spec = write_spec(tmp_path, SPEC)
    process = start_and_wait(spec, CELLS // 2)
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as Ctrl-C does, workers included
    else:
        process.send_signal(how)
    _, err = process.communicate(timeout=SECONDS)
    before = stored(spec.with_suffix(".sqlite"))
    assert CELLS // 2 <= len(before) < CELLS
    if how == signal.SIGKILL:
        assert process.returncode == -how
    else:
        assert process.returncode == 128 + how
        said = f"stopped: {len(before)} rows of {CELLS} are in {spec.with_suffix('.sqlite')}; "
        assert err == f"{said}the same command again runs the others only\n"
    end = time.monotonic() + SECONDS
    while in_group(process.pid):
        assert time.monotonic() < end, "workers outlive the command"
        time.sleep(0.01)
    record = finish(spec, "--csv", str(tmp_path / "rows.csv"))
    assert record["stored_before"] == len(before)
    assert record["executed"] == CELLS - len(before)
    assert stored(spec.with_suffix(".sqlite"))[: len(before)] == before
    assert (tmp_path / "rows.csv").read_text() == uninterrupted


def test_the_csv(uninterrupted: str) -> None:
    rows = [*csv.DictReader(uninterrupted.splitlines())]
    assert len(rows) == CELLS
    assert [*rows[0]] == [*COLUMNS]
    assert [row["k"] for row in rows] == ["1", "2", "3"] * 8 + ["3"]
    assert {row["tokens_equal"] for row in rows[:-1]} == {"true"}
    assert rows[-1]["refusal"].endswith("expected at most 2000") and not rows[-1]["cycles"]
    for row in rows[:-1]:
        assert float(row["speedup"]) == int(row["plain_cycles"]) / int(row["cycles"])


def run(monkeypatch: pytest.MonkeyPatch, *args: str) -> int:
    """The exit code of the command in this process."""
    monkeypatch.setattr("sys.argv", ["capra", "sweep", *args])
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


ONE_CELL = "[[grid]]\nmodel = 'random'\nmax_new_tokens = 2"


def test_the_summary_and_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="an optional extra: capra[parquet]")
    spec, table, text = write_spec(tmp_path, ONE_CELL), tmp_path / "a.parquet", tmp_path / "a.csv"
    assert run(monkeypatch, str(spec), "--parquet", str(table), "--csv", str(text)) == 0
    said = capsys.readouterr().out
    assert said.startswith("1 cells: 0 were stored before, 1 were executed now; 0 are refusals.")
    found = parquet.read_table(table)
    kinds = {str: "string", int: "int64", float: "double", bool: "bool"}
    assert {field.name: str(field.type) for field in found.schema} == {
        name: kinds[kind] for name, kind in COLUMNS.items()
    }
    (row,), (line,) = found.to_pylist(), csv.DictReader(text.read_text().splitlines())
    written = {name: "" if value is None else value for name, value in row.items()}
    assert {**written, "tokens_equal": "true"} == {
        name: COLUMNS[name](value) if value and COLUMNS[name] is not bool else value
        for name, value in line.items()
    }


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--address", "auto"], r"--address is 'auto', expected it with --engine ray only"),
        (["--engine", "ray"], r"ray is not installed, expected pip install '\.\[ray\]' in the c"),
        (["--parquet", "a"], r"pyarrow is not installed, .* pip install '\.\[parquet\]' in the"),
        (["--csv", "/"], r"cannot write /: it is there and is not a regular file"),
        (["--engine", "nope"], r"'nope' is not one of 'local', 'ray'"),
        (["--workers", "0"], r"expected a whole number of at least 1"),
    ],
)  # fmt: skip
def test_refusals_before_anything_runs(
    options: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, str(write_spec(tmp_path, ONE_CELL)), *options) == 2
    out, err = capsys.readouterr()
    assert not out
    assert re.fullmatch(f"error: .*{sentence}.*\n", err), err
    assert not stored(tmp_path / "spec.sqlite")


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--database", "x.sqlite", "--csv", "x.sqlite"], "x.sqlite: it is x.sqlite too"),
        (["--csv", "spec.sqlite-wal"], "spec.sqlite-wal: it is {}/spec.sqlite-wal too"),
        (["--csv", "spec.toml"], "spec.toml: it is {}/spec.toml too"),
        (["--csv", "link"], "link: it is {}/spec.toml too"),
        (["--database", "spec.toml"], "spec.toml: it is {}/spec.toml too"),
        (["--csv", "mine.safetensors"], "mine.safetensors: it is mine.safetensors too"),
        (["--csv", "a", "--parquet", "./b/../a"], "b/../a: it is a too"),
    ],
)  # fmt: skip
def test_an_output_that_is_an_input_or_another_output_is_refused(
    options: list[str], part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(export, "load_arrow", lambda: None)
    monkeypatch.chdir(tmp_path)
    save_checkpoint(text_model(), tmp_path / "mine.safetensors", {})
    spec = write_spec(tmp_path, f"{ONE_CELL}\ndraft = ['bigram', 'mine.safetensors']")
    (tmp_path / "link").symlink_to("spec.toml")
    (tmp_path / "b").mkdir()
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()}
    assert run(monkeypatch, str(spec), *options) == 2
    expected = f"error: cannot write {part.format(tmp_path)}, expected a file of its own\n"
    assert capsys.readouterr() == ("", expected)
    assert {path: path.is_file() and path.read_bytes() for path in tmp_path.iterdir()} == before


def test_other_tokens_are_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = write_spec(tmp_path, ONE_CELL)
    assert run(monkeypatch, str(spec), "--workers", "1") == 0
    with closing(sqlite3.connect(spec.with_suffix(".sqlite"))) as connection:
        connection.execute("UPDATE rows SET tokens_equal = 0")
        connection.commit()
    assert run(monkeypatch, str(spec)) == 1
    assert "error: speculation changed the tokens" in capsys.readouterr().err


REFUSED = "[[grid]]\nmodel = 'random'\nstart_token = [99, 100]"


def test_a_sweep_of_refusals_compared_nothing_and_says_so(cli: Cli, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, REFUSED)
    result = cli("sweep", spec, "--workers", 1, "--json")
    record = result.json(code=1)
    assert (record["cells"], record["refused"], record["tokens_equal"]) == (2, 2, None)
    assert result.err == (
        "error: nothing was compared, expected at least one cell that is no refusal\n"
    )
    check_record("sweep", record)


def test_cells_of_no_tokens_compare_nothing_as_they_were_asked(cli: Cli, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, "[[grid]]\nmodel = 'random'\nmax_new_tokens = 0")
    record = cli("sweep", spec, "--workers", 1, "--json").json()
    assert (record["refused"], record["tokens_equal"]) == (0, None)


def test_a_refusal_beside_a_run_takes_nothing_from_it(cli: Cli, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, f"{ONE_CELL}\nstart_token = [0, 99]")
    record = cli("sweep", spec, "--workers", 1, "--json").json()
    assert (record["refused"], record["tokens_equal"]) == (1, True)


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o002, 0o664)])
def test_the_files_of_a_sweep_have_what_the_umask_leaves(
    mask: int, mode: int, cli: Cli, tmp_path: Path
) -> None:
    spec, before = write_spec(tmp_path, ONE_CELL), os.umask(mask)
    try:
        assert cli("sweep", spec, "--workers", 1, "--csv", tmp_path / "rows.csv").code == 0
    finally:
        os.umask(before)
    for name in ("spec.sqlite", "rows.csv"):
        assert (tmp_path / name).stat().st_mode & 0o777 == mode, name


def test_a_prompt_with_a_carriage_return_is_one_row(cli: Cli, tmp_path: Path) -> None:
    spec = write_spec(tmp_path, '[[grid]]\nmodel = "random"\nprompt = "a\\rb\\r\\n\\"c\\u0000"')
    assert cli("sweep", spec, "--workers", 1, "--csv", tmp_path / "rows.csv").code == 1
    with (tmp_path / "rows.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert row["prompt"] == 'a\rb\r\n"c\0'
    assert row["refusal"].startswith(r"""the prompt is 'a\rb\r\n"c\x00', but model random has""")
