"""Mutants of the simulator's compiled engine: its loops, its counters, and when it is used."""

from typing import Final

from mutants.mutant import Group, Mutant

_COMPILED: Final = "src/capra/sim/compiled.py"
_MACHINE: Final = "src/capra/sim/machine.py"

_TEST: Final = "tests/sim/test_compiled.py"
_HALVES: Final = f"{_TEST}::test_requantization_is_exact_beside_every_half"


def _loop(
    name: str, find: str, replace: str, reason: str, mnemonic: str, *more: str, ci: bool = False
) -> Mutant:
    """A wrong loop of one instruction, which the naive model performs too."""
    check = f"{_TEST}::test_an_instruction_performs_its_loops[seed0-{mnemonic}]"
    return Mutant(
        f"compiled {mnemonic}: {name}", _COMPILED, find, replace, reason, (check, *more), ci=ci
    )


def _wide(name: str, find: str, replace: str, reason: str) -> Mutant:
    """Tiles as one wide product that would leave other words."""
    check = f"{_TEST}::test_tiles_beside_each_other_are_as_if_one_came_after_the_other"
    return Mutant(f"compiled MM: {name}", _COMPILED, find, replace, reason, (check,))


GROUP: Final = Group(
    "compiled",
    (
        _loop(
            "sums saturate at the word", "words[d + i * sd + j] = sums[j]",
            "words[d + i * sd + j] = (sums[j] if -(1 << 31) < sums[j] < (1 << 31) - 255 else 0)",
            "the accumulator wraps in 32 bits",
            "MM",
        ),
        _loop(
            "accumulating product replaces",
            "words[d + i * sd + j] if accumulate else np.int32(0)", "np.int32(0)",
            "only the last part of K counts",
            "MM",
        ),
        _loop(
            "transposed right operand read by rows", "np.int8(words[b + j * sb + x])",
            "np.int8(words[b + x * sb + j])",
            "q k instead of q k^T",
            "MM",
        ),
        _loop(
            "left operand read as words", "left[x] = np.int8(words[a + i * sa + x])",
            "left[x] = words[a + i * sa + x]",
            "the ISA reads the low byte of each word",
            "MM",
        ),
        _wide(
            "parts of K as columns beside each other", "for same in (a, m, k, sd, sa, sb, t,",
            "for same in (m, k, sd, sa, sb, t,",
            "the rows of another A are not those of the first",
        ),
        _wide(
            "tiles of other heights", "for same in (a, m, k,", "for same in (a, k,",
            "a row of the product that one of them does not have",
        ),
        _wide(
            "tiles whose sums have another stride",
            "(a, m, k, sd, sa, sb, t,", "(a, m, k, sa, sb, t,",
            "their second rows lie elsewhere",
        ),
        _wide(
            "tiles whose A has another stride",
            "(a, m, k, sd, sa, sb, t,", "(a, m, k, sd, sb, t,",
            "their second rows are others",
        ),
        _wide(
            "tiles whose B has another stride",
            "(a, m, k, sd, sa, sb, t,", "(a, m, k, sd, sa, t,",
            "its second rows are others",
        ),
        _wide(
            "rows of sums that meet in one word", "(sd >= n)", "(sd >= n - 1)",
            "a later row would be written before an earlier tile's",
        ),
        _wide(
            "accumulating tiles with those that replace", "t, rows[:, -1])", "t)",
            "what was there is added, or lost",
        ),
        _wide(
            "columns of a transposed B beside each other", "np.where(t, n * sb, n)", "n",
            "column j of the product is row j of what is stored",
        ),
        _wide(
            "sums over an operand of a later tile",
            "good &= (right_end <= d)", "good |= (right_end <= d)",
            "it would read what an earlier one wrote",
        ),
        _wide(
            "rows of sums that meet", "(m == 1) | (sd >= n)", "m > 0",
            "a later row would be written before an earlier tile's",
        ),
        _loop(
            "requantization rounds ties to even", "np.floor(", "np.rint(-0.5 + ",
            "a half goes up",
            "RQ", _HALVES,
        ),
        _loop(
            "requantization reaches -128", "else -np.float64(INT8_MAX),",
            "else -np.float64(INT8_MAX) - 1.0,",
            "-128 never appears",
            "RQ",
        ),
        _loop(
            "requantization in single precision",
            "np.floor(np.float64(words[s + i * ss + j]) * factor * step + 0.5)",
            "np.floor(np.float32(words[s + i * ss + j]) * np.float32(factor * step) + 0.5)",
            "24 bits do not hold a product of 48",
            "RQ", _HALVES,
        ),
        _loop(
            "sum in 8 bits", "total = int(np.int8(words[a + i])) + int(np.int8(words[b + i]))",
            "total = int(np.int8(words[a + i] + words[b + i]))",
            "the sum wraps before it is saturated",
            "VADD",
        ),
        _loop(
            "index of the exponential table wraps", "EXP_TABLE[min(index, len(EXP_TABLE) - 1)]",
            "EXP_TABLE[index % len(EXP_TABLE)]",
            "distant scores become near ones",
            "SM",
        ),
        _loop(
            "probabilities without rounding", "(exponentials[i] * reciprocal + rounding)",
            "(exponentials[i] * reciprocal)",
            "rounds down",
            "SM",
        ),
        _loop(
            "argmax takes the last of equal maxima", "if words[s + i] > largest:",
            "if words[s + i] >= largest:",
            "ties go to the smaller index",
            "AMAX",
        ),
        _loop(
            "transfer backwards", "        target[d + i] = source[s + i]",
            "        target[d + i] = source[s + n - 1 - i]",
            "words arrive in another order",
            "LD",
        ),
        _loop(
            "store into the scratchpad", "_move(external, scratchpad, operands)",
            "_move(scratchpad, scratchpad, operands)",
            "an output never reaches the host",
            "ST",
        ),
        _loop(
            "stride of the left operand ignored", "words[a + i * sa + x]", "words[a + i * k + x]",
            "rows of a larger tensor are not its rows",
            "MM",
        ),
        _loop(
            "stride of the source of RQ ignored",
            "words[s + i * ss + j]", "words[s + i * cols + j]",
            "rows of a larger tensor are not its rows",
            "RQ",
        ),
        Mutant(
            "control cycles on the instruction's unit", _COMPILED,
            "spent[_CONTROL] += CONTROL_CYCLES", "spent[row[_UNIT]] += CONTROL_CYCLES",
            "the total is right, the units are not",
            (f"{_TEST}::test_random_programs",),
        ),
        Mutant(
            "control cycles of a wide product once", _COMPILED,
            "CONTROL_CYCLES * np.int64(row[_COUNT])", "CONTROL_CYCLES",
            "every tile is fetched and decoded",
            (f"{_TEST}::test_programs_of_the_text_model",),
        ),
        Mutant(
            "units in another order", _MACHINE,
            "zip(compiled.UNITS, spent.tolist(), strict=True)",
            "zip(compiled.UNITS[::-1], spent.tolist(), strict=True)",
            "the total is right, the units are not",
            (f"{_TEST}::test_random_programs",),
        ),
        Mutant(
            "cycles without those of loads", _COMPILED,
            "rows[group.at, _CYCLES] = group.cycles",
            "rows[group.at, _CYCLES] = group.cycles * (group.op.mnemonic != \"LD\")",
            "the counters are not the program's",
            (f"{_TEST}::test_random_programs",),
        ),
        Mutant(
            "poisoned machine compiled", _MACHINE,
            "if trace is None and after is None and self._written is None:",
            "if trace is None and after is None:",
            "nobody looks whether a word was written",
            (f"{_TEST}::test_poison_is_found_whatever_the_engine",), ci=True,
        ),
        Mutant(
            "short programs compiled too", _MACHINE,
            "program.cycles >= COMPILED_CYCLES and has_numba()", "has_numba()",
            "the first small program waits for numba",
            (f"{_TEST}::test_long_programs_are_compiled",),
        ),
    ),
    full=("tests/sim",),
)  # fmt: skip
