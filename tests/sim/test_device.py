"""The device: feeds in, outputs and counters out, whatever it keeps bound."""

from itertools import groupby

import numpy as np
import pytest

from capra.errors import PoisonError, ProgramError
from capra.isa.chip import Chip
from capra.isa.instruction import instruction
from capra.isa.program import Program, Slot
from capra.sim import device as device_module
from capra.sim.device import SimulatedDevice
from capra.sim.machine import BoundProgram, Machine

CHIP = Chip(external_words=64, scratchpad_words=64)


def adder(name: str, shift: int = 0, chip: Chip = CHIP) -> Program:
    """sum = x + w over 2 x 3 words, and where its first maximum is; placed at a varying address."""
    x, w = 6 + shift, 12 + shift
    code = (
        instruction("LD", d=0, s=x, n=6),
        instruction("LD", d=8, s=w, n=6),
        instruction("VADD", d=16, a=0, b=8, n=6),
        instruction("AMAX", d=24, s=16, n=6),
        instruction("ST", d=40, s=16, n=6),
        instruction("ST", d=50, s=24, n=1),
        instruction("HALT"),
    )
    slots = (
        Slot("x", "input", x, 2, 3, 1.0),
        Slot("w", "weight", w, 2, 3, 1.0),
        Slot("sum", "output", 40, 2, 3, 1.0),
        Slot("best", "output", 50, 1, 1, None),
    )
    return Program(name, chip, code, slots)


X = np.array([[1, -2, 3], [100, -100, 0]])
W = np.array([[1, 1, 1], [50, -50, -7]])
FEEDS = {"x": X, "w": W}
SUM = [[2, -1, 4], [127, -127, -7]]


@pytest.mark.parametrize("poison", [False, True])
def test_outputs_have_their_shapes_and_counters_are_the_programs(poison: bool) -> None:
    result = SimulatedDevice(CHIP, poison=poison).execute(adder("add"), FEEDS)
    assert list(result.outputs) == ["sum", "best"]
    assert result.outputs["sum"].tolist() == SUM
    assert result.outputs["best"].tolist() == [[3]]
    assert result.outputs["sum"].dtype == np.int64
    assert result.counters == adder("add").counters
    assert result.phases == adder("add").phases


def test_outputs_do_not_change_with_later_runs() -> None:
    device = SimulatedDevice(CHIP)
    first = device.execute(adder("add"), FEEDS)
    second = device.execute(adder("add"), {"x": -X, "w": W})
    assert first.outputs["sum"].tolist() == SUM
    assert second.outputs["sum"].tolist() == [[0, 3, -2], [-50, 50, -7]]


def test_a_program_that_reads_what_nobody_fed_is_reported() -> None:
    program = Program("reader", CHIP, (instruction("LD", d=0, s=9, n=1), instruction("HALT")))
    SimulatedDevice(CHIP).execute(program, {})
    with pytest.raises(PoisonError, match=r"reads external word 9, which nobody wrote"):
        SimulatedDevice(CHIP, poison=True).execute(program, {})


def test_a_program_for_another_chip_is_refused() -> None:
    other = Chip(external_words=65, scratchpad_words=64)
    with pytest.raises(ProgramError, match=r"program add is for Chip"):
        SimulatedDevice(CHIP).execute(adder("add", chip=other), FEEDS)


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the programs that machines bound, in order."""
    names: list[str] = []
    bind = Machine.bind

    def spy(self: Machine, program: Program) -> BoundProgram:
        names.append(program.name)
        return bind(self, program)

    monkeypatch.setattr(Machine, "bind", spy)
    return names


def test_a_program_is_bound_once(bindings: list[str]) -> None:
    device = SimulatedDevice(CHIP)
    a, b = adder("a"), adder("b", shift=4)
    for program in (a, b, a, b, b, a):
        assert device.execute(program, FEEDS).outputs["sum"].tolist() == SUM
    assert bindings == ["a", "b"]


def test_the_least_recently_used_program_is_dropped_and_bound_again(
    bindings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "BOUND_INSTRUCTIONS", 2 * 7)
    device = SimulatedDevice(CHIP)
    a, b, c = adder("a"), adder("b", shift=4), adder("c", shift=9)
    for program in (a, b, a, c, a, c, b, c):
        assert device.execute(program, FEEDS).outputs["sum"].tolist() == SUM
    assert bindings == ["a", "b", "c", "b"]


@pytest.mark.parametrize("limit", [1, 7, 13, 14, 20, 21, 1000])
def test_what_is_dropped_does_not_change_results(
    limit: int, bindings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_module, "BOUND_INSTRUCTIONS", limit)
    device = SimulatedDevice(CHIP, poison=True)
    programs = [adder(str(shift), shift) for shift in range(3)]
    order = [0, 1, 2, 0, 0, 2, 1, 1, 0, 2]
    for index in order:
        result = device.execute(programs[index], {"x": X + index, "w": W})
        assert result.outputs["sum"].tolist() == np.clip(X + index + W, -127, 127).tolist()
        assert result.counters == programs[index].counters
    if limit < 14:  # room for one program only: bound at every change
        assert bindings == [str(index) for index, _ in groupby(order)]
    if limit >= 21:
        assert bindings == ["0", "1", "2"]


def test_programs_that_died_leave_no_stale_binding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new program may get the id of a dropped one; it must run its own code."""
    monkeypatch.setattr(device_module, "BOUND_INSTRUCTIONS", 1)
    device = SimulatedDevice(CHIP)
    for shift in range(40):
        feeds = {"x": np.full((2, 3), shift), "w": W}
        expected = np.clip(shift + W, -127, 127).tolist()
        assert device.execute(adder("add", shift % 20), feeds).outputs["sum"].tolist() == expected


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"x": X}, r"weight w has shape None, expected \(2, 3\)"),
        ({"x": X[:1], "w": W}, r"input x has shape \(1, 3\), expected \(2, 3\)"),
        ({"x": X.ravel(), "w": W}, r"input x has shape \(6,\), expected \(2, 3\)"),
        ({"x": X + 28, "w": W}, r"input x holds -72 .. 128, expected -127 .. 127"),
        ({"x": X * 1.0, "w": W}, "input x holds float64, expected integers"),
    ],
)
def test_feeds_that_do_not_fit_their_slots_are_refused(
    feeds: dict[str, np.ndarray], message: str
) -> None:
    with pytest.raises(ProgramError, match=message):
        SimulatedDevice(CHIP).execute(adder("add"), feeds)


def test_an_output_that_nobody_wrote_is_reported_on_a_poisoned_device() -> None:
    program = adder("add")
    silent = Program("silent", CHIP, (instruction("HALT"),), program.external)
    with pytest.raises(PoisonError, match="the host reads external word 40"):
        SimulatedDevice(CHIP, poison=True).execute(silent, FEEDS)


def test_a_program_bound_to_another_machine_is_refused() -> None:
    bound = Machine(CHIP).bind(adder("add"))
    with pytest.raises(ProgramError, match="is bound to another machine"):
        Machine(CHIP).run(bound)
