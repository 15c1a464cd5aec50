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


def sources() -> tuple[Path, ...]:
    """The files of the chip and the bench, in order of compilation."""
    listing = RTL / "files.f"
    if not listing.exists():
        raise CosimError(f"{listing} is missing: the RTL is only in a checkout of the project")
    return tuple(RTL / name for name in (*listing.read_text().split(), *BENCH))


def built(configuration: Configuration) -> tuple[str, ...]:
    """The command that runs the bench of a configuration, built now unless it was built before."""
    require(configuration.simulator)
    directory = BUILD / f"{configuration.simulator}-{_digest(configuration)}"
    target = directory / "bench"
    if not target.exists():
        BUILD.mkdir(parents=True, exist_ok=True)
        with directory.with_suffix(".lock").open(
            "w"
        ) as lock:  # two processes never build the same thing
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                _build(configuration, directory)
    if not _is_icarus(configuration):
        return (str(target),)
    return ("vvp", "-n", str(target), *(["-fst"] if configuration.wave == "fst" else []))


def _is_icarus(configuration: Configuration) -> bool:
    return configuration.simulator is Simulator.ICARUS


def _digest(configuration: Configuration) -> str:
    state = hashlib.sha256(f"{configuration} {version(configuration.simulator)}".encode())
    for path in (*sources(), Path(__file__)):
        state.update(path.read_bytes())
    return state.hexdigest()[:16]


def _build(configuration: Configuration, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    chip = configuration.chip
    parameters = {
        "EXTERNAL_WORDS": chip.external_words,
        "SCRATCHPAD_WORDS": chip.scratchpad_words,
        "OPERAND_DEPTH": chip.operand_depth,
        "PROGRAM_ENTRIES": chip.program_entries,
    }
    files = [str(path) for path in sources()]
    if _is_icarus(configuration):
        flags = [f"-Ptb.{name}={value}" for name, value in parameters.items()]
        command = ["iverilog", "-g2012", "-s", "tb", *flags, "-o", str(directory / "new"), *files]
    else:
        flags = [f"-G{name}={value}" for name, value in parameters.items()]
        fast = "-O2" if configuration.wave is None else "-O0"  # wave files are slow anyway
        # Verilator's makefile puts these behind -CFLAGS, so only they decide.
        optimize = f"OPT_FAST={fast} OPT_GLOBAL={fast} OPT_SLOW=-O0"
        if configuration.wave is not None:
            flags.append("--trace-fst" if configuration.wave == "fst" else "--trace")
        if configuration.random_initial:
            flags += ["--x-initial", "unique", "--x-assign", "unique"]
        command = [
            "verilator", "--binary", "--timing", "-O3", "--top-module", "tb", *flags,
            "-MAKEFLAGS", optimize, "-Wno-fatal", "-Wno-lint", "-Wno-BLKANDNBLK",
            "-Mdir", str(directory / "obj"), "-o", "../new", *files,
        ]  # fmt: skip
    _run(command, directory / "build.log")
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
