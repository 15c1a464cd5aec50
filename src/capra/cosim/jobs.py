"""Jobs: programs with their memory images, in the files that the bench reads.

Memory files have one word a line in hexadecimal, the format of $readmemh and $writememh.
"""

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
        (directory / f"{number}.external.hex").write_text(
            memory_text(job.external, job.external_known)
        )
        if job.scratchpad is not None:
            assert len(job.scratchpad) == chip.scratchpad_words
            (directory / f"{number}.scratchpad.hex").write_text(memory_text(job.scratchpad))
        flag = int(job.scratchpad is not None)
        limit = job.limit or memory.limit(program)
        lines.append(f"{number} {len(program.instructions)} {limit} {job.reset_cycle} {flag}\n")
    (directory / "jobs.txt").write_text("".join(lines))


def memory_text(words: Words, known: npt.NDArray[np.bool_] | None = None) -> str:
    """The words as the text of a memory file, those that are not known as x."""
    text = words.astype(">i4").tobytes().hex("\n", 4)
    if known is not None:
        lines = zip(text.split("\n"), known.tolist(), strict=True)
        text = "\n".join(line if ok else "x" * 8 for line, ok in lines)
    return text + "\n"


def parse_memory(text: str) -> tuple[Words, npt.NDArray[np.bool_]]:
    """The words of a memory file, and for each whether all of its bits are known.

    Unknown words (with an x or z digit) read as 0.
    """
    lines = [line for line in text.split() if len(line) == 8 and not line.startswith(("/", "@"))]
    digits = "".join(lines).lower()
    known = np.ones(len(lines), dtype=bool)
    if "x" in digits or "z" in digits:
        known = np.array([not set(line.lower()) & {"x", "z"} for line in lines], dtype=bool)
        digits = "".join(
            line if ok else "0" * 8 for line, ok in zip(lines, known.tolist(), strict=True)
        )
    words = np.frombuffer(bytes.fromhex(digits), dtype=">i4").astype(np.int32)
    return words, known
