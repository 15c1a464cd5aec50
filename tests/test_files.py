"""A file is written whole or not at all."""

import errno
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from capra.errors import InputError
from capra.files import check_distinct, digests, write_atomically


def test_the_file_holds_exactly_the_data(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    for data in (b"first version", b"", bytes(range(256)) * 1000):
        write_atomically(path, data)
        assert path.read_bytes() == data
    assert list(tmp_path.iterdir()) == [path]


def test_the_old_file_stays_until_the_new_one_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    replace, seen = Path.replace, []

    def spy(self: Path, target: Path) -> Path:
        seen.append((self.parent, self.read_bytes(), target.read_bytes()))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", spy)
    write_atomically(path, b"new")
    assert seen == [(tmp_path, b"new", b"old")]
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("failing", ["fdopen", "chmod", "replace"])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    fdopen = os.fdopen

    def fail(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    class FullDisk:
        def __init__(self, handle: int, mode: str) -> None:
            self.file = fdopen(handle, mode)

        def __enter__(self) -> "FullDisk":
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def write(self, data: bytes) -> None:
            self.file.write(data[: len(data) // 2])
            fail()

    if failing == "fdopen":
        monkeypatch.setattr(os, "fdopen", FullDisk)
    else:
        monkeypatch.setattr(Path, failing, fail)
    with pytest.raises(InputError, match=r"cannot write .*file: No space left on device"):
        write_atomically(path, b"new data")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_directory_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"cannot write .*missing/file, expected a file name in a writable"
    ):
        write_atomically(tmp_path / "missing" / "file", b"data")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    path = tmp_path / "directory"
    path.mkdir()
    with pytest.raises(InputError, match=r"cannot write .*directory"):
        write_atomically(path, b"data")
    assert list(tmp_path.iterdir()) == [path]
    assert list(path.iterdir()) == []


def test_an_output_is_no_input_and_no_other_output(tmp_path: Path) -> None:
    """By the file, not by the path that leads to it."""
    spec, link = tmp_path / "spec", tmp_path / "link"
    link.symlink_to(spec)
    check_distinct([tmp_path / "a", tmp_path / "b"], [spec, spec])
    for outputs in ([spec], [link], [tmp_path / "a", tmp_path / "x" / ".." / "a"]):
        with pytest.raises(InputError, match=r"cannot write .*: it is .* too, expected a file of"):
            check_distinct(outputs, [spec])


@pytest.mark.parametrize(("mask", "mode"), [(0o077, 0o600), (0o022, 0o644), (0o002, 0o664)])
def test_a_new_file_has_what_the_umask_leaves(mask: int, mode: int, tmp_path: Path) -> None:
    path, before = tmp_path / "file", os.umask(mask)
    try:
        write_atomically(path, b"data")
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == mode


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_replaced_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert path.stat().st_mode & 0o777 == mode
    assert path.read_bytes() == b"new"


def test_a_private_file_is_private_while_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, fdopen, modes = tmp_path / "file", os.fdopen, []
    path.touch(0o600)

    def spy(handle: int, how: str) -> Any:
        modes.append(os.fstat(handle).st_mode & 0o777)
        return fdopen(handle, how)

    monkeypatch.setattr(os, "fdopen", spy)
    write_atomically(path, b"secret")
    assert modes == [0o600]


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 255)
    write_atomically(path, b"data")
    assert path.read_bytes() == b"data"


def test_a_digest_is_of_the_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    expected = hashlib.blake2b(b"abc", digest_size=16).hexdigest()
    assert digests([str(path), str(tmp_path / "none")]) == {
        str(path): expected, str(tmp_path / "none"): None,
    }  # fmt: skip
