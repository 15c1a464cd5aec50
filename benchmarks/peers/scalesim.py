"""The product on SCALE-Sim 3, a simulator of systolic arrays that follows addresses, not values.

Its array gets both operands at its edges from SRAMs of their own, without a limit, so its compute
cycles have no loading of operands through one port as GA2's have. Each SRAM is double buffered and
large enough here for its operand to fit in one half, as GA2's scratchpad holds all three. Main
memory is either as fast as needed ("CALC") or has one word a cycle for each operand ("USER").
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.peers import ARRAY, K, M, N
from benchmarks.peers.environment import PYTHON, fresh_directory, install, version
from benchmarks.processes import MeasureError, measure
from benchmarks.records import Record, say

DATAFLOWS: Final = {"os": "output stationary", "ws": "weight stationary", "is": "input stationary"}
BANDWIDTHS: Final = {
    "CALC": "as fast as needed",
    "USER": "one word a cycle for each operand",
}
KIB: Final = {"Ifmap": 8, "Filter": 1024, "Ofmap": 8}
"""Of one-byte words; half of each holds its operand."""

ARGUMENTS: Final = "-m scalesim.scale -c chip.cfg -t matmul.csv -l layout.csv -p out -i gemm -s N"
"""Called with warnings off: numpy 2.3 has one for every request to memory."""

REPORT: Final = "out/run/COMPUTE_REPORT.csv"


def scale_sim() -> Record:
    """A run for each dataflow and bandwidth, or the sentence that says why there is none."""
    problem = install("scalesim")
    if problem is not None:
        return {"skipped": problem}
    runs = list(_runs())
    return {
        "version": version("scalesim"),
        "command": f"python -W ignore {ARGUMENTS}",
        "runs": runs,
    }


def _runs() -> Iterator[Record]:
    for dataflow, what in DATAFLOWS.items():
        for mode, bandwidth in BANDWIDTHS.items():
            say(f"SCALE-Sim: {what}, memory {bandwidth}")
            run = {"dataflow": what, "memory": bandwidth}
            directory = fresh_directory(f"scalesim-{dataflow}-{mode.lower()}")
            write_inputs(directory, dataflow, mode)
            command = (str(PYTHON), "-W", "ignore", *ARGUMENTS.split())
            try:
                measured = measure(command, 1, directory=directory)
                yield {**run, **parse_report((directory / REPORT).read_text()), **measured}
            except (MeasureError, OSError, ValueError) as error:
                yield {**run, "skipped": f"SCALE-Sim gave no cycles: {error}"}


def write_inputs(directory: Path, dataflow: str, mode: str) -> None:
    """Its three files: the chip, the product, and a data layout, which it reads but ignores."""
    (directory / "chip.cfg").write_text(configuration(dataflow, mode))
    (directory / "matmul.csv").write_text(f"Layer, M, N, K,\nmatmul, {M}, {N}, {K},\n")
    (directory / "layout.csv").write_text("Layer,\nmatmul," + " 1," * 20 + "\n")


def configuration(dataflow: str, mode: str) -> str:
    """GA2's array, memories that hold the product, and one word a cycle where mode is USER."""
    banks = "\n".join(
        f"{name}CustomLayout: False\n{name}SRAMBankBandwidth: 1\n{name}SRAMBankNum: 1\n"
        f"{name}SRAMBankPort: 1"
        for name in ("Ifmap", "Filter")
    )
    sizes = "\n".join(f"{name}SramSzkB: {size}" for name, size in KIB.items())
    return f"""\
[general]
run_name = run

[architecture_presets]
ArrayHeight: {ARRAY}
ArrayWidth: {ARRAY}
{sizes}
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Dataflow: {dataflow}
Bandwidth: 1
ReadRequestBuffer: 512
WriteRequestBuffer: 512

[layout]
{banks}

[sparsity]
SparsitySupport: false

[run_presets]
InterfaceBandwidth: {mode}
UseRamulatorTrace: False
"""


def parse_report(text: str) -> Record:
    """The figures of a compute report with one layer.

    `cycles` go from the first word that is fetched from main memory to the last that is back there,
    `compute_cycles` from the first to the last of the array, its `stall_cycles` included. Raises
    ValueError for another report.
    """
    rows = list(csv.reader(text.splitlines(), skipinitialspace=True))
    if len(rows) != 2:
        raise ValueError(f"the report has {len(rows)} lines, expected a header and one layer")
    names = {
        "Total Cycles (incl. prefetch)": "cycles",
        "Total Cycles": "compute_cycles",
        "Stall Cycles": "stall_cycles",
    }
    values = dict(zip(*rows, strict=True))
    if missing := names.keys() - values.keys():
        raise ValueError(f"the report has no {', '.join(sorted(missing))}")
    return {ours: int(float(values[theirs])) for theirs, ours in names.items()}
