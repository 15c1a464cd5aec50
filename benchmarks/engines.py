"""Cycles a second of Capra's two engines and of the hardware simulators, on the same programs.

Every machine starts from the same random memories, and what the hardware simulators leave behind is
compared with the simulator's: a benchmark of something wrong is worth nothing. Rounds take turns,
so that the ratios of one run are of one machine in one state.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from benchmarks.processes import PYTHON, measure_output
from benchmarks.records import Record, say
from capra.cosim.compare import Expected, difference, expected
from capra.cosim.jobs import Job, Words
from capra.cosim.replay import replay
from capra.cosim.toolchain import Configuration, Simulator, built, is_installed, version
from capra.isa.instruction import instruction
from capra.isa.program import Program
from capra.lm.bigram import ChipBigram
from capra.lm.models import TINY_MODELS, load_bigram, load_model
from capra.lm.target import ChipTarget
from capra.sim.machine import Engine, Machine, has_numba

ROUNDS: Final = 3
RUNS: Final = 10
"""Runs of a quick engine in a round, of which the fastest counts."""

TARGET_FIRST_SECONDS: Final = 10.0
NOISE: Final = 0.1
"""A difference of seconds that is a smaller part of them says nothing."""

RATES: Final = {
    "cycles_per_second": "of_verilator",
    "cycles_per_second_without_images": "of_verilator_without_images",
}
"""Rates, and what their ratio to Verilator's is called."""

PYDOC_CACHES: Final = (0, 32, 64, 100)

Timer = Callable[[], Record]
"""Runs all programs of a set once and gives seconds, and what else there is to say."""


class WrongResultError(Exception):
    """A hardware simulator left something else than the simulator."""


@dataclass(frozen=True)
class ProgramSet:
    """Programs for one chip."""

    what: str
    programs: Sequence[Program]
    icarus_programs: int
    """How many of them Icarus gets, which is too slow for all and for more than one round."""


def engines() -> Record:
    """Both sets of programs on all that is installed, and the compiled engine's first use."""
    record = {programs.what: compare(programs) for programs in (tiny_programs(), pydoc_programs())}
    return {**record, "first_use": first_use()}


def tiny_programs() -> ProgramSet:
    """Steps, verifiers and drafts as in the runs of the table."""
    programs: list[Program] = []
    for name in TINY_MODELS:
        model = load_model(name)
        target = ChipTarget(model)
        programs += [target.program("step", 1, cache) for cache in range(32)]
        programs += [target.program("verify", 4, cache) for cache in range(0, 32, 4)]
        programs.append(ChipBigram(load_bigram(model), model.config.chip).program)
    return ProgramSet("tiny", programs, len(programs))


def pydoc_programs() -> ProgramSet:
    """Steps and verifiers of four rows."""
    target = ChipTarget(load_model("pydoc"))
    programs = [target.program("step", 1, cache) for cache in PYDOC_CACHES]
    programs += [target.program("verify", 4, cache) for cache in PYDOC_CACHES]
    return ProgramSet("pydoc", programs, 1)


def compare(these: ProgramSet) -> Record:
    """Cycles a second of each engine and simulator, and the ratio of each to Verilator's."""
    jobs = random_jobs(these.programs)
    wanted = [expected(job) for job in jobs]
    timers: dict[str, tuple[Timer, int]] = {"readable": (_engine(jobs, "readable"), 1)}
    record: Record = {}
    if has_numba():
        timers["compiled"] = _engine(jobs, "compiled"), RUNS
    else:
        record["compiled"] = {"skipped": "numba is not installed"}
    for simulator in Simulator:
        if not is_installed(simulator):
            record[simulator.value] = {"skipped": f"{simulator} is not installed"}
            continue
        count = these.icarus_programs if simulator is Simulator.ICARUS else len(jobs)
        timers[simulator.value] = _rtl(simulator, jobs[:count], wanted[:count]), 1
    rounds: dict[str, list[Record]] = {name: [] for name in timers}
    for number in range(ROUNDS):
        for name, (timer, runs) in timers.items():
            if name == Simulator.ICARUS and number:
                continue
            say(f"{these.what} programs: {name}, round {number + 1} of {ROUNDS}")
            rounds[name].append(min((timer() for _ in range(runs)), key=_seconds_of))
    record.update({name: _best(runs) for name, runs in rounds.items()})
    return with_ratios(record)


