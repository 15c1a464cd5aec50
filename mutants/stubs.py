"""Stubs: a part that does nothing. Every test file that claims to cover the part must fail.

    python -m mutants.stubs [--ci] [--json]

CLAIMS is the one place where a claim is made. A mutant asks whether a small fault is noticed by
anything; a stub asks whether each file that says it tests a part looks at that part at all.

A stub of an RTL module has the module's own header and all outputs 0. A stub of a compiler pass
returns an empty result of the right type; of a checker, "nothing wrong"; of the loop, no tokens,
or plain decoding. Exits with 1 when a file of a claim has no failing test, and when a claim fails
without any stub or cannot run.
"""

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Column, Table

from mutants.mutant import MutantError
from mutants.rtl import ICARUS_ONLY
from mutants.runner import WORKERS, Copy, copies_of, expect_to_run


@dataclass(frozen=True, slots=True)
class Stub:
    """What takes the place of one part: the whole text of its file, made from the old one."""

    file: str
    text: Callable[[str], str]


def rtl_stub(source: str, kept: str = "") -> str:
    """A module with the header of `source` and all outputs 0; `kept` goes into its body.

    The header is read as the RTL writes it: ports one a line, each with its direction. Raises
    MutantError for a source without a module or without an output.
    """
    header = re.search(r"^module\b.*?^\);$", source, flags=re.MULTILINE | re.DOTALL)
    outputs = re.findall(r"^\s*output\b.*?(\w+),?$", header[0], re.MULTILINE) if header else []
    if header is None or not outputs:
        raise MutantError(
            "the source has no module with outputs, expected one with one port a line"
        )
    ties = "".join(f"  assign {name} = '0;\n" for name in outputs)
    return f"`default_nettype none\n{header[0]}\n\n{kept}{ties}\nendmodule\n`default_nettype wire\n"


def module_stub(name: str) -> Stub:
    """The stub of an RTL module, with the memory that the bench fills and reads, if it has it."""
    return Stub(f"rtl/{name}.sv", lambda source: rtl_stub(source, _MEMORIES.get(name, "")))


_MEMORIES: Final = {
    "ga2": "  ram #(.WIDTH(32), .DEPTH(SCRATCHPAD_WORDS)) u_scratchpad ();\n",
    "ram": "  logic [WIDTH-1:0] mem [0:DEPTH-1];\n",
}


def _python(file: str, definitions: str) -> Stub:
    """A Python file whose functions are defined again behind it; importers get these."""
    return Stub(f"src/capra/{file}", lambda source: f"{source}\n\n{definitions}\n")


def _accepts(file: str, function: str, value: str = "None") -> Stub:
    return _python(file, f"def {function}(*_args, **_options):\n    return {value}")


_NO_PROGRAM: Final = """\
def emit_program(graph, _scales, _places, _ops, _buffers, chip):
    return Program(graph.name, chip, (instruction("HALT"),))"""

_NO_TOKENS: Final = """\
def decode(_target, prompt, _max_new_tokens, **_options):
    return Decoded(tuple(prompt), (), "length", (), (), 0)"""

_PLAIN_ONLY: Final = """\
_whole_loop = decode


def decode(target, prompt, max_new_tokens, *, proposer=None, num_speculative_tokens=0, **options):
    return _whole_loop(target, prompt, max_new_tokens, **options)"""

_ARITHMETIC: Final = "tests/rtl/test_arithmetic.py"
_UNITS: Final = "tests/rtl/test_units.py"
_RANDOM: Final = "tests/rtl/test_replay.py::test_latency_is_paid_once_a_load[icarus-7]"
_MM: Final = f"{_ARITHMETIC}::test_strides_of_tiles"
_RQ: Final = f"{_ARITHMETIC}::test_requantizer_over_a_rectangle"
_SM: Final = f"{_ARITHMETIC}::test_every_entry_of_the_exponential_table"
_VADD: Final = f"{_ARITHMETIC}::test_sums_of_extreme_bytes_saturate"
_AMAX: Final = f"{_ARITHMETIC}::test_argmax_ties_at_every_position"
_LD: Final = f"{_ARITHMETIC}::test_dma_at_both_ends_of_both_memories"
_HALT: Final = f"{_ARITHMETIC}::test_a_program_of_nothing_but_halt"

_WHOLE_COMPILER: Final = (
    "tests/compiler/test_pipeline.py",
    "tests/compiler/test_printer.py",
    "tests/compiler/test_random_graphs.py::test_program_interpreter_and_float_agree[graph0-]",
    "tests/golden/test_recorded_programs.py",
    "tests/test_tiny.py",
)
"""Files that look at finished programs, and hence at every pass."""

