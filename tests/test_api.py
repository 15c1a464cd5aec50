"""The public names: what `from capra import ...` promises."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import capra


def test_the_list_of_names_is_sorted_and_complete() -> None:
    assert list(capra.__all__) == sorted(set(capra.__all__))
    assert dir(capra) == list(capra.__all__)


@pytest.mark.parametrize("name", capra.__all__)
def test_every_name_can_be_imported(name: str) -> None:
    thing = getattr(capra, name)
    assert thing is not None
    if name != "__version__":
        assert thing.__doc__


def test_type_checkers_see_the_objects_that_users_get() -> None:
    source = Path(str(capra.__file__)).read_text()
    (block,) = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    seen: dict[str, object] = {}
    for statement in block.body:
        assert isinstance(statement, ast.ImportFrom) and statement.module
        module = importlib.import_module(statement.module)
        for alias in statement.names:
            assert alias.asname == alias.name, "mypy exports only names that are imported as such"
            seen[alias.name] = getattr(module, alias.name)
    assert sorted([*seen, "__version__"]) == list(capra.__all__)
    for name, thing in seen.items():
        assert getattr(capra, name) is thing


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'capra' has no attribute 'nothing'"):
        capra.nothing  # noqa: B018
    with pytest.raises(ImportError):
        exec("from capra import nothing")  # noqa: S102


def test_importing_capra_loads_nothing_heavy() -> None:
    code = (
        "import sys, capra; print(sorted({'numpy', 'rich', 'typer', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
