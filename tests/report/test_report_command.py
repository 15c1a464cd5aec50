"""capra report and capra profile: what they write, and that they write nothing when they refuse."""

import errno
import json
from pathlib import Path

import pytest
from tests.command import Cli, Result
from tests.report.samples import RECORDS, printed, profile_record

from capra.cli.app import app
from capra.errors import InputError
from capra.report.figures import FIGURES


@pytest.fixture
def records(tmp_path: Path) -> list[str]:
    """A file of every kind of record."""
    paths = [tmp_path / f"{kind}.json" for kind in RECORDS]
    for path in paths:
        path.write_text(json.dumps(RECORDS[path.stem]()))
    return list(map(str, paths))


def report(*arguments: str) -> None:
    app(["report", *arguments], standalone_mode=False)


def test_a_report_is_the_same_file_for_the_same_records(records: list[str], tmp_path: Path) -> None:
    for name in ("once.html", "again.html"):
        report(*records[3:], "-o", str(tmp_path / name))
    once, again = (tmp_path / name for name in ("once.html", "again.html"))
    assert once.read_bytes() == again.read_bytes()
    assert once.read_text().startswith("<!doctype html>")


def test_figures_and_traces_go_to_folders(records: list[str], tmp_path: Path) -> None:
    figures, traces = tmp_path / "figures", tmp_path / "traces"
    chosen = [path for path in records if Path(path).stem in ("plan", "profile", "decode")]
    report(*chosen, "--figures", str(figures), "--traces", str(traces))
    names = {f"{kind}-{name}" for kind in ("plan", "decode") for name, _, _ in FIGURES[kind]}
    found = {path.name for path in figures.iterdir()}
    assert found == {f"{name}.{ending}" for name in names for ending in ("png", "svg")}
    assert {path.name for path in traces.iterdir()} == {
        "decode.trace.json", "profile.trace.json",
    }  # fmt: skip
    for path in traces.iterdir():
        assert json.loads(path.read_text())["traceEvents"]


def test_a_folder_for_nothing_is_not_made_and_that_is_said(cli: Cli, tmp_path: Path) -> None:
    path, folder = tmp_path / "table.json", tmp_path / "traces"
    path.write_text(json.dumps(RECORDS["table"]()))
    assert cli("report", path, "--traces", folder) == Result(
        0, "",
        f"{folder}: not written, as no record has a trace, as those of decode, trace and profile "
        "have\n",
    )  # fmt: skip
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to write, expected --output, --figures or --traces"),
        (["-o", "{}/no/report.html"], r"cannot write .*no/report\.html, expected a file name in a"),
        (["--figures", "{}/plan.json"], r"cannot make the folder .*plan\.json: File exists"),
        (["--traces", "{}/no/traces"], r"cannot make the folder .*traces: No such file"),
    ],
)
def test_what_cannot_be_written_is_refused(
    arguments: list[str], sentence: str, records: list[str], tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=sentence):
        report(*records, *(argument.format(tmp_path) for argument in arguments))
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("output", ["no/report.html", "decode.json"])
def test_an_output_is_refused_before_anything_is_drawn(
    output: str, records: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(_sources: object) -> None:
        raise NotImplementedError("drawn")

    monkeypatch.setattr("capra.report.figures.draw", draw)
    with pytest.raises(InputError, match=f"cannot write .*{output}"):
        report(*records, "-o", str(tmp_path / output))


def test_no_record_is_overwritten_and_no_file_written_twice(
    records: list[str], tmp_path: Path
) -> None:
    record = tmp_path / "decode.json"
    trace, link = tmp_path / "decode.trace.json", tmp_path / "link.html"
    trace.write_bytes(record.read_bytes())
    link.symlink_to("decode.json")
    page = ["-o", f"{tmp_path}/f/../f/decode-blocks.svg", "--figures", f"{tmp_path}/f"]
    page[1] = page[1].replace("decode-blocks", f"decode-{FIGURES['decode'][0][0]}")
    (tmp_path / "f").mkdir()
    before = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
    for arguments, sentence in (
        ([str(record), "-o", str(record)], rf"cannot write {record}: it is {record} too, expected"),
        ([str(record), "-o", str(link)], rf"cannot write {link}: it is {record} too, expected a"),
        ([str(record), str(trace), "--traces", str(tmp_path)], rf"cannot write {trace}: it is"),
        ([str(record), *page], r"cannot write .*\.svg: it is .*\.svg too, expected a file of its"),
    ):  # fmt: skip
        with pytest.raises(InputError, match=sentence):
            report(*arguments)
        found = {path: path.is_file() and path.read_bytes() for path in tmp_path.rglob("*")}
        assert found == before


def test_a_bad_record_among_good_ones_leaves_nothing_behind(
    records: list[str], tmp_path: Path
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"kind": "plan", "ks": [], "optimize": [], "settings": {"max_k": 1}}')
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"bad\.json lacks cost_curve, expected it among"):
        report(records[3], str(bad), "-o", str(tmp_path / "r.html"), "--figures",
               str(tmp_path / "f"), "--traces", str(tmp_path / "t"))  # fmt: skip
    assert sorted(tmp_path.iterdir()) == before


def test_profile_prints_a_table_or_a_record(tmp_path: Path) -> None:
    file = str(tmp_path / "step.ga2")
    app(["compile", "--model", "random", "-o", file], standalone_mode=False)
    record = json.loads(printed("profile", file, "--json"))
    assert record["kind"] == "profile" and record["program"] == "step_c0"
    text = printed("profile", file)
    assert f"{record['cycles']:,}" in text.splitlines()[-1]
    assert set(record) == set(profile_record())


@pytest.mark.parametrize("more", [[], ["-o", "/no/such/report.html"], ["--figures", "/no/f"]])
def test_a_missing_record_is_named_first(more: list[str], cli: Cli, tmp_path: Path) -> None:
    """Before what is wrong with the outputs, or that there are none."""
    result = cli("report", tmp_path / "missing.json", *more)
    assert result == Result(
        2, "",
        f"error: record {tmp_path}/missing.json: No such file or directory, expected a file that "
        "a command printed with --json\n",
    )  # fmt: skip


def test_an_unreadable_record_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_bytes(_path: Path) -> bytes:
        raise PermissionError(errno.EACCES, "Permission denied")

    (tmp_path / "secret.json").write_text("{}")
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    result = cli("report", tmp_path / "secret.json")
    assert (result.code, result.out) == (2, "")
    assert f"record {tmp_path}/secret.json: Permission denied, expected a file" in result.err
