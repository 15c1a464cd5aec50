"""The page is one file, holds the records' numbers, and takes their text as text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from tests.report.pages import hostile_page, make_hostile_page, page
from tests.report.samples import HOSTILE, RECORDS, decode_record, profile_record

from capra.errors import InputError
from capra.isa.spec import Phase
from capra.report.attribution import NAMES
from capra.report.figures import FIGURES
from capra.report.page import script_data
from capra.report.page.data import page_data
from capra.report.page.markup import Html, element, join, table
from capra.report.page.tables import attribution_section, summary_section
from capra.report.records import Source, check_record

VOID = {"meta", "input", "br", "img", "link"}


class Reader(HTMLParser):
    """Elements with their attributes, rows of tables as texts; checks that elements close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.rows: list[list[str]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)
            if self._open[-1] in ("td", "th"):
                self.rows[-1][-1] += data


def embedded(text: str) -> Any:
    """The data of the scripts."""
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(data)


def test_the_page_is_whole_and_needs_nothing_else() -> None:
    reader = Reader(page())
    for tag, attributes in reader.elements:
        assert tag not in ("link", "iframe", "img", "object", "base"), tag
        for name in ("src", "href", "xlink:href", "action"):
            assert (attributes.get(name) or "#").startswith("#"), attributes
    assert "@import" not in page() and not re.search(r"url\((?!#)", page())
    assert "{{" not in page()


