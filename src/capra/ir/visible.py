"""Visible sets: which keys every row of an attention sees.

A row sees the first `prefix` keys, which all rows see, and some of the keys after them: its tail.
For a block of a chain that is the cache and the rows up to itself; for a token tree the cache and
the row's ancestors.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from capra.errors import GraphError


@dataclass(frozen=True, slots=True)
class Visible:
    """What each row sees of prefix + width keys.

    Raises GraphError for a row that sees nothing, and for a tail beyond the width.
    """

    prefix: int
    """Keys that every row sees, the first ones."""
    width: int
    """Keys after the prefix."""
    tails: tuple[int, ...]
    """One mask per row: bit j says whether the row sees key prefix + j."""

    def __post_init__(self) -> None:
        if self.prefix < 0 or self.width < 0 or not self.tails:
            raise GraphError(
                f"a visible set has prefix {self.prefix}, width {self.width} and "
                f"{len(self.tails)} rows, expected 0 or more, 0 or more and at least 1"
            )
        for row, tail in enumerate(self.tails):
            if tail < 0 or tail.bit_length() > self.width:
                found = f"{tail.bit_length()} bits" if tail > 0 else "a negative number"
                raise GraphError(
                    f"row {row} of a visible set has a tail of {found}, expected at most "
                    f"{self.width} bits"
                )
            if not self.prefix and not tail:
                raise GraphError(f"row {row} of a visible set sees no key, expected at least one")

    @classmethod
    def causal(cls, rows: int, cache: int) -> "Visible":
        """Row i of a block sees `cache` keys and those of rows 0 .. i."""
        return cls(cache, rows, tuple((2 << row) - 1 for row in range(rows)))

    @classmethod
    def tree(cls, parents: Sequence[int], cache: int) -> "Visible":
        """Row i sees `cache` keys, its ancestors and itself.

        parents[i] is the row above row i, smaller than i, or -1 for a row that follows the cache.
        """
        tails = list[int]()
        for row, parent in enumerate(parents):
            if not -1 <= parent < row:
                raise GraphError(f"the parent of row {row} is {parent}, expected -1 .. {row - 1}")
            tails.append((tails[parent] if parent >= 0 else 0) | 1 << row)
        return cls(cache, len(parents), tuple(tails))

    @property
    def rows(self) -> int:
        """Rows that see something."""
        return len(self.tails)

    @property
    def keys(self) -> int:
        """All keys, seen or not."""
        return self.prefix + self.width

    def columns(self, row: int) -> list[int]:
        """The keys that a row sees, in order."""
        tail = self.tails[row]
        behind = (self.prefix + bit for bit in range(self.width) if tail >> bit & 1)
        return [*range(self.prefix), *behind]

    def count(self, row: int) -> int:
        """How many keys a row sees."""
        return self.prefix + self.tails[row].bit_count()

    def end(self, row: int) -> int:
        """One past the last key that a row sees."""
        tail = self.tails[row]
        return self.prefix + tail.bit_length() if tail else self.prefix

    def runs(self, row: int) -> list[tuple[int, int]]:
        """The keys that a row sees as (first, count) of neighbours, in order."""
        runs = list[tuple[int, int]]()
        for column in self.columns(row):
            if runs and sum(runs[-1]) == column:
                runs[-1] = runs[-1][0], runs[-1][1] + 1
            else:
                runs.append((column, 1))
        return runs
