"""The product on ZigZag, which searches loop orders by an analytical model of memories and array.

It can say what GA2 has: sums that stay in the array, one scratchpad with one port of a word a cycle
for all operands, and an external memory with one. Its cycles are those of the best loop order that
it finds: transfers hidden behind the array where ports allow, no fill and drain of the array, no
instructions, no latency of memory.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.peers import ARRAY, K, M, N
from benchmarks.peers.environment import PYTHON, fresh_directory, install, version
from benchmarks.processes import MeasureError, measure
from benchmarks.records import Record, say

WORD_BITS: Final = 32
MEMORY_BITS: Final = WORD_BITS << 19
"""Of the scratchpad and of external memory."""

WAYS: Final = {"I1": ("fh", "tl"), "I2": ("fh", "tl"), "O": ("fh", "tl", "fl", "th")}
"""Ways of each operand through a memory: from and to the higher and the lower level."""

SPATIAL: Final = {
    "output stationary": ("M", "N"),
    "weight stationary": ("K", "N"),
    "input stationary": ("K", "M"),
}
"""The loops that are the rows and columns of the array."""

PORTS: Final = {
    "shared": "one port of one word a cycle for all operands",
    "own": "a port for each operand, as wide as the array",
}
"""Ports of the scratchpad; external memory always has one of one word."""

CASES: Final = (
    ("output stationary", "shared"),
    ("output stationary", "own"),
    ("weight stationary", "shared"),
    ("input stationary", "shared"),
)

CODE: Final = (
    "from zigzag.api import get_hardware_performance_zigzag as run; "
    "run('matmul.yaml', 'chip.yaml', 'mapping.yaml', dump_folder='out', "
    "loma_show_progress_bar=False)"
)
REPORT: Final = "out/matmul_complete.json"


def zigzag() -> Record:
    """A run for each dataflow and port, or the sentence that says why there is none."""
    problem = install("zigzag-dse")
    if problem is not None:
        return {"skipped": problem}
    return {
        "version": version("zigzag-dse"),
        "command": f'python -c "{CODE}"',
        "runs": list(_runs()),
    }


def _runs() -> Iterator[Record]:
    for dataflow, ports in CASES:
        say(f"ZigZag: {dataflow}, {PORTS[ports]}")
        run = {"dataflow": dataflow, "memory": PORTS[ports]}
        directory = fresh_directory(f"zigzag-{dataflow.split()[0]}-{ports}")
        write_inputs(directory, dataflow, ports)
        try:
            measured = measure((str(PYTHON), "-c", CODE), 1, directory=directory)
            yield {**run, **parse_report((directory / REPORT).read_text()), **measured}
        except (MeasureError, OSError, ValueError, KeyError) as error:
            yield {**run, "skipped": f"ZigZag gave no cycles: {error}"}


def write_inputs(directory: Path, dataflow: str, ports: str) -> None:
    """Its three files, as JSON, which is YAML."""
    rows, columns = SPATIAL[dataflow]
    mapping = {
        "name": "default",
        "spatial_mapping": {"D1": [f"{rows}, {ARRAY}"], "D2": [f"{columns}, {ARRAY}"]},
        "memory_operand_links": {"O": "O", "W": "I2", "I": "I1"},
    }
    product = {
        "id": 0,
        "name": "matmul",
        "operator_type": "Gemm",
        "equation": "O[m][n]+=I[m][k]*W[k][n]",
        "loop_dims": ["M", "N", "K"],
        "loop_sizes": [M, N, K],
        "operand_precision": dict.fromkeys(("W", "I", "O", "O_final"), WORD_BITS),
    }
    files = {"chip": chip(dataflow, ports), "mapping": [mapping], "matmul": [product]}
    for name, content in files.items():
        (directory / f"{name}.yaml").write_text(json.dumps(content, indent=1))


def chip(dataflow: str, ports: str) -> Record:
    """GA2's array and memories, one 32-bit word an element, with these ports of the scratchpad.

    What stays in the array has a register in every cell.
    """
    stays = {"output": "O", "weight": "I2", "input": "I1"}[dataflow.split()[0]]
    one_way = [
        _port(number, way, 1, (f"{stays}, {way}",)) for number, way in enumerate(WAYS[stays])
    ]
    shared_port = _port(0, "rw", 1, [f"{name}, {way}" for name in WAYS for way in WAYS[name]])
    own_ports = [
        _port(number, "rw", ARRAY * ARRAY, [f"{name}, {way}" for way in ways])
        for number, (name, ways) in enumerate(WAYS.items())
    ]
    cost = {"r_cost": 1, "w_cost": 1, "area": 0, "latency": 1}
    cell = {"size": WORD_BITS, "operands": [stays], "served_dimensions": [], "ports": one_way}
    large = {"size": MEMORY_BITS, "operands": list(WAYS), "served_dimensions": ["D1", "D2"]}
    return {
        "name": "ga2",
        "memories": {
            "cell": {**cost, **cell},
            "scratchpad": {
                **cost, **large, "ports": own_ports if ports == "own" else [shared_port],
            },
            "external": {**cost, **large, "ports": [shared_port]},
        },
        "operational_array": {
            "input_precision": [WORD_BITS, WORD_BITS],
            "unit_energy": 0,
            "unit_area": 1,
            "dimensions": ["D1", "D2"],
            "sizes": [ARRAY, ARRAY],
        },
    }  # fmt: skip


def _port(number: int, way: str, words: int, allocation: Sequence[str]) -> Record:
    """A port of at most so many words a cycle, for these ways of operands."""
    letters, kind = {"t": ("r", "read"), "f": ("w", "write"), "r": ("rw", "read_write")}[way[0]]
    return {
        "name": f"{letters}_port_{number}",
        "type": kind,
        "bandwidth_min": WORD_BITS,
        "bandwidth_max": WORD_BITS * words,
        "allocation": list(allocation),
    }


def parse_report(text: str) -> Record:
    """The figures of a complete report: cycles in all, of the array with its stalls, of transfers.

    Raises KeyError or ValueError for another report.
    """
    report: Any = json.loads(text)
    latency = report["outputs"]["latency"]
    loops = report["inputs"]["temporal_mapping"]["O"]
    return {
        "cycles": int(sum(latency.values())),
        "compute_cycles": int(latency["computation"]),
        "loading_cycles": int(latency["data_onloading"]),
        "storing_cycles": int(latency["data_offloading"]),
        "loops": "; ".join(" ".join(level) for level in loops if level),
    }
