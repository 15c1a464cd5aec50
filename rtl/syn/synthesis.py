"""Synthesis of the chip with Yosys: gates of every module, memories kept as memories.

    python rtl/syn/synthesis.py [--rtl DIR] [--quick] [--write] [--netlist | --digest]

Every module is synthesized by itself, with the parameters that the chip gives it, and the hierarchy
stays. Prints the table of cells and exits with 1 when there is a latch, or when a memory is missing
(exploded into registers) or appears where none is meant. --quick stops before gates; --write brings
docs/reference/synthesis.md up to date. The netlist goes to build/syn/<digest>/netlist.v; nothing is
done twice for the same sources.

Needs Yosys and the standard library only.
"""

import argparse
import fcntl
import hashlib
import json
import re
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).parents[2]
PAGE: Final = CHECKOUT / "docs/reference/synthesis.md"
BUILD: Final = CHECKOUT / "build" / "syn"

TOP: Final = "ga2"
PARAMETERS: Final = {
    "EXTERNAL_WORDS": 8192,
    "SCRATCHPAD_WORDS": 8192,
    "OPERAND_DEPTH": 256,
    "PROGRAM_ENTRIES": 16384,
}
"""Those of a chip with no others asked for."""

MEMORIES: Final = {"ram": 1, "operand_memory": 4, "exp_table": 1}
"""Memories of each module that has any; all others have none. The exponential table is a ROM."""

SCRIPT: Final = Path(__file__).with_name("synthesis.ys")


@dataclass(frozen=True)
class Module:
    """What one module, with its parameters, became; cells of the modules in it do not count."""

    name: str
    parameters: str
    instances: int
    """In the whole chip."""
    cells: Mapping[str, int]
    memory_bits: int

    @property
    def flip_flops(self) -> int:
        """Bits of state outside memories (before gates, cells: of any width)."""
        return sum(n for cell, n in self.cells.items() if re.search(r"DFF|dff", cell))

    @property
    def memories(self) -> int:
        """Memory cells."""
        return sum(n for cell, n in self.cells.items() if cell.startswith("$mem"))

    @property
    def gates(self) -> int:
        """Combinational cells."""
        return sum(self.cells.values()) - self.flip_flops - self.memories

    @property
    def latches(self) -> int:
        """Latch cells, of which there must be none."""
        return sum(n for cell, n in self.cells.items() if re.search("latch", cell, re.IGNORECASE))


def files(rtl: Path) -> list[Path]:
    """The sources in order."""
    return [rtl / name for name in (rtl / "files.f").read_text().split()]


def digest(rtl: Path) -> str:
    """Of everything that the result depends on but the version of Yosys."""
    state = hashlib.sha256(repr(PARAMETERS).encode())
    for path in (*files(rtl), SCRIPT):
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def synthesize(rtl: Path, quick: bool) -> Path:
    """Run Yosys, unless it ran before; the directory with stat.json, log and netlist.v."""
    directory = BUILD / (digest(rtl) + ("-quick" if quick else ""))
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / "lock").open("w") as lock:  # two processes never do the same thing
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (directory / "done").exists():
            _run_yosys(rtl, quick, directory)
            (directory / "done").touch()
    return directory


def _run_yosys(rtl: Path, quick: bool, directory: Path) -> None:
    sources = " ".join(str(path.resolve()) for path in files(rtl))
    parameters = " ".join(f"-chparam {name} {value}" for name, value in PARAMETERS.items())
    coarse, gates = SCRIPT.read_text().split("# gates\n")
    steps = [f"read_verilog -sv {sources}", f"hierarchy -check -top {TOP} {parameters}", coarse]
    steps += [] if quick else [gates]
    steps += ["tee -q -o stat.json stat -json", "write_verilog -noattr netlist.v"]
    (directory / "run.ys").write_text("\n".join(steps) + "\n")
    with (directory / "log").open("w") as log:
        command = ["yosys", "-Q", "run.ys"]
        done = subprocess.run(  # noqa: S603
            command, cwd=directory, stdout=log, stderr=subprocess.STDOUT, check=False
        )
    if done.returncode:
        tail = (directory / "log").read_text().splitlines()[-5:]
        sys.exit("\n".join([f"yosys ended with {done.returncode}, see {directory}/log", *tail]))
    netlist = directory / "netlist.v"
    netlist.write_text(with_parameters(netlist.read_text()))


def with_parameters(netlist: str) -> str:
    """The netlist with the top's parameters, so that the bench can give them; they are fixed."""
    names = ", ".join(f"parameter {name} = {value}" for name, value in PARAMETERS.items())
    text, count = re.subn(rf"^module {TOP}\(", f"module {TOP} #({names}) (", netlist, flags=re.M)
    assert count == 1
    return text


def modules(directory: Path) -> list[Module]:
    """All modules, by name and parameters."""
    text, _ = (directory / "stat.json").read_text().split("\n   },\n", 1)
    raw = json.loads(text + "}}")["modules"]  # Yosys 0.23 goes on with what is no JSON
    stats = {key.lstrip("\\"): entry["num_cells_by_type"] for key, entry in raw.items()}
    parameters = _parameters((directory / "log").read_text())
    bits = _memory_bits((directory / "netlist.v").read_text())

    @cache
    def instances(key: str) -> int:
        if key == TOP:
            return 1
        return sum(instances(up) * cells[key] for up, cells in stats.items() if key in cells)

    found = [
        Module(
            name=_plain(key),
            parameters=parameters.get(key, ""),
            instances=instances(key),
            cells={cell: n for cell, n in cells.items() if cell not in stats},
            memory_bits=bits.get(key, 0),
        )
        for key, cells in stats.items()
    ]
    return sorted(found, key=lambda module: (module.name, module.parameters))


