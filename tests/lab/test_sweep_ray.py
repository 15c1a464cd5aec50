"""The Ray engine: on a stand-in everywhere, on a local Ray of two workers where it is installed."""

import signal
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.lab.sweeps import row_of, sweep_of, write_spec
from tests.lm.samples import text_model

from capra.errors import InputError, SweepError
from capra.lab.sweep import cluster
from capra.lab.sweep.cluster import RayPool
from capra.lab.sweep.pool import run_cells
from capra.lm.checkpoint import save_checkpoint

CPUS = 3


class RayError(Exception):
    """Whatever Ray raises of an actor."""


class FakeRay(ModuleType):
    """The part of Ray that the engine uses, in this process: a reference is a call to make."""

    exceptions = type("exceptions", (), {"RayError": RayError})

    def __init__(self) -> None:
        super().__init__("ray")
        self.started: dict[str, Any] = {}
        self.up = False

    def init(self, address: str, **options: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # as Ray does, in its way
        self.started, self.up = {"address": address, **options}, True

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(self.started.get("num_cpus") or CPUS)}

    def remote(self, num_cpus: int) -> Any:
        assert num_cpus == 1

        def actor_of(kind: type) -> Any:
            return type("Actor", (), {"remote": staticmethod(lambda *args: _Remote(kind(*args)))})

        return actor_of

    def wait(self, references: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        assert num_returns == 1
        return references[-1:], references[:-1]

    def get(self, found: Any) -> Any:
        return [each() for each in found] if isinstance(found, list) else found()

    def shutdown(self) -> None:
        self.up = False


class _Remote:
    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._actor, name)
        return type("", (), {"remote": staticmethod(lambda *args: lambda: method(*args))})


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    fake = FakeRay()
    monkeypatch.setitem(sys.modules, "ray", fake)
    return fake


def test_the_engine_runs_every_cell_and_leaves_sigterm_alone(ray: FakeRay, tmp_path: Path) -> None:
    sweep, handler = sweep_of(tmp_path), signal.getsignal(signal.SIGTERM)
    with closing(RayPool("local", 2, sweep.files)) as pool:
        assert pool.size == ray.started["num_cpus"] == 2
        assert signal.getsignal(signal.SIGTERM) is handler
        rows = dict(run_cells(pool, sweep.cells.values()))
    assert rows == {cell: row_of(cell) for cell in sweep.cells.values()}
    assert not ray.up


def test_all_cpus_of_a_cluster_work(ray: FakeRay) -> None:
    assert RayPool("auto", None, {}).size == CPUS
    assert "num_cpus" not in ray.started, "a running cluster has the CPUs that it has"


def test_clusters_that_are_too_small_or_make_other_rows(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="'auto' has 3 CPUs, expected at least 4, one a worker"):
        RayPool("auto", 4, {})
    file = str(tmp_path / "mine.safetensors")
    with pytest.raises(InputError, match=f"has another file {file} or none, expected the same"):
        RayPool("auto", 1, {file: "0123"})
    builds = iter(["capra 8", "capra 9"])
    monkeypatch.setattr(cluster, "build", lambda: next(builds))
    with pytest.raises(InputError, match=r"a worker .* has capra 8, expected capra 9"):
        RayPool("auto", 1, {})
    assert not ray.up


def test_a_dead_actor_is_an_error(
    ray: FakeRay, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def dies(_found: Any) -> Any:
        raise RayError("the actor is dead")

    cells = sweep_of(tmp_path).cells.values()
    with closing(RayPool("local", 1, {})) as pool:
        monkeypatch.setattr(ray, "get", dies)
        with pytest.raises(SweepError, match=r"a Ray worker died, .* the actor is dead"):
            [*run_cells(pool, cells)]


def test_a_file_that_changed_is_an_error(ray: FakeRay, tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    save_checkpoint(text_model(), path, {})
    sweep = sweep_of(tmp_path, f"[[grid]]\nmodel = '{path}'\nmax_new_tokens = 2")
    with closing(RayPool("local", 1, sweep.files)) as pool:
        path.unlink()
        with pytest.raises(SweepError, match=r"^the file .*mine\.safetensors cannot be read, exp"):
            [*run_cells(pool, sweep.cells.values())]


def test_addresses_where_no_cluster_is(ray: FakeRay) -> None:
    for address in ("nope", ":1", "host:", "ray://host:x", "host:١٢", "host:" + "9" * 5000):
        with pytest.raises(InputError, match="expected auto, local or HOST:PORT"):
            RayPool(address, 1, {})
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, and does not listen
        port = unused.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot use a Ray cluster at '127.0.0.1:{port}'"):
            RayPool(f"127.0.0.1:{port}", 1, {})
    assert not ray.started


def test_ray_gives_the_same_rows_as_the_local_engine(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="an optional extra: capra[ray]")
    spec = write_spec(tmp_path)
    for engine in ("local", "ray"):
        options = [
            "--engine",
            engine,
            "--workers",
            "2",
            "--database",
            f"{tmp_path / engine}.sqlite",
        ]
        command = ["sweep", str(spec), *options, "--csv", f"{tmp_path / engine}.csv"]
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "capra", *command], capture_output=True, text=True, timeout=240
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("9 cells: 0 were stored before, 9 were executed now")
    assert (tmp_path / "ray.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()
