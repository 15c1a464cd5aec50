"""Origins: the graph tensors that the instructions of a program come from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from capra.errors import ProgramError
from capra.isa.code import Code
from capra.isa.spec import CONTROL_CYCLES

TRANSFERS = ("LD", "ST")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where instructions that follow each other come from: one tensor of the graph."""

    tensor: str
    text: str
    """The tensor's line in the graph's text form, after that of a product fused into it."""
    instructions: int
    """How many; 0 for a tensor that is moved by the last instruction before, with others."""


class Share(NamedTuple):
    """What one tensor has of a transfer that moves several."""

    origin: int
    """Index of its origin."""
    words: int
    """All of the tensor's."""
    cycles: int
    """One for each word; the first tensor has those of fetch and latency too."""


def find_shares(
    origins: Sequence[Origin], code: Code, words: Mapping[tuple[str, str], int]
) -> Mapping[int, tuple[Share, ...]]:
    """The shares of every transfer that moves several tensors, by index of the instruction.

    `words` has the words of a tensor by mnemonic and name. The cycles of the shares sum to those of
    the instruction. Raises ProgramError for a tensor without instructions that is not part of a
    transfer, or where the words of the tensors are not those of the transfer.
    """
    if origins and not origins[0].instructions:
        raise ProgramError(
            f"the first origin, {origins[0].tensor}, has no instructions, expected at least one"
        )
    shares: dict[int, tuple[Share, ...]] = {}
    end = 0
    for index, origin in enumerate(origins):
        end += origin.instructions
        if index + 1 == len(origins) or origins[index + 1].instructions:
            together = _moved_together(origins, index)
            if len(together) > 1:
                shares[end - 1] = _shares(origins, together, end - 1, code, words)
    return shares


def _moved_together(origins: Sequence[Origin], last: int) -> range:
    """The origins of the last instruction that the origin `last` has a part in."""
    first = last
    while not origins[first].instructions:
        first -= 1
    return range(first, last + 1)


def _shares(
    origins: Sequence[Origin], together: range, at: int, code: Code,
    words: Mapping[tuple[str, str], int],
) -> tuple[Share, ...]:  # fmt: skip
    names = ", ".join(origins[index].tensor for index in together)
    inst = code.at(at)
    if inst.mnemonic not in TRANSFERS:
        raise ProgramError(
            f"instruction {at} ({inst}) is that of {names}, expected one of "
            f"{' and '.join(TRANSFERS)} to be of several tensors"
        )
    found = [words.get((inst.mnemonic, origins[index].tensor), 0) for index in together]
    if sum(found) != inst["n"] or 0 in found:
        raise ProgramError(
            f"instruction {at} ({inst}) moves {names} of {found} words, expected tensors of "
            f"{inst['n']} words together"
        )
    overhead = inst.cycles + CONTROL_CYCLES - inst["n"]
    return tuple(
        Share(index, count, count + overhead * (index == together[0]))
        for index, count in zip(together, found, strict=True)
    )
