"""Simulator = Icarus = Verilator, on random programs and on those of the tiny models.

CAPRA_SEED and CAPRA_RANDOM_PROGRAMS choose the first seed and the number of random programs.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.compiler.full_programs import CORES, full_program

from capra.compiler.optimization import O0, O1, Optimization
from capra.cosim import jobs as cosim_jobs
from capra.cosim.compare import difference, expected
from capra.cosim.jobs import Job, MemoryModel
from capra.cosim.random_programs import random_job
from capra.cosim.record import RecordingDevice
from capra.cosim.replay import Replay
from capra.cosim.toolchain import Simulator
from capra.isa.chip import Chip
from capra.isa.encoding import encode
from capra.isa.instruction import Instruction, instruction
from capra.isa.program import Program
from capra.lm.models import load_model
from capra.lm.target import ChipTarget
from capra.lm.tiny import random_model, structured_model

Check = Callable[..., Replay]

SEED = int(os.environ.get("CAPRA_SEED", "0"))
RANDOM_PROGRAMS = int(os.environ.get("CAPRA_RANDOM_PROGRAMS", "100"))
SMALL = Chip(external_words=1500, scratchpad_words=1024, operand_depth=300, program_entries=64)


@cache
def model_jobs(optimize: Optimization = O0) -> tuple[Job, ...]:
    """Prefill, steps and verifiers of both tiny models at growing cache lengths.

    Only the words that the host wrote start defined.
    """
    jobs: list[Job] = []
    for model in (random_model(1), structured_model(2)):
        device = RecordingDevice(model.config.chip, lambda job, _left: jobs.append(job))
        session = ChipTarget(model, device, optimize=optimize).session()
        session.prefill([1, 2, 3, 4, 5])
        for block in ([6], [7, 8, 9, 10], [3], [1, 2], [15, 14, 13, 12, 11, 10, 9, 8], [0]):
            session.forward(block)
    return tuple(jobs)


def defined(job: Job) -> Job:
    """The job with every word defined, so that every word is compared."""
    return replace(job, external_known=None)


def undefined(job: Job) -> Job:
    """The job with nothing defined but what the host wrote."""
    return replace(job, scratchpad=None)


def random_jobs(count: int, first: int = SEED, instructions: int = 12) -> list[Job]:
    return [random_job(first + i, SMALL, instructions) for i in range(count)]


def test_random_programs(simulator: Simulator, check: Check) -> None:
    print(f"seeds {SEED} .. {SEED + RANDOM_PROGRAMS - 1}")
    check(simulator, random_jobs(RANDOM_PROGRAMS))


def test_words_behind_an_image_are_cleared(simulator: Simulator, check: Check) -> None:
    full = random_job(SEED + 4000, SMALL)
    assert full.scratchpad is not None
    words = full.external.copy(), full.scratchpad.copy()
    for memory in words:
        memory[3:] = 0
    check(simulator, [full, replace(full, external=words[0], scratchpad=words[1]), full])


def full_job(name: str) -> Job:
    """A compiled program that leaves nothing of the chip's memories, on words of every kind."""
    program, leaves, _ = full_program(name, SMALL)
    memories = random_job(SEED, SMALL)
    for slot in program.slots("input", "weight"):
        slot.region.of(memories.external)[...] = leaves[slot.name]
    return replace(memories, program=program)


def test_programs_that_use_the_last_word_of_every_memory(
    simulator: Simulator, check: Check
) -> None:
    check(simulator, [full_job(name) for name in CORES])


def test_programs_of_a_tiny_model(each_simulator: Simulator, check: Check) -> None:
    check(each_simulator, [defined(job) for job in model_jobs(O1)[:7]])


@pytest.mark.full
@pytest.mark.parametrize("optimize", [O0, O1], ids=["O0", "O1"])
def test_programs_of_the_tiny_models(
    optimize: Optimization, each_simulator: Simulator, check: Check
) -> None:
    check(each_simulator, [defined(job) for job in model_jobs(optimize)])


@pytest.mark.full
@pytest.mark.parametrize("optimize", [O0, O1], ids=["O0", "O1"])
def test_a_step_and_a_verifier_of_the_pydoc_model(
    optimize: Optimization, verilator: Simulator, check: Check
) -> None:
    model, jobs = load_model("pydoc"), list[Job]()
    device = RecordingDevice(model.config.chip, lambda job, _left: jobs.append(job))
    session = ChipTarget(model, device, optimize=optimize).session()
    session.prefill([1, 2, 3, 4, 5])
    session.forward([6])
    session.forward([7, 8, 9, 10])
    check(verilator, [defined(job) for job in jobs[1:]])


def test_undefined_memories_reach_nothing(icarus: Simulator, check: Check) -> None:
    for job in model_jobs()[:7]:  # one a run: later jobs would find what earlier ones left
        check(icarus, [undefined(job)])


