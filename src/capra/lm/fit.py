"""Does everything that a run may need fit the chip? Known before its first token.

A run is refused before it starts or it ends. What programs need of external memory and of the
program memory grows with their rows and their cache, so the largest ones speak for all. The
scratchpad is another matter: a shorter cache may leave holes that a longer one does not. Where the
compiler cannot say of the largest program that all smaller ones fit too, they are compiled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from capra.compiler.pipeline import Room
from capra.ir.graph import MAX_DIMENSION
from capra.isa.program import Program

if TYPE_CHECKING:
    from capra.lm.target import Role


class Programs(Protocol):
    """The programs of a model on a chip."""

    def program(self, role: "Role", rows: int, cache: int) -> Program:
        """The program of a shape; CapacityError if it does not fit the chip."""
        ...

    def room(self, role: "Role", rows: int, cache: int) -> Room:
        """Which programs like that of a shape, but smaller, surely fit."""
        ...


@dataclass(frozen=True, slots=True)
class RunShapes:
    """The shapes that a run may have programs of."""

    prompt: int
    new_tokens: int
    """At least 1."""
    speculative_tokens: int
    context: int
    prefill_rows: int
    is_shortened: bool
    """True where no block has more rows than there are tokens to come."""

    @property
    def first_cache(self) -> int:
        """Rows that are cached when the first block runs."""
        return self.prompt - 1

    @property
    def last_cache(self) -> int:
        """Rows that may be cached when the last block runs."""
        return min(self.prompt + self.new_tokens - 1, self.context) - 1

    @property
    def most_rows(self) -> int:
        """Rows of the largest block."""
        rows = min(self.speculative_tokens + 1, self.context)
        return min(rows, self.new_tokens) if self.is_shortened else rows

    def last_cache_of(self, rows: int) -> int:
        """Rows that may be cached when a block of so many rows runs."""
        room = self.context - rows
        if self.is_shortened:
            room = min(room, self.prompt - 1 + self.new_tokens - rows)
        return min(self.last_cache, room)

    def prefills(self) -> Iterator[tuple[int, int]]:
        """Rows and cache of every prefill program."""
        for start in range(0, self.prompt - 1, self.prefill_rows):
            yield min(self.prefill_rows, self.prompt - 1 - start), start


def check_run(programs: Programs, shapes: RunShapes) -> None:
    """Raise CapacityError unless every program that the run may need fits the chip."""
    for rows, cache in shapes.prefills():
        programs.program("prefill", rows, cache)
    _check_caches(programs, "step", 1, shapes.first_cache, shapes.last_cache)
    rows, last = shapes.most_rows, shapes.last_cache
    # The largest block may reach past the context, and is then only compared with.
    fits = rows + last <= MAX_DIMENSION and programs.room("verify", rows, last).for_all
    if rows > 1 and not fits:
        for count in range(rows, 1, -1):
            _check_caches(
                programs, "verify", count, shapes.first_cache, shapes.last_cache_of(count)
            )


def _check_caches(programs: Programs, role: "Role", rows: int, first: int, last: int) -> None:
    """Raise CapacityError unless the programs of caches `first` .. `last` fit."""
    if first > last:
        return
    programs.program(role, rows, last)
    room = programs.room(role, rows, last)
    if not room.for_shorter_caches:
        for cache in reversed(range(first, last)):
            programs.program(role, rows, cache)
    elif first == 0 and not room.for_all:
        programs.program(role, rows, 0)
