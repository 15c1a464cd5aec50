"""Finds the hardware simulators and builds the bench, once per configuration and content."""

import hashlib
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, Literal

from capra.cosim.builds import kept
from capra.cosim.tools import ended, last_words, run, temporary_folder
from capra.errors import CosimError
from capra.isa.chip import Chip

CHECKOUT: Final = Path(__file__).parents[3]
"""The RTL is part of a checkout, not of the installed package."""

RTL: Final = CHECKOUT / "rtl"
BENCH: Final = ("tb/external_memory.sv", "tb/tb.sv")
BUILD: Final = CHECKOUT / "build" / "rtl"

COVERAGE_MAIN: Final = RTL / "tb/coverage_main.cpp"
"""Writes the coverage at the end, which Verilator 5.006's own main does not."""


Wave = Literal["vcd", "fst"]


class Simulator(StrEnum):
    """A hardware simulator; the value is its name on the command line."""

    ICARUS = "icarus"
    VERILATOR = "verilator"


_PROGRAMS: Final = {
    Simulator.ICARUS: {"iverilog": "iverilog", "vvp": "iverilog"},
    Simulator.VERILATOR: {"verilator": "verilator", "g++": "g++", "make": "make"},
}
"""What each simulator needs on the path, and the Debian package that has it."""

_VERSION: Final = {
    Simulator.ICARUS: ("-V", "Icarus Verilog "), Simulator.VERILATOR: ("--version", "Verilator "),
}  # fmt: skip
"""How each is asked for its version, and how the line with it begins."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """What a build of the bench depends on, apart from the sources."""

    simulator: Simulator
    chip: Chip
    wave: Wave | None = None
    """Able to write waveforms of this format, at the price of speed."""
    random_initial: bool = False
    """Verilator only: state without a defined start takes random values, from a seed of the run."""
    coverage: bool = False
    """Verilator only: counts how often each line runs, for a run that asks for it."""
    netlist: Path | None = None
    """A synthesized chip that takes the place of the RTL, made for the sizes of `chip`."""


def require(simulator: Simulator) -> None:
    """Raise CosimError, naming the package to install, unless the simulator is there."""
    for program, package in _PROGRAMS[simulator].items():
        if shutil.which(program) is None:
            raise CosimError(
                f"{program} is not on the path, expected it for the simulator {simulator}: "
                f"install the package {package}"
            )


def is_installed(simulator: Simulator) -> bool:
    """Whether everything that the simulator needs is there."""
    return all(shutil.which(program) is not None for program in _PROGRAMS[simulator])


def parse_simulators(text: str) -> tuple[Simulator, ...]:
    """The simulators of a list like 'icarus,verilator'; CosimError for other names."""
    known = ", ".join(Simulator)
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in list(Simulator):
            raise CosimError(f"RTL simulator is {name!r}, expected one or more of {known}")
    return tuple(Simulator(name) for name in dict.fromkeys(names))


def version(simulator: Simulator) -> str:
    """The simulator's own version line; CosimError when it does not tell."""
    require(simulator)
    program = next(iter(_PROGRAMS[simulator]))
    return _version(str(shutil.which(program)), *_VERSION[simulator])


@cache
def _version(program: str, flag: str, beginning: str) -> str:
    code, output = run([program, flag], temporary_folder())
    if code:
        raise CosimError(f"{program} {flag} {ended(code)}: {last_words(output)}")
    for line in output.splitlines():
        if line.startswith(beginning):
            return line.strip()
    raise CosimError(
        f"{program} {flag} has no line {beginning}..., expected its version: {last_words(output)}"
    )


def chip_sources() -> tuple[Path, ...]:
    """The files of the chip, in order of compilation."""
    listing = RTL / "files.f"
    if not listing.exists():
        raise CosimError(f"{listing} is missing: the RTL is only in a checkout of the project")
    return tuple(RTL / name for name in listing.read_text().split())


def sources(netlist: Path | None = None) -> tuple[Path, ...]:
    """The files of the chip, or the package and a netlist, and the bench, in order."""
    chip = chip_sources() if netlist is None else (RTL / "ga2_pkg.sv", netlist)
    return (*chip, *(RTL / name for name in BENCH))


def built(configuration: Configuration) -> tuple[str, ...]:
    """The command that runs the bench of a configuration, built now unless it was built before."""
    chip, wave = configuration.chip, configuration.wave
    parameters = {
        "EXTERNAL_WORDS": chip.external_words,
        "SCRATCHPAD_WORDS": chip.scratchpad_words,
        "OPERAND_DEPTH": chip.operand_depth,
        "PROGRAM_ENTRIES": chip.program_entries,
    }
    files = sources(configuration.netlist)
    if configuration.simulator is Simulator.ICARUS:
        flags = [f"-Ptb.{name}={value}" for name, value in parameters.items()]
        command = compiled(Simulator.ICARUS, "tb", files, flags)
        return (*command, "-fst") if wave == "fst" else command
    flags = [f"-G{name}={value}" for name, value in parameters.items()]
    if wave is not None:
        flags.append("--trace-fst" if wave == "fst" else "--trace")
    if configuration.random_initial:
        flags += ["--x-initial", "unique", "--x-assign", "unique"]
    if configuration.coverage:
        flags.append("--coverage-line")
        files = (*files, COVERAGE_MAIN)
    # Wave files are slow anyway, so their builds may be quick.
    return compiled(Simulator.VERILATOR, "tb", files, flags, optimize=wave is None)


def compiled(
    simulator: Simulator,
    top: str,
    files: Sequence[Path],
    flags: Sequence[str] = (),
    *,
    optimize: bool = True,
) -> tuple[str, ...]:
    """The command that runs any bench, compiled now unless the same was compiled before."""
    require(simulator)
    contents = {path.name: path.read_bytes() for path in files}
    assert len(contents) == len(files), "sources of one name"
    command = _command(simulator, top, files, flags, optimize)
    directory = BUILD / f"{simulator}-{_digest(simulator, command, contents)}"
    bench = kept(command, contents, directory, program=simulator is Simulator.VERILATOR)
    return ("vvp", "-n", str(bench)) if simulator is Simulator.ICARUS else (str(bench),)


def _command(
    simulator: Simulator, top: str, files: Sequence[Path], flags: Sequence[str], optimize: bool
) -> list[str]:
    """What compiles a bench from files in the working folder to `new` there."""
    names = [path.name for path in files]
    if simulator is Simulator.ICARUS:
        return ["iverilog", "-g2012", "-s", top, "-o", "new", *flags, *names]
    kind = ["--cc", "--exe", "--build"] if COVERAGE_MAIN in files else ["--binary"]
    fast = "-O2" if optimize else "-O0"
    # Verilator's makefile puts these behind -CFLAGS, so only they decide.
    make = f"-s OPT_FAST={fast} OPT_GLOBAL={fast} OPT_SLOW=-O0"
    return [
        "verilator", *kind, "--timing", "-O3", "--top-module", top, *flags, "-MAKEFLAGS", make,
        "-Wno-fatal", "-Wno-lint", "-Wno-BLKANDNBLK", "-Mdir", "obj", "-o", "../new", *names,
    ]  # fmt: skip


def _digest(simulator: Simulator, command: Sequence[str], contents: Mapping[str, bytes]) -> str:
    """Of all that a bench depends on: sources, command, simulator, and the machine it runs on."""
    machine = platform.machine(), *platform.libc_ver()
    state = hashlib.sha256(f"{version(simulator)} {machine} {[*command]}".encode())
    for content in contents.values():
        state.update(hashlib.sha256(content).digest())
    return state.hexdigest()[:16]
