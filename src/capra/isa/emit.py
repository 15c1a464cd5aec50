"""Files made from the instruction table: the ISA page of the documentation.

`python -m capra.isa.emit` writes them into the checkout; a test fails when one is stale.
"""

from pathlib import Path

from capra.isa.spec import (
    ARRAY_SIZE,
    CONTROL_CYCLES,
    INSTRUCTION_BITS,
    INSTRUCTION_WORDS,
    OPCODE_BITS,
    TABLE,
    Op,
)

ISA_PAGE = Path("docs/reference/isa.md")


def isa_page() -> str:
    """The ISA page in Markdown."""
    head = f"""\
# The GA2 instruction set

This page is made from the table in `src/capra/isa/spec.py` by `python -m capra.isa.emit`.

GA2 executes one instruction at a time. Memory words are 32 bits wide and hold one element each; the
matrix array computes tiles of at most {ARRAY_SIZE} x {ARRAY_SIZE} outputs. An instruction is
{INSTRUCTION_BITS} bits, {INSTRUCTION_WORDS} little-endian words: the opcode in the lowest
{OPCODE_BITS} bits, then the fields in the order given here, then zeros. Every instruction costs
{CONTROL_CYCLES} control cycles on top of its unit's.

| mnemonic | opcode | unit | unit cycles | what it does |
|---|---|---|---|---|
"""
    rows = "".join(
        f"| {op.mnemonic} | {op.opcode} | {op.unit} | `{op.cycles}` | {op.meaning} |\n"
        for op in TABLE
    )
    return head + rows + "".join(_section(op) for op in TABLE)


def _section(op: Op) -> str:
    text = f"\n## {op.mnemonic}\n\n{op.meaning[0].upper()}{op.meaning[1:]}.\n\n"
    text += f"```\n{op.loops}\n```\n"
    if op.fields:
        text += "\n| field | bits | values | meaning |\n|---|---|---|---|\n"
        position = OPCODE_BITS
        for f in op.fields:
            span = f"{position + f.bits - 1}:{position}"
            text += f"| `{f.name}` | {span} | {f.minimum} .. {f.limit} | {f.meaning} |\n"
            position += f.bits
    if op.reads:
        text += f"\nA destination may overlap a source: {op.overlap}"
        text += " (all words in place, or none).\n" if op.overlap == "same" else ".\n"
    return text


def main() -> None:
    """Write the files below the current directory, the root of a checkout."""
    ISA_PAGE.write_text(isa_page())


if __name__ == "__main__":
    main()
