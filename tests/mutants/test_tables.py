"""Every mutant of the tables still has its place, and the generated ones are what they were."""

import re

from mutants.__main__ import CALLS, TABLES, chosen
from mutants.general import MODULES
from mutants.generated import BLOCKS, Block, generated_group
from mutants.mutant import check_tables
from mutants.stubs import CLAIMS
from tests.rtl.yosys import require_yosys

from capra.cosim.toolchain import CHECKOUT


def test_every_mutant_applies() -> None:
    check_tables(TABLES, CHECKOUT)
    assert all(table.mutants for table in TABLES)


def test_every_check_is_a_test() -> None:
    several = [mutant.checks for table in TABLES for mutant in table.mutants]
    several += [block.checks for block in BLOCKS] + [claim for _, claim in CLAIMS.values()]
    several += [table.full for table in TABLES]
    several += [checks for module in MODULES for checks in (module.checks, module.full)]
    checks = {check for some in several for check in some}
    functions: dict[str, set[str]] = {}
    for check in checks:
        file, _, case = check.partition("::")
        name = case.partition("[")[0]
        if file not in functions:
            assert (CHECKOUT / file).exists(), check
            text = (CHECKOUT / file).read_text() if file.endswith(".py") else ""
            functions[file] = set(re.findall(r"^def (test_\w+)", text, re.MULTILINE))
        assert not name or name in functions[file], check


def test_ci_takes_some_of_every_table() -> None:
    assert [group.name for group in chosen("ci", CHECKOUT)] == [
        *(table.name for table in TABLES), CALLS,
    ]  # fmt: skip


def test_generated_mutants_are_different_netlists_and_repeatable() -> None:
    require_yosys()
    blocks = (
        Block("divider", 5, ()),
        Block("softmax_unit", 3, (), parameters=("ADDRESS_BITS 13",)),
    )
    first, again = (generated_group(CHECKOUT, blocks) for _ in range(2))
    assert first == again
    assert [m.file for m in first.mutants] == ["rtl/divider.sv"] * 5 + ["rtl/softmax_unit.sv"] * 3
    assert len({m.replace for m in first.mutants}) == 8
    assert all("module " in m.replace for m in first.mutants)


def test_the_page_counts_the_mutants_of_every_table() -> None:
    page = (CHECKOUT / "docs/concepts/verification.md").read_text()
    rows = dict(re.findall(r"^\| ([\w-]+) \| (\d+) \| \d+ \| \d+ \| 0 \|$", page, re.MULTILINE))
    assert {table.name: int(rows[table.name]) for table in TABLES} == {
        table.name: len(table.mutants) for table in TABLES
    }
