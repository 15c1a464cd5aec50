"""`python -m mutants.general [MODULE ...] [--json]`: mutants of Python modules by cosmic-ray.

Every operator of the tool at every place of a module, not a sample. Nobody chose these faults. A
survivor needs an argument in `mutants/explained.py`, by the line before and after; one without
fails the run, and so does an argument whose mutant is caught.

Left out, since no test of what a program does can tell: what differs in annotations or type aliases
only, the bodies of protocols, `frozen` and `slots` of dataclasses (assigning to such a field is an
error for mypy), and other comparisons than `is not` for `is` and the reverse (None and members of
enumerations equal only themselves, and their order means nothing). What cannot be imported is
counted, and proves nothing.
"""

import argparse
import ast
import json
import re
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from itertools import repeat
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from mutants.explained import EXPLAINED
from mutants.mutant import Group, Mutant, MutantError, Result, faults, totals
from mutants.runner import WORKERS, run_groups

PROCESSOR_SECONDS: Final = 30
"""What all checks of a mutant may take. Those of a healthy module may take half as much."""

_WHOLE_COMPILER: Final = (
    "tests/compiler/test_pipeline.py", "tests/compiler/test_refusals.py",
    "tests/golden/test_recorded_programs.py",
    "tests/compiler/test_optimization.py::test_no_pass_makes_a_program_dearer",
    "tests/compiler/test_optimization.py::test_optimized_blocks_leave_the_rows_of_recorded_steps",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Module:
    """A module that is mutated, the tests of it that run first, and those that run behind them."""

    file: str
    checks: tuple[str, ...]
    full: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name on the command line."""
        return Path(self.file).stem


def _of_compiler(file: str, *tests: str) -> Module:
    checks = tuple(f"tests/compiler/{test}" for test in tests)
    return Module(f"src/capra/compiler/{file}", checks, _WHOLE_COMPILER)


MODULES: Final = (
    Module("src/capra/numerics.py", ("tests/test_numerics.py",), ("tests/sim/test_execute.py",)),
    _of_compiler("passes/scales.py", "test_scales.py"),
    _of_compiler("passes/views.py", "test_views.py"),
    _of_compiler("passes/tile.py", "test_tile.py", "test_attention.py"),
    _of_compiler("passes/masks.py", "test_attention.py", "test_tile.py"),
    Module(
        "src/capra/ir/visible.py",
        ("tests/ir/test_visible.py",),
        ("tests/ir/test_attention.py",),
    ),
    _of_compiler("passes/transfers.py", "test_transfers.py"),
    _of_compiler("passes/buffers.py", "test_buffers.py"),
    _of_compiler("passes/emit.py", "test_emit.py"),
    _of_compiler("ops.py", "test_tile.py"),
    _of_compiler("overlap.py", "test_overlap.py"),
    _of_compiler(
        "optimization.py",
        "test_optimization.py::test_levels_and_lists_of_names",
        "test_optimization.py::test_anything_else_is_refused",
    ),
    _of_compiler("bounds.py", "test_bounds.py"),
    Module(
        "src/capra/spec_decode/decode.py",
        ("tests/spec_decode/test_decode.py",),
        (
            "tests/spec_decode/test_metrics.py",
            "tests/spec_decode/test_proposers.py",
            "tests/spec_decode/test_certificate.py::"
            "test_every_draft_and_k_gives_the_digests_of_the_plain_run[structured]",
        ),
    ),
)

_LEFT_OUT: Final = re.compile(r"NoOp|Variable|_Is_(?!IsNot)|_IsNot_(?!Is$)")
"""Operators that do nothing, that want names of variables, or whose faults mean nothing."""


def group_of(module: Module, checkout: Path) -> Group:
    """The mutants of a module; MutantError without cosmic-ray, and for an argument of no mutant."""
    source = (checkout / module.file).read_text()
    arguments = EXPLAINED.get(module.file, {})
    unused = dict(arguments)
    mutants = []
    for operator, text in _mutations(source):
        line, before, after = changed_lines(source, text)
        unused.pop((before, after), None)
        mutants.append(
            Mutant(
                f"{module.name}:{line} {operator}: {before} -> {after}", module.file, None, text,
                operator, module.checks, arguments.get((before, after), ""),
            )
        )  # fmt: skip
    for before, after in unused:
        raise MutantError(f"{module.file}: an argument for {before} -> {after}, which is no mutant")
    return Group(module.name, tuple(mutants), module.full, processor_seconds=PROCESSOR_SECONDS)


def _mutations(source: str) -> Iterator[tuple[str, str]]:
    """Operators and what they make of a source, each different program once."""
    try:
        from cosmic_ray.ast import ast_nodes, get_ast
        from cosmic_ray.mutating import mutate_code
        from cosmic_ray.plugins import get_operator, operator_names
    except ImportError as error:
        raise MutantError(f"{error.name} is missing, expected the extra `mutation`") from None
    nodes, seen = list(ast_nodes(get_ast(source))), {behaviour(source)}
    for name in operator_names():
        if _LEFT_OUT.search(name):
            continue
        operator = get_operator(name)()
        places = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        for place in range(places):
            text = mutate_code(source, operator, place)
            try:
                program = behaviour(text)
            except SyntaxError:
                continue
            if program not in seen:
                seen.add(program)
                yield name.removeprefix("core/"), text


def changed_lines(source: str, text: str) -> tuple[int, str, str]:
    """Number of the first line that two texts do not share, and both texts from there on up to
    where they are the same again, as one line each."""
    before, after = source.splitlines(), text.splitlines()
    shared = min(len(before), len(after))
    first = next((i for i in range(shared) if before[i] != after[i]), shared)
    rest = shared - first
    last = next((i for i in range(rest) if before[-1 - i] != after[-1 - i]), rest)

    def one_line(lines: list[str]) -> str:
        return " ".join(" ".join(lines[first : len(lines) - last]).split())

    return first + 1, one_line(before), one_line(after)


class _Behaviour(ast.NodeTransformer):
    """Takes out of a module what only readers and the type checker look at."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases):
            node.body = []
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id == "dataclass":
            node.keywords = [k for k in node.keywords if k.arg not in ("frozen", "slots")]
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if isinstance(node.value, ast.BinOp) and all(map(_in_an_alias, ast.walk(node.value))):
            node.value = ast.Constant(None)
        return self.generic_visit(node)


def _in_an_alias(node: ast.AST) -> bool:
    """Whether this may be part of a type alias: operators between names of classes."""
    if isinstance(node, ast.Name):
        return node.id[0].isupper() and not node.id.isupper()
    return isinstance(node, ast.BinOp | ast.operator | ast.Load)


def behaviour(source: str) -> str:
    """What a module does: its syntax tree without annotations and without what mypy holds."""
    return ast.dump(_Behaviour().visit(ast.parse(source)))


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m mutants.general", description=__doc__)
    names = [module.name for module in MODULES]
    parser.add_argument("module", nargs="*", choices=[*names, []], help="all of them if none")
    parser.add_argument("--json", action="store_true", help="print the record, not a table")
    arguments = parser.parse_args()
    checkout, talk = Path.cwd(), Console(stderr=True)
    chosen = [module for module in MODULES if module.name in (arguments.module or names)]

    def on_result(result: Result) -> None:
        if result.outcome not in ("caught", "broken"):
            talk.print(f"{result.outcome}: {result.name}", markup=False, soft_wrap=True)

    begin = time.perf_counter()
    results: dict[str, list[Result]] = {}
    try:
        with ProcessPoolExecutor(WORKERS) as pool:
            groups = list(pool.map(group_of, chosen, repeat(checkout)))
        for group, found, seconds in run_groups(groups, checkout, on_result):
            talk.print(f"{group.name}: {len(found)} mutants in {seconds:.0f} s")
            results[group.name] = found
    except MutantError as error:
        talk.print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
        return 1
    everything = [result for found in results.values() for result in found]
    if arguments.json:
        print(json.dumps(_record(results, time.perf_counter() - begin), indent=2))
    else:
        _print(results, everything)
    wrong = list(faults([result for result in everything if result.outcome != "broken"]))
    for sentence in wrong:
        talk.print(f"error: {sentence}", markup=False, highlight=False, soft_wrap=True)
    return 1 if wrong else 0


def _record(results: Mapping[str, list[Result]], seconds: float) -> dict[str, object]:
    everything = [result for found in results.values() for result in found]
    return {
        "modules": {name: totals(found) for name, found in results.items()},
        "totals": {**totals(everything), "seconds": round(seconds, 1)},
        "not_caught": [asdict(result) for result in everything if result.outcome != "caught"],
    }


def _print(results: Mapping[str, list[Result]], everything: list[Result]) -> None:
    columns = ("mutants", "caught", "equivalent", "survived", "broken", "score")
    table = Table("module", *columns)
    for name, found in {**results, "all": everything}.items():
        counts = totals(found)
        table.add_row(name, *(f"{counts[column]:.4g}" for column in columns))
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
