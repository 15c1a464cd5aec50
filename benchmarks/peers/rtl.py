"""The very program of the product on GA2's SystemVerilog, in Icarus Verilog and Verilator."""

import resource

import numpy as np

from benchmarks.peers.matmul import CHIP, operands, program
from benchmarks.records import Record, say
from capra.cosim.compare import difference, expected
from capra.cosim.jobs import Job
from capra.cosim.replay import replay
from capra.cosim.toolchain import Configuration, Simulator, built, is_installed, version


def rtl(simulator: Simulator) -> Record:
    """Cycles and seconds of the hardware simulation, images included and the build apart.

    Both memories and all counters are compared with Capra's simulator; a difference is in the
    record as `difference`.
    """
    if not is_installed(simulator):
        return {"skipped": f"{simulator} is not installed"}
    say(f"{simulator}: the product on the RTL")
    compiled, values = program(), operands()
    external = np.zeros(CHIP.external_words, np.int32)
    for slot in compiled.slots("input", "weight"):
        slot.region.of(external)[...] = values[slot.name]
    job = Job(compiled, external, np.zeros(CHIP.scratchpad_words, np.int32))
    configuration = Configuration(simulator, CHIP)
    built(configuration)
    before = _child_seconds()
    result = replay(configuration, [job])
    (outcome,) = result.outcomes
    return {
        "version": version(simulator),
        "command": "python -m benchmarks.peers",
        "cycles": outcome.total,
        "cycles_by_unit": outcome.counters.by_unit(),
        "difference": difference(job, expected(job), outcome),
        "wall_seconds": result.seconds,
        "process_seconds": _child_seconds() - before,
    }


def _child_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
