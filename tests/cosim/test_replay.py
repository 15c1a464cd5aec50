"""A simulator that fails, or whose report is not one, is an error and no comparison."""

import pytest

from capra.cosim.jobs import Job
from capra.cosim.random_programs import random_job
from capra.cosim.replay import replay
from capra.cosim.toolchain import Configuration, Simulator
from capra.errors import CosimError
from capra.isa.chip import Chip

CHIP = Chip(external_words=1000, scratchpad_words=1024, operand_depth=300, program_entries=64)


@pytest.fixture(scope="module")
def job() -> Job:
    return random_job(1, CHIP, instructions=2)


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo no licence; exit 3", "icarus ended with 3: no licence"),
        ("echo quiet", "the bench reported 0 lines, expected 1 jobs and an end: quiet"),
        ("echo end >$OUT/results.txt", "the bench reported 1 lines, expected 1 jobs and an end"),
        ("printf '0 done 1\\nstop\\n' >$OUT/results.txt", "the bench reported 2 lines"),
        ("printf '1 done 0 1 1 1 1 1\\nend\\n' >$OUT/results.txt", "reported '1 done 0 1 1 1 1 1'"),
        (
            "printf '0 fine 0 1 1 1 1 1\\nend\\n' >$OUT/results.txt",
            "expected defined numbers of job",
        ),
        (
            "printf '0 done x 1 1 1 1 1\\nend\\n' >$OUT/results.txt",
            "expected defined numbers of job",
        ),
    ],
)
def test_a_bench_that_reports_nothing_right(
    job: Job, script: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = "for word; do case $word in +out=*) OUT=${word#+out=};; esac; done; "
    command = ("sh", "-c", find + script, "bench")
    monkeypatch.setattr("capra.cosim.replay.built", lambda _configuration: command)
    with pytest.raises(CosimError, match=message):
        replay(Configuration(Simulator.ICARUS, CHIP), [job])
