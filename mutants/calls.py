"""Mutants without one call of a checker: a check that nothing makes is no check.

Tests of a checker call it themselves, so they pass when nothing else does. Every call is a mutant,
made from the sources: a statement that calls a checker is left out, and a check that a kind of
record is made of accepts everything. The tests of the file that calls must notice, or those that
CHECKS names for it.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from mutants.mutant import Group, Mutant, MutantError

CHECKER: Final = re.compile(r"_*(check|expect|refuse|require|exit_unless)(_\w+)?")
"""What a checker is called: a statement that calls one exists for what the checker raises."""

COMPARISONS: Final = (
    ("certify/certificate.py", "check_instructions", "None"),
    ("cosim/verify.py", "difference", "None"),
)
"""Checkers that say what they found: file, function, and what says "nothing wrong"."""

RECORD_KINDS: Final = "report/kinds.py"

_CLI: Final = "tests/test_cli.py"
_TARGETS: Final = ("tests/lm/test_target.py", "tests/spec_decode/test_decode.py", _CLI)
CHECKS: Final[Mapping[str, tuple[str, ...]]] = {
    "cli/bench.py": ("tests/lab/test_bench.py",),
    "cli/certify.py": (_CLI,),
    "cli/decode.py": ("tests/lab/test_commands.py", _CLI),
    "cli/experiments.py": ("tests/lab/test_commands.py",),
    "cli/lab.py": ("tests/lab/test_commands.py",),
    "cli/models.py": (_CLI,),
    "cli/plan.py": ("tests/lab/test_commands.py", _CLI),
    "cli/report.py": ("tests/report/test_report_command.py",),
    "cli/sweep.py": ("tests/lab/test_sweep_command.py",),
    "cosim/random_programs.py": ("tests/rtl/test_replay.py",),
    "cosim/verify.py": ("tests/cosim/test_verify.py", "tests/rtl/test_cli_rtl.py"),
    "ir/graph.py": ("tests/ir/test_graph.py", "tests/ir/test_refusals.py"),
    "ir/interpreter.py": ("tests/ir/test_interpreter.py", "tests/ir/test_refusals.py"),
    "lab/planner.py": ("tests/lab/test_planner.py", "tests/lab/test_commands.py"),
    "lab/sweep/cell.py": ("tests/lab/test_sweep_cell.py", "tests/lab/test_sweep_command.py"),
    "lab/sweep/cluster.py": ("tests/lab/test_sweep_ray.py",),
    "lab/sweep/database.py": ("tests/lab/test_sweep_database.py",
                              "tests/lab/test_sweep_command.py"),
    "lab/sweep/spec.py": ("tests/lab/test_sweep_spec.py",),
    "lm/model.py": ("tests/lm/test_model.py", _CLI),
    "lm/prompts.py": (_CLI,),
    "report/kinds.py": ("tests/report/test_records.py",),
    "spec_decode/comparison.py": ("tests/spec_decode/test_comparison.py", _CLI),
    "spec_decode/drafts.py": (_CLI,),
}  # fmt: skip
"""Tests that must notice, by the file that calls, where they are not its own test file."""

EQUIVALENT: Final[Mapping[str, str]] = {}
"""Calls without which no run differs, and why."""

CI: Final = ("compiler/pipeline.py",)
"""Files whose calls CI leaves out, one after the other."""


def calls_group(checkout: Path) -> Group:
    """A mutant for each call of a checker in a checkout. MutantError for one without tests."""
    sources = checkout / "src/capra"
    mutants: list[Mutant] = []
    for path in sorted(sources.rglob("*.py")):
        file = path.relative_to(sources).as_posix()
        source = path.read_text()
        seen = Counter[str]()
        for where, call, replaced in _changes(file, source):
            seen[f"{where} {call}"] += 1
            number = seen[f"{where} {call}"]
            name = f"{file} {where}: {call}" + (f" {number}" if number > 1 else "")
            mutants.append(Mutant(
                f"{name} left out", f"src/capra/{file}", None, replaced, "nothing makes the check",
                _checks(checkout, file), EQUIVALENT.get(name, ""), file in CI,
            ))  # fmt: skip
    return Group("calls", tuple(mutants), ())


def _checks(checkout: Path, file: str) -> tuple[str, ...]:
    path = Path(file)
    own = f"tests/{(path.parent / f'test_{path.name}').as_posix()}"
    checks = CHECKS.get(file, (own,))
    missing = [check for check in checks if not (checkout / check).exists()]
    if missing:
        raise MutantError(f"{missing[0]} does not exist, expected the tests of what {file} checks")
    return checks


def _changes(file: str, source: str) -> Iterator[tuple[str, str, str]]:
    """The function, the checker, and the source without the call, for each call of a file."""
    comparisons = {name: value for where, name, value in COMPARISONS if where == file}
    for where, node in _nodes(ast.parse(source), ""):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            name = _called(node.value)
            if CHECKER.fullmatch(name):
                yield where, name, _without(source, node, "pass")
        elif isinstance(node, ast.Call) and _called(node) in comparisons:
            yield where, _called(node), _without(source, node, comparisons[_called(node)])
        elif file == RECORD_KINDS and isinstance(node, ast.Call) and _called(node) == "object_with":
            for check in node.args:
                accepts_all = "(lambda _where, _value: None)"
                yield where, ast.unparse(check), _without(source, check, accepts_all)


def _nodes(tree: ast.AST, where: str) -> Iterator[tuple[str, ast.AST]]:
    """All nodes in the order of the source, with the function or the module that they are in."""
    for node in ast.iter_child_nodes(tree):
        inner = where
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            inner = f"{where}.{node.name}" if where else node.name
        yield inner, node
        yield from _nodes(node, inner)


def _called(call: ast.Call) -> str:
    """The last name of what is called."""
    match call.func:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _without(source: str, node: ast.stmt | ast.expr, instead: str) -> str:
    """The source with something else in the place of a node; columns are those of UTF-8."""
    lines = source.encode().splitlines(keepends=True)
    assert node.end_lineno is not None and node.end_col_offset is not None
    first, last = node.lineno - 1, node.end_lineno - 1
    head, tail = lines[first][: node.col_offset], lines[last][node.end_col_offset :]
    changed = [*lines[:first], head + instead.encode() + tail, *lines[last + 1 :]]
    return b"".join(changed).decode()
