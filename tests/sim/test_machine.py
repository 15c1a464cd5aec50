"""Whole programs against the naive model, and what the machine tells about them."""

import random
from collections.abc import Callable

import numpy as np
import pytest

from capra.errors import PoisonError, ProgramError
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, Region, instruction
from capra.isa.program import Program
from capra.isa.spec import TABLE, Memory
from capra.isa.timing import Counters
from capra.sim.machine import POISON, Machine, TraceLine

Step = Callable[[Instruction, list[int], list[int]], None]
Draw = Callable[[random.Random, Chip, str], Instruction]

CHIP = Chip(external_words=150, scratchpad_words=128)
WORKERS = [op.mnemonic for op in TABLE if op.mnemonic != "HALT"]
READERS = pytest.mark.parametrize("mnemonic", WORKERS)
HALT = instruction("HALT")
LOAD_ALL = instruction("LD", d=0, s=0, n=128)


def program(*code: Instruction, chip: Chip = CHIP) -> Program:
    return Program("test", chip, (*code, HALT))


def random_words(rng: random.Random, n: int) -> list[int]:
    wide = [-(1 << 31), (1 << 31) - 1, rng.randint(-(1 << 31), (1 << 31) - 1)]
    return [rng.choice([rng.randint(-127, 127), rng.randint(-300, 300), *wide]) for _ in range(n)]


def random_code(rng: random.Random, draw: Draw, n: int) -> list[Instruction]:
    return [draw(rng, CHIP, rng.choice(WORKERS)) for _ in range(n)]


def machine_with(external: list[int], *, poison: bool = False, chip: Chip = CHIP) -> Machine:
    machine = Machine(chip, poison=poison)
    machine.write_external(0, np.array(external, np.int32))
    return machine


# results and counters


@pytest.mark.parametrize("poison", [False, True])
@pytest.mark.parametrize("observed", [False, True])
def test_random_programs_leave_what_the_naive_model_leaves(
    poison: bool, observed: bool, seed: int, naive_step: Step, draw_instruction: Draw
) -> None:
    rng = random.Random(seed)
    for _ in range(4):
        code = [LOAD_ALL, *random_code(rng, draw_instruction, 40)]
        external, scratchpad = random_words(rng, 150), [0] * 128
        machine = machine_with(external, poison=poison)
        seen: list[int] = []
        counters = machine.run(program(*code), after=seen.append if observed else None)
        for inst in code:
            naive_step(inst, external, scratchpad)
        assert machine.external.tolist() == external
        assert machine.scratchpad.tolist() == scratchpad
        assert counters == program(*code).counters
        assert seen == (list(range(42)) if observed else [])


def test_counters_of_a_run_are_the_sum_of_the_table() -> None:
    code = (
        instruction("LD", d=0, s=0, n=32),
        instruction("MM", d=64, a=0, b=16, m=4, n=4, k=4, sd=4, sa=4, sb=4, t=0, acc=0),
        instruction("MM", d=64, a=0, b=16, m=4, n=4, k=4, sd=4, sa=4, sb=4, t=0, acc=1),
        instruction("RQ", d=64, s=64, r=1, c=16, sd=16, ss=16, mul=1, sh=4, relu=0),
        instruction("ST", d=0, s=64, n=16),
    )
    product = 16 + 16 + 16 + 4 + 4 + 4 + 5
    expected = Counters(matrix=2 * product + 16, dma=41 + 18, vector=18, control=12)
    for machine in (Machine(CHIP), machine_with([1] * 150, poison=True)):
        assert machine.run(program(*code)) == expected
        assert machine.run(program(*code)) == expected  # they start at zero with every run
        assert machine.run(program(*code), after=lambda _: None) == expected


def test_memories_start_as_zeros_and_keep_their_words_between_runs() -> None:
    machine = Machine(CHIP)
    assert not machine.external.any()
    assert not machine.scratchpad.any()
    machine.write_external(3, np.array([7, -8]))
    machine.run(program(instruction("LD", d=127, s=4, n=1)))
    machine.run(program(instruction("ST", d=149, s=127, n=1)))
    assert machine.external[149] == machine.scratchpad[127] == -8


def test_the_host_writes_rows_one_after_the_other() -> None:
    machine = Machine(CHIP)
    machine.write_external(10, np.arange(6).reshape(2, 3).T)
    assert machine.external[9:17].tolist() == [0, 0, 3, 1, 4, 2, 5, 0]


def test_a_bound_program_runs_again_on_new_words(
    seed: int, naive_step: Step, draw_instruction: Draw
) -> None:
    rng = random.Random(seed)
    code = [LOAD_ALL, *random_code(rng, draw_instruction, 20)]
    machine = Machine(CHIP)
    bound = machine.bind(program(*code))
    assert bound.program == program(*code)
    for _ in range(3):
        external, scratchpad = random_words(rng, 150), [0] * 128
        machine.write_external(0, np.array(external, np.int32))
        counters = machine.run(bound)
        for inst in code:
            naive_step(inst, external, scratchpad)
        assert machine.external.tolist() == external
        assert machine.scratchpad.tolist() == scratchpad
        assert counters == bound.program.counters


