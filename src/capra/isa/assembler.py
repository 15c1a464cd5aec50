"""Text form of a program's code: one instruction a line, `MNEMONIC field=value ...`.

`;` starts a comment, blank lines are ignored, and a line may begin with its index and a colon,
which is checked. Values are decimal or 0x hexadecimal; every field is written.
"""

import re
from collections.abc import Sequence
from typing import Final

from capra.errors import ProgramError
from capra.isa.instruction import Instruction, instruction
from capra.isa.spec import CONTROL_CYCLES

_NUMBER: Final = re.compile(r"-?[0-9]{1,20}|0x[0-9a-fA-F]{1,16}")
"""Far more digits than any field takes; a longer number could not even be printed."""


def disassemble(instructions: Sequence[Instruction]) -> str:
    """The instructions as text, each with its index and, as a comment, its cycles."""
    texts = [f"{i}: {inst}" for i, inst in enumerate(instructions)]
    width = max(map(len, texts), default=0)
    lines = [
        f"{text:<{width}}  ; {inst.cycles + CONTROL_CYCLES} cycles"
        for text, inst in zip(texts, instructions, strict=True)
    ]
    return "".join(line + "\n" for line in lines)


def assemble(text: str) -> tuple[Instruction, ...]:
    """The instructions of a text; ProgramError names the line of a bad one."""
    instructions: list[Instruction] = []
    for number, line in enumerate(text.splitlines(), start=1):
        code = line.split(";", 1)[0].strip()
        if not code:
            continue
        try:
            instructions.append(_parse(code, len(instructions)))
        except ProgramError as error:
            raise ProgramError(f"line {number}: {error}") from None
    return tuple(instructions)


def _parse(code: str, index: int) -> Instruction:
    label, colon, rest = code.partition(":")
    if colon:
        if label.strip() != str(index):
            raise ProgramError(f"index is {label.strip()!r}, expected {index}")
        code = rest
    words = code.split()
    if not words:
        raise ProgramError("no mnemonic after the index")
    fields: dict[str, int] = {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if not equals or name in fields:
            raise ProgramError(f"operand is {word!r}, expected name=value, each name once")
        fields[name] = _number(name, value)
    return instruction(words[0], **fields)


def _number(name: str, text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ProgramError(f"{name} is {text!r}, expected a whole number")
    return int(text, 16 if "x" in text else 10)
