"""Programs are checked when built, and a program file is whole and right or refused."""

import json
import random
import struct
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capra.errors import CapacityError, ProgramError
from capra.isa.chip import Chip
from capra.isa.instruction import Instruction, instruction
from capra.isa.origin import Origin
from capra.isa.program import MAGIC, Program, Slot, TensorHome, load_program, save_program
from capra.isa.spec import Memory
from capra.isa.timing import Counters

CHIP = Chip(external_words=100, scratchpad_words=64, program_entries=6)
HALT = instruction("HALT")
LOAD = instruction("LD", d=0, s=0, n=12)
SOFTMAX = instruction("SM", d=32, s=0, n=12, mul=40000, sh=15)
REQUANTIZE = instruction("RQ", d=32, s=32, r=1, c=12, sd=12, ss=12, mul=1, sh=8, relu=0)
STORE = instruction("ST", d=88, s=32, n=12)
CODE = (LOAD, SOFTMAX, REQUANTIZE, STORE, HALT)
SLOTS = (
    Slot("x", "input", 0, 3, 4, 0.125),
    Slot("w", "weight", 12, 2, 5, 1 / 3),
    Slot("y", "output", 88, 3, 4, None),
)
HOMES = {
    "x": TensorHome("x", 0, 3, 4, 4, 0.125, 0, 0, 4),
    "%t": TensorHome("%t", 32, 1, 12, 12, None, 1, 1, 2),
}
ORIGINS = (Origin("x", "x = input 3x4", 1), Origin("y", "y = softmax x", 3))
PROGRAM = Program("softmax", CHIP, CODE, SLOTS, HOMES, ORIGINS)


def program(*code: Instruction, chip: Chip = CHIP) -> Program:
    return Program("test", chip, code)


# building


def test_a_program_counts_itself() -> None:
    cycles = Counters(dma=21 + 14, vector=36 + 47 + 14, control=10)
    assert PROGRAM.counters == cycles
    assert PROGRAM.cycles == cycles.total
    assert PROGRAM.words_loaded == 12
    assert program(LOAD, LOAD, HALT).words_loaded == 24
    assert program(LOAD, SOFTMAX, LOAD, HALT).histogram() == {"LD": 2, "SM": 1, "HALT": 1}


def test_a_program_knows_what_its_cycles_are_spent_on() -> None:
    assert {phase.value: cycles for phase, cycles in PROGRAM.phases.items()} == {
        "load": 12, "load_latency": 9, "store": 12, "store_latency": 2, "requantize": 12,
        "softmax": 36, "softmax_division": 47, "vector_pipeline": 2, "fetch": 10,
    }  # fmt: skip


@pytest.mark.parametrize("counts", [(1,), (1, 2), (1, 4), (5,)])
def test_origins_are_those_of_all_instructions_but_halt(counts: tuple[int, ...]) -> None:
    origins = tuple(Origin("x", "x = input 3x4", n) for n in counts)
    with pytest.raises(ProgramError, match=rf"origins of {sum(counts)} instructions, expected 4:"):
        replace(PROGRAM, origins=origins)


def test_slots_are_chosen_by_kind_in_the_order_of_the_map() -> None:
    assert [s.name for s in PROGRAM.slots("weight", "input")] == ["x", "w"]
    assert PROGRAM.slots("output") == SLOTS[2:]
    assert PROGRAM.slots() == ()
    assert (SLOTS[1].words, SLOTS[1].end) == (10, 22)


def test_a_home_knows_its_words() -> None:
    region = TensorHome("v", 5, 2, 3, 8, None, 0, 0, 0).region
    assert region.memory is Memory.SCRATCHPAD
    assert region.addresses().tolist() == [5, 6, 7, 13, 14, 15]


def test_tensors_cannot_be_changed_nor_change_with_the_callers_mapping() -> None:
    homes = dict(HOMES)
    made = Program("test", CHIP, PROGRAM.instructions, (), homes)
    homes.clear()
    assert dict(made.tensors) == HOMES
    with pytest.raises(TypeError):
        made.tensors["x"] = HOMES["x"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("code", "culprit"),
    [((LOAD,), 0), ((LOAD, SOFTMAX), 1), ((HALT, HALT), 0), ((LOAD, HALT, LOAD), 1)],
)
def test_halt_comes_last_and_only_there(code: tuple[Instruction, ...], culprit: int) -> None:
    with pytest.raises(ProgramError) as caught:
        program(*code)
    assert str(caught.value) == (
        f"program test, instruction {culprit}: {code[culprit]} found, expected HALT as the last "
        "instruction and nowhere else"
    )


