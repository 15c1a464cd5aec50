"""Jobs: programs with their memory images, in the files that the bench reads.

Memory files have one word a line in hexadecimal, the format of $readmemh and $writememh.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from capra.isa.encoding import INSTRUCTION_BYTES, encode
from capra.isa.program import Program

Words = npt.NDArray[np.int32]

STANDARD_LATENCY: Final = 8
"""Cycles from a request of external memory to its answer that make LD cost what the table says."""


@dataclass(frozen=True)
class Job:
    """One run of a program from given memories."""

    program: Program
    external: Words
    """All words of external memory."""
    scratchpad: Words | None = None
    """All words of the scratchpad; None leaves them as they are, undefined at first."""
    external_known: npt.NDArray[np.bool_] | None = None
    """Where False, a word starts undefined and `external` does not matter; None: all are known."""
    reset_cycle: int = 0
    """Above 0: run up to this cycle first, reset the chip, load everything again and run."""
    limit: int = 0
    """Cycles after which the watchdog calls it a hang; 0: from the program and the memory."""


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """How external memory answers: cycles to an answer, percentage of stalled cycles, their seed.

    The standard latency and no stalls give the cycles of the instruction table.
    """

    latency: int = STANDARD_LATENCY
    stall_percent: int = 0
    seed: int = 1

    def limit(self, program: Program) -> int:
        """The watchdog: more cycles than the program can take with this memory."""
        cycles, dma = program.cycles, program.counters.dma
        if self.stall_percent == 0 and self.latency <= STANDARD_LATENCY:
            return cycles + 8
        share = -(-100 // (100 - self.stall_percent))  # cycles to an unstalled one, on average
        return cycles + 1000 + dma * share * (4 + self.latency)


def write_jobs(directory: Path, jobs: Sequence[Job], memory: MemoryModel) -> None:
    """Write the job list and every image below an existing directory."""
    lines = []
    for number, job in enumerate(jobs):
        chip, program = job.program.chip, job.program
        assert len(job.external) == chip.external_words
        code = b"".join(encode(i).to_bytes(INSTRUCTION_BYTES, "big") for i in program.instructions)
        (directory / f"{number}.program.hex").write_text(code.hex("\n", INSTRUCTION_BYTES) + "\n")
        words = used(job.external, job.external_known)
        known = None if job.external_known is None else job.external_known[:words]
        text = memory_text(job.external[:words], known)
        (directory / f"{number}.external.hex").write_text(text)
        numbers = [number, len(program.instructions), job.limit or memory.limit(program)]
        numbers += [job.reset_cycle, words]
        if job.scratchpad is None:
            numbers.append(-1)
        else:
            assert len(job.scratchpad) == chip.scratchpad_words
            numbers.append(used(job.scratchpad))
            text = memory_text(job.scratchpad[: numbers[-1]])
            (directory / f"{number}.scratchpad.hex").write_text(text)
        lines.append(" ".join(map(str, numbers)) + "\n")
    (directory / "jobs.txt").write_text("".join(lines))


def used(words: Words, known: npt.NDArray[np.bool_] | None = None) -> int:
    """Words up to the last that is not 0, or not known; at least 1."""
    places = np.flatnonzero(words if known is None else (words != 0) | ~known)
    return int(places[-1]) + 1 if len(places) else 1


def memory_text(words: Words, known: npt.NDArray[np.bool_] | None = None) -> str:
    """The words as the text of a memory file, those that are not known as x."""
    text = words.astype(">i4").tobytes().hex("\n", 4)
    if known is not None:
        lines = zip(text.split("\n"), known.tolist(), strict=True)
        text = "\n".join(line if ok else "x" * 8 for line, ok in lines)
    return text + "\n"


def parse_memory(text: str, size: int) -> tuple[Words, npt.NDArray[np.bool_]]:
    """The words of a memory of this size, and for each whether all of its bits are known.

    Unknown words (with an x or z digit) read as 0, and the words behind the file's are 0.
    """
    digits = re.sub(r"^[/@].*$", "", text, flags=re.MULTILINE).lower()
    words, known = np.zeros(size, np.int32), np.ones(size, bool)
    if "x" in digits or "z" in digits:
        lines = digits.split()
        known[: len(lines)] = oks = ["x" not in line and "z" not in line for line in lines]
        digits = "".join(line if ok else "0" * 8 for line, ok in zip(lines, oks, strict=True))
    found = np.frombuffer(bytes.fromhex(digits), dtype=">i4")
    words[: len(found)] = found
    return words, known
