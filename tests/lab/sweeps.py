"""Small sweeps, and a pool that runs them in this process."""

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

from capra.lab.sweep.cell import Cell, CellRunner, Row
from capra.lab.sweep.spec import Sweep, load_sweep

SPEC = """
[[grid]]
model = ["structured", "random"]
max_new_tokens = 6
draft = ["bigram", "random"]
k = [1, 2]

[[grid]]
model = "random"
external_words = 2000
max_new_tokens = 6
"""
"""Nine cells of three targets; the last one does not fit."""


def write_spec(folder: Path, text: str = SPEC) -> Path:
    path = folder / "spec.toml"
    path.write_text(text)
    return path


def sweep_of(folder: Path, text: str = SPEC) -> Sweep:
    return load_sweep(write_spec(folder, text))


_runner = CellRunner({})


@cache
def row_of(cell: Cell) -> Row:
    """The results of a cell, executed once per process."""
    return _runner.run(cell)


class FakePool:
    """Workers of this process, done in an order drawn from a seed; counts what it ran."""

    def __init__(
        self, size: int, seed: int = 0, dies_after: int | None = None,
        run: Callable[[Cell], Row] = row_of,
    ) -> None:  # fmt: skip
        self.size = size
        self.ran: list[tuple[int, Cell]] = []
        self.closed = False
        self._dies_after = dies_after
        self._draw = random.Random(seed)
        self._run = run
        self._running: dict[int, Cell] = {}

    def submit(self, worker: int, cell: Cell) -> None:
        assert worker not in self._running, "a worker runs one cell at a time"
        self._running[worker] = cell

    def finished(self) -> list[tuple[int, Row]]:
        if len(self.ran) == self._dies_after:
            raise KeyboardInterrupt
        worker = self._draw.choice(sorted(self._running))
        cell = self._running.pop(worker)
        self.ran.append((worker, cell))
        return [(worker, self._run(cell))]

    def close(self) -> None:
        self.closed = True
