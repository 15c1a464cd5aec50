"""Workers that run cells, and the order in which they get them."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from capra.lab.sweep.cell import Cell, Row


class Pool(Protocol):
    """Workers, each of which runs one cell at a time and keeps the target of its last one."""

    size: int

    def submit(self, worker: int, cell: Cell) -> None:
        """Start a cell on an idle worker of 0 .. size - 1."""
        ...

    def finished(self) -> list[tuple[int, Row]]:
        """Wait until a worker is done; all that are, with the results of their cells.

        Raises SweepError when a worker died, or cannot run its cell any more.
        """
        ...

    def close(self) -> None:
        """Stop all workers at once; what they were at is lost."""
        ...


def run_cells(pool: Pool, cells: Iterable[Cell]) -> Iterator[tuple[Cell, Row]]:
    """Every cell with its results, as they come."""
    schedule = _Schedule(cells)
    running: dict[int, Cell] = {}

    def start(worker: int, last: Cell | None) -> None:
        cell = schedule.next_cell(last)
        if cell is not None:
            running[worker] = cell
            pool.submit(worker, cell)

    for worker in range(pool.size):
        start(worker, None)
    while running:
        finished = pool.finished()
        for worker, row in finished:  # all of them, before a worker is found dead
            yield running[worker], row
        for worker, _ in finished:
            start(worker, running.pop(worker))


class _Schedule:
    """The cells that nobody has yet, by target: a worker stays with its target while it can.

    A target that is begun costs a plain run and compiled programs once more, so a worker that needs
    another one takes it where fewest others are, and of those where most is left.
    """

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._left: dict[tuple[Any, ...], deque[Cell]] = {}
        for cell in cells:
            self._left.setdefault(cell.target, deque()).append(cell)
        self._workers = dict.fromkeys(self._left, 0)

    def next_cell(self, last: Cell | None) -> Cell | None:
        """The next one for a worker whose last cell this was; None when all are given out."""
        target = last.target if last else None
        if target is None or target not in self._left:
            if target is not None:
                self._workers[target] -= 1
            if not self._left:
                return None
            target = min(self._left, key=lambda t: (self._workers[t], -len(self._left[t])))
            self._workers[target] += 1
        cells = self._left[target]
        cell = cells.popleft()
        if not cells:
            del self._left[target]
        return cell
