"""Files made from the instruction table: the ISA page, and what the RTL takes from Python.

`python -m capra.isa.emit` writes them into the checkout; a test fails when one is stale.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from capra.isa.spec import (
    ARRAY_SIZE,
    CONTROL_CYCLES,
    EXTERNAL_ADDRESS_BITS,
    INSTRUCTION_BITS,
    INSTRUCTION_WORDS,
    OPCODE_BITS,
    PHASES,
    SCRATCHPAD_ADDRESS_BITS,
    TABLE,
    Op,
)
from capra.numerics import (
    EXP_ONE,
    EXP_TABLE,
    EXP_TABLE_BITS,
    INT8_MAX,
    MULTIPLIER_BITS,
    RECIPROCAL_BITS,
    RECIPROCAL_SHIFT,
)


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
    return head + rows + _phases() + "".join(_section(op) for op in TABLE)


def _phases() -> str:
    text = """
## Phases

What the cycles of an instruction are spent on. A phase belongs to one unit; the phases of an
instruction sum to its cycles, those of a program to its counters.

| phase | unit | cycles | what |
|---|---|---|---|
"""
    for phase, (unit, meaning) in PHASES.items():
        uses = [
            f"{op.mnemonic} `{' + '.join(terms)}`"
            for op in TABLE
            if (terms := [term for use, term in op.terms if use is phase]) and op.cycles != "0"
        ]
        cycles = ", ".join(uses) or f"`{CONTROL_CYCLES}` each"
        text += f"| {phase} | {unit} | {cycles} | {meaning} |\n"
    return text


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


def rtl_package() -> str:
    """The SystemVerilog package: opcodes, the place of every field, and the widths of numerics."""
    lines = [
        "// Opcodes, fields and constants of GA2.",
        "// Made from src/capra/isa/spec.py and numerics.py by `python -m capra.isa.emit`.",
        "`default_nettype none",
        "package ga2_pkg;",
    ]
    constants = {
        "INSTRUCTION_BITS": INSTRUCTION_BITS,
        "OPCODE_BITS": OPCODE_BITS,
        "ARRAY_SIZE": ARRAY_SIZE,
        "SCRATCHPAD_ADDRESS_BITS": SCRATCHPAD_ADDRESS_BITS,
        "EXTERNAL_ADDRESS_BITS": EXTERNAL_ADDRESS_BITS,
        "INT8_MAX": INT8_MAX,
        "MULTIPLIER_BITS": MULTIPLIER_BITS,
        "EXP_TABLE_BITS": EXP_TABLE_BITS,
        "EXP_BITS": EXP_ONE.bit_length(),
        "RECIPROCAL_BITS": RECIPROCAL_BITS,
        "RECIPROCAL_SHIFT": RECIPROCAL_SHIFT,
    }
    lines += [f"  localparam int {name} = {value};" for name, value in constants.items()]
    for op in TABLE:
        lines.append(f"\n  // {op.mnemonic}: {op.meaning}")
        name = f"OP_{op.mnemonic}"
        lines.append(
            f"  localparam logic [{OPCODE_BITS - 1}:0] {name} = {OPCODE_BITS}'d{op.opcode};"
        )
        position = OPCODE_BITS
        for f in op.fields:
            name = f"{op.mnemonic}_{f.name.upper()}"
            lines.append(f"  localparam int {name}_LSB = {position}, {name}_BITS = {f.bits};")
            position += f.bits
    return "\n".join([*lines, "", "endpackage", "`default_nettype wire", ""])


def rtl_exp_table() -> str:
    """The exponential table as a SystemVerilog module."""
    value_bits = EXP_ONE.bit_length()
    rows = "".join(
        f"        {EXP_TABLE_BITS}'d{i}: value_o <= {value_bits}'d{value};\n"
        for i, value in enumerate(EXP_TABLE.tolist())
    )
    return f"""\
// The exponential table of the softmax: value_o = round(65535 * exp(-index_i / 32)), last entry 0.
// Made from src/capra/numerics.py by `python -m capra.isa.emit`.
//
// A synchronous ROM: with en_i, value_o is the entry of index_i one cycle later; else it holds.
`default_nettype none
module exp_table (
    input  logic clk_i,
    input  logic en_i,
    input  logic [{EXP_TABLE_BITS - 1}:0] index_i,
    output logic [{value_bits - 1}:0] value_o
);

  always_ff @(posedge clk_i)
    if (en_i)
      case (index_i)
{rows}        default: value_o <= '0;
      endcase

endmodule
`default_nettype wire
"""


GENERATED: Final[Mapping[str, Callable[[], str]]] = {
    "docs/reference/isa.md": isa_page,
    "rtl/ga2_pkg.sv": rtl_package,
    "rtl/exp_table.sv": rtl_exp_table,
}
"""Each generated file, by its path in a checkout, and the function that makes its text."""


def main() -> None:
    """Write the files below the current directory, the root of a checkout."""
    for name, make in GENERATED.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(make())


if __name__ == "__main__":
    main()
