"""A compiled bench is built once, used while it is whole, and built anew when it is not."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from capra.cosim.builds import kept
from capra.errors import CosimError

SOURCES = {"a.sv": b"right\n", "b.sv": b"too\n"}


class Compiler:
    """Stands for a simulator: joins its sources, and counts how often it was asked to."""

    def __init__(self, folder: Path, script: str = "cat a.sv b.sv >new; chmod +x new") -> None:
        self._count = folder / "count"
        self.directory = folder / "build" / "tool-0123"
        self._command = ("sh", "-c", f"echo >>'{self._count}'; {script}")

    def bench(self, *, program: bool = True) -> Path:
        return kept(self._command, SOURCES, self.directory, program=program)

    @property
    def builds(self) -> int:
        return len(self._count.read_text())


def folder_in_its_place(bench: Path) -> None:
    bench.unlink()
    bench.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda bench: bench.write_bytes(bench.read_bytes()[:-1]),
    "emptied": lambda bench: bench.write_bytes(b""),
    "longer": lambda bench: bench.write_bytes(bench.read_bytes() + b"\0"),
    "other content": lambda bench: bench.write_bytes(b"wrong\ntoo\n"),
    "not executable": lambda bench: bench.chmod(0o644),
    "gone": lambda bench: bench.unlink(),
    "a folder": folder_in_its_place,
    "killed before its digest": lambda bench: bench.with_name("bench.sha256").unlink(),
    "digest emptied": lambda bench: bench.with_name("bench.sha256").write_bytes(b""),
    "digest in no encoding": lambda bench: bench.with_name("bench.sha256").write_bytes(b"\xff"),
}


def assert_whole(bench: Path) -> None:
    assert bench.read_bytes() == b"right\ntoo\n"
    assert bench.stat().st_mode & 0o111


def test_a_whole_bench_is_used_again_and_nothing_is_written(tmp_path: Path) -> None:
    compiler = Compiler(tmp_path)
    assert_whole(compiler.bench())
    lock = compiler.directory.with_suffix(".lock")
    lock.unlink()
    assert_whole(compiler.bench())
    assert compiler.builds == 1
    assert not lock.exists(), "a folder that is read-only now will do"


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_bench_is_built_anew(tmp_path: Path, damage: str) -> None:
    compiler = Compiler(tmp_path)
    DAMAGE[damage](compiler.bench())
    assert_whole(compiler.bench())
    assert compiler.builds == 2
    assert_whole(compiler.bench())
    assert compiler.builds == 2


def test_a_bench_that_a_simulator_reads_need_not_be_executable(tmp_path: Path) -> None:
    compiler = Compiler(tmp_path, "cat a.sv >new")
    compiler.bench(program=False)
    compiler.bench(program=False)
    assert compiler.builds == 1


def test_what_a_killed_build_left_is_thrown_away(tmp_path: Path) -> None:
    compiler = Compiler(tmp_path)
    (compiler.directory / "obj").mkdir(parents=True)
    (compiler.directory / "new").write_bytes(b"rig")
    compiler.directory.with_suffix(".lock").touch()
    assert_whole(compiler.bench())
    left = sorted(path.name for path in compiler.directory.iterdir())
    assert left == ["bench", "bench.sha256", "build.log"]


def test_a_file_in_the_place_of_the_build_folder_is_replaced(tmp_path: Path) -> None:
    compiler = Compiler(tmp_path)
    compiler.directory.parent.mkdir()
    compiler.directory.write_bytes(b"")
    assert_whole(compiler.bench())


def test_a_folder_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    compiler = Compiler(tmp_path)
    (tmp_path / "build").write_bytes(b"")
    with pytest.raises(CosimError, match=r"^cannot build the testbench in .*/tool-0123: .*exists$"):
        compiler.bench()


def test_a_lock_that_cannot_be_taken_is_refused(tmp_path: Path) -> None:
    compiler = Compiler(tmp_path)
    compiler.directory.with_suffix(".lock").mkdir(parents=True)
    with pytest.raises(CosimError, match=r"^cannot build .*tool-0123\.lock: Is a directory$"):
        compiler.bench()


def test_a_full_disk_is_refused_and_leaves_no_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_source: Path, target: Path) -> None:
        target.write_bytes(b"rig")
        raise OSError(28, "No space left on device", str(target))

    compiler = Compiler(tmp_path)
    monkeypatch.setattr("shutil.copy", full)
    with pytest.raises(CosimError, match=r"^cannot build .*/new: No space left on device$"):
        compiler.bench()
    monkeypatch.undo()
    assert_whole(compiler.bench())


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no licence; exit 3", r"^sh ended with 3: no licence \(see .*/build\.log\)$"),
        ("exit 3", "^sh ended with 3: it printed nothing"),
        ("kill -9 $$", "^sh was ended by SIGKILL: "),
        ("true", "^sh ended with 0 and left no testbench: it printed nothing$"),
    ],
)
def test_a_compiler_that_fails_is_refused_each_time(
    tmp_path: Path, script: str, message: str
) -> None:
    compiler = Compiler(tmp_path, script)
    for time in (1, 2):
        with pytest.raises(CosimError, match=message):
            compiler.bench()
        assert compiler.builds == time


def test_where_make_cannot_build_the_temporary_folder_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GNU make refuses folders with spaces."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    compiler = Compiler(tmp_path / "a b", "pwd >new")
    compiler.directory.parent.mkdir(parents=True)
    where = compiler.bench(program=False).read_text()
    assert " " not in where
    assert where.startswith(f"{tmp_path}/capra-build-")
    assert sorted(tmp_path.iterdir()) == [tmp_path / "a b"], "and nothing stays there"
    shutil.rmtree(tmp_path / "a b")
