"""The profile: instructions one after the other, their phases and their tensors."""

from functools import cache

from tests.lm.samples import chip_target

from capra.isa.chip import Chip
from capra.isa.instruction import instruction
from capra.isa.profile import profile_record
from capra.isa.program import Program
from capra.isa.timing import phases_of


@cache
def program() -> Program:
    return chip_target("random").program("verify", 3, 5)


def test_instructions_follow_each_other_and_sum_to_the_program() -> None:
    record = profile_record(program())
    now = 0
    totals: dict[str, int] = {}
    for entry, inst in zip(record["instructions"], program().instructions, strict=True):
        assert entry["start"] == now
        assert entry["text"] == str(inst) and entry["unit"] == inst.unit
        assert entry["cycles"] == sum(entry["phases"].values()) == inst.cycles + 2
        assert entry["phases"] == {phase: n for phase, n in phases_of(inst).items() if n}
        for phase, cycles in entry["phases"].items():
            totals[phase] = totals.get(phase, 0) + cycles
        now += entry["cycles"]
    assert now == record["cycles"] == program().counters.total
    assert totals == record["cycles_by_phase"]
    assert record["cycles_by_unit"] == program().counters.by_unit()


def test_phases_stand_in_the_order_in_which_they_begin() -> None:
    shape = {"m": 2, "n": 2, "k": 3, "sd": 2, "sa": 3, "sb": 2, "t": 0}
    mm = instruction("MM", d=32, a=0, b=8, acc=1, **shape)
    record = profile_record(Program("bare", Chip(), (mm, instruction("HALT"))))
    assert list(record["instructions"][0]["phases"]) == [
        "fetch", "sum_load", "operand_load", "array", "array_fill", "drain",
    ]  # fmt: skip
    softmax = next(i for i in profile_record(program())["instructions"] if i["text"][:2] == "SM")
    assert list(softmax["phases"]) == ["fetch", "softmax", "softmax_division"]


def test_every_instruction_but_halt_has_its_tensor() -> None:
    record = profile_record(program())
    *code, halt = record["instructions"]
    assert halt["text"] == "HALT" and halt["origin"] is None
    stored = [
        record["origins"][entry["origin"]]["tensor"]
        for entry in code
        if entry["text"].startswith("ST ")
    ]
    assert sorted(set(stored)) == sorted(slot.name for slot in program().slots("output"))
    softmax = {entry["origin"] for entry in code if entry["text"].startswith("SM ")}
    assert all(" = attention " in record["origins"][origin]["text"] for origin in softmax)
    assert len(softmax) == 2  # the only layer's attention, before and after its values are loaded


def test_a_program_without_a_graph_has_no_origins() -> None:
    code = (instruction("LD", d=0, s=0, n=4), instruction("HALT"))
    record = profile_record(Program("bare", Chip(), code))
    assert record["origins"] == []
    assert [entry["origin"] for entry in record["instructions"]] == [None, None]
