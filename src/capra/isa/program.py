"""A program: instructions for one chip, its external-memory map, and where each tensor lives."""

import json
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeVar

from capra.errors import CapacityError, ProgramError
from capra.files import write_atomically
from capra.isa.chip import Chip
from capra.isa.code import Code
from capra.isa.encoding import from_bytes, to_words
from capra.isa.instruction import Instruction, Region, check_on_chip
from capra.isa.origin import Origin, Share, find_shares
from capra.isa.spec import Memory, Phase
from capra.isa.timing import Counters, count, phases_of_all

MAGIC: Final = b"GA2PROG2"
SlotKind = Literal["input", "weight", "output"]
_HEADER_KEYS: Final = {"name", "chip", "external", "tensors", "origins"}
_LARGEST: Final = sys.float_info.max
"""JSON has larger whole numbers, with which nothing can be multiplied."""

_SLOT_KINDS: Final = ("input", "weight", "output")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_Record = TypeVar("_Record", "Chip", "Slot", "TensorHome", "Origin")


@dataclass(frozen=True, slots=True)
class Slot:
    """One tensor of the external-memory map: rows x cols words from `address`, row by row."""

    name: str
    kind: SlotKind
    address: int
    rows: int
    cols: int
    scale: float | None
    """Real value of one step; None for indices, which are plain integers."""

    @property
    def words(self) -> int:
        """Words it takes."""
        return self.rows * self.cols

    @property
    def end(self) -> int:
        """One past its last word."""
        return self.address + self.words

    @property
    def region(self) -> Region:
        """Its words."""
        return Region(Memory.EXTERNAL, self.address, self.rows, self.cols, self.cols)


class TensorHome(NamedTuple):
    """Where a tensor lives in the scratchpad, and when its words are its own.

    Names that start with '%' are temporaries, such as the int32 sums of a product.
    """

    name: str
    base: int
    rows: int
    cols: int
    stride: int
    scale: float | None
    first: int
    """Index of the first instruction that writes a word of it, or of what it is a view of."""
    ready: int
    """Index of the last such instruction."""
    until: int
    """Index of the last instruction after which all of its words are still there."""

    @property
    def region(self) -> Region:
        """Its words."""
        return Region(Memory.SCRATCHPAD, self.base, self.rows, self.cols, self.stride)


@dataclass(frozen=True)
class Program:
    """Checked when built: every instruction runs on the chip, HALT comes last and only there.

    Raises ProgramError with the index and text of the instruction that breaks a rule, and
    CapacityError when the program or its map does not fit the chip.
    """

    name: str
    chip: Chip
    instructions: Sequence[Instruction]
    """Any sequence goes in; it is kept as `code`."""
    external: tuple[Slot, ...] = ()
    tensors: Mapping[str, TensorHome] = field(default_factory=dict)
    origins: tuple[Origin, ...] = ()
    """Of all instructions but HALT, in their order; none in a program that no graph became."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "tensors", MappingProxyType(dict(self.tensors)))
        object.__setattr__(self, "instructions", Code.of(self.instructions))
        size, limit = len(self.instructions), self.chip.program_entries
        if size > limit:
            raise CapacityError(
                f"program {self.name} has {size} instructions, expected at most {limit}, the "
                "chip's program memory"
            )
        if not size:
            raise ProgramError(f"program {self.name} is empty, expected at least HALT")
        self._check_map()
        traced = sum(origin.instructions for origin in self.origins)
        if self.origins and traced != size - 1:
            raise ProgramError(
                f"program {self.name} has the origins of {traced} instructions, expected "
                f"{size - 1}: of all but HALT"
            )
        try:
            self.shares  # noqa: B018  # looks at all of them
        except ProgramError as error:
            raise ProgramError(f"program {self.name}: {error}") from None
        for index in self.code.suspects(self.chip):
            try:
                check_on_chip(self.instructions[index], self.chip)
            except ProgramError as error:
                raise ProgramError(f"program {self.name}, instruction {index}: {error}") from None
        for index, mnemonic in enumerate(self.code.mnemonics):
            if (mnemonic == "HALT") != (index == size - 1):
                raise ProgramError(
                    f"program {self.name}, instruction {index}: {self.instructions[index]} found, "
                    "expected HALT as the last instruction and nowhere else"
                )

    def _check_map(self) -> None:
        """Slots share no word and no name, and every tensor's home is inside memory and code."""
        words = max((slot.end for slot in self.external), default=0)
        if words > self.chip.external_words:
            raise CapacityError(
                f"program {self.name} needs {words} words of external memory, expected at most "
                f"{self.chip.external_words}"
            )
        for before, slot in pairwise(sorted(self.external, key=lambda slot: slot.address)):
            if before.end > slot.address:
                raise ProgramError(
                    f"program {self.name}: {slot.name} at {slot.address} overlaps {before.name}, "
                    f"which ends at {before.end}, expected slots that share no word"
                )
        for group in (self.slots("input", "weight"), self.slots("output")):
            if len({slot.name for slot in group}) < len(group):
                names = ", ".join(slot.name for slot in group)
                raise ProgramError(
                    f"program {self.name} has the slots {names}, expected each name once"
                )
        words, size = self.chip.scratchpad_words, len(self.instructions)
        for home in self.tensors.values():
            end = home.base + (home.rows - 1) * home.stride + home.cols
            in_memory = home.base >= 0 and end <= words
            in_memory &= min(home.rows, home.cols) >= 1
            in_memory &= home.rows == 1 or home.stride >= home.cols
            if not (in_memory and 0 <= home.first <= home.ready <= home.until < size):
                raise ProgramError(
                    f"program {self.name}: {home} is not within {words} words and {size} "
                    "instructions"
                )

    @property
    def code(self) -> Code:
        """The instructions as columns."""
        return Code.of(self.instructions)

    @cached_property
    def shares(self) -> Mapping[int, tuple[Share, ...]]:
        """What each tensor has of a transfer that moves several, by index of the instruction."""
        words = {("LD", slot.name): slot.words for slot in self.slots("input", "weight")}
        words |= {("ST", slot.name): slot.words for slot in self.slots("output")}
        return find_shares(self.origins, self.code, words)

    @cached_property
    def counters(self) -> Counters:
        """What one run adds to the counters."""
        return count(self.instructions)

    @cached_property
    def phases(self) -> dict[Phase, int]:
        """What the cycles of one run are spent on; their sum is `cycles`."""
        return phases_of_all(self.instructions)

    @property
    def cycles(self) -> int:
        """All cycles of one run."""
        return self.counters.total

    @property
    def words_loaded(self) -> int:
        """Words that LD moves in one run."""
        return sum(inst["n"] for inst in self.instructions if inst.mnemonic == "LD")

    @property
    def weight_words(self) -> int:
        """Words of weights, each of which LD moves once in one run."""
        return sum(slot.words for slot in self.slots("weight"))

    def histogram(self) -> dict[str, int]:
        """Instructions by mnemonic, in order of first appearance."""
        counts: dict[str, int] = {}
        for mnemonic in self.code.mnemonics:
            counts[mnemonic] = counts.get(mnemonic, 0) + 1
        return counts

    def slots(self, *kinds: SlotKind) -> tuple[Slot, ...]:
        """The external slots of these kinds, in the order of the map."""
        return tuple(slot for slot in self.external if slot.kind in kinds)