def _plain(key: str) -> str:
    """The source's name of a module that Yosys calls $paramod$hash\\name or $paramod\\name\\P=8."""
    parts = key.split("\\")
    return parts[1] if len(parts) > 1 else key


def _parameters(log: str) -> dict[str, str]:
    """The parameters of every derived module, from the lines that announce it."""
    pattern = (
        r"AST frontend in derive mode.*\n((?:Parameter .*\n)*)"
        r"Generating RTLIL representation for module `\\?(.*)'"
    )
    return {
        name: ", ".join(f"{key} = {value}" for key, value in re.findall(r"\\(\w+) = (\d+)", lines))
        for lines, name in re.findall(pattern, log)
    }


def _memory_bits(netlist: str) -> dict[str, int]:
    """Bits of the memories in each module of a netlist."""
    bits: Counter[str] = Counter()
    module = ""
    for line in netlist.splitlines():
        if found := re.match(r"module \\?(\S+?)\s?(?:\(| #)", line):
            module = found[1]
        elif found := re.match(r"\s+reg \[(\d+):0\] .* \[(\d+):0\];", line):
            bits[module] += (int(found[1]) + 1) * (int(found[2]) + 1)
    return dict(bits)


def faults(found: list[Module]) -> Iterator[str]:
    """A sentence for each latch and each memory that is not as meant."""
    for module in found:
        if module.latches:
            yield f"{module.name}: {module.latches} latches, expected none"
        wanted = MEMORIES.get(module.name, 0)
        if module.memories != wanted:
            yield f"{module.name}: {module.memories} memories, expected {wanted}"
    missing = set(MEMORIES) - {module.name for module in found}
    yield from (f"{name}: no such module, expected memories in it" for name in sorted(missing))


def table(found: list[Module]) -> str:
    """The table in Markdown, and a row for the whole chip."""
    lines = [
        "| module | parameters | instances | gates | flip-flops | memory bits |",
        "|---|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {m.name} | {m.parameters} | {m.instances} | {m.gates:,} | {m.flip_flops:,} "
        f"| {m.memory_bits:,} |"
        for m in found
    ]
    totals = [
        sum(m.instances * value for m, value in zip(found, values, strict=True))
        for values in (
            [m.gates for m in found],
            [m.flip_flops for m in found],
            [m.memory_bits for m in found],
        )
    ]
    count = sum(m.instances for m in found)
    gates, flip_flops, bits = totals
    lines.append(f"| **the chip** | | {count} | {gates:,} | {flip_flops:,} | {bits:,} |")
    return "\n".join(lines) + "\n"


def page(found: list[Module], rtl: Path, creator: str) -> str:
    """The page of the documentation; `creator` is the version of Yosys."""
    parameters = ", ".join(f"{name} = {value}" for name, value in PARAMETERS.items())
    kinds: Counter[str] = Counter()
    for module in found:
        for cell, n in module.cells.items():
            kinds[cell] += n * module.instances
    cells = textwrap.fill(
        ", ".join(f"{n:,} `{cell}`" for cell, n in sorted(kinds.items())), width=100
    )
    return f"""\
# Synthesis

This page is made by `make synth` from the RTL with the digest `{digest(rtl)}`; a test fails when
the sources have another one, and `make synth` again brings the page up to date.

{creator} turns the chip into generic two-input gates, multiplexers and
flip-flops (the steps of `synth`, with `abc -fast`; no cell library, no timing), one module at a
time: the hierarchy stays, so each row is a module on its own, without the modules in it. Counts are
of one instance; the last row multiplies them by the instances. Memories stay memories (`$mem_v2`)
and are given in bits; one of them is a ROM, the exponential table.

Parameters: {parameters}.

There are no latches, and the memories are the {sum(m.memories * m.instances for m in found)} that
are meant; `rtl/syn/synthesis.py` fails otherwise.

{table(found)}
Cells of the whole chip:
{cells}.
"""


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rtl", type=Path, default=CHECKOUT / "rtl", help="directory of files.f")
    parser.add_argument("--quick", action="store_true", help="stop before gates")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    parser.add_argument("--netlist", action="store_true", help="print the netlist's path only")
    parser.add_argument("--digest", action="store_true", help="print the sources' digest only")
    arguments = parser.parse_args()
    if arguments.digest:
        print(digest(arguments.rtl))
        return 0
    directory = synthesize(arguments.rtl, arguments.quick)
    found = modules(directory)
    wrong = list(faults(found))
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return 1
    if arguments.netlist:
        print(directory / "netlist.v")
        return 0
    print(table(found), end="")
    if arguments.write and not arguments.quick:
        creator = (directory / "stat.json").read_text().split('"')[3]
        PAGE.write_text(page(found, arguments.rtl, creator))
        print(f"wrote {PAGE.relative_to(CHECKOUT)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
