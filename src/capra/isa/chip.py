"""The parameters of one GA2 chip: what a program may assume about the machine it runs on."""

from dataclasses import dataclass

from capra.errors import CapacityError
from capra.isa.spec import Memory

MAX_EXTERNAL_WORDS = 1 << 24
MAX_SCRATCHPAD_WORDS = 1 << 20
MIN_OPERAND_DEPTH = 256
MAX_OPERAND_DEPTH = 1 << 15
MAX_PROGRAM_ENTRIES = 1 << 20


@dataclass(frozen=True, slots=True)
class Chip:
    """Sizes of one chip, in 32-bit words (one element a word) and in instructions.

    Raises CapacityError when a size is outside what GA2 allows.
    """

    external_words: int = 8192
    scratchpad_words: int = 8192
    operand_depth: int = 256
    """Longest K that one MM can take: rows of an operand memory."""
    program_entries: int = 1 << 14

    def __post_init__(self) -> None:
        _check("external memory", self.external_words, 16, MAX_EXTERNAL_WORDS)
        _check("scratchpad", self.scratchpad_words, 16, MAX_SCRATCHPAD_WORDS)
        if self.scratchpad_words & (self.scratchpad_words - 1):
            raise CapacityError(
                f"scratchpad has {self.scratchpad_words} words, expected a power of two"
            )
        _check("operand memory", self.operand_depth, MIN_OPERAND_DEPTH, MAX_OPERAND_DEPTH)
        _check("program memory", self.program_entries, 1, MAX_PROGRAM_ENTRIES)

    def words(self, memory: Memory) -> int:
        """The size of a memory."""
        return self.scratchpad_words if memory is Memory.SCRATCHPAD else self.external_words


def _check(name: str, size: int, low: int, high: int) -> None:
    if not low <= size <= high:
        raise CapacityError(f"{name} has {size} entries, expected {low} .. {high}")
