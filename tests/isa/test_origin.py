"""Origins and shares: every word and every cycle of a program is booked on one tensor."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lm.samples import pydoc_model, tiny

from capra.compiler.optimization import LEVELS
from capra.errors import ProgramError
from capra.isa.chip import Chip
from capra.isa.instruction import instruction
from capra.isa.origin import Origin, Share
from capra.isa.profile import profile_record
from capra.isa.program import Program, Slot, load_program, save_program
from capra.lm.target import ChipTarget, Role

SHAPES: list[tuple[Role, int, int]] = [
    ("step", 1, 0), ("step", 1, 7), ("verify", 3, 5), ("prefill", 4, 4)
]  # fmt: skip


def booked(program: Program) -> tuple[Counter[tuple[str, str]], Counter[str]]:
    """By the record alone: words by mnemonic and tensor, cycles by tensor."""
    record = profile_record(program)
    words, cycles = Counter[tuple[str, str]](), Counter[str]()
    for entry in record["instructions"]:
        mnemonic, *fields = entry["text"].split()
        moved = int(fields[-1].removeprefix("n=")) if mnemonic in ("LD", "ST") else 0
        alone = {"origin": entry["origin"], "words": moved, "cycles": entry["cycles"]}
        for share in entry.get("shares", [alone]):
            if share["origin"] is not None:
                tensor = record["origins"][share["origin"]]["tensor"]
                words[mnemonic, tensor] += share["words"]
                cycles[tensor] += share["cycles"]
    return words, cycles


@pytest.mark.parametrize("name", ["structured", "random", "pydoc"])
@pytest.mark.parametrize("level", LEVELS)
def test_every_word_is_booked_on_the_tensor_that_it_belongs_to(name: str, level: str) -> None:
    model = pydoc_model() if name == "pydoc" else tiny(name, 1)
    target = ChipTarget(model, optimize=LEVELS[level])
    for shape in SHAPES:
        program = target.program(*shape)
        words, cycles = booked(program)
        leaves = program.slots("input", "weight")
        moved = {("LD", s.name): s.words for s in leaves if s.name in program.tensors}  # read
        moved |= {("ST", slot.name): slot.words for slot in program.slots("output")}
        assert {key: n for key, n in words.items() if n} == moved
        assert cycles.total() == program.cycles - 2, "all but HALT"


JOINED = Program(
    "joined", Chip(),
    (
        instruction("LD", d=0, s=0, n=12),
        instruction("RQ", d=12, s=0, r=1, c=4, sd=4, ss=4, mul=1, sh=1, relu=0),
        instruction("HALT"),
    ),
    (
        Slot("x", "input", 0, 1, 4, 1.0), Slot("v", "weight", 4, 1, 3, 1.0),
        Slot("w", "weight", 7, 1, 5, 1.0),
    ),
    origins=(Origin("x", "", 1), Origin("v", "", 0), Origin("w", "", 0), Origin("r", "", 1)),
)  # fmt: skip


def test_the_first_tensor_has_fetch_and_latency() -> None:
    assert JOINED.instructions[0].cycles + 2 == 23
    assert dict(JOINED.shares) == {0: (Share(0, 4, 15), Share(1, 3, 3), Share(2, 5, 5))}
    first, second, _ = profile_record(JOINED)["instructions"]
    assert first["shares"] == [
        {"origin": 0, "words": 4, "cycles": 15},
        {"origin": 1, "words": 3, "cycles": 3},
        {"origin": 2, "words": 5, "cycles": 5},
    ]
    assert first["origin"] == 0 and second["origin"] == 3 and "shares" not in second


def test_shares_are_in_the_program_file(tmp_path: Path) -> None:
    save_program(JOINED, tmp_path / "joined.ga2")
    loaded = load_program(tmp_path / "joined.ga2")
    assert loaded == JOINED and loaded.shares == JOINED.shares


@pytest.mark.parametrize(
    ("origins", "sentence"),
    [
        ([("x", 1), ("v", 0), ("r", 1)], r"LD .*moves x, v of \[4, 3\] words, expected .* 12 w"),
        ([("x", 1), ("y", 0), ("r", 1)], r"LD .*moves x, y of \[4, 0\]"),
        ([("x", 1), ("v", 0), ("w", 0), ("w", 0), ("r", 1)], r"x, v, w, w of \[4, 3, 5, 5\]"),
        ([("x", 2), ("v", 0)], r"instruction 1 \(RQ .*\) is that of x, v, expected one of LD and"),
        ([("x", 0), ("v", 2)], r"the first origin, x, has no instructions, expected at least one"),
    ],
)  # fmt: skip
def test_shares_that_are_not_the_transfers_are_refused(
    origins: list[tuple[str, int]], sentence: str
) -> None:
    made = tuple(Origin(tensor, "", count) for tensor, count in origins)
    with pytest.raises(ProgramError, match=f"^program joined: .*{sentence}"):
        replace(JOINED, origins=made)
