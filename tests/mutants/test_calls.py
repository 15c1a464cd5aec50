"""Mutants without one call: every call of a checker is found, and only that call is left out."""

import ast
from pathlib import Path

import pytest
from mutants.calls import calls_group
from mutants.mutant import MutantError, check_tables

from capra.cosim.toolchain import CHECKOUT

SOURCE = """
class Thing:
    def build(self) -> int:
        "übung"; check_name("é", self)
        self._check_range(
            1,
            2,
        )
        _expect_written()
        checked = check_name("this is asked, not told", self)
        return unchecked() or 1

def main() -> None:
    exit_unless_equal([])
    checkpoint()
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for folder in ("src/capra/part", "tests/part"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/capra/part/thing.py").write_text(SOURCE)
    (tmp_path / "tests/part/test_thing.py").write_text("")
    return tmp_path


def test_each_statement_that_calls_a_checker_is_a_mutant(checkout: Path) -> None:
    mutants = calls_group(checkout).mutants
    assert [mutant.name for mutant in mutants] == [
        "part/thing.py Thing.build: check_name left out",
        "part/thing.py Thing.build: _check_range left out",
        "part/thing.py Thing.build: _expect_written left out",
        "part/thing.py main: exit_unless_equal left out",
    ]
    assert {mutant.checks for mutant in mutants} == {("tests/part/test_thing.py",)}
    name, range_, _, _ = (mutant.replace for mutant in mutants)
    assert name == SOURCE.replace('check_name("é", self)', "pass")
    lines = SOURCE.splitlines(keepends=True)
    assert range_ == "".join([*lines[:4], "        pass\n", *lines[8:]])


def test_a_checker_whose_caller_has_no_tests_is_refused(checkout: Path) -> None:
    (checkout / "tests/part/test_thing.py").unlink()
    with pytest.raises(MutantError, match=r"tests/part/test_thing\.py does not exist"):
        calls_group(checkout)


def test_the_calls_of_this_project_are_all_there() -> None:
    group = calls_group(CHECKOUT)
    check_tables([group], CHECKOUT)
    for mutant in group.mutants:
        ast.parse(mutant.replace)
        assert mutant.replace != (CHECKOUT / mutant.file).read_text()
    names = {mutant.name.removesuffix(" left out") for mutant in group.mutants}
    assert {
        "compiler/pipeline.py compile_graph: check_complete",
        "compiler/pipeline.py compile_graph: check_buffers",
        "compiler/pipeline.py compile_graph: check_program",
        "certify/certificate.py _Certifier._certify_programs: check_instructions",
        "cosim/verify.py Verifier._replay: difference",
        "report/records.py read_records: check_record",
        "report/kinds.py : comparison_is_of_both_runs",
        "spec_decode/decode.py decode: _check",
        "cli/decode.py decode: exit_unless_equal",
    } <= names
    assert [mutant.file for mutant in group.mutants if mutant.ci] == [
        "src/capra/compiler/pipeline.py"
    ] * 3
