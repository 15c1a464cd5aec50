"""A simulator that fails, or whose report is not one, is an error and no comparison."""

from pathlib import Path

import pytest

from capra.cosim.jobs import Job
from capra.cosim.random_programs import random_job
from capra.cosim.replay import replay
from capra.cosim.toolchain import Configuration, Simulator
from capra.errors import CosimError
from capra.isa.chip import Chip

CHIP = Chip(external_words=1000, scratchpad_words=1024, operand_depth=300, program_entries=64)
DONE = "printf '0 done 0 5 1 1 1 2\\nend\\n' >$OUT/results.txt"


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
        ("printf '0 done 1\\nend\\n' >$OUT/results.txt", "expected defined numbers of job 0"),
        (
            f"echo 0 done {'9' * 5000} 1 1 1 1 1 >$OUT/results.txt; echo end >>$OUT/results.txt",
            "expected defined numbers of job 0",
        ),
        (f"{DONE}", "cannot replay on icarus: .*external.hex: No such file"),
        (f"{DONE}; echo 0g >$OUT/0.external.hex", "the bench wrote 0.external.hex, expected at"),
        (
            f"{DONE}; yes 00000000 | head -1001 >$OUT/0.external.hex",
            "the bench wrote 0.external.hex, expected at most 1000 words",
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


def test_each_job_is_told_as_it_ends(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The simulation goes on to the second job when the first has been told, or fails."""
    told: list[int] = []

    def tell() -> None:
        told.append(len(told))
        (tmp_path / "told").touch()

    script = f"""
        for job in 0 1; do
            echo 00000001 | tee out/$job.external.hex >out/$job.scratchpad.hex
            echo $job done 0 5 1 1 1 2 >>out/results.txt
            for wait in $(seq 500); do [ -e '{tmp_path}/told' ] || sleep 0.02; done
            [ -e '{tmp_path}/told' ] || exit 1
        done
        echo end >>out/results.txt"""
    monkeypatch.setattr("capra.cosim.replay.built", lambda _configuration: ("sh", "-c", script))
    result = replay(Configuration(Simulator.ICARUS, CHIP), [job, job], on_job=tell)
    assert told == [0, 1]
    assert [outcome.total for outcome in result.outcomes] == [5, 5]
