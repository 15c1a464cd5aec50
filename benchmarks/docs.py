"""`make bench-docs`: the tables of docs/reference/benchmarks.md, made from the records beside it.

A table stands between `<!-- table NAME -->` and `<!-- end -->`; the prose around it is written by
hand and has no measurements.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from benchmarks.engines import RATES
from benchmarks.growth import AXES
from benchmarks.records import BENCH, PEERS, REFERENCE, Record
from capra.cosim.toolchain import Simulator
from capra.files import write_atomically

PAGE: Final = REFERENCE / "benchmarks.md"

_PEERS: Final = {
    "icarus": "Icarus Verilog",
    "verilator": "Verilator",
    "scalesim": "SCALE-Sim",
    "zigzag": "ZigZag",
}

_QUANTITIES: Final = {
    "cycles": "cycles",
    "compile_seconds": "seconds to compile",
    "simulate_seconds": "seconds to simulate",
    "peak_mib": "peak MiB",
}

_BLOCK: Final = re.compile(r"(<!-- table (\S+) -->\n).*?(<!-- end -->)", re.DOTALL)


def render(page: str, bench: Record, peers: Record) -> str:
    """The page with every table made anew. KeyError for a table that nobody makes."""
    return _BLOCK.sub(lambda found: found[1] + TABLES[found[2]](bench, peers) + found[3], page)


def commands(bench: Record, _: Record) -> str:
    """Wall seconds beside their targets."""
    rows = [
        [
            f"`{run['command']}`", _seconds(run["wall_seconds"]),
            _seconds(run["process_seconds"]), f"{run['peak_mib']:.0f}",
            f"{run['target_seconds']:g}",
        ]
        for run in bench["commands"].values()
    ]  # fmt: skip
    return table("command | seconds: | processor seconds: | peak MiB: | below:", rows)


def compiler(bench: Record, _: Record) -> str:
    """Milliseconds of single programs beside their targets."""
    rows = [
        [
            f"{case['model']}, {_rows(case)} at {case['cache']}", f"`{case['optimize']}`",
            f"{case['instructions']:,}", f"{case['milliseconds']:.1f}",
            f"{case['neighbour_milliseconds']:.1f}", f"{case['target_milliseconds']:g}",
        ]
        for case in bench["compiler"]["programs"]
    ]  # fmt: skip
    heads = "program | | instructions: | ms: | ms after its neighbour: | below:"
    return table(heads, rows)


def instructions(bench: Record, _: Record) -> str:
    """Compilation against instructions, and the line through it."""
    record = bench["compiler"]["by_instructions"]
    line = record["fit"]
    begin, slope = line["coefficients"].values()
    rows = [
        [
            f"{point['rows']}", f"{point['instructions']:,}",
            f"{1000 * point['compile_seconds']:.1f}",
            f"{1000 * (begin + slope * point['instructions']):.1f}",
        ]
        for point in record["points"]
    ]  # fmt: skip
    text = (
        f"\nThe line: {1000 * begin:.1f} ms and {1e6 * slope:.1f} microseconds an instruction; the "
        f"farthest point is {_percent(line['largest_deviation'])} from it. Exponent "
        f"{line['exponent']:.2f}, over the last two points {line['last_exponent']:.2f}.\n"
    )
    return table("rows: | instructions: | ms: | the line:", rows) + text


def engines(bench: Record, _: Record) -> str:
    """Cycles a second on both sets of programs, and in those of Verilator."""
    rows = []
    for what in ("tiny", "pydoc"):
        for name, run in bench["engines"][what].items():
            if "skipped" in run:
                rows.append([what, name, run["skipped"], *[""] * 6])
                continue
            rates = (run.get(name) for pair in RATES.items() for name in pair)
            rows.append(
                [
                    what, name, f"{run['programs']}", f"{run['cycles']:,}",
                    _seconds(run["seconds"]),
                    *("" if rate is None else _significant(rate) for rate in rates),
                ]
            )  # fmt: skip
    heads = "programs | run by | count: | cycles: | seconds: | a second: | times Verilator's:"
    return table(f"{heads} | without images: | times Verilator's:", rows)


def first_use(bench: Record, _: Record) -> str:
    """The compiled engine's first run in a process."""
    record = bench["engines"]["first_use"]
    if "skipped" in record:
        return f"{record['skipped']}.\n"
    rows = [
        [
            name, _seconds(record[key]["first_seconds"]), _seconds(record[key]["second_seconds"]),
            f"{record['target_seconds']:g}",
        ]
        for key, name in (("empty_cache", "empty"), ("full_cache", "full"))
    ]  # fmt: skip
    return table("numba's cache | first run, seconds: | second run: | below:", rows)


def growth_of(axis: str) -> Callable[[Record, Record], str]:
    """The table of one axis: its points, or why there is none."""

    def made(bench: Record, _: Record) -> str:
        rows = []
        for point in bench["growth"][axis]["points"]:
            if "refused" in point:
                rows.append([f"{point['size']}", f"refused: {point['refused']}", *[""] * 5])
                continue
            rows.append(
                [
                    f"{point['size']}", f"{point['cycles']:,}", f"{point['instructions']:,}",
                    f"{point['words']:,}", f"{1000 * point['compile_seconds']:.1f}",
                    f"{1000 * point['simulate_seconds']:.2f}", f"{point['peak_mib']:.0f}",
                ]
            )  # fmt: skip
        heads = "cycles: | instructions: | words: | compiling, ms: | simulating, ms: | peak MiB:"
        return table(f"{axis}: | {heads}", rows)

    return made


