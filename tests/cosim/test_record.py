"""A recording device that threads share: every job it hands on is one execution."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
from tests.lm.samples import text_model

from capra.cosim.compare import Expected
from capra.cosim.jobs import Job
from capra.cosim.record import RecordingDevice
from capra.lm.target import ChipTarget
from capra.sim.machine import Machine
from capra.spec_decode.decode import Decoded, decode


def test_executions_of_several_threads_are_recorded_one_by_one() -> None:
    model = text_model()
    jobs: list[tuple[Job, Expected]] = []
    device = RecordingDevice(model.config.chip, lambda job, left: jobs.append((job, left)))
    target = ChipTarget(model, device)

    barrier = Barrier(4)

    def run(prompt: int) -> Decoded:
        barrier.wait()
        return decode(target, [prompt], 20)

    decode(target, [0], 20)  # compiles, which is done one by one
    jobs.clear()
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            runs = list(pool.map(run, range(4)))
    finally:
        sys.setswitchinterval(before)
    recorded = list(jobs)
    assert len(recorded) == sum(len(run.runs) for run in runs)
    machine = Machine(model.config.chip)
    for job, left in recorded:
        assert job.scratchpad is not None
        machine.external[:], machine.scratchpad[:] = job.external, job.scratchpad
        assert machine.run(job.program) == left.counters
        np.testing.assert_array_equal(machine.external, left.external)
        np.testing.assert_array_equal(machine.scratchpad, left.scratchpad)