_LOOP: Final = (
    "tests/spec_decode/test_decode.py",
    "tests/lab/test_experiments.py",
    "tests/system/test_exactness.py::test_every_number_of_accepted_guesses[3]",
    "tests/system/test_recorded_results.py::test_the_seven_runs_of_the_table",
    "tests/test_tiny.py",
)

CLAIMS: Final[Mapping[str, tuple[Stub, tuple[str, ...]]]] = {
    "ga2": (module_stub("ga2"), (_HALT, _RANDOM)),
    "sequencer": (module_stub("sequencer"), (_HALT, _RANDOM)),
    "counters": (module_stub("counters"), (_HALT, _RANDOM)),
    "ram": (module_stub("ram"), (_LD, _RANDOM)),
    "dma": (module_stub("dma"), (_LD, _RANDOM)),
    "matrix_unit": (module_stub("matrix_unit"), (_MM, _RANDOM)),
    "operand_memory": (module_stub("operand_memory"), (_MM, _RANDOM)),
    "array": (module_stub("array"), (_MM, _RANDOM)),
    "pe": (module_stub("pe"), (_MM, _RANDOM)),
    "delay": (module_stub("delay"), (_MM, _RANDOM)),
    "walker": (module_stub("walker"), (_RQ, _RANDOM)),
    "vector_unit": (module_stub("vector_unit"), (_AMAX, _RANDOM)),
    "requantize_unit": (module_stub("requantize_unit"), (_RQ, _RANDOM)),
    "requantizer": (module_stub("requantizer"), (f"{_UNITS}::test_requantizer", _RQ, _RANDOM)),
    "saturate": (module_stub("saturate"), (f"{_UNITS}::test_saturate", _VADD, _RANDOM)),
    "add_unit": (module_stub("add_unit"), (_VADD, _RANDOM)),
    "softmax_unit": (module_stub("softmax_unit"), (_SM, _RANDOM)),
    "exp_table": (
        module_stub("exp_table"),
        (f"{_UNITS}::test_every_entry_of_the_exponential_table", _SM, _RANDOM),
    ),
    "divider": (module_stub("divider"), (f"{_UNITS}::test_divider", _SM, _RANDOM)),
    "argmax_unit": (module_stub("argmax_unit"), (_AMAX, _RANDOM)),
    "scales": (
        _accepts("compiler/passes/scales.py", "assign_scales", "Scales({}, {}, {}, {})"),
        (
            "tests/compiler/test_scales.py",
            "tests/certify/test_certificate.py::test_the_digest_is_of_the_functions",
            *_WHOLE_COMPILER,
        ),
    ),
    "views": (
        _accepts("compiler/passes/views.py", "place_tensors", "{}"),
        ("tests/compiler/test_views.py", *_WHOLE_COMPILER),
    ),
    "tile": (
        _accepts("compiler/passes/tile.py", "tile_operations", "()"),
        ("tests/compiler/test_tile.py", *_WHOLE_COMPILER),
    ),
    "masks": (
        _accepts("compiler/passes/masks.py", "softmax_operations", "()"),
        ("tests/compiler/test_attention.py", *_WHOLE_COMPILER),
    ),
    "transfers": (
        _python(
            "compiler/passes/transfers.py",
            "def join_transfers(_graph, places, ops):\n    return places, ops",
        ),
        ("tests/compiler/test_transfers.py", "tests/compiler/test_optimization.py"),
    ),
    "buffers": (
        _accepts("compiler/passes/buffers.py", "allocate_buffers", "{}"),
        ("tests/compiler/test_buffers.py", *_WHOLE_COMPILER),
    ),
    "emit": (
        _python("compiler/passes/emit.py", _NO_PROGRAM),
        ("tests/compiler/test_emit.py", *_WHOLE_COMPILER),
    ),
    "overlap of buffers": (
        _accepts("compiler/overlap.py", "check_buffers"),
        ("tests/compiler/test_overlap.py",),
    ),
    "overlap of tensors": (
        _accepts("compiler/overlap.py", "check_program"),
        ("tests/compiler/test_overlap.py",),
    ),
    "certificate": (
        _accepts("certify/certificate.py", "certify", "Certificate()"),
        (
            "tests/certify/test_certificate.py::test_one_wrong_operation_is_named",
            "tests/certify/test_certificate.py::test_one_wrong_scale_is_named",
            "tests/test_cli.py::test_certify_refuses_verifiers_with_scales_of_their_own",
        ),
    ),
    "certificate of instructions": (
        _accepts("certify/instructions.py", "check_instructions"),
        (
            "tests/certify/test_instructions.py",
            "tests/certify/test_certificate.py::test_a_program_that_is_not_its_graph_is_a_failure",
        ),
    ),
    "comparison with the RTL": (
        _accepts("cosim/compare.py", "difference"),
        ("tests/cosim/test_compare.py", "tests/cosim/test_verify.py"),
    ),
    "loop without tokens": (_python("spec_decode/decode.py", _NO_TOKENS), _LOOP),
    "loop without speculation": (_python("spec_decode/decode.py", _PLAIN_ONLY), _LOOP),
}
"""What takes the place of each part, and the tests that claim to cover it."""

