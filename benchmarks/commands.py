"""How long commands take from start to end, after a first run that fills every cache on disk."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from benchmarks.processes import PYTHON, REPEATS, measure, summary
from benchmarks.records import Record, say

COMMANDS: Final = {
    "help": (("--help",), 0.3),
    "table": (("table", "--json"), 2.0),
    "grid": (("grid", "--json"), 2.0),
    "decode": (("decode", "--max-new-tokens", "64", "--json"), 5.0),
}
"""Arguments, and the wall seconds that the command should stay below."""


def commands() -> Record:
    """Each command: its runs, in rounds that take turns, and its target."""
    runs: dict[str, list[Record]] = defaultdict(list)
    for number in range(1 + REPEATS):
        for name, (arguments, _) in COMMANDS.items():
            say(f"{_line(arguments)}, run {number} of {REPEATS}")
            found = measure((*PYTHON, "capra", *arguments), 1)["runs"]
            runs[name] += found if number else []
    return {
        name: {"command": _line(arguments), "target_seconds": target, **summary(runs[name])}
        for name, (arguments, target) in COMMANDS.items()
    }


def _line(arguments: Sequence[str]) -> str:
    return " ".join(("capra", *arguments))
