"""Workers as actors of a Ray cluster. Needs `pip install '.[ray]'` in the checkout."""

import os
import re
import signal
import socket
from collections.abc import Mapping
from typing import Any, Final

from capra.errors import InputError, SweepError
from capra.files import digests
from capra.lab.sweep.build import build
from capra.lab.sweep.cell import Cell, CellRunner, Row
from capra.lab.sweep.extras import import_extra

LOCAL: Final = "local"
"""The address of a Ray that is started for the sweep, on this machine."""

AUTO: Final = "auto"
"""The address of the Ray that runs on this machine already."""

CONNECT_SECONDS: Final = 10.0

_PORT: Final = re.compile(r"[0-9]{1,5}")


class RayPool:
    """Actors of one CPU each, on the cluster at an address."""

    def __init__(self, address: str, size: int | None, files: Mapping[str, str | None]) -> None:
        """As many actors as the cluster has CPUs where no size is given.

        Raises InputError for a cluster that cannot be reached, that has too few CPUs, or whose
        actors would make other rows: with another Capra, or with other checkpoint files.
        """
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report over the network
        self._ray = import_extra("ray", "ray")
        _check_address(address)
        options: dict[str, Any] = {"num_cpus": size} if address == LOCAL else {}
        on_sigterm = signal.getsignal(signal.SIGTERM)
        try:
            self._ray.init(
                address, include_dashboard=False, logging_level="error", log_to_driver=False,
                **options,
            )  # fmt: skip
        except (OSError, RuntimeError, ValueError) as error:
            raise InputError(f"cannot use a Ray cluster at {address!r}: {error}") from None
        signal.signal(signal.SIGTERM, on_sigterm)  # Ray's own handler aborts
        try:
            self.size = self._workers_for(address, size)
            actor = self._ray.remote(num_cpus=1)(_Actor)
            self._actors = [actor.remote(dict(files)) for _ in range(self.size)]
            self._running: dict[Any, int] = {}
            for found in self._get([each.makes.remote() for each in self._actors]):
                _check_same(found, (build(), files), address)
        except BaseException:
            self.close()
            raise

    def submit(self, worker: int, cell: Cell) -> None:
        """Send a cell to an idle actor."""
        self._running[self._actors[worker].run.remote(cell)] = worker

    def finished(self) -> list[tuple[int, Row]]:
        """Wait for the results of one cell."""
        ((done,), _) = self._ray.wait([*self._running], num_returns=1)
        answer = self._get(done)
        if isinstance(answer, SweepError):
            raise answer
        return [(self._running.pop(done), answer)]

    def close(self) -> None:
        """Disconnect, which ends the actors, and a Ray that was started for the sweep."""
        self._ray.shutdown()

    def _workers_for(self, address: str, size: int | None) -> int:
        cpus = int(self._ray.cluster_resources().get("CPU", 0))
        if cpus < (size or 1):
            raise InputError(
                f"the Ray cluster at {address!r} has {cpus} CPUs, expected at least {size or 1}, "
                "one a worker"
            )
        return size or cpus

    def _get(self, references: Any) -> Any:
        try:
            return self._ray.get(references)
        except self._ray.exceptions.RayError as error:
            raise SweepError(
                f"a Ray worker died, expected the results of a cell: {error}"
            ) from None


def _check_address(address: str) -> None:
    """Raise InputError unless Ray may be there: it would look for one for minutes."""
    if address in (LOCAL, AUTO):
        return
    host, _, port = address.rpartition(":")
    if not host or not _PORT.fullmatch(port):
        raise InputError(f"the address is {address!r}, expected {AUTO}, {LOCAL} or HOST:PORT")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise InputError(f"cannot use a Ray cluster at {address!r}: {error}") from None


class _Actor:
    """Runs cells somewhere on the cluster."""

    def __init__(self, files: dict[str, str | None]) -> None:
        self._files = files
        self._runner = CellRunner(files)

    def makes(self) -> tuple[str, dict[str, str | None]]:
        """What its rows would be made of."""
        return build(), digests(self._files)

    def run(self, cell: Cell) -> Row | SweepError:
        """The results of a cell, or why there are none."""
        return self._runner.answer(cell)


def _check_same(
    found: tuple[str, Mapping[str, str | None]],
    expected: tuple[str, Mapping[str, str | None]],
    address: str,
) -> None:
    if found[0] != expected[0]:
        raise InputError(
            f"a worker of the Ray cluster at {address!r} has {found[0]}, expected {expected[0]}"
        )
    for name, digest in expected[1].items():
        if found[1][name] != digest:
            raise InputError(
                f"a worker of the Ray cluster at {address!r} has another file {name} or none, "
                "expected the same file at the same path"
            )
