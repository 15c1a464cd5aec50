"""Mutants of the instruction set, its timing, the integer arithmetic and the simulator."""

from typing import Final

from mutants.mutant import Group, Mutant

_SPEC: Final = "src/capra/isa/spec.py"
_ENCODING: Final = "src/capra/isa/encoding.py"
_INSTRUCTION: Final = "src/capra/isa/instruction.py"
_CODE: Final = "src/capra/isa/code.py"
_TIMING: Final = "src/capra/isa/timing.py"
_NUMERICS: Final = "src/capra/numerics.py"
_EXECUTE: Final = "src/capra/sim/execute.py"
_MACHINE: Final = "src/capra/sim/machine.py"

_TEST_SPEC: Final = ("tests/isa/test_spec.py",)
_TEST_ENCODING: Final = ("tests/isa/test_encoding.py",)
_TEST_INSTRUCTION: Final = ("tests/isa/test_instruction.py",)
_TEST_CODE: Final = ("tests/isa/test_code.py",)
_TEST_TIMING: Final = ("tests/isa/test_timing.py",)
_TEST_NUMERICS: Final = ("tests/test_numerics.py",)
_TEST_EXECUTE: Final = ("tests/sim/test_execute.py",)
_TEST_MACHINE: Final = ("tests/sim/test_machine.py",)
_TEST_PAGES: Final = ("tests/isa/test_emit.py",)


def _cycles(mnemonic: str, right: str, wrong: str, reason: str, *, ci: bool = False) -> Mutant:
    """A wrong cycle formula in the table."""
    return Mutant(
        f"cycles of {mnemonic}", _SPEC, f'"{right}"', f'"{wrong}"', reason, _TEST_TIMING, ci=ci
    )


