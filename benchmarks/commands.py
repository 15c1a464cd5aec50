"""How long commands take from start to end, after a first run that fills every cache on disk."""

from typing import Final

from benchmarks.processes import PYTHON, REPEATS, measure
from benchmarks.records import Record, say

COMMANDS: Final = {
    "help": (("--help",), 0.3),
    "table": (("table", "--json"), 2.0),
    "grid": (("grid", "--json"), 2.0),
    "decode": (("decode", "--max-new-tokens", "64", "--json"), 5.0),
}
"""Arguments, and the wall seconds that the command should stay below."""


def commands() -> Record:
    """Each command: `measure` of it, and its target."""
    record: Record = {}
    for name, (arguments, target) in COMMANDS.items():
        line = " ".join(("capra", *arguments))
        say(line)
        measure((*PYTHON, "capra", *arguments), 1)
        seconds = measure((*PYTHON, "capra", *arguments), REPEATS)
        record[name] = {"command": line, "target_seconds": target, **seconds}
    return record
