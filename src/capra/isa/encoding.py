"""Binary form of an instruction: five little-endian 32-bit words.

Bit 0 upwards: the opcode, then each field of the table in order, each in its own width; the rest
is zero. Decoding refuses unknown opcodes, values outside a field's limits and set spare bits.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from capra.errors import ProgramError
from capra.isa.instruction import Instruction
from capra.isa.spec import BY_OPCODE, INSTRUCTION_BITS, INSTRUCTION_WORDS, OPCODE_BITS

INSTRUCTION_BYTES = INSTRUCTION_BITS // 8


def encode(inst: Instruction) -> int:
    """The instruction as one integer of at most 160 bits."""
    value, position = inst.op.opcode, OPCODE_BITS
    for f, operand in zip(inst.op.fields, inst.operands, strict=True):
        value |= operand << position
        position += f.bits
    return value


def decode(value: int) -> Instruction:
    """The instruction that `encode` turned into this integer; ProgramError if there is none."""
    op = BY_OPCODE.get(value & ((1 << OPCODE_BITS) - 1))
    if op is None:
        raise ProgramError(
            f"opcode is {value & ((1 << OPCODE_BITS) - 1)}, expected one of "
            f"{', '.join(map(str, BY_OPCODE))}"
        )
    rest = value >> OPCODE_BITS
    operands = []
    for f in op.fields:
        operands.append(rest & ((1 << f.bits) - 1))
        rest >>= f.bits
    if rest:
        raise ProgramError(f"{op.mnemonic} has set bits above its last field, expected zeros")
    return Instruction(op, tuple(operands))


def to_words(instructions: Iterable[Instruction]) -> npt.NDArray[np.uint32]:
    """The instructions as an array of shape (instructions, 5)."""
    raw = b"".join(encode(inst).to_bytes(INSTRUCTION_BYTES, "little") for inst in instructions)
    return np.frombuffer(raw, dtype="<u4").reshape(-1, INSTRUCTION_WORDS)


def from_bytes(raw: bytes) -> Sequence[Instruction]:
    """The instructions of a byte string; ProgramError names the index of a bad one."""
    if len(raw) % INSTRUCTION_BYTES:
        raise ProgramError(
            f"program code has {len(raw)} bytes, expected a multiple of {INSTRUCTION_BYTES}"
        )
    instructions = []
    for index in range(len(raw) // INSTRUCTION_BYTES):
        chunk = raw[index * INSTRUCTION_BYTES : (index + 1) * INSTRUCTION_BYTES]
        try:
            instructions.append(decode(int.from_bytes(chunk, "little")))
        except ProgramError as error:
            raise ProgramError(f"instruction {index}: {error}") from None
    return instructions
