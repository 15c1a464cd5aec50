"""`make bench`: how fast and how large the tool is, as one JSON record.

Every measurement runs in a process of its own, so that start-up, compilation and peak memory count.
Seconds are the minimum of the repeats (the machine is shared, and nothing makes a run too fast);
the record carries every repeat. Written to build/bench.json and to stdout.
"""

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from capra import __version__

if TYPE_CHECKING:
    from capra import Program
    from capra.cosim.jobs import Words

REPEATS: Final = 3
CAPRA: Final = (sys.executable, "-m", "capra")
RESULT: Final = Path("build/bench.json")

Record = dict[str, Any]


def measure(command: tuple[str, ...], repeats: int = REPEATS) -> Record:
    """Process seconds (user and system), wall seconds and peak MiB of a command, each repeat."""
    runs: list[Record] = []
    for _ in range(repeats):
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{' '.join(command)} failed")
        runs.append(
            {
                "process_seconds": usage.ru_utime + usage.ru_stime,
                "wall_seconds": time.perf_counter() - begin,
                "peak_mib": usage.ru_maxrss / 1024,
            }
        )
    best = {key: min(run[key] for run in runs) for key in ("process_seconds", "wall_seconds")}
    return {**best, "peak_mib": max(run["peak_mib"] for run in runs), "runs": runs}


def table_programs() -> "list[Program]":
    """Steps, verifiers and drafts as in the runs of the table."""
    from capra import ChipBigram, ChipTarget, load_bigram, load_model

    programs = []
    for name in ("structured", "random"):
        model = load_model(name)
        target = ChipTarget(model)
        programs += [target.program("step", 1, cache) for cache in range(32)]
        programs += [target.program("verify", 4, cache) for cache in range(0, 32, 4)]
        programs.append(ChipBigram(load_bigram(model), model.config.chip).program)
    return programs


def rtl_speed(programs: "list[Program]") -> Record:
    """Cycles a second of each hardware simulator, each program run once from random memories.

    Reading and writing the memory images counts, building the simulation does not. Results are
    compared with the simulator's: a benchmark of something wrong is worth nothing.
    """
    from capra.cosim.compare import difference, expected
    from capra.cosim.jobs import Job
    from capra.cosim.replay import replay
    from capra.cosim.toolchain import Configuration, Simulator, built, is_installed, version

    draw, chip = np.random.default_rng(1), programs[0].chip

    def image(words: int) -> "Words":
        return draw.integers(-127, 127, words, endpoint=True).astype(np.int32)

    jobs = [Job(p, image(chip.external_words), image(chip.scratchpad_words)) for p in programs]
    wanted = [expected(job) for job in jobs]
    record: Record = {}
    for simulator in Simulator:
        if not is_installed(simulator):
            record[simulator.value] = {"skipped": f"{simulator} is not installed"}
            continue
        configuration = Configuration(simulator, chip)
        built(configuration)
        seconds = []
        for _ in range(REPEATS):
            result = replay(configuration, jobs)
            seconds.append(result.seconds)
            for job, left, outcome in zip(jobs, wanted, result.outcomes, strict=True):
                found = difference(job, left, outcome)
                if found is not None:
                    raise SystemExit(f"{simulator}: {found}")
        record[simulator.value] = {
            "version": version(simulator),
            "programs": len(jobs),
            "cycles": result.cycles,
            "cycles_per_second": result.cycles / min(seconds),
            "seconds": seconds,
        }
    return record


def simulator_speed(programs: "list[Program]") -> Record:
    """Simulated cycles a second on some programs, each bound once and run often."""
    from capra import Machine

    machine = Machine(programs[0].chip)
    bound = [machine.bind(program) for program in programs]
    seconds = []
    for _ in range(REPEATS + 1):  # the first round warms up
        begin = time.perf_counter()
        for program in bound:
            machine.run(program)
        seconds.append(time.perf_counter() - begin)
    cycles = sum(program.cycles for program in programs)
    return {
        "programs": len(programs),
        "cycles": cycles,
        "cycles_per_second": cycles / min(seconds[1:]),
        "seconds": seconds[1:],
    }


def compile_speed() -> Record:
    """Milliseconds to compile one program, the best of the repeats."""
    from capra import compile_graph, load_model
    from capra.lm.target import model_graph

    record: Record = {}
    for name, rows, cache in (
        ("random", 1, 8),
        ("random", 4, 8),
        ("pydoc", 1, 64),
        ("pydoc", 4, 64),
    ):
        model = load_model(name)
        graph = model_graph(model.config, "step" if rows == 1 else "verify", rows, cache)
        seconds = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            program = compile_graph(graph, model.ranges, model.config.chip)
            seconds.append(time.perf_counter() - begin)
        record[f"{name} m={rows} c={cache}"] = {
            "instructions": len(program.instructions),
            "milliseconds": min(seconds) * 1000,
        }
    return record


def main() -> None:
    text = ("decode", "--max-new-tokens", "64", "--json")
    programs = table_programs()
    record = {
        "capra": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "help": measure((*CAPRA, "--help")),
        "table": measure((*CAPRA, "table", "--json")),
        "grid": measure((*CAPRA, "grid", "--json")),
        "pydoc_64_plain": measure((*CAPRA, *text, "--num-speculative-tokens", "0"), repeats=1),
        "pydoc_64_k3": measure((*CAPRA, *text, "--num-speculative-tokens", "3"), repeats=1),
        "simulator": simulator_speed(programs),
        "rtl": rtl_speed(programs),
        "compiler": compile_speed(),
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n")
    print(json.dumps(record, indent=2))


if __name__ == "__main__":
    main()
