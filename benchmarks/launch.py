"""Runs a command and writes what it took as JSON: `python launch.py FILE COMMAND ...`.

A small process of its own, of the standard library only: Linux counts the memory of the process
that starts another into the other's peak.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def main() -> int:
    """The command. Exits with the code of the command that it ran."""
    begin = time.perf_counter()
    process = subprocess.Popen(sys.argv[2:])  # noqa: S603
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    run = {
        "process_seconds": usage.ru_utime + usage.ru_stime,
        "wall_seconds": wall,
        "peak_mib": usage.ru_maxrss / 1024,
    }
    Path(sys.argv[1]).write_text(json.dumps(run))
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
