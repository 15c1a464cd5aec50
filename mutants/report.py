"""Mutants of reports: tables, where cycles went, and traces."""

from typing import Final

from mutants.mutant import Group, Mutant

_ATTRIBUTION: Final = "src/capra/report/attribution.py"
_TABLES: Final = "src/capra/report/tables.py"
_EXPERIMENTS: Final = "src/capra/report/experiments.py"
_VERDICTS: Final = "src/capra/report/verdicts.py"
_PERFETTO: Final = "src/capra/report/perfetto.py"

_TEST_ATTRIBUTION: Final = ("tests/report/test_attribution.py",)
_TEST_TABLES: Final = ("tests/report/test_tables.py",)
_TEST_VERDICTS: Final = ("tests/report/test_verdicts.py",)
_TEST_PERFETTO: Final = ("tests/report/test_perfetto.py",)

GROUP: Final = Group(
    "report",
    (
        Mutant(
            "stores above the roofline", _ATTRIBUTION,
            "ROOFLINE: Final = (Phase.LOAD, Phase.STORE)",
            "ROOFLINE: Final = (Phase.LOAD, Phase.LOAD)",
            "words that leave the chip move too",
            _TEST_ATTRIBUTION, ci=True,
        ),
        Mutant(
            "cycles of the roofline counted twice", _ATTRIBUTION,
            "tuple(row for row in rows if row.phase not in ROOFLINE)", "tuple(rows)",
            "every cycle is in one line",
            _TEST_ATTRIBUTION,
        ),
        Mutant(
            "phase on the unit of fetches", _ATTRIBUTION,
            "return PHASES[self.phase][0]", "return PHASES[Phase.FETCH][0]",
            "the units do not add up",
            _TEST_ATTRIBUTION,
        ),
        Mutant(
            "share of the roofline instead of all cycles", _ATTRIBUTION,
            "cycles / found.cycles:.1%", "cycles / found.roofline_cycles:.1%",
            "the shares do not add up to 1",
            _TEST_ATTRIBUTION,
        ),
        Mutant(
            "plain run in both columns", _TABLES,
            '(name, f"{plain_value:,}", f"{speculative_value:,}")',
            '(name, f"{plain_value:,}", f"{plain_value:,}")',
            "nothing seems to be gained",
            _TEST_TABLES, ci=True,
        ),
        Mutant(
            "tokens always called equal", _TABLES,
            'equal = "equal" if record["tokens_equal"] else "NOT EQUAL"', 'equal = "equal"',
            "what must never happen would not be seen",
            _TEST_TABLES,
        ),
        Mutant(
            "fewer cycles called more", _TABLES,
            "'fewer' if saved > 0 else 'more'", "'more' if saved > 0 else 'fewer'",
            "a loss reads like a gain",
            _TEST_TABLES,
        ),
        Mutant(
            "found and expected exchanged", _TABLES,
            "is {_element(found['speculative'])} in the", "is {_element(found['plain'])} in the",
            "a difference of two equal numbers",
            _TEST_TABLES,
        ),
        Mutant(
            "mismatches with the RTL not told", _TABLES,
            "if mismatches == 0", "if mismatches >= 0",
            "a chip that differs is called equal",
            _TEST_TABLES,
        ),
        Mutant(
            "smallest tensor errors first", _TABLES,
            'key=lambda item: -item[1]["relative_l2"]', 'key=lambda item: item[1]["relative_l2"]',
            "the worst tensors are left out",
            _TEST_TABLES,
        ),
        Mutant(
            "logits left out of the tensor errors", _TABLES,
            'if place < WORST_TENSORS or tag == "logits":', "if place < WORST_TENSORS:",
            "they are what is asked for first",
            _TEST_TABLES,
        ),
        Mutant(
            "cells of the grid in the order of the record", _EXPERIMENTS,
            'ks = sorted({cell["k"] for cell in cells})\n    table = plain_table("draft noise"',
            'ks = [*dict.fromkeys(cell["k"] for cell in cells)]\n'
            '    table = plain_table("draft noise"',
            "columns of k stand in any order",
            _TEST_TABLES,
        ),
        Mutant(
            "first rejected guess called unreached", _VERDICTS,
            "return [*found, Verdict.REJECTED, *behind, Verdict.RECOVERED]",
            "return [*found, *behind, Verdict.UNREACHED, Verdict.RECOVERED]",
            "no guess is ever rejected",
            _TEST_VERDICTS,
        ),
        Mutant(
            "fetch on the unit's thread", _PERFETTO,
            "_span(1, place[Unit.CONTROL], f\"fetch {mnemonic}\"",
            "_span(1, place[inst[\"unit\"]], f\"fetch {mnemonic}\"",
            "the control unit seems idle",
            _TEST_PERFETTO,
        ),
        Mutant(
            "programs of a run begin together", _PERFETTO,
            "                now += program[\"cycles\"]\n",
            "                now = start + program[\"cycles\"]\n",
            "spans of one thread overlap",
            _TEST_PERFETTO,
        ),
    ),
    full=("tests/report",),
    keyword="not browser",
)  # fmt: skip