QUICK: Final = ("pe", "requantizer", "views", "overlap of tensors", "loop without speculation")
"""What CI runs."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the tests of one part's claim did with its stub."""

    part: str
    failed: Mapping[str, int]
    """Failing tests by file, 0 included."""
    passed: int
    seconds: float
    broken: str = ""
    """Why the claim could not run."""

    def faults(self) -> Iterator[str]:
        """A sentence for each reason to fail the run."""
        if self.broken:
            yield f"{self.part}: {self.broken}"
            return
        for file, count in self.failed.items():
            if not count:
                yield f"{file} claims to cover {self.part} and passes with a stub of it"


def files_of(checks: Sequence[str]) -> list[str]:
    """The files of node ids, each once."""
    return list(dict.fromkeys(check.split("::")[0] for check in checks))


def judge(part: str, stub: Stub, checks: Sequence[str], checkout: Path, copy: Copy) -> Outcome:
    """Run a claim in a copy of a checkout with the stub in it."""
    begin = time.perf_counter()
    none = dict.fromkeys(files_of(checks), 0)
    try:
        text = stub.text((checkout / stub.file).read_text())
        with copy.mutated(stub.file, text):
            done = copy.pytest(["-rfEp", "-k", ICARUS_ONLY, *checks])
        expect_to_run(done)
    except MutantError as error:
        return Outcome(part, none, 0, round(time.perf_counter() - begin, 1), str(error))
    lines = re.findall(r"^(FAILED|ERROR|PASSED) ([^:\n]+)::", done.stdout, flags=re.MULTILINE)
    failed = Counter(file for verdict, file in lines if verdict != "PASSED")
    passed = sum(verdict == "PASSED" for verdict, _ in lines)
    seconds = round(time.perf_counter() - begin, 1)
    return Outcome(part, none | dict(failed), passed, seconds)


def run_stubs(
    claims: Mapping[str, tuple[Stub, tuple[str, ...]]],
    checkout: Path,
    on_outcome: Callable[[Outcome], None] = lambda _outcome: None,
) -> list[Outcome]:
    """The outcome of every part, two at a time.

    Raises MutantError when a claim fails without any stub: then a failure means nothing.
    """
    with copies_of(checkout) as copies, ThreadPoolExecutor(WORKERS) as pool:

        def expect_healthy(checks: Sequence[str]) -> None:
            with copies.one() as copy:
                failed = copy.run(checks, ICARUS_ONLY, healthy=True).failed
            if failed is not None:
                raise MutantError(f"{failed} fails without any stub, expected it to pass")

        def one(part: str) -> Outcome:
            with copies.one() as copy:
                outcome = judge(part, *claims[part], checkout, copy)
            on_outcome(outcome)
            return outcome

        checks = sorted({check for _, claim in claims.values() for check in claim})
        list(pool.map(expect_healthy, (
            [check for check in checks if files_of([check]) == [file]] for file in files_of(checks)
        )))  # fmt: skip
        return list(pool.map(one, claims))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m mutants.stubs", description=__doc__)
    parser.add_argument("--ci", action="store_true", help="only the fixed quick selection")
    parser.add_argument("--json", action="store_true", help="print the record, not a table")
    arguments = parser.parse_args()
    talk, begin = Console(stderr=True), time.perf_counter()
    claims = {part: CLAIMS[part] for part in QUICK} if arguments.ci else CLAIMS

    def say(outcome: Outcome) -> None:
        counts = f"{sum(outcome.failed.values())} fail, {outcome.passed} pass"
        talk.print(f"{outcome.seconds:5.1f} s  {outcome.part}: {counts}", highlight=False)

    try:
        outcomes = run_stubs(claims, Path.cwd(), say)
    except MutantError as error:
        talk.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        return 1
    spent = round(time.perf_counter() - begin, 1)
    faults = [sentence for outcome in outcomes for sentence in outcome.faults()]
    if arguments.json:
        print(json.dumps({"stubs": list(map(asdict, outcomes)), "seconds": spent}, indent=2))
    else:
        table = Table("part", Column("file", overflow="fold"), "tests that fail", "s")
        for outcome in outcomes:
            for file, count in outcome.failed.items():
                table.add_row(outcome.part, file, str(count), f"{outcome.seconds:.1f}")
        Console().print(table)
        print(f"{len(outcomes)} stubs, {len(faults)} faults, {spent} s")
    for sentence in faults:
        talk.print(f"error: {sentence}", markup=False, highlight=False, soft_wrap=True)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
