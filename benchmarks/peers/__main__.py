"""`make bench-peers`: one product on Capra and its peers, to docs/reference/peers.json."""

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.peers import ARRAY, K, M, N
from benchmarks.peers.rtl import rtl
from benchmarks.peers.scalesim import scale_sim
from benchmarks.peers.zigzag import zigzag
from benchmarks.processes import PYTHON, measure, measure_output
from benchmarks.records import PEERS, Record, environment, say, write
from capra.cosim.toolchain import Simulator
from capra.errors import InputError
from capra.files import check_writable

COMMAND = (*PYTHON, "benchmarks.peers.matmul")


def capra() -> Record:
    """Our own figures: the whole process, measured like a peer's, and its parts."""
    say("Capra: the product")
    measure(COMMAND, 1)  # fills numba's cache
    measured, printed = measure_output(COMMAND)
    return {"command": "python -m benchmarks.peers.matmul", **printed, **measured}


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-o", "--output", type=Path, default=PEERS)
    arguments = parser.parse_args()
    try:  # before minutes of measuring
        check_writable(arguments.output)
    except InputError as error:
        parser.error(str(error))
    record: Record = {
        "kind": "peers",
        "environment": environment(),
        "product": {"m": M, "n": N, "k": K, "array": [ARRAY, ARRAY]},
    }
    parts: dict[str, Callable[[], Record]] = {
        "capra": capra,
        **{simulator.value: partial(rtl, simulator) for simulator in Simulator},
        "scalesim": scale_sim,
        "zigzag": zigzag,
    }
    for name, part in parts.items():
        record[name] = part()
    write(arguments.output, record)


if __name__ == "__main__":
    main()