def test_an_empty_program_is_refused() -> None:
    with pytest.raises(ProgramError, match=r"program test is empty, expected at least HALT"):
        program()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            instruction("AMAX", d=0, s=60, n=5),
            "the last scratchpad word is 64",
        ),
        (instruction("LD", d=0, s=90, n=11), "the last external word is 100"),
        (instruction("SM", d=3, s=0, n=4, mul=1, sh=1), "the destination at 3 overlaps"),
        (
            instruction("MM", d=0, a=1, b=1, m=1, n=1, k=257, sd=0, sa=0, sb=0, t=0, acc=0),
            "k is 257, expected at most the operand depth 256",
        ),
    ],
)
def test_an_instruction_that_cannot_run_is_named(bad: Instruction, message: str) -> None:
    with pytest.raises(ProgramError) as caught:
        program(LOAD, bad, HALT)
    assert str(caught.value).startswith(f"program test, instruction 1: {bad}: {message}")


def test_the_code_must_fit_the_program_memory() -> None:
    program(*[LOAD] * 5, HALT)
    with pytest.raises(CapacityError, match=r"program test has 7 instructions, expected at most 6"):
        program(*[LOAD] * 6, HALT)


def test_the_map_must_fit_the_external_memory_whatever_its_order() -> None:
    first = Slot("a", "input", 0, 1, 8, None)
    Program("test", CHIP, (HALT,), (Slot("b", "weight", 90, 2, 5, None), first))
    for slots in [(Slot("b", "weight", 91, 2, 5, None), first)] * 2:
        with pytest.raises(
            CapacityError, match=r"program test needs 101 words .* expected at most 100"
        ):
            Program("test", CHIP, (HALT,), slots)


# files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "softmax.ga2"
    save_program(PROGRAM, path)
    return path


def test_a_file_gives_the_same_program_back(file: Path) -> None:
    assert load_program(file) == PROGRAM
    assert load_program(file).counters == PROGRAM.counters


def _many_slots() -> tuple[Slot, ...]:
    return tuple(Slot(f"slot{i}", "input", i, 1, 1, 0.5) for i in range(CHIP.external_words))


def test_the_largest_names_and_maps_survive(tmp_path: Path) -> None:
    odd = replace(PROGRAM, name='quote " slash / Ünïcode\n', external=_many_slots(), tensors={})
    save_program(odd, tmp_path / "odd")
    assert load_program(tmp_path / "odd") == odd
    save_program(program(HALT), tmp_path / "least")
    assert load_program(tmp_path / "least") == program(HALT)


def test_a_missing_file_or_a_directory_is_a_program_error(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match=r"program file .*absent: No such file or directory"):
        load_program(tmp_path / "absent")
    with pytest.raises(ProgramError, match=r"program file .*: Is a directory"):
        load_program(tmp_path)


@pytest.mark.parametrize("data", [b"", b"GA2", b"GA2PROG1" + bytes(40), b"PK\x03\x04" * 10])
def test_another_kind_of_file_is_named(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(data)
    with pytest.raises(ProgramError, match=r"other starts with .*, expected a program file"):
        load_program(tmp_path / "other")


def cuts(size: int) -> list[int]:
    """Lengths to truncate to: all near both ends, every 25th between."""
    return sorted({*range(24), *range(24, size, 25), *range(size - 24, size)})


def test_truncations_are_refused(file: Path) -> None:
    raw = file.read_bytes()
    for size in cuts(len(raw)):
        file.write_bytes(raw[:size])
        with pytest.raises(ProgramError):
            load_program(file)


def test_a_damaged_byte_anywhere_is_refused(file: Path, seed: int) -> None:
    rng, raw = random.Random(seed), file.read_bytes()
    for position in [*range(16), *rng.sample(range(16, len(raw)), 50)]:
        damaged = bytearray(raw)
        damaged[position] ^= rng.randint(1, 255)
        file.write_bytes(damaged)
        with pytest.raises(ProgramError):
            load_program(file)


def test_appended_bytes_are_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"\0")
    with pytest.raises(ProgramError, match=r"has checksum .* it is damaged"):
        load_program(file)


def sealed(body: bytes) -> bytes:
    return body + struct.pack("<I", zlib.crc32(body))