def test_undefined_data_reach_no_request_and_no_counter(icarus: Simulator, run: Check) -> None:
    """Nothing but the program is defined; half of the programs are reset on their way, too."""
    jobs = [
        replace(
            undefined(job), external_known=np.zeros(SMALL.external_words, dtype=bool),
            reset_cycle=i % 2 * (1 + (41 * i) % job.program.cycles),
        )
        for i, job in enumerate(random_jobs(20, SEED + 4000))
    ]  # fmt: skip
    for job, outcome in zip(jobs, run(icarus, jobs).outcomes, strict=True):
        assert (outcome.verdict, outcome.total) == ("done", job.program.cycles)
        assert outcome.counters == job.program.counters
        assert not outcome.external_known.all(), "the words did start undefined"


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_random_initial_values_change_nothing(
    verilator: Simulator, check: Check, seed: int
) -> None:
    jobs = [undefined(job) for job in model_jobs()]
    check(verilator, jobs, random_initial=True, seed=seed)


@pytest.mark.parametrize("percent", [10, pytest.param(90, marks=pytest.mark.full)])
def test_stalls_change_only_dma_and_total(simulator: Simulator, check: Check, percent: int) -> None:
    jobs = random_jobs(20, SEED + 5000)
    calm = check(simulator, jobs)
    stalled = check(simulator, jobs, MemoryModel(stall_percent=percent, seed=SEED + 3))
    assert stalled.cycles > calm.cycles


@pytest.mark.parametrize(
    "latency", [1, 9, *(pytest.param(n, marks=pytest.mark.full) for n in (2, 7, 100))]
)
def test_latency_is_paid_once_a_load(simulator: Simulator, check: Check, latency: int) -> None:
    jobs = random_jobs(10, SEED + 6000)
    result = check(simulator, jobs, MemoryModel(latency=latency))
    for job, outcome in zip(jobs, result.outcomes, strict=True):
        loads = job.program.histogram().get("LD", 0)
        assert outcome.counters.dma == job.program.counters.dma + loads * (latency - 8)


def test_reset_in_the_middle_of_a_program(simulator: Simulator, check: Check) -> None:
    jobs = [
        replace(job, reset_cycle=1 + (37 * i) % job.program.cycles)
        for i, job in enumerate(random_jobs(60, SEED + 7000))
    ]
    check(simulator, jobs)


@pytest.mark.full
def test_reset_at_every_cycle(verilator: Simulator, check: Check) -> None:
    """Each instruction, stopped everywhere: nothing of a stopped unit is left.

    One that writes comes before LD, so that it meets what a stopped LD might have left.
    """
    code = (
        instruction("VADD", d=300, a=310, b=320, n=5),
        instruction("LD", d=0, s=16, n=6),
        instruction("MM", d=40, a=0, b=9, m=2, n=3, k=3, sd=4, sa=3, sb=4, t=1, acc=1),
        instruction("RQ", d=60, s=40, r=2, c=3, sd=4, ss=4, mul=50000, sh=23, relu=1),
        instruction("VADD", d=72, a=60, b=0, n=4),
        instruction("SM", d=90, s=72, n=4, mul=40000, sh=18),
        instruction("AMAX", d=100, s=40, n=5),
        instruction("ST", d=100, s=40, n=6),
        instruction("HALT"),
    )
    job = replace(random_job(SEED, SMALL), program=Program("every cycle", SMALL, code))
    cycles = range(1, job.program.cycles + 1)
    check(verilator, [replace(job, reset_cycle=cycle) for cycle in cycles])


@pytest.mark.full
def test_reset_while_memory_stalls(simulator: Simulator, check: Check) -> None:
    jobs = [
        replace(job, reset_cycle=1 + (53 * i) % job.program.cycles)
        for i, job in enumerate(random_jobs(20, SEED + 8000))
    ]
    check(simulator, jobs, MemoryModel(stall_percent=50))


def test_watchdog_names_the_instruction(simulator: Simulator, run: Check) -> None:
    job = random_job(SEED + 9000, SMALL)
    cycles, index = 0, 5  # ends in the middle of instruction 5
    cycles = sum(inst.cycles + 2 for inst in job.program.instructions[:index]) + 2
    cut = replace(job, limit=cycles)
    outcome, after = run(simulator, [cut, job]).outcomes
    assert (outcome.verdict, outcome.index) == ("hang", index)
    message = difference(cut, expected(cut), outcome)
    assert message is not None
    assert f"hang at instruction {index} ({job.program.instructions[index]}" in message
    assert difference(job, expected(job), after) is None, "the job after a hang runs as ever"


def test_an_unknown_opcode_stops_the_chip(
    simulator: Simulator, run: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = random_job(SEED + 9001, SMALL)
    bad = job.program.instructions[3]

    def corrupt(inst: Instruction) -> int:
        return 9 if inst is bad else encode(inst)

    monkeypatch.setattr(cosim_jobs, "encode", corrupt)
    (outcome,) = run(simulator, [job]).outcomes
    assert (outcome.verdict, outcome.index) == ("illegal", 3)
    assert outcome.total == sum(i.cycles + 2 for i in job.program.instructions[:3]) + 2
