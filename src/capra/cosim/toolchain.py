"""Finds the hardware simulators and builds the bench, once per configuration and content."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final, Literal

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

_VERSION_FLAG: Final = {Simulator.ICARUS: "-V", Simulator.VERILATOR: "--version"}


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


@cache
def version(simulator: Simulator) -> str:
    """The simulator's own version line."""
    require(simulator)
    command = [next(iter(_PROGRAMS[simulator])), _VERSION_FLAG[simulator]]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    return done.stdout.splitlines()[0].strip()


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
    command = _command(simulator, top, files, flags, optimize)
    directory = BUILD / f"{simulator}-{_digest(simulator, command, files)}"
    target = directory / "bench"
    if not target.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        # Two processes never build the same thing.
        with directory.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                _build(simulator, command, directory)
    return ("vvp", "-n", str(target)) if simulator is Simulator.ICARUS else (str(target),)


def _command(
    simulator: Simulator, top: str, files: Sequence[Path], flags: Sequence[str], optimize: bool
) -> list[str]:
    """What compiles a bench, without where to put it."""
    names = [str(path) for path in files]
    if simulator is Simulator.ICARUS:
        return ["iverilog", "-g2012", "-s", top, *flags, *names]
    kind = ["--cc", "--exe", "--build"] if COVERAGE_MAIN in files else ["--binary"]
    fast = "-O2" if optimize else "-O0"
    # Verilator's makefile puts these behind -CFLAGS, so only they decide.
    make = f"OPT_FAST={fast} OPT_GLOBAL={fast} OPT_SLOW=-O0"
    return [
        "verilator", *kind, "--timing", "-O3", "--top-module", top, *flags, "-MAKEFLAGS", make,
        "-Wno-fatal", "-Wno-lint", "-Wno-BLKANDNBLK", *names,
    ]  # fmt: skip


def _digest(simulator: Simulator, command: Sequence[str], files: Sequence[Path]) -> str:
    state = hashlib.sha256(f"{version(simulator)} {[*command]}".encode())
    for path in (*files, Path(__file__)):
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def _build(simulator: Simulator, command: Sequence[str], directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    if simulator is Simulator.ICARUS:
        where = ["-o", str(directory / "new")]
    else:
        where = ["-Mdir", str(directory / "obj"), "-o", "../new"]
    _run([*command, *where], directory / "build.log")
    shutil.rmtree(directory / "obj", ignore_errors=True)
    (directory / "new").rename(directory / "bench")


def _run(command: Sequence[str], log: Path) -> None:
    environment = {**os.environ, "MAKEFLAGS": ""}  # a make around us must not share its jobs
    with log.open("w") as output:
        done = subprocess.run(  # noqa: S603
            command, stdout=output, stderr=subprocess.STDOUT, env=environment, check=False
        )
    if done.returncode:
        tail = "\n".join(log.read_text().splitlines()[-20:])
        raise CosimError(f"{command[0]} ended with {done.returncode}, see {log}:\n{tail}")