def parts(raw: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the code of a file."""
    size = struct.unpack_from("<I", raw, len(MAGIC))[0]
    start = len(MAGIC) + 4
    return json.loads(raw[start : start + size]), raw[start + size : -4]


def forge(header: object, code: bytes) -> bytes:
    """A file with this header and code, and the checksum that goes with them."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return sealed(MAGIC + struct.pack("<I", len(text)) + text + code)


def test_a_damaged_byte_is_refused_or_harmless_even_with_a_right_checksum(
    file: Path, seed: int
) -> None:
    rng, body = random.Random(seed), file.read_bytes()[:-4]
    for position in [*range(16), *rng.sample(range(16, len(body)), 60)]:
        damaged = bytearray(body)
        damaged[position] ^= 1 << rng.randrange(8)
        file.write_bytes(sealed(bytes(damaged)))
        try:
            loaded = load_program(file)
        except ProgramError:
            continue
        save_program(loaded, file)
        assert load_program(file) == loaded


def test_truncated_bodies_are_refused_even_with_a_right_checksum(file: Path) -> None:
    body = file.read_bytes()[:-4]
    for size in cuts(len(body)):
        file.write_bytes(sealed(body[:size]))
        with pytest.raises(ProgramError):
            load_program(file)


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"null", b"3", b'"text"', b"[]", b"{}", b"\xff\xfe", b"[" * 100_000,
     b"9" * 5000, b'{"name": "x"}'],
    ids=lambda text: repr(text[:8]),
)  # fmt: skip
def test_a_header_that_is_no_program_header_is_refused(text: bytes, file: Path) -> None:
    _, code = parts(file.read_bytes())
    file.write_bytes(forge(text, code))
    with pytest.raises(ProgramError, match=r"softmax\.ga2 has a header that is not a program's"):
        load_program(file)


def test_a_header_length_beyond_the_file_is_refused(file: Path) -> None:
    body = bytearray(file.read_bytes()[:-4])
    for length in (0, 1, len(body), 0xFFFFFFFF):
        struct.pack_into("<I", body, len(MAGIC), length)
        file.write_bytes(sealed(bytes(body)))
        with pytest.raises(ProgramError):
            load_program(file)