def _best(rounds: Sequence[Record]) -> Record:
    fastest = min(rounds, key=_seconds_of)
    best = {**fastest, "rounds": [run["seconds"] for run in rounds]}
    if "image_seconds" in best:
        best["image_seconds"] = min(run["image_seconds"] for run in rounds)
    return best


def with_ratios(runs: Record) -> Record:
    """The runs with cycles a second, as run and without images, and both in those of Verilator.

    A rate without images is left out where images are nearly all: it would be noise.
    """
    made = {name: run if "skipped" in run else {**run, **_rates(run)} for name, run in runs.items()}
    base = made.get(Simulator.VERILATOR, {})
    for key in RATES:
        for run in made.values():
            if key in base and key in run:
                run[RATES[key]] = run[key] / base[key]
    return made


def _rates(run: Record) -> Record:
    seconds = run["seconds"]
    rates = {"cycles_per_second": run["cycles"] / seconds}
    without_images = seconds - run.get("image_seconds", 0)
    if without_images > NOISE * seconds:
        rates["cycles_per_second_without_images"] = run["cycles"] / without_images
    return rates


def _seconds_of(run: Record) -> float:
    return float(run["seconds"])


def _engine(jobs: Sequence[Job], engine: Engine) -> Timer:
    """Runs programs that are bound already, on memories as the last left them; one warms up."""
    machine = Machine(jobs[0].program.chip, engine=engine)
    machine.external[:] = jobs[0].external
    assert jobs[0].scratchpad is not None
    machine.scratchpad[:] = jobs[0].scratchpad
    bound = [machine.bind(job.program) for job in jobs]
    for program in bound:
        machine.run(program)

    def run() -> Record:
        begin = time.perf_counter()
        cycles = sum(machine.run(program).total for program in bound)
        return {"programs": len(bound), "cycles": cycles, "seconds": time.perf_counter() - begin}

    return run


def _rtl(simulator: Simulator, jobs: Sequence[Job], wanted: Sequence[Expected]) -> Timer:
    """Replays the jobs, the build apart. `image_seconds` are those of the same jobs without code.

    They read, clear and write the memory images, which is part of `seconds`.
    """
    configuration = Configuration(simulator, jobs[0].program.chip)
    say(f"building the bench of {simulator}")
    built(configuration)
    empty = [Job(_halt(job.program), job.external, job.scratchpad) for job in jobs]

    def run() -> Record:
        result = replay(configuration, jobs)
        for job, left, outcome in zip(jobs, wanted, result.outcomes, strict=True):
            found = difference(job, left, outcome)
            if found is not None:
                raise WrongResultError(f"{simulator}: {found}")
        return {
            "version": version(simulator),
            "programs": len(jobs),
            "cycles": result.cycles,
            "seconds": result.seconds,
            "image_seconds": replay(configuration, empty).seconds,
        }

    return run


def _halt(program: Program) -> Program:
    return Program(f"{program.name}, only HALT", program.chip, (instruction("HALT"),))


def random_jobs(programs: Sequence[Program]) -> list[Job]:
    """The programs on int8 values in all words of both memories."""
    draw = np.random.default_rng(1)

    def image(words: int) -> Words:
        return draw.integers(-127, 127, words, endpoint=True).astype(np.int32)

    chip = programs[0].chip
    return [Job(p, image(chip.external_words), image(chip.scratchpad_words)) for p in programs]


def first_use() -> Record:
    """The compiled engine's first run in a process: with numba's cache empty, and full."""
    if not has_numba():
        return {"skipped": "numba is not installed"}
    record: Record = {"target_seconds": TARGET_FIRST_SECONDS}
    with tempfile.TemporaryDirectory() as directory:
        for name in ("empty_cache", "full_cache"):
            say(f"first use of the compiled engine, {name.replace('_', ' ')}")
            command = (*PYTHON, "benchmarks.engines")
            settings = {"NUMBA_CACHE_DIR": directory, "CAPRA_ENGINE": "compiled"}
            measured, printed = measure_output(command, environment=settings)
            record[name] = {**printed, "process": measured}
    return record


def main() -> None:
    """One pydoc step on zeros in a process that has run nothing: seconds of the first two runs."""
    program = ChipTarget(load_model("pydoc")).program("step", 1, 0)
    machine = Machine(program.chip)
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        machine.run(program)
        seconds.append(time.perf_counter() - begin)
    json.dump({"first_seconds": seconds[0], "second_seconds": seconds[1]}, sys.stdout)


if __name__ == "__main__":
    main()
