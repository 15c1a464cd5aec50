"""The comparator finds injected faults and names them. No simulator is needed."""

from dataclasses import replace

import numpy as np
import pytest

from capra.cosim.compare import Expected, difference, expected
from capra.cosim.jobs import Job, memory_text, parse_memory
from capra.cosim.replay import Outcome
from capra.isa.chip import Chip
from capra.isa.instruction import instruction
from capra.isa.program import Program, Slot, TensorHome
from capra.isa.timing import Counters

CHIP = Chip(external_words=64, scratchpad_words=64, program_entries=16)
CODE = (
    instruction("LD", d=0, s=0, n=8),
    instruction("VADD", d=16, a=0, b=4, n=4),
    instruction("VADD", d=18, a=0, b=4, n=4),
    instruction("ST", d=32, s=16, n=6),
    instruction("HALT"),
)
PROGRAM = Program(
    "sums", CHIP, CODE,
    external=(Slot("x", "input", 0, 2, 4, 0.1), Slot("y", "output", 32, 2, 3, 0.1)),
    tensors={"h": TensorHome("h", 16, 1, 6, 6, 0.1, first=1, ready=2, until=3)},
)  # fmt: skip


@pytest.fixture
def job() -> Job:
    words = np.arange(64, dtype=np.int32)
    return Job(PROGRAM, words, words.copy())


@pytest.fixture
def wanted(job: Job) -> Expected:
    return expected(job)


def perfect(wanted: Expected) -> Outcome:
    """What a correct chip leaves."""
    return Outcome(
        "done", len(CODE) - 1, wanted.counters.total, wanted.counters,
        wanted.external.copy(), np.ones(64, dtype=bool),
        wanted.scratchpad.copy(), np.ones(64, dtype=bool),
    )  # fmt: skip


def test_a_correct_chip_shows_no_difference(job: Job, wanted: Expected) -> None:
    assert difference(job, wanted, perfect(wanted)) is None


def test_the_first_wrong_instruction_is_named(job: Job, wanted: Expected) -> None:
    outcome = perfect(wanted)
    for address in (32, 35):
        outcome.external[address] ^= 1
    outcome.scratchpad[16] ^= -(2**31)
    outcome.scratchpad[19] ^= 4
    right = int(wanted.scratchpad[16])
    assert difference(job, wanted, outcome) == (
        "program sums: scratchpad word 16 (h[0, 0]), last written by instruction 1 "
        "(VADD d=16 a=0 b=4 n=4; retires in cycle 31), "
        f"is {(right ^ 1 << 31) & 0xFFFFFFFF:08x}, expected {right:08x}"
    )


def test_an_external_word_is_named_by_its_slot(job: Job, wanted: Expected) -> None:
    outcome = perfect(wanted)
    outcome.external[36] = -1
    message = difference(job, wanted, outcome)
    assert message is not None
    assert "external word 36 (output y[1, 1]), last written by instruction 3 (ST" in message
    assert "is ffffffff" in message


def test_a_word_that_nobody_should_write(job: Job, wanted: Expected) -> None:
    outcome = perfect(wanted)
    outcome.scratchpad[50] = 1
    message = difference(job, wanted, outcome)
    assert message is not None
    assert "scratchpad word 50, last written by no instruction, is 00000001" in message


def test_unknown_bits_are_a_difference(job: Job, wanted: Expected) -> None:
    outcome = perfect(wanted)
    outcome.scratchpad_known[21] = False
    outcome.scratchpad[21] = wanted.scratchpad[21]
    message = difference(job, wanted, outcome)
    assert message is not None
    assert "word 21 (h[0, 5]), last written by instruction 2" in message
    assert "is unknown bits" in message


def test_words_without_a_start_count_only_when_written(job: Job, wanted: Expected) -> None:
    outcome = perfect(wanted)
    outcome.scratchpad_known[50] = False
    assert difference(job, wanted, outcome) is not None
    assert difference(replace(job, scratchpad=None), wanted, outcome) is None


@pytest.mark.parametrize("name", ["matrix", "dma", "vector", "control"])
def test_each_counter(job: Job, wanted: Expected, name: str) -> None:
    right = wanted.counters.by_unit()
    counters = Counters(**{**right, name: right[name] + 1})
    outcome = replace(perfect(wanted), counters=counters, total=counters.total)
    assert difference(job, wanted, outcome) == (
        f"program sums: counter {name} is {right[name] + 1}, expected {right[name]}"
    )
    lenient = difference(job, wanted, outcome, any_dma=True)
    assert (lenient is None) == (name == "dma")


def test_total_is_the_sum(job: Job, wanted: Expected) -> None:
    outcome = replace(perfect(wanted), total=wanted.counters.total - 1)
    message = difference(job, wanted, outcome)
    assert message is not None
    assert "counter total is" in message


def test_a_hang_comes_first(job: Job, wanted: Expected) -> None:
    outcome = replace(perfect(wanted), verdict="hang", index=2, total=40)
    outcome.scratchpad[50] = 1
    assert difference(job, wanted, outcome) == (
        "program sums: hang at instruction 2 (VADD d=18 a=0 b=4 n=4; retires in cycle 43) in "
        f"cycle 40, expected HALT after {wanted.counters.total} cycles"
    )


def test_memory_text_round_trip() -> None:
    words = np.array([0, 1, -1, 2**31 - 1, -(2**31)], dtype=np.int32)
    known = np.array([True, True, False, True, True])
    text = memory_text(words, known)
    assert text.splitlines() == ["00000000", "00000001", "xxxxxxxx", "7fffffff", "80000000"]
    again, mask = parse_memory("// 0x00000000\n@0\n" + text)
    assert (mask == known).all()
    assert (again[known] == words[known]).all()
