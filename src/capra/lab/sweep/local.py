"""Workers as processes of this machine."""

import multiprocessing
import os
import signal
from multiprocessing.connection import Connection, wait

from capra.errors import SweepError
from capra.lab.sweep.cell import Cell, CellRunner, Row


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


class LocalPool:
    """Worker processes, each at the end of a pipe."""

    def __init__(self, size: int) -> None:
        self.size = size
        # A forked worker would hold the other workers' pipes open, and outlive a killed parent.
        context = multiprocessing.get_context("spawn")
        self.processes = []
        self._pipes: list[Connection] = []
        for number in range(self.size):
            ours, theirs = context.Pipe()
            worker = context.Process(
                target=_work, args=(theirs,), name=f"worker {number}", daemon=True
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
        rows: list[tuple[int, Row]] = []
        dead: list[int] = []
        ready = wait(self._pipes)
        for worker in (n for n, pipe in enumerate(self._pipes) if pipe in ready):
            try:
                rows.append((worker, self._pipes[worker].recv()))
            except (EOFError, OSError):
                dead.append(worker)
        if not rows:  # what came is worth storing first
            raise self._death(dead[0])
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


def _work(pipe: Connection) -> None:
    """Run the cells that come until the parent is gone. Ctrl-C is the parent's matter."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    runner = CellRunner()
    try:
        while True:
            pipe.send(runner.run(pipe.recv()))
    except (EOFError, OSError):
        return