ISA: Final = Group(
    "isa",
    (
        Mutant(
            "cycles of HALT", _SPEC,
            '"HALT", 0, Unit.CONTROL, "0"', '"HALT", 0, Unit.CONTROL, "1"',
            "HALT costs its two control cycles only",
            _TEST_TIMING,
        ),
        _cycles("LD", "n + 9", "n + 8", "the external read latency is one cycle short"),
        _cycles("ST", "n + 2", "n + 3", "a store waits for no answer"),
        _cycles("MM", "m*k + k*n + m*n + k + m + n + 5 + acc*m*n",
                "m*k + k*n + m*n + k + m + n + 5 + 0*m*n",
                "the accumulated sums are loaded for nothing",
                ci=True),
        _cycles("MM without its constant", "m*k + k*n + m*n + k + m + n + 5 + acc*m*n",
                "m*k + k*n + m*n + k + m + n + 0 + acc*m*n", "the pipeline has no depth"),
        _cycles("RQ", "r*c + 2", "(r+c) + 2", "rows plus columns instead of their product"),
        _cycles("VADD", "2*n + 2", "n + 2", "both operands through one port in one cycle"),
        _cycles("SM", "3*n + 47", "2*n + 47", "two passes over the row instead of three"),
        _cycles("AMAX", "n + 3", "n + 2", "the word register is left out"),
        Mutant(
            "control cycles", _SPEC,
            "CONTROL_CYCLES: Final = 2", "CONTROL_CYCLES: Final = 1",
            "fetch and decode are two cycles",
            _TEST_TIMING,
        ),
        Mutant(
            "control cycles once a program", _TIMING,
            "cycles[Unit.CONTROL] = CONTROL_CYCLES * len(code)",
            "cycles[Unit.CONTROL] = CONTROL_CYCLES",
            "every instruction pays them",
            _TEST_TIMING,
        ),
        Mutant(
            "total without control", _TIMING,
            "self.matrix + self.dma + self.vector + self.control",
            "self.matrix + self.dma + self.vector",
            "the counters do not add up",
            _TEST_TIMING,
        ),
        Mutant(
            "cycles of a vector instruction on the DMA counter", _SPEC,
            '"VADD", 5, Unit.VECTOR', '"VADD", 5, Unit.DMA',
            "the sums are right, the units are not",
            _TEST_TIMING,
        ),
        Mutant(
            "fields of LD in another order", _SPEC,
            '(_scratchpad("d", "the destination"), _external("s", "the source"),',
            '(_external("s", "the source"), _scratchpad("d", "the destination"),',
            "programs made before mean something else",
            _TEST_ENCODING, ci=True,
        ),
        Mutant(
            "external addresses one bit short", _SPEC,
            "EXTERNAL_ADDRESS_BITS: Final = 24", "EXTERNAL_ADDRESS_BITS: Final = 23",
            "half of the external memory is out of reach",
            (*_TEST_SPEC, *_TEST_ENCODING, *_TEST_INSTRUCTION),
        ),
        Mutant(
            "multiplier one bit short", _SPEC,
            'Field("mul", 16, 0, "multiplier")', 'Field("mul", 15, 0, "multiplier")',
            "a normalized multiplier has 16 bits",
            (*_TEST_SPEC, *_TEST_ENCODING, *_TEST_INSTRUCTION),
        ),
        Mutant(
            "shift up to 63 allowed", _SPEC,
            'rounding half up", maximum=47)', 'rounding half up", maximum=63)',
            "the product has 48 bits",
            (*_TEST_SPEC, *_TEST_INSTRUCTION),
        ),
        Mutant(
            "tile of five rows allowed", _SPEC,
            '"rows of A and D", maximum=ARRAY_SIZE)', '"rows of A and D", maximum=5)',
            "the array has four",
            (*_TEST_SPEC, *_TEST_INSTRUCTION),
        ),
        Mutant(
            "opcodes of SM and AMAX exchanged for new ones", _SPEC,
            '"AMAX", 7,', '"AMAX", 8,',
            "programs made before do not decode",
            (*_TEST_SPEC, *_TEST_ENCODING),
        ),
        Mutant(
            "fields start a bit too high", _ENCODING,
            "value, position = inst.op.opcode, OPCODE_BITS\n",
            "value, position = inst.op.opcode, OPCODE_BITS + 1\n",
            "decoding reads other fields",
            _TEST_ENCODING,
        ),
        Mutant(
            "fields of one width", _ENCODING,
            "position += f.bits", "position += 20",
            "narrower fields leave holes, wider ones collide",
            _TEST_ENCODING,
        ),
        Mutant(
            "spare bits ignored", _ENCODING,
            "    if rest:", "    if False:",
            "damaged code would run",
            _TEST_ENCODING,
        ),
        Mutant(
            "words big-endian", _ENCODING,
            'to_bytes(INSTRUCTION_BYTES, "little")', 'to_bytes(INSTRUCTION_BYTES, "big")',
            "an image of a program is read backwards",
            _TEST_ENCODING,
        ),
        Mutant(
            "smallest value of a field not checked", _INSTRUCTION,
            'f"({f.minimum} <= {f.name}) & (', 'f"(0 <= {f.name}) & (',
            "an instruction of zero words",
            _TEST_INSTRUCTION,
        ),
        Mutant(
            "rows of a destination may overlap", _INSTRUCTION,
            "if not region.has_rows_apart:", "if False:",
            "the result depends on the order of writes",
            _TEST_INSTRUCTION,
        ),
        Mutant(
            "rows of a destination may overlap in code", _CODE,
            "legal &= region.has_rows_apart", "pass",
            "the compiler's instructions are checked less than an assembler's",
            _TEST_CODE,
        ),
        Mutant(
            "ends of regions no reason to look at an instruction", _CODE,
            "doubt |= region.end > chip.words(region.memory)", "pass",
            "a program reaches past the end of a memory",
            _TEST_CODE,
        ),
        Mutant(
            "sums of an accumulating product not in the traffic", _CODE,
            "add(read, updates.targets, updates.at)", "pass",
            "words that nobody wrote would be added to",
            _TEST_CODE,
        ),
        Mutant(
            "accumulating product reads no sums", _INSTRUCTION,
            "self._sources + self._targets if flag", "self._sources if flag",
            "words that nobody wrote would be added to",
            _TEST_INSTRUCTION,
        ),
        Mutant(
            "region one word short", _INSTRUCTION,
            "(self.rows - 1) * self.stride + self.cols",
            "(self.rows - 1) * self.stride + self.cols - 1",
            "the word behind a memory is inside",
            _TEST_INSTRUCTION,
        ),
        Mutant(
            "overlap of destination and source allowed", _INSTRUCTION,
            "if target.overlaps(source) and not (in_place and target == source):", "if False:",
            "words are read after they were overwritten",
            _TEST_INSTRUCTION,
        ),
        Mutant(
            "shifted overlap allowed in place", _INSTRUCTION,
            "not (in_place and target == source)", "not in_place",
            "a vector moved by one word overwrites what it still needs",
            _TEST_INSTRUCTION,
        ),
        Mutant(
            "K deeper than the operand memories allowed", _INSTRUCTION,
            'inst["k"] > chip.operand_depth', 'inst["k"] > chip.operand_depth + 1',
            "the last step has no place",
            _TEST_INSTRUCTION,
        ),
        Mutant(
            "any scratchpad size allowed", "src/capra/isa/chip.py",
            "if self.scratchpad_words & (self.scratchpad_words - 1):", "if False:",
            "addresses are bits",
            ("tests/isa/test_chip.py",),
        ),
        Mutant(
            "listing without control cycles", "src/capra/isa/assembler.py",
            "inst.cycles + CONTROL_CYCLES", "inst.cycles",
            "the cycles of a listing do not add up to the total",
            ("tests/isa/test_assembler.py",),
        ),
        Mutant(
            "index of a line not checked", "src/capra/isa/assembler.py",
            "if label.strip() != str(index):", "if False:",
            "a line that is missing in a listing goes unnoticed",
            ("tests/isa/test_assembler.py",),
        ),
        Mutant(
            "field of the RTL package off by one", "src/capra/isa/emit.py",
            "{name}_LSB = {position},", "{name}_LSB = {position + 1},",
            "the chip decodes other fields than the simulator",
            _TEST_PAGES,
        ),
    ),
    full=("tests/isa", "tests/golden"),
)  # fmt: skip

