"""Line coverage of the RTL by its own suite, in Verilator: a table by module, and the holes.

    python rtl/cov/coverage.py [--counts DIR]

Runs the suite with counters on, adds up what every run left, and prints for each file the lines and
branches reached at least once in any instance. Exits with 1 below 95 % of the lines. --counts skips
the suite and reads what is in a directory.

Verilator counts what stands in procedural blocks; continuous assignments have no counter. A line
with several counters is reached when each of them is: in `if (x) y <= z;` the branch must be taken.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[2]
COUNTS: Final = CHECKOUT / "build" / "coverage"
SUITE: Final = ("tests/rtl/test_replay.py", "tests/rtl/test_arithmetic.py")
THRESHOLD: Final = 95

Point = tuple[str, str, str, str]
"""File, number of the counter in it, kind of block, and the lines that belong to it."""


@dataclass
class Coverage:
    """Of one file: whether each of its lines and its branches was reached."""

    lines: dict[int, bool] = field(default_factory=dict)
    branches: list[tuple[int, bool]] = field(default_factory=list)

    def reached(self) -> tuple[int, int]:
        """Lines and branches that were."""
        return sum(self.lines.values()), sum(hit for _, hit in self.branches)

    def holes(self) -> list[int]:
        """The lines of what was not, branches too."""
        missed = [line for line, hit in self.lines.items() if not hit]
        return sorted({*missed, *(line for line, hit in self.branches if not hit)})


def read(paths: Iterable[Path]) -> Counter[tuple[str, int, Point]]:
    """The counts of all files and instances together, by file, first line and point."""
    counts: Counter[tuple[str, int, Point]] = Counter()
    for path in paths:
        for text, count in re.findall(r"^C '(.*)' (\d+)$", path.read_text(), flags=re.MULTILINE):
            keys = dict(item.split("\x02", 1) for item in text.split("\x01") if item)
            point = (keys["page"].split("/")[0], keys["n"], keys["o"], keys.get("S", ""))
            counts[Path(keys["f"]).name, int(keys["l"]), point] += int(count)
    return counts


def by_file(counts: Counter[tuple[str, int, Point]], names: set[str]) -> dict[str, Coverage]:
    """The coverage of those files that have a counter."""
    coverage: defaultdict[str, Coverage] = defaultdict(Coverage)
    for (name, first, (page, _, _, lines)), count in sorted(counts.items()):
        if name not in names:
            continue
        found = coverage[name]
        for line in expand(lines):
            found.lines[line] = found.lines.get(line, True) and count > 0
        if page == "v_branch":
            found.branches.append((first, count > 0))
    return dict(coverage)


def expand(lines: str) -> Iterable[int]:
    """The numbers in a list such as 3,7-9."""
    for part in filter(None, lines.split(",")):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def report(coverage: dict[str, Coverage]) -> float:
    """Print the table and the holes; the percentage of lines reached."""
    print(f"{'file':24} {'lines':>11} {'%':>6} {'branches':>11} {'%':>6}  not reached")
    total = Coverage()
    for name, found in sorted(coverage.items()):
        print(_row(name, found) + "  " + " ".join(map(str, found.holes())))
        first = len(total.lines)
        total.lines.update(enumerate(found.lines.values(), first))
        total.branches += found.branches
    print(_row("total", total))
    return 100 * total.reached()[0] / len(total.lines)


def _row(name: str, found: Coverage) -> str:
    cells = []
    for reached, of in zip(found.reached(), (found.lines, found.branches), strict=True):
        share = 100 * reached / len(of) if of else 100.0
        cells.append(f"{f'{reached}/{len(of)}':>11} {share:6.1f}")
    return f"{name:24} " + " ".join(cells)


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--counts", type=Path, help="read the counts of an earlier run")
    counts: Path | None = parser.parse_args().counts
    if counts is None:
        counts = COUNTS
        shutil.rmtree(counts, ignore_errors=True)
        counts.mkdir(parents=True)
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "pytest", "-n", "2", "-m", "", "-k", "not icarus", *SUITE],
            cwd=CHECKOUT, env={**os.environ, "CAPRA_COVERAGE": str(counts)}, check=False,
        )  # fmt: skip
        if done.returncode:
            return done.returncode
    names = set((CHECKOUT / "rtl/files.f").read_text().split())
    coverage = by_file(read(sorted(counts.glob("*.dat"))), names)
    if not coverage:
        print(f"{counts} has no counts, expected *.dat files of Verilator", file=sys.stderr)
        return 1
    percent = report(coverage)
    if percent < THRESHOLD:
        print(f"line coverage is {percent:.1f} %, expected {THRESHOLD} %", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
