"""The suite itself: every test checks something.

A test checks something when it holds an assertion, `pytest.raises` or `pytest.warns`, a call of
`np.testing`, or a call of a function of tests/ that does, however far away. Python's own syntax
tree decides; nothing is imported.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.selection import left_out

TESTS = Path(__file__).parent


@dataclass
class Module:
    """One file: its functions by name, methods included, and what it imports from tests/."""

    path: Path
    functions: dict[str, ast.FunctionDef]
    imported: dict[str, tuple[Path, str]] = field(default_factory=dict)


def read(path: Path, root: Path) -> Module:
    tree = ast.parse(path.read_text())
    nodes = list(ast.walk(tree))
    module = Module(path, {f.name: f for f in nodes if isinstance(f, ast.FunctionDef)})
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{root.name}."):
            source = root.parent / Path(*(node.module or "").split(".")).with_suffix(".py")
            for alias in node.names:
                module.imported[alias.asname or alias.name] = (source, alias.name)
    return module


def is_check(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return True
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return called in ("pytest.raises", "pytest.warns") or called.startswith("np.testing.")


class Suite:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules = {path: read(path, root) for path in sorted(root.rglob("*.py"))}

    def unchecked(self) -> Iterator[str]:
        """path::name of each test without a check."""
        for path, module in self.modules.items():
            if path.name.startswith("test_"):
                for name, function in module.functions.items():
                    if name.startswith("test_") and not self.checks(module, function, set()):
                        yield f"{path.relative_to(self.root)}::{name}"

    def checks(self, module: Module, function: ast.FunctionDef, seen: set[int]) -> bool:
        """Whether a function, or one that it calls, checks something."""
        if id(function) in seen:
            return False
        seen.add(id(function))
        nodes = list(ast.walk(function))
        if any(map(is_check, nodes)):
            return True
        calls = [node.func for node in nodes if isinstance(node, ast.Call)]
        names = {f.id for f in calls if isinstance(f, ast.Name)}
        names |= {f.attr for f in calls if isinstance(f, ast.Attribute)} & set(module.functions)
        return any(
            self.checks(where, found, seen)
            for name in names
            for where, found in self.resolve(module, name)
        )

    def resolve(self, module: Module, name: str) -> Iterator[tuple[Module, ast.FunctionDef]]:
        """The function that a name in a file means: its own, an imported one, or a fixture."""
        places = [(module.path, name)]
        if name in module.imported:
            places.append(module.imported[name])
        folders = [f for f in module.path.parents if f == self.root or self.root in f.parents]
        places += [(folder / "conftest.py", name) for folder in folders]
        for path, original in places:
            found = self.modules.get(path)
            if found is not None and original in found.functions:
                yield found, found.functions[original]


def test_a_sample_is_spread_evenly_and_begins_with_the_first() -> None:
    assert left_out(7, 3) == {1, 3, 5, 6}
    assert left_out(100, 1) == set(range(1, 100))
    assert left_out(3, 3) == left_out(2, 3) == left_out(1, 3) == set()


def test_no_file_is_full_as_a_whole() -> None:
    """Each battery has a part in `make test`."""
    for path, module in Suite(TESTS).modules.items():
        tests = [f for name, f in module.functions.items() if name.startswith("test_")]
        full = [f for f in tests if "pytest.mark.full" in map(ast.unparse, f.decorator_list)]
        assert not tests or len(full) < len(tests), path


def test_every_test_checks_something() -> None:
    assert list(Suite(TESTS).unchecked()) == []


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of tests that check something in every way there is."""
    root = tmp_path / "tests"
    (root / "part").mkdir(parents=True)
    (root / "helpers.py").write_text(
        "def outer(x):\n    inner(x)\n\n\ndef inner(x):\n    assert x\n\n\ndef idle(x):\n    pass\n"
    )
    (root / "conftest.py").write_text(
        "def check():\n    def compare(x):\n        assert x\n    return compare\n"
    )
    (root / "part/test_part.py").write_text("""\
import numpy as np
import pytest
from tests.helpers import idle, outer as far

def test_assert():
    assert 1

def test_raises():
    with pytest.raises(ValueError):
        int("x")

def test_numpy():
    np.testing.assert_array_equal(1, 1)

def test_helper():
    far(1)

def test_fixture(check):
    check(1)

@given(st.text())
def test_any_text(text):
    parses(text)

def parses(text):
    assert text
""")
    return root


def test_every_way_to_check_counts(suite: Path) -> None:
    assert list(Suite(suite).unchecked()) == []


@pytest.mark.parametrize(
    "body",
    ["pass", "print(1 == 1)", "idle(1)", "again()", "unknown(1)", "np.array(1)", "x = far"],
)
def test_a_test_that_checks_nothing_is_named(suite: Path, body: str) -> None:
    path = suite / "part/test_part.py"
    path.write_text(
        f"{path.read_text()}\ndef again():\n    again()\n\ndef test_empty():\n    {body}\n"
    )
    assert list(Suite(suite).unchecked()) == ["part/test_part.py::test_empty"]