def test_a_program_runs_without_an_object_for_each_instruction(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = program(LOAD_ALL, instruction("ST", d=3, s=0, n=2))
    machine = Machine(CHIP, engine="readable")
    machine.write_external(0, np.array([7, 8]))
    made: list[Instruction] = []
    monkeypatch.setattr(Instruction, "__post_init__", made.append)
    counters = machine.run(moved)
    assert machine.external[:6].tolist() == [7, 8, 0, 7, 8, 0]
    assert counters == Counters(dma=(128 + 9) + (2 + 2), control=6)
    assert made == []


def test_a_program_for_another_chip_is_refused() -> None:
    other = Chip(external_words=150, scratchpad_words=128, operand_depth=512)
    for use in (Machine(CHIP).bind, Machine(CHIP).run):
        with pytest.raises(
            ProgramError, match=r"program test is for Chip\(.*expected one for Chip\(.*"
        ):
            use(program(chip=other))


# poison


def fill_but(words: set[int]) -> list[Instruction]:
    """Loads of every scratchpad word that is not among these."""
    return [instruction("LD", d=i, s=i, n=1) for i in range(128) if i not in words]


def scratchpad_reads(inst: Instruction) -> list[int]:
    regions = [r for r in inst.reads() if r.memory is Memory.SCRATCHPAD]
    return sorted({int(a) for r in regions for a in r.addresses()})


def test_a_poisoned_machine_is_full_of_poison() -> None:
    machine = Machine(CHIP, poison=True)
    assert set(machine.external.tolist()) == set(machine.scratchpad.tolist()) == {POISON}
    assert all(POISON.to_bytes(4, "little")), "a zero would look like a word that was cleared"


@READERS
def test_a_read_of_any_unwritten_word_is_reported(
    mnemonic: str, seed: int, draw_instruction: Draw
) -> None:
    rng = random.Random(f"{mnemonic} {seed}")
    for _ in range(6):
        inst = draw_instruction(rng, CHIP, mnemonic)
        if mnemonic == "LD":
            memory, missing = "external", inst["s"] + rng.randrange(inst["n"])
            code = [instruction("LD", d=i % 128, s=i, n=1) for i in range(150) if i != missing]
        else:
            memory, missing = "scratchpad", rng.choice(scratchpad_reads(inst))
            code = fill_but({missing})
        machine = Machine(CHIP, poison=True)
        machine.write_external(0, np.zeros(150, np.int32))
        if memory == "external":
            machine = Machine(CHIP, poison=True)
            machine.write_external(0, np.zeros(missing, np.int32))
            machine.write_external(missing + 1, np.zeros(149 - missing, np.int32))
        with pytest.raises(PoisonError) as caught:
            machine.run(program(*code, inst))
        assert str(caught.value) == (
            f"instruction {len(code)} ({inst}) reads {memory} word {missing}, which nobody wrote"
        )


def test_the_host_may_not_read_what_nobody_wrote_either() -> None:
    machine = Machine(CHIP, poison=True)
    machine.write_external(4, np.arange(4, dtype=np.int32))
    assert machine.read_external(Region(Memory.EXTERNAL, 4, 1, 4, 4)).tolist() == [[0, 1, 2, 3]]
    with pytest.raises(PoisonError, match=r"^the host reads external word 8, which nobody wrote"):
        machine.read_external(Region(Memory.EXTERNAL, 4, 1, 5, 5))


def test_an_accumulating_product_reads_its_sums() -> None:
    fields = {"d": 40, "a": 0, "b": 20, "m": 2, "n": 2, "k": 2, "sd": 3, "sa": 2, "sb": 2, "t": 0}
    fill = fill_but({44})
    machine_with([1] * 150, poison=True).run(program(*fill, instruction("MM", acc=0, **fields)))
    with pytest.raises(PoisonError, match=r"reads scratchpad word 44, which nobody wrote"):
        machine_with([1] * 150, poison=True).run(program(*fill, instruction("MM", acc=1, **fields)))


@READERS
def test_no_result_depends_on_words_that_are_not_read(
    mnemonic: str, seed: int, naive_step: Step, draw_instruction: Draw
) -> None:
    rng = random.Random(f"{mnemonic} {seed}")
    for _ in range(6):
        inst = draw_instruction(rng, CHIP, mnemonic)
        external = random_words(rng, 150)
        needed = scratchpad_reads(inst)
        machine = machine_with(external, poison=True)
        machine.run(program(*fill_but(set(range(128)) - set(needed)), inst))
        scratchpad = [external[i] if i in needed else POISON for i in range(128)]
        naive_step(inst, external, scratchpad)
        assert machine.external.tolist() == external
        assert machine.scratchpad.tolist() == scratchpad


def test_the_instruction_that_reads_poison_does_not_run() -> None:
    machine = machine_with([5] * 150, poison=True)
    done: list[int] = []
    code = (instruction("LD", d=0, s=0, n=2), instruction("SM", d=8, s=0, n=3, mul=1, sh=1))
    with pytest.raises(PoisonError, match=r"instruction 1 \(SM .*\) reads scratchpad word 2"):
        machine.run(program(*code), after=done.append)
    assert done == [0]
    assert machine.scratchpad[8] == POISON


def test_words_that_a_program_wrote_are_no_poison() -> None:
    machine = machine_with([5, 6, 7], poison=True)
    machine.run(
        program(
            instruction("LD", d=0, s=0, n=3),
            instruction("ST", d=100, s=1, n=2),
            instruction("LD", d=50, s=100, n=2),
            instruction("AMAX", d=52, s=50, n=2),
            instruction("ST", d=102, s=50, n=3),
        )
    )
    assert machine.external[100:105].tolist() == [6, 7, 6, 7, 1]


def test_external_words_stay_written_between_runs_but_scratchpad_words_do_not() -> None:
    machine = machine_with([5, 6, 7], poison=True)
    load, store = instruction("LD", d=0, s=0, n=3), instruction("ST", d=100, s=0, n=3)
    machine.run(program(load, store))
    machine.run(program(instruction("LD", d=0, s=100, n=3)))
    with pytest.raises(PoisonError, match=r"instruction 0 \(ST .*\) reads scratchpad word 0"):
        machine.run(program(store))


def test_only_the_words_the_host_wrote_are_marked() -> None:
    machine = Machine(CHIP, poison=True)
    machine.write_external(10, np.zeros((2, 3), np.int8))
    machine.run(program(instruction("LD", d=0, s=10, n=6)))
    for s, missing in ((9, 9), (11, 16)):
        with pytest.raises(PoisonError, match=rf"reads external word {missing}, which nobody"):
            machine.run(program(instruction("LD", d=0, s=s, n=6)))


# trace


def test_a_trace_line_tells_index_cycle_and_what_was_written() -> None:
    code = (
        instruction("LD", d=4, s=0, n=10),
        instruction("RQ", d=20, s=4, r=2, c=2, sd=3, ss=4, mul=2, sh=1, relu=0),
        instruction("ST", d=100, s=20, n=1),
    )
    lines: list[TraceLine] = []
    machine = machine_with(list(range(1, 151)))
    counters = machine.run(program(*code), trace=lines.append)
    assert [line.index for line in lines] == [0, 1, 2, 3]
    assert [line.instruction for line in lines] == [*code, HALT]
    assert [line.cycle for line in lines] == [21, 29, 34, 36]
    assert lines[-1].cycle == counters.total
    assert [[words for _, words in line.written] for line in lines] == [
        [tuple(range(1, 11))],
        [(1, 2, 5, 6)],
        [(1,)],
        [],
    ]
    assert [str(line) for line in lines] == [
        "    0        21 LD d=4 s=0 n=10 | scratchpad[4..13] = 1 2 3 4 5 6 7 8 ...",
        f"    1        29 {code[1]} | scratchpad[20..24] = 1 2 5 6",
        "    2        34 ST d=100 s=20 n=1 | external[100..100] = 1",
        "    3        36 HALT",
    ]


def test_trace_and_after_see_the_memory_after_each_instruction(
    seed: int, naive_step: Step, draw_instruction: Draw
) -> None:
    rng = random.Random(seed)
    code = [LOAD_ALL, *random_code(rng, draw_instruction, 30)]
    external, scratchpad = random_words(rng, 150), [0] * 128
    machine = machine_with(external)
    lines: list[TraceLine] = []

    def after(index: int) -> None:
        assert len(lines) == index + 1  # the line comes first
        if index < len(code):
            naive_step(code[index], external, scratchpad)
        assert machine.external.tolist() == external
        assert machine.scratchpad.tolist() == scratchpad
        memories = {Memory.EXTERNAL: external, Memory.SCRATCHPAD: scratchpad}
        for region, words in lines[-1].written:
            memory = memories[region.memory]
            assert words == tuple(memory[a] for a in region.addresses())

    counters = machine.run(program(*code), trace=lines.append, after=after)
    assert len(lines) == len(code) + 1
    assert lines[-1].cycle == counters.total


def test_counters_are_counted_as_instructions_retire() -> None:
    machine = Machine(CHIP)
    bound = machine.bind(program())
    whole = machine.run(bound)
    bound.steps.pop(0)
    assert machine.run(bound).total < whole.total
