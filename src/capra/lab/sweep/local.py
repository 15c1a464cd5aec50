"""Workers as processes of this machine."""

import multiprocessing
import os
import signal
from collections.abc import Mapping
from multiprocessing.connection import Connection, wait

from capra.errors import SweepError
from capra.lab.sweep.cell import Cell, CellRunner, Row


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


class LocalPool:
    """Worker processes, each at the end of a pipe."""

    def __init__(self, size: int, files: Mapping[str, str | None]) -> None:
        self.size = size
        # A forked worker would hold the other workers' pipes open, and outlive a killed parent.
        context = multiprocessing.get_context("spawn")
        self.processes = []
        self._pipes: list[Connection] = []
        self._errors: list[SweepError] = []
        for number in range(self.size):
            ours, theirs = context.Pipe()
            worker = context.Process(
                target=_work, args=(theirs, files), name=f"worker {number}", daemon=True
            )
            worker.start()
            theirs.close()
            self.processes.append(worker)
            self._pipes.append(ours)

    def submit(self, worker: int, cell: Cell) -> None:
        """Send a cell to an idle worker."""
        try:
            self._pipes[worker].send(cell)
        except OSError:
            raise self._death(worker) from None

    def finished(self) -> list[tuple[int, Row]]:
        """Wait for results. An idle worker's pipe says nothing, unless it died."""
        if self._errors:
            raise self._errors[0]
        rows: list[tuple[int, Row]] = []
        ready = wait(self._pipes)
        for worker in (n for n, pipe in enumerate(self._pipes) if pipe in ready):
            try:
                answer = self._pipes[worker].recv()
            except (EOFError, OSError):
                answer = self._death(worker)
            if isinstance(answer, SweepError):
                self._errors.append(answer)
            else:
                rows.append((worker, answer))
        if not rows:  # what came is worth storing first
            raise self._errors[0]
        return rows

    def close(self) -> None:
        """Terminate the workers."""
        for worker in self.processes:
            worker.terminate()
        for worker, pipe in zip(self.processes, self._pipes, strict=True):
            worker.join()
            pipe.close()

    def _death(self, number: int) -> SweepError:
        worker = self.processes[number]
        worker.join(timeout=1)
        return SweepError(
            f"{worker.name} (process {worker.pid}) died with exit code {worker.exitcode}, expected "
            "the results of a cell"
        )


def _work(pipe: Connection, files: Mapping[str, str | None]) -> None:
    """Run the cells that come until the parent is gone. Ctrl-C is the parent's matter."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner = CellRunner(files)
    try:
        while True:
            pipe.send(runner.answer(pipe.recv()))
    except (EOFError, OSError):
        return
