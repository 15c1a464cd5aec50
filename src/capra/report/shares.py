"""What each tensor of the graph has of an instruction of a profile."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Part(NamedTuple):
    """Cycles of an instruction that belong to one origin, after those of the part before it."""

    origin: int | None
    start: int
    cycles: int


def parts_of(inst: Mapping[str, Any]) -> Iterator[Part]:
    """The parts of an instruction, in the order in which its tensors are moved; mostly one.

    The first has the cycles of fetch and latency, though the latency comes last.
    """
    start = inst["start"]
    for share in inst.get("shares", [inst]):
        yield Part(share["origin"], start, share["cycles"])
        start += share["cycles"]
