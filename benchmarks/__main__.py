"""`make bench`: measures the tool itself and writes docs/reference/bench.json."""

import argparse
from pathlib import Path

from benchmarks.commands import commands
from benchmarks.compiler import compiler
from benchmarks.engines import engines
from benchmarks.growth import growth
from benchmarks.records import BENCH, Record, environment, read_bench, write
from capra.errors import InputError
from capra.files import check_writable


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=(__doc__ or "").split("\n")[0])
    parts = {"commands": commands, "compiler": compiler, "engines": engines, "growth": growth}
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(parts)}; else all")
    parser.add_argument("-o", "--output", type=Path, default=BENCH)
    arguments = parser.parse_args()
    if unknown := set(arguments.parts) - parts.keys():
        parser.error(f"{', '.join(sorted(unknown))} found, expected {', '.join(parts)}")
    record: Record = {"kind": "bench", "environments": {}}
    try:  # before minutes of measuring
        check_writable(arguments.output)
        if arguments.parts and arguments.output.exists():
            record = read_bench(arguments.output)
    except InputError as error:
        parser.error(str(error))
    for name, part in parts.items():
        if name in (arguments.parts or parts):
            record["environments"][name] = environment()
            record[name] = part()
            write(arguments.output, record)  # what is measured is kept if the rest fails


if __name__ == "__main__":
    main()