def save_program(program: Program, path: Path) -> None:
    """Write a program file: magic, header length, JSON header, code, CRC-32 of all before it."""
    header = {
        "name": program.name,
        "chip": asdict(program.chip),
        "external": [asdict(slot) for slot in program.external],
        "tensors": [home._asdict() for home in program.tensors.values()],
        "origins": [asdict(origin) for origin in program.origins],
    }
    text = json.dumps(header).encode()
    body = MAGIC + len(text).to_bytes(4, "little") + text + to_words(program.instructions).tobytes()
    write_atomically(path, body + zlib.crc32(body).to_bytes(4, "little"))


def load_program(path: Path) -> Program:
    """Read a program file and check it again. Raises ProgramError for anything damaged."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ProgramError(f"program file {path}: {error.strerror}") from None
    if not raw.startswith(MAGIC):
        raise ProgramError(f"{path} starts with {raw[:8]!r}, expected a program file ({MAGIC!r})")
    body, checksum = raw[:-4], int.from_bytes(raw[-4:], "little")
    if zlib.crc32(body) != checksum:
        raise ProgramError(
            f"{path} has checksum {zlib.crc32(body):08x}, expected {checksum:08x}: it is damaged"
        )
    start = len(MAGIC) + 4
    end = start + int.from_bytes(body[len(MAGIC) : start], "little")
    try:
        header: dict[str, Any] = json.loads(body[start:end], object_pairs_hook=_object)
        _check_text("name of a program", header["name"])
        if header.keys() != _HEADER_KEYS:
            raise ValueError(f"the keys are {', '.join(header)}")
        tensors = [_record(TensorHome, entry) for entry in header["tensors"]]
        if len({home.name for home in tensors}) < len(tensors):
            raise ValueError("two tensors have one name")
        return Program(
            name=header["name"],
            chip=_record(Chip, header["chip"]),
            instructions=tuple(from_bytes(body[end:])),
            external=tuple(_record(Slot, entry) for entry in header["external"]),
            tensors={home.name: home for home in tensors},
            origins=tuple(_record(Origin, entry) for entry in header["origins"]),
        )
    except (CapacityError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise ProgramError(f"{path} has a header that is not a program's: {error}") from None


def _record(kind: type[_Record], entry: dict[str, Any]) -> _Record:
    """What a JSON object of the header describes, each value of its field's type."""
    for name, form in kind.__annotations__.items():
        value = entry[name]
        if form is int:
            fits = type(value) is int and value >= (name in ("rows", "cols"))
        elif form is str:
            _check_text(f"{name} of a {kind.__name__}", value)
            continue
        elif name == "kind":
            fits = value in _SLOT_KINDS
        else:  # a scale
            fits = value is None or (type(value) in (int, float) and 0 < value <= _LARGEST)
        if not fits:
            raise ValueError(f"{name} of a {kind.__name__} is {value!r}")
    return kind(**entry)


def _check_text(what: str, value: object) -> None:
    """Raise ValueError unless it is text in Unicode: half a surrogate pair cannot be printed."""
    if not isinstance(value, str) or _SURROGATE.search(value):
        raise ValueError(f"{what} is {value!r}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; ValueError for one that names a key twice."""
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError(f"an object has a key twice: {', '.join(key for key, _ in pairs)}")
    return made
