"""Where a benchmark writes is checked before it measures for minutes."""

import json
from collections.abc import Callable
from pathlib import Path

import benchmarks.__main__ as bench
import benchmarks.peers.__main__ as peers
import pytest
from benchmarks.records import Record


def _measured() -> Record:
    raise AssertionError("measured before the output was checked")


def _run(
    monkeypatch: pytest.MonkeyPatch, main: Callable[[], None], *arguments: str | Path
) -> int | str | None:
    """The exit code of a command whose every part is `_measured`."""
    for module, names in ((bench, ("commands", "engines")), (peers, ("capra", "environment"))):
        for name in names:
            monkeypatch.setattr(module, name, _measured)
    monkeypatch.setattr("sys.argv", ["benchmarks", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize(("main", "parts"), [(bench.main, ["commands"]), (peers.main, [])])
def test_a_folder_that_is_not_there_is_refused_first(
    main: Callable[[], None],
    parts: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    path = tmp_path / "no" / "x.json"
    assert _run(monkeypatch, main, *parts, "-o", path) == 2
    assert f"error: cannot write {path}, expected a file name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"not json", "cannot be read as a record of this command"),
        (b"\xff\xfe\xfa", "cannot be read as a record of this command"),
        (b"[1, 2]", "is JSON of another kind"),
        (b'{"kind": "peers", "environments": {}}', "is JSON of another kind"),
        (b'{"kind": "bench"}', "is JSON of another kind"),
    ],
)
def test_a_file_that_is_no_record_is_refused_first_and_stays(
    content: bytes,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert _run(monkeypatch, bench.main, "commands", "-o", path) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert f"{path} {found}" in error
    assert path.read_bytes() == content


def test_a_part_measured_again_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "x.json"
    old = {"kind": "bench", "environments": {"engines": {"cores": 3}}, "engines": {"tiny": 1}}
    path.write_text(json.dumps(old))
    monkeypatch.setattr(bench, "commands", lambda: {"help": 2})
    monkeypatch.setattr("sys.argv", ["benchmarks", "commands", "-o", str(path)])
    bench.main()
    record = json.loads(path.read_text())
    assert record.pop("commands") == {"help": 2}
    assert "cores" in record["environments"].pop("commands")
    assert record == old