def test_only_the_pages_own_script_may_run() -> None:
    policy, *_ = (
        a["content"] for t, a in Reader(page()).elements if t == "meta" and "http-equiv" in a
    )
    assert policy is not None
    (script,) = re.findall(r"<script>(.*?)</script>", page(), flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy.split("; ")[0] == "default-src 'none'"
    assert f"script-src 'sha256-{digest}'" in policy


def test_identifiers_are_unique_and_labels_point_at_them() -> None:
    elements = Reader(page()).elements
    ids = [a["id"] for _, a in elements if "id" in a]
    assert len(ids) == len(set(ids))
    for _, attributes in elements:
        for name in ("aria-labelledby", "aria-describedby"):
            if name in attributes:
                assert attributes[name] in ids
    figures = [a for t, a in elements if t == "div" and a.get("role") == "img"]
    assert len(figures) == sum(map(len, FIGURES.values()))
    assert all(a["aria-label"] for a in figures)


def test_the_same_records_give_the_same_page() -> None:
    assert hostile_page() == make_hostile_page()


def test_the_summary_has_the_records_numbers() -> None:
    rows = Reader(page()).rows
    record = decode_record()
    plain, speculative = record["plain"], record["speculative"]
    assert ["cycles", f"{plain['cycles']:,}", f"{speculative['cycles']:,}"] in rows
    table = ["structured", "0", "3", "24 / 24", "8", "32", "138,858", "1.93 (1.69)", "yes"]
    assert table in rows
    entry = RECORDS["plan"]()["ks"][3]
    shown = (entry["steady"], entry, entry["measured"])
    assert ["4", *(f"{run['speedup']:.2f} x" for run in shown)] in rows
    assert ["draft noise", *(f"k = {k}" for k in range(1, 6))] in rows
    (four,) = [row for row in rows if row[0] == "4" and len(row) == 6]
    assert four[3] == "1.01 (40%)"
    assert f"{record['speedup']:.2f} x" in Reader(page()).texts["dd"]


def test_experiments_are_tables_of_the_summary() -> None:
    rows = Reader(page()).rows
    anatomy, causality, serving = (RECORDS[kind]() for kind in ("anatomy", "causality", "serving"))
    verifier, together = anatomy["verifier"], anatomy["steps_together"]
    (cycles,) = [row for row in rows if row[:2] == ["cycles", f"{verifier['cycles']:,}"]]
    assert cycles[2:4] == [f"{together['cycles']:,}", f"{anatomy['ratio']:.2f}"]
    assert [row[4] for row in rows if row[1:3] == ["3", "12"]] == ["different"]
    row = serving["rows"][-1]
    name = f"{row['acceptance']} / {row['k']}"
    formula, chip = [found for found in rows if found[0] == name]
    assert formula[1:] == [f"{cell['formula']:.2f}" for cell in row["cells"][:-1]]
    assert chip[1] == f"{row['pass_cost']:.2f} steps" and len(chip) == 2 + len(row["cells"])
    assert causality["holds"] and "causality holds" in page()


def test_programs_of_files_stand_side_by_side() -> None:
    draft = RECORDS["anatomy"]()["draft"]
    head = {key: RECORDS["anatomy"]()[key] for key in ("kind", "capra", "command", "date", "files")}
    record = {
        **head, "settings": {"files": ["a.ga2", "b.ga2"]}, "programs": [draft, draft],
        "ratios": [1.0, 1.0],
    }  # fmt: skip
    check_record("file", record)
    rows = Reader(summary_section(Source("two", record))).rows
    assert ["cycles", *[f"{draft['cycles']:,}"] * 2] in rows
    with pytest.raises(InputError, match=r"length of file\.ratios is 1, expected 2, as"):
        check_record("file", record | {"ratios": [1.0]})


@pytest.mark.parametrize("kind", ["decode", "table", "profile"])
def test_every_cycle_of_a_record_is_attributed(kind: str) -> None:
    record = RECORDS[kind]()
    costs = [record["plain"], record["speculative"]] if kind == "decode" else [record]
    if kind == "table":
        costs = record["runs"]
    _, *rows = Reader(attribution_section(Source(kind, record))).rows
    phases = [row for row in rows if row[0] in NAMES.values()]
    named = {row[0]: row for row in rows}
    assert len(phases) == len({phase for cost in costs for phase in cost["cycles_by_phase"]})
    for column, cost in enumerate(costs):
        place = column - len(costs)

        def cycles(row: list[str], place: int = place) -> int:
            return int(row[place].split()[0].replace(",", ""))

        assert sum(map(cycles, phases)) == cycles(named["all cycles"]) == cost["cycles"]
        moved = sum(cost["cycles_by_phase"].get(phase, 0) for phase in (Phase.LOAD, Phase.STORE))
        assert cycles(named["memory roofline"]) == moved
        ratio = float(named["cycles over roofline"][place].split()[0])
        assert ratio == pytest.approx(cost["cycles"] / moved, abs=0.005)


def test_the_scripts_get_every_block_and_every_instruction() -> None:
    data = embedded(page())
    record, profile = decode_record(), profile_record()
    speculative, plain = data["runs"]
    vocabulary = record["settings"]["vocabulary"]
    for shown, name in ((speculative, "speculative"), (plain, "plain")):
        for block, original in zip(shown["blocks"], record[name]["trace"], strict=True):
            assert block["choices"] == [vocabulary[token] for token in original["choices"]]
            assert len(block["verdicts"]) == len(original["proposed"]) + 1
            assert sum(p[3] for p in block["programs"]) == sum(
                p["cycles"] for p in original["programs"]
            )
    (program,) = data["programs"]
    assert program["texts"] == [inst["text"] for inst in profile["instructions"]]
    assert sum(program["cyclesOf"]) == program["cycles"] == profile["cycles"]
    for inst, phases in zip(profile["instructions"], program["phases"], strict=True):
        named = {NAMES[Phase(name)]: n for name, n in inst["phases"].items()}
        assert {data["phases"][index]: n for index, n in phases} == named
    joined = {i: inst for i, inst in enumerate(profile["instructions"]) if "shares" in inst}
    assert len(joined) == 2
    assert program["partsOf"] == {
        str(i): [[share["origin"], share["cycles"]] for share in inst["shares"]]
        for i, inst in joined.items()
    }


def test_a_guess_outside_the_vocabulary_has_no_text() -> None:
    record = decode_record()
    block = record["speculative"]["trace"][0]
    block["proposed"], block["accepted"] = [-1, 10**6], 0
    (run, _) = page_data([Source("odd", record)])["runs"]
    assert run["blocks"][0]["guesses"] == [None, None]


def test_text_of_records_stays_text() -> None:
    text = hostile_page()
    assert "<img" not in text and text.count("</script>") == 2
    reader = Reader(text)
    assert not any(tag == "img" for tag, _ in reader.elements)
    assert HOSTILE in "".join(reader.texts["p"])
    assert embedded(text)["programs"][0]["origins"][0] == [HOSTILE, HOSTILE]
    assert json.loads(script_data(HOSTILE)) == HOSTILE
    assert not set("<>&") & set(script_data(HOSTILE))


def test_markup_escapes_what_is_not_markup() -> None:
    assert element("b", '<&"', Html("<i>"), title='"<') == (
        '<b title="&quot;&lt;">&lt;&amp;&quot;<i></b>'
    )
    assert join(["<", element("br")]) == "&lt;<br></br>"
    made = table("c", ["a", "n"], [["<", "1"], ["all", "2"]], sums=["all"])
    assert '<tr class="sum"><th scope="row">all</th><td class="number">2</td></tr>' in made
    assert '<tr><th scope="row">&lt;</th>' in made


@pytest.mark.parametrize("kind", RECORDS)
def test_the_page_says_what_made_a_record(kind: str) -> None:
    record = RECORDS[kind]() | {"command": ["do", "it's", "--json"], "capra": "9.8.7"}
    record |= {"date": "2031-02-03T04:05:06Z", "files": {"m.safetensors": "ab" * 16, "gone": None}}
    reader = Reader(summary_section(Source(kind, record)))
    assert ", Capra 9.8.7, 2031-02-03T04:05:06Z" in reader.texts["p"]
    assert reader.texts["code"] == [
        "capra do 'it'\"'\"'s' --json", "m.safetensors", "gone",
    ]  # fmt: skip
    assert reader.texts["li"] == [f" {'ab' * 16}", " could not be read"]


def test_what_was_verified_is_on_the_page() -> None:
    text = page()
    tensors = RECORDS["eval"]()["tensor_errors"]["tensors"]
    rows = Reader(text).rows
    (logits,) = [row for row in rows if row[0] == "logits" and len(row) == 3]
    assert logits[1] == f"{tensors['logits']['relative_l2']:.2%}"
    certify, replay = RECORDS["certify"](), RECORDS["replay"]()
    assert f"{certify['terms']:,} terms; digest of the steps" in text
    assert "random, caches of 0 .. 1, 1 .. 2 rows: graphs and programs certified" in text
    said = "verilator: 1 program replayed on the RTL, all equal in every word and counter: "
    assert f"{said}{replay['cycles']:,} cycles in 0.50 s (Verilator 5.006)" in text
    facts = Reader(summary_section(Source("sweep", RECORDS["sweep"]()))).texts["dd"]
    assert facts == ["2", "0", "2", "1", "yes"]
    nothing = RECORDS["sweep"]() | {"refused": 2, "tokens_equal": None}
    assert Reader(summary_section(Source("s", nothing))).texts["dd"][-1] == "not compared"


def test_a_certificate_and_replays_of_a_run_are_on_the_page() -> None:
    found = {"programs": 3, "mismatches": 1, "cycles": 9, "wall_seconds": 0.5, "version": "V"}
    certificate = {"rows": 0, "uncompared_rows": 0, "equal": None, "first_difference": None}
    record = decode_record() | {"rtl": {"icarus": found}, "certificate": certificate}
    lines = Reader(summary_section(Source("d", record))).texts["p"]
    assert lines[-2] == "certificate: nothing was compared, as the plain run has no row."
    assert lines[-1].startswith("icarus: 3 programs replayed on the RTL, 1 of them NOT EQUAL")