def entries(header: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Every (object, key) of the header."""
    objects = [header, header["chip"]]
    for group in ("external", "tensors", "origins"):
        objects += header[group]
    return [(entry, key) for entry in objects for key in entry]


Break = Callable[[dict[str, Any], str], None]


def refused(file: Path, damage: Break, choose: Callable[[str], bool] = lambda _: True) -> int:
    """Damage each chosen entry of the header in turn; all must be refused. Returns how many."""
    header, code = parts(file.read_bytes())
    chosen = [i for i, (_, key) in enumerate(entries(header)) if choose(key)]
    for index in chosen:
        damaged = json.loads(json.dumps(header))
        entry, key = entries(damaged)[index]
        damage(entry, key)
        file.write_bytes(forge(damaged, code))
        with pytest.raises(ProgramError):
            load_program(file)
    return len(chosen)


def test_missing_and_unknown_keys_are_refused(file: Path) -> None:
    def remove(entry: dict[str, Any], key: str) -> None:
        del entry[key]

    original = file.read_bytes()
    assert refused(file, remove) == 5 + 4 + 3 * 6 + 2 * 9 + 2 * 3
    file.write_bytes(original)

    def add(entry: dict[str, Any], _: str) -> None:
        entry["surprise"] = 1

    assert refused(file, add, lambda key: key in ("scratchpad_words", "rows")) == 1 + 3 + 2


WHOLE = {
    "external_words", "scratchpad_words", "operand_depth", "program_entries",
    "address", "base", "rows", "cols", "stride", "first", "ready", "until", "instructions",
}  # fmt: skip


@pytest.mark.parametrize("value", [-1, 1.5, 12.0, "12", None, [], {}, True, float("nan"), 1e999])
def test_counts_and_addresses_that_are_no_whole_numbers_are_refused(
    value: object, file: Path
) -> None:
    def damage(entry: dict[str, Any], key: str) -> None:
        entry[key] = value

    assert refused(file, damage, WHOLE.__contains__) == 4 + 3 * 3 + 2 * 7 + 2


@pytest.mark.parametrize("value", ["", "1", [], {}, True, -1.0, 0, float("nan"), float("inf")])
def test_scales_that_are_no_positive_numbers_are_refused(value: object, file: Path) -> None:
    def damage(entry: dict[str, Any], key: str) -> None:
        entry[key] = value

    assert refused(file, damage, "scale".__eq__) == 5


@pytest.mark.parametrize("value", [10**309, 10**4000])
def test_whole_scales_beyond_float_are_refused(value: int, file: Path) -> None:
    def damage(entry: dict[str, Any], key: str) -> None:
        entry[key] = value

    assert refused(file, damage, "scale".__eq__) == 5


@pytest.mark.parametrize("value", [None, 1, True, [], ["x"], {"a": 1}, "half \ud800"])
def test_names_that_are_no_text_are_refused(value: object, file: Path) -> None:
    def damage(entry: dict[str, Any], key: str) -> None:
        entry[key] = value

    texts = {"name", "tensor", "text"}
    assert refused(file, damage, texts.__contains__) == 1 + 3 + 2 + 2 * 2


def test_a_key_or_a_tensor_that_is_there_twice_is_refused(file: Path) -> None:
    header, code = parts(file.read_bytes())
    text = json.dumps(header).encode()
    for twice in (
        text[:-1] + b', "name": "other"}',
        text.replace(b'"rows": 3,', b'"rows": 3,' * 2),
    ):
        file.write_bytes(forge(twice, code))
        with pytest.raises(ProgramError):
            load_program(file)
    file.write_bytes(forge({**header, "tensors": [header["tensors"][0]] * 2}, code))
    with pytest.raises(ProgramError, match="two tensors have one name"):
        load_program(file)
    file.write_bytes(forge({**header, "surprise": 1}, code))
    with pytest.raises(ProgramError, match=r"the keys are .*surprise"):
        load_program(file)


@pytest.mark.parametrize("value", ["", "inputs", None, 1, [], {}])
def test_unknown_slot_kinds_are_refused(value: object, file: Path) -> None:
    def damage(entry: dict[str, Any], key: str) -> None:
        entry[key] = value

    assert refused(file, damage, "kind".__eq__) == 3


@pytest.mark.parametrize("value", [None, 1, "text", [1], ["text"], [[]], [None], {"a": 1}])
def test_parts_of_the_wrong_shape_are_refused(value: object, file: Path) -> None:
    header, code = parts(file.read_bytes())
    for key in ("chip", "external", "tensors", "origins"):
        file.write_bytes(forge({**header, key: value}, code))
        with pytest.raises(ProgramError):
            load_program(file)


@pytest.mark.parametrize(
    "sizes",
    [{"external_words": 99}, {"external_words": 0}, {"scratchpad_words": 48},
     {"scratchpad_words": 32}, {"program_entries": 4}, {"operand_depth": 255}],
    ids=str,
)  # fmt: skip
def test_a_file_whose_program_does_not_fit_its_chip_is_refused(
    sizes: dict[str, int], file: Path
) -> None:
    header, code = parts(file.read_bytes())
    header["chip"].update(sizes)
    file.write_bytes(forge(header, code))
    with pytest.raises(ProgramError):
        load_program(file)


def test_bad_code_in_a_file_is_refused_with_its_index(file: Path) -> None:
    header, code = parts(file.read_bytes())
    for bad, message in [
        (code[:-1], "program code has 99 bytes, expected a multiple of 20"),
        (code[:20] + b"\x0f" + code[21:], "instruction 1: opcode is 15"),
        (b"", "is empty, expected at least HALT"),
    ]:
        file.write_bytes(forge(header, bad))
        with pytest.raises(ProgramError, match=message):
            load_program(file)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


@given(st.data())
def test_a_random_value_in_the_header_is_refused_or_loads(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzzed.ga2"
    save_program(PROGRAM, path)
    header, code = parts(path.read_bytes())
    places = entries(header)
    entry, key = places[data.draw(st.integers(0, len(places) - 1))]
    entry[key] = data.draw(json_values)
    path.write_bytes(forge(header, code))
    try:
        loaded = load_program(path)
    except ProgramError:
        return
    assert loaded.instructions == CODE
    assert all(s.address >= 0 and s.words > 0 and s.end <= 100 for s in loaded.external)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"base": -1}, "is not within"),
        ({"base": CHIP.scratchpad_words}, "is not within"),
        ({"ready": -1}, "is not within"),
        ({"until": len(PROGRAM.instructions)}, "is not within"),
        ({"ready": 2, "until": 1}, "is not within"),
    ],
)
def test_a_tensor_lives_within_memory_and_code(change: dict[str, int], message: str) -> None:
    home = next(iter(HOMES.values()))._replace(**change)  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match=message):
        replace(PROGRAM, tensors={home.name: home})


def test_slots_share_no_word_and_no_name() -> None:
    first = Slot("a", "input", 0, 2, 2, None)
    with pytest.raises(ProgramError, match="b at 3 overlaps a, which ends at 4"):
        Program("test", CHIP, (HALT,), (first, Slot("b", "output", 3, 1, 1, None)))
    with pytest.raises(ProgramError, match="slots a, a, expected each name once"):
        Program("test", CHIP, (HALT,), (first, Slot("a", "weight", 4, 1, 1, None)))
    Program("test", CHIP, (HALT,), (first, Slot("a", "output", 4, 1, 1, None)))
