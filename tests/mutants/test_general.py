"""Mutants of the general tool: what is left out, how they are named, and their arguments."""

import pytest
from mutants.explained import EXPLAINED
from mutants.general import MODULES, behaviour, changed_lines, group_of
from mutants.mutant import MutantError

from capra.cosim.toolchain import CHECKOUT


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(x: int | None) -> int | str: ...", "def f(x: int & None) -> int ^ str: ..."),
        ("x: int | None = 1", "x: int + None = 1"),
        ("Op = Load | Store", "Op = Load - Store"),
        ("@dataclass(frozen=True)\nclass A: ...", "@dataclass(slots=False)\nclass A: ..."),
        ("class A(Protocol):\n    def a(self): ...", "class A(Protocol):\n    b: int"),
    ],
)
def test_what_only_readers_and_the_type_checker_see_is_left_out(before: str, after: str) -> None:
    assert before != after and behaviour(before) == behaviour(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("KINDS = SLICES | CONCATS", "KINDS = SLICES & CONCATS"),
        ("total = left | right", "total = left & right"),
        ("x: int = 1", "x: int = 2"),
        ("def f(x: int = 1): ...", "def f(x: int = 2): ..."),
        ("@dataclass(order=True)\nclass A: ...", "@dataclass(order=False)\nclass A: ..."),
        ("class A(B):\n    x = 1", "class A(B):\n    x = 2"),
    ],
)
def test_what_a_program_does_is_not(before: str, after: str) -> None:
    assert behaviour(before) != behaviour(after)


def test_a_mutant_is_named_by_the_lines_that_differ() -> None:
    source = "a = 1\nif a:\n    b = 2\nc = 3\n"
    assert changed_lines(source, source.replace("2", "3")) == (3, "b = 2", "b = 3")
    assert changed_lines(source, source.replace("if a:", "if (\n  not a):")) == (
        2, "if a:", "if ( not a):",
    )  # fmt: skip
    assert changed_lines(source, source.replace("    b = 2\n", "")) == (3, "b = 2", "")


def test_every_argument_is_of_a_line_that_is_there() -> None:
    for file, arguments in EXPLAINED.items():
        assert file in [module.file for module in MODULES]
        text = " ".join((CHECKOUT / file).read_text().split())
        for (before, after), argument in arguments.items():
            assert before in text and before != after and argument, (file, before)


def test_an_argument_of_no_mutant_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cosmic_ray", reason="the extra `mutation` is not installed")
    (buffers,) = (module for module in MODULES if module.name == "buffers")
    group = group_of(buffers, CHECKOUT)
    assert len(group.mutants) > 50
    explained = sum(bool(mutant.argument) for mutant in group.mutants)
    assert explained == len(EXPLAINED[buffers.file]) < len(group.mutants)
    monkeypatch.setattr(
        "mutants.general.EXPLAINED", {buffers.file: {("break", "pass"): "nobody makes it"}}
    )
    with pytest.raises(MutantError, match="an argument for break -> pass, which is no mutant"):
        group_of(buffers, CHECKOUT)