def laws(bench: Record, _: Record) -> str:
    """What grows how, beside what it should."""
    against = {
        "cycles": "the size", "compile_seconds": "instructions",
        "simulate_seconds": "cycles", "peak_mib": "words",
    }  # fmt: skip
    rows = []
    for axis in AXES:
        for quantity, found in bench["growth"][axis]["fits"].items():
            rows.append(
                [
                    axis, _QUANTITIES[quantity], against[quantity], found["law"],
                    _percent(found["largest_deviation"]), f"{found['exponent']:.2f}",
                    f"{found['last_exponent']:.2f}", f"{found['degree']:g}",
                ]
            )  # fmt: skip
    heads = "axis | what | n is | law | farthest point: | exponent: | at the end: | at most:"
    return table(heads, rows)


def peer_table(_: Record, peers: Record) -> str:
    """Cycles and seconds of everything that ran the product, and who did not and why."""
    rows = [_peer_row("Capra's simulator", "output stationary, GA2", peers["capra"])]
    refusals = []
    for key, title in _PEERS.items():
        for run in peers[key].get("runs", [peers[key]]):
            if "skipped" in run:
                refusals.append(f"\n{title}: {run['skipped']}.\n")
            else:
                what = f"{run['dataflow']}, {run['memory']}" if "dataflow" in run else "GA2's RTL"
                rows.append(_peer_row(title, what, run))
    heads = "tool | dataflow and memory | cycles: | array: | the rest: | seconds: | processor:"
    return table(heads, rows) + "".join(refusals)


def _peer_row(tool: str, what: str, run: Record) -> list[str]:
    """Its cycles, those of the array with what it waits for, and the others."""
    array = run["compute_cycles"] if "compute_cycles" in run else run["cycles_by_unit"]["matrix"]
    cycles = (f"{number:,}" for number in (run["cycles"], array, run["cycles"] - array))
    seconds = (_seconds(run["wall_seconds"]), _seconds(run["process_seconds"]))
    return [tool, what, *cycles, *seconds]


def peer_versions(_: Record, peers: Record) -> str:
    """Version and command of each tool."""
    rows = []
    for key, title in {"capra": "Capra", **_PEERS}.items():
        run = peers[key]
        version = peers["environment"]["capra"] if key == "capra" else run.get("version", "")
        rows.append([title, version, f"`{run['command']}`" if "command" in run else ""])
    return table("tool | version | command", rows)


def peer_checks(_: Record, peers: Record) -> str:
    """What was compared, in sentences."""
    ours = peers["capra"]
    text = (
        f"All {ours['values_checked']:,} values of Capra's result are numpy's. Its program has "
        f"{ours['instructions']:,} instructions; within the process of the table, compiling took "
        f"{1000 * ours['compile_seconds']:.0f} ms, the first run, which loads the engine, "
        f"{_seconds(ours['first_run_seconds'])} seconds, and the second "
        f"{1000 * ours['run_seconds']:.1f} ms.\n"
    )
    for simulator in Simulator:
        if "difference" in peers[simulator]:
            found = peers[simulator]["difference"] or "both memories and all counters are equal"
            text += f"{_PEERS[simulator]}: {found}.\n"
    return text


def environments(bench: Record, peers: Record) -> str:
    """Where each part was measured."""
    rows = []
    for part, where in (*bench["environments"].items(), ("peers", peers["environment"])):
        rows.append(
            [
                part, where["capra"], where["python"], where["numpy"], where["numba"] or "none",
                f"{where['system']} {where['architecture']}", f"{where['cores']}",
                f"{where['load_average']:g}",
            ]
        )  # fmt: skip
    heads = "part | Capra | Python | numpy | numba | machine | cores: | load at the start:"
    return table(heads, rows)


def table(heads: str, rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; a column whose head ends with a colon is of numbers."""
    names = [head.strip() for head in heads.strip(" |").split(" |")]
    lines = [names, ["---:" if name.endswith(":") else "---" for name in names]]
    body = [list(row) for row in rows]
    assert all(len(row) == len(names) for row in body), f"rows of another width under {heads}"
    lines[0] = [name.removesuffix(":") for name in names]
    return "".join(f"| {' | '.join(line)} |\n" for line in (*lines, *body))


def _rows(case: Record) -> str:
    return "step" if case["rows"] == 1 else f"{case['rows']} rows"


def _seconds(value: float) -> str:
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def _significant(value: float) -> str:
    """Three digits: more would be noise."""
    return f"{float(f'{value:.3g}'):,g}" if value < 1000 else f"{int(float(f'{value:.3g}')):,}"


def _percent(value: float) -> str:
    return f"{round(100 * value, 4):.2g} %"


TABLES: Final = {
    "environments": environments,
    "commands": commands,
    "compiler": compiler,
    "instructions": instructions,
    "engines": engines,
    "first-use": first_use,
    "laws": laws,
    **{f"growth-{axis}": growth_of(axis) for axis in AXES},
    "peers": peer_table,
    "peer-versions": peer_versions,
    "peer-checks": peer_checks,
}
"""What makes each table of the page."""


def load(path: Path) -> Record:
    """A committed record."""
    record: Record = json.loads(path.read_text())
    return record


def main() -> None:
    """The command."""
    made = render(PAGE.read_text(), load(BENCH), load(PEERS))
    write_atomically(PAGE, made.encode())


if __name__ == "__main__":
    main()
