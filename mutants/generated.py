"""Mutants that Yosys makes: single bits inverted, tied or exchanged in the arithmetic blocks.

Yosys reads a block, picks mutations evenly from a fixed seed, and writes one netlist each, which
takes the place of the block's source. Nobody chose these faults, so they also hit what nobody
thought of. A survivor needs an argument in `_EQUIVALENT`, by its name without the number.
"""

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from mutants.mutant import Group, Mutant, MutantError
from mutants.rtl import ICARUS_ONLY

SEED: Final = 1

_EQUIVALENT: Final[Mapping[str, str]] = {
    "requantizer: cnot1 $flatten\\u_saturate.$reduce_or$saturate.sv:19 A[19]": (
        "one input of the OR becomes its exclusive or with another input, and a ^ b | b is a | b"
    ),
    "divider: cnot1 $auto$ff.cc:266:slice Q[1]": (
        "the step counter is read with bit 1 inverted where bit 4 is set, so the steps from 16 on "
        "come in another order: 18, 17, 16, 19, 22, ... Each still comes once and 31 comes last, "
        "and only the last one is ever looked at"
    ),
    "softmax_unit: const0 $sub$softmax_unit.sv:117 B[3]": (
        "bit 3 of the constant 1, which is 0 as it is"
    ),
}

_UNITS: Final = "tests/rtl/test_units.py"
_ARITHMETIC: Final = "tests/rtl/test_arithmetic.py"


@dataclass(frozen=True, slots=True)
class Block:
    """A module that is mutated."""

    module: str
    count: int
    """Mutations that are taken."""
    checks: tuple[str, ...]
    flattened: tuple[str, ...] = ()
    """Modules that become part of it."""
    parameters: tuple[str, ...] = ()
    """Its parameters in the checks, `NAME VALUE`."""


BLOCKS: Final = (
    Block("requantizer", 20, (f"{_UNITS}::test_requantizer",), flattened=("saturate",)),
    Block("divider", 15, (f"{_UNITS}::test_divider",)),
    Block("pe", 15, (f"{_ARITHMETIC}::test_strides_of_tiles",
                     f"{_ARITHMETIC}::test_every_tile_shape",
                     f"{_ARITHMETIC}::test_sums_of_4096_extreme_products")),
    Block("softmax_unit", 10, (f"{_ARITHMETIC}::test_softmax_rows",
                               f"{_ARITHMETIC}::test_softmax_of_a_long_row_of_equal_scores"),
          parameters=("ADDRESS_BITS 13",)),
)  # fmt: skip


def generated_group(checkout: Path, blocks: Sequence[Block] = BLOCKS) -> Group:
    """The generated mutants of the blocks; MutantError without Yosys."""
    if shutil.which("yosys") is None:
        raise MutantError("yosys is not on the path, expected it for generated mutants")
    mutants = [mutant for block in blocks for mutant in _mutants(checkout / "rtl", block)]
    return Group("rtl-generated", tuple(mutants), (_UNITS, _ARITHMETIC), ICARUS_ONLY)


def _mutants(rtl: Path, block: Block) -> list[Mutant]:
    with TemporaryDirectory(prefix="mutants-yosys-") as name:
        directory = Path(name)
        for module in ("ga2_pkg", *block.flattened, block.module):
            shutil.copy(rtl / f"{module}.sv", directory)
        prepare = _prepare(block)
        _yosys(
            [*prepare, f"mutate -list {block.count} -seed {SEED} -o list {block.module}"], directory
        )
        commands = (directory / "list").read_text().splitlines()
        script = [*prepare, "design -save healthy"]
        for index, command in enumerate(commands):
            script += ["design -load healthy", command, f"write_verilog -noattr {index}.v"]
        _yosys(script, directory)
        return [
            Mutant(
                f"{block.module} {index}: {_shown(command)}", f"rtl/{block.module}.sv", None,
                _with_parameters((directory / f"{index}.v").read_text(), block),
                command, block.checks, _EQUIVALENT.get(f"{block.module}: {_shown(command)}", ""),
            )
            for index, command in enumerate(commands)
        ]  # fmt: skip


def _prepare(block: Block) -> list[str]:
    files = " ".join(f"{module}.sv" for module in ("ga2_pkg", *block.flattened, block.module))
    parameters = " ".join(f"-chparam {parameter}" for parameter in block.parameters)
    return [
        f"read_verilog -sv {files}",
        f"hierarchy -top {block.module} {parameters}",
        "proc",
        "flatten",
        "opt -fast",
    ]


def _yosys(script: Sequence[str], directory: Path) -> None:
    (directory / "run.ys").write_text("\n".join(script) + "\n")
    command = ["yosys", "-q", "run.ys"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise MutantError(f"yosys ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def _shown(command: str) -> str:
    """A mutation in a few words: mode, kind of cell, port and bit."""
    words = command.split()
    options: Mapping[str, str] = dict(zip(words[1::2], words[2::2], strict=False))
    cell = options["-cell"].rsplit("$", 1)[0]
    return f"{options['-mode']} {cell} {options['-port']}[{options['-portbit']}]"


def _with_parameters(netlist: str, block: Block) -> str:
    """The netlist with the block's parameters, so that its instances can give them."""
    if not block.parameters:
        return netlist
    names = ", ".join("parameter " + p.replace(" ", " = ") for p in block.parameters)
    head = f"module {block.module}("
    assert netlist.count(head) == 1
    return netlist.replace(head, f"module {block.module} #({names}) (")
