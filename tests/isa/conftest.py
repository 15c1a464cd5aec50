"""Random legal instructions, made from the limits in the table and from nothing else."""

from hypothesis import strategies as st

from capra.errors import ProgramError
from capra.isa.instruction import Instruction, instruction
from capra.isa.spec import TABLE


@st.composite
def _instructions(draw: st.DrawFn) -> Instruction:
    op = draw(st.sampled_from(TABLE))
    values = {field.name: draw(st.integers(field.minimum, field.limit)) for field in op.fields}
    try:
        return instruction(op.mnemonic, **values)
    except ProgramError:  # destination rows that share words: move them apart
        values["sd"] = (1 << 16) - 1
        return instruction(op.mnemonic, **values)


st.register_type_strategy(Instruction, _instructions())