SIMULATOR: Final = Group(
    "simulator",
    (
        Mutant(
            "rounding half left out", _NUMERICS,
            "(x * multiplier + (1 << (shift - 1))) >> shift", "(x * multiplier) >> shift",
            "rounds down",
            _TEST_NUMERICS, ci=True,
        ),
        Mutant(
            "ties rounded down", _NUMERICS,
            "(x * multiplier + (1 << (shift - 1))) >> shift",
            "(x * multiplier + (1 << (shift - 1)) - 1) >> shift",
            "half goes down instead of up",
            _TEST_NUMERICS,
        ),
        Mutant(
            "requantization reaches -128", _NUMERICS,
            "low = 0 if relu else -INT8_MAX", "low = 0 if relu else -INT8_MAX - 1",
            "-128 never appears",
            _TEST_NUMERICS,
        ),
        Mutant(
            "requantization does not saturate above", _NUMERICS,
            "np.minimum(np.maximum(rounded, low), INT8_MAX)", "np.maximum(rounded, low)",
            "large values wrap in the low byte",
            _TEST_NUMERICS,
        ),
        Mutant(
            "sum does not saturate", _NUMERICS,
            "np.minimum(np.maximum(total, -INT8_MAX), INT8_MAX)", "total",
            "127 + 1 is no int8 number",
            _TEST_NUMERICS, ci=True,
        ),
        Mutant(
            "sum in 8 bits", _NUMERICS,
            "total = a.astype(np.int64) + b",
            "total = (a.astype(np.int8) + b.astype(np.int8)).astype(np.int64)",
            "the sum wraps before it is saturated",
            _TEST_NUMERICS,
        ),
        Mutant(
            "argmax takes the last of equal maxima", _NUMERICS,
            "return int(np.argmax(row))", "return len(row) - 1 - int(np.argmax(row[::-1]))",
            "ties go to the smaller index",
            _TEST_NUMERICS,
        ),
        Mutant(
            "last entry of the exponential table not 0", _NUMERICS,
            "table[-1] = 0", "table[-1] = table[-1]",
            "many distant scores add up",
            _TEST_NUMERICS,
        ),
        Mutant(
            "index of the exponential table wraps", _NUMERICS,
            "np.minimum(index, len(EXP_TABLE) - 1)", "index % len(EXP_TABLE)",
            "distant scores become near ones",
            _TEST_NUMERICS,
        ),
        Mutant(
            "softmax without its maximum", _NUMERICS,
            "row.max() - row,", "INT8_MAX - row,",
            "rows of low scores vanish",
            _TEST_NUMERICS,
        ),
        Mutant(
            "reciprocal rounded up", _NUMERICS,
            "(1 << RECIPROCAL_BITS) // int(exponentials.sum())",
            "-(-(1 << RECIPROCAL_BITS) // int(exponentials.sum()))",
            "restoring division rounds down",
            _TEST_NUMERICS,
        ),
        Mutant(
            "multiplier of 2^16 kept", _NUMERICS,
            "if multiplier == 1 << MULTIPLIER_BITS:", "if False:",
            "17 bits do not fit the field",
            _TEST_NUMERICS,
        ),
        Mutant(
            "quantization rounds ties to even", _NUMERICS,
            "below.astype(np.int64) + (steps - below >= 0.5)", "np.rint(steps).astype(np.int64)",
            "the host rounds half up, as the chip does",
            _TEST_NUMERICS,
        ),
        Mutant(
            "-128 accepted as int8", _NUMERICS,
            "values.min() < -INT8_MAX", "values.min() < -INT8_MAX - 1",
            "a tensor is symmetric",
            (*_TEST_NUMERICS, "tests/sim/test_device.py", "tests/ir/test_interpreter.py"),
        ),
        Mutant(
            "transposed product not transposed", _EXECUTE,
            "b, n, k, sb).T if t else", "b, k, n, sb) if t else",
            "q k instead of q k^T",
            _TEST_EXECUTE,
        ),
        Mutant(
            "accumulating product replaces", _EXECUTE,
            "return accumulate if acc else replace", "return replace",
            "only the last part of K counts",
            _TEST_EXECUTE, ci=True,
        ),
        Mutant(
            "stride of A ignored", _EXECUTE,
            "_low_bytes(mem.scratchpad, a, m, k, sa)", "_low_bytes(mem.scratchpad, a, m, k, k)",
            "rows of a larger tensor are not its rows",
            _TEST_EXECUTE,
        ),
        Mutant(
            "stride of the destination of RQ ignored", _EXECUTE,
            "_words(mem.scratchpad, d, r, c, sd)", "_words(mem.scratchpad, d, r, c, c)",
            "rows are written between those of another tensor",
            _TEST_EXECUTE,
        ),
        Mutant(
            "RQ reads bytes", _EXECUTE,
            "source = _words(mem.scratchpad, s, r, c, ss)",
            "source = _low_bytes(mem.scratchpad, s, r, c, ss)",
            "sums have 32 bits",
            _TEST_EXECUTE,
        ),
        Mutant(
            "relu flag ignored", _EXECUTE,
            "clamp = bool(relu)", "clamp = False",
            "negative values stay",
            _TEST_EXECUTE,
        ),
        Mutant(
            "VADD reads words", _EXECUTE,
            "left = _low_bytes(mem.scratchpad, a, 1, n, n)[0]", "left = mem.scratchpad[a : a + n]",
            "the ISA reads the low byte of each word",
            _TEST_EXECUTE,
        ),
        Mutant(
            "AMAX reads bytes", _EXECUTE,
            "mem.scratchpad[d : d + 1], mem.scratchpad[s : s + n]",
            "mem.scratchpad[d : d + 1], _low_bytes(mem.scratchpad, s, 1, n, n)[0]",
            "it compares whole words",
            _TEST_EXECUTE,
        ),
        Mutant(
            "LD from the destination's address", _EXECUTE,
            "mem.scratchpad[d : d + n], mem.external[s : s + n]",
            "mem.scratchpad[d : d + n], mem.external[d : d + n]",
            "source and destination are different memories",
            _TEST_EXECUTE,
        ),
        Mutant(
            "read of unwritten words not reported", _MACHINE,
            "if not written.all():", "if not written.any():",
            "one written word excuses the others",
            _TEST_MACHINE, ci=True,
        ),
        Mutant(
            "scratchpad stays written between runs", _MACHINE,
            "self._written[Memory.SCRATCHPAD][:] = False", "pass",
            "a program may depend on the one before it",
            _TEST_MACHINE,
        ),
        Mutant(
            "all of external memory counts as written", _MACHINE,
            "self._written[Memory.EXTERNAL][address : address + len(flat)] = True",
            "self._written[Memory.EXTERNAL][:] = True",
            "a missing feed goes unnoticed",
            _TEST_MACHINE,
        ),
        Mutant(
            "poisoned memories are zeros", _MACHINE,
            "POISON = 0x5A5A5A5A", "POISON = 0",
            "a result that depends on a word nobody wrote looks harmless",
            _TEST_MACHINE,
        ),
        Mutant(
            "cycles of a run without control", _MACHINE,
            "                action()\n                spent[Unit.CONTROL] += CONTROL_CYCLES\n",
            "                action()\n",
            "the counters are not the program's",
            _TEST_MACHINE,
        ),
        Mutant(
            "observed run counts control on the unit", _MACHINE,
            "spent[Unit.CONTROL] += CONTROL_CYCLES\n            spent[unit] += cycles\n"
            "            if trace",
            "spent[unit] += cycles + CONTROL_CYCLES\n            if trace",
            "a traced run has other counters than a quick one",
            _TEST_MACHINE,
        ),
        Mutant(
            "trace line before its instruction", _MACHINE,
            "trace(TraceLine(index, sum(spent.values()), inst, written))",
            "trace(TraceLine(index, sum(spent.values()) - cycles, inst, written))",
            "the cycle of a line is the one in which it retired",
            _TEST_MACHINE,
        ),
        Mutant(
            "program bound again at every run", "src/capra/sim/device.py",
            "bound = self._bound.pop(id(program), None)", "bound = None",
            "binding takes longer than running",
            ("tests/sim/test_device.py",),
        ),
        Mutant(
            "shape of a feed not checked", "src/capra/sim/device.py",
            "if value is None or shape != (slot.rows, slot.cols):", "if value is None:",
            "words of one tensor run into the next",
            ("tests/sim/test_device.py",),
        ),
    ),
    full=("tests/sim", "tests/test_numerics.py", "tests/golden", "tests/ir"),
)  # fmt: skip
