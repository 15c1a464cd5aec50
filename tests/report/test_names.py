"""Names of records in file names, figures and pages: whatever a file is called, it is only text."""

import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.command import Cli
from tests.report.samples import HOSTILE, RECORDS, decode_record, table_record

from capra.report.figures import draw
from capra.report.figures.style import inline_svg, svg
from capra.report.names import slug
from capra.report.page import render_page
from capra.report.records import Source, read_records

NAMES = [
    'q"u\'o"te', "<img src=x onerror=alert(1)>", "</svg><script>alert(1)</script>", "table (1)",
    "a b", "a#b", "100%", "a%20b", "übergröße", "表", "a\nb", "a\x1b[2Jb", "a\\1b", "a&amp;b",
    "{{data}}", "n" * 200, "ü" * 120, "-", ".", "..", "figure", "figure-1", "summary", "a\udcffb",
]  # fmt: skip


def test_a_safe_name_stays_and_any_other_is_made_safe() -> None:
    for name in ("table", "grid-2", "2026.01_x"):
        assert slug(name) == name
    made = [slug(name) for name in NAMES]
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}", each) for each in made)
    assert len(set(made)) == len(NAMES)
    assert slug("table (1)") == "table-1-538806e2", "as the guide says"
    assert slug("表").startswith("record-")
    assert slug("a b") != slug("a  b")


class Targets(HTMLParser):
    """The ids of a page, and what points at one."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.used: set[str] = set()
        self.tags: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attrs:
            text = value or ""
            if name == "id":
                self.ids.append(text)
            elif name in ("href", "xlink:href"):
                assert text.startswith("#")
                self.used.add(text[1:])
            elif name in ("aria-describedby", "aria-labelledby"):
                self.used |= set(text.split())
            if not (tag == "meta" and name == "content"):
                self.used |= set(re.findall(r"url\(#([^)]*)\)", text))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_whatever_a_record_is_called_its_figures_and_its_page_are_whole(name: str) -> None:
    sources = [Source(name, table_record()), Source(f"{name}-2", decode_record())]
    drawings = list(draw(sources))
    for drawing in drawings:
        ET.fromstring(svg(drawing))  # noqa: S314  # our own text
        root = ET.fromstring(inline_svg(drawing))  # noqa: S314
        ids = {each.attrib["id"] for each in root.iter() if "id" in each.attrib}
        text = inline_svg(drawing)
        assert set(re.findall(r'(?:url\(#|href="#)([^)"]*)', text)) <= ids
        assert all(re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", each) for each in ids)
    page = render_page(sources, drawings)
    page.encode()
    found = Targets(page)
    assert len(found.ids) == len(set(found.ids))
    assert found.used <= set(found.ids)
    assert "img" not in found.tags and page.count("<script") == 2
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f]", page)


def test_labels_are_not_taken_for_identifiers_or_colours() -> None:
    table = table_record()
    table["runs"][0]["model"] = 'x id="y" url(#z) href="#w" #24292f <b>\x1b\x00'
    (drawing, *_) = draw([Source("a", table)])
    root = ET.fromstring(inline_svg(drawing))  # noqa: S314  # our own text
    texts = "".join("".join(each.itertext()) for each in root.iter())
    assert r'x id="y" url(#z) href="#w" #24292f <b>\x1b\x00, plain' in texts


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "name", ["table (1)", 'q"u\'o"te', "<b>", "a#b", "100%", "a\nb", "n" * 200, "ü" * 120]
)
def test_files_of_any_name_become_figures_and_traces(name: str, cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(decode_record()))
    page, figures, traces = tmp_path / "r.html", tmp_path / "figures", tmp_path / "traces"
    result = cli("report", path, "-o", page, "--figures", figures, "--traces", traces)
    assert result.code == 0, result.err
    assert len(result.err.splitlines()) == 1 + 2 * 5 + 1
    for made in (*figures.iterdir(), *traces.iterdir()):
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*", made.name)
    assert 'fill="url' not in page.read_text()
    (source,) = read_records([path])
    assert source.name == name.replace("\n", r"\n")


def test_names_that_look_alike_stay_apart(tmp_path: Path) -> None:
    paths = [tmp_path / "a\nb.json", tmp_path / r"a\nb.json"]
    for path in paths:
        path.write_text(json.dumps(RECORDS["causality"]()))
    assert [source.name for source in read_records(paths)] == [r"a\nb", r"a\nb-2"]


def test_hostile_text_is_text_in_every_kind_of_new_record() -> None:
    certify, sweep, replay, tensors = (
        RECORDS[kind]() for kind in ("certify", "sweep", "replay", "eval")
    )
    certify["model"] = sweep["database"] = replay["program"] = HOSTILE
    replay["rtl"]["verilator"]["version"] = HOSTILE
    tensors["tensor_errors"]["tensors"] = {HOSTILE: {"relative_l2": 1.0, "largest_steps": 1.0}}
    for record in (certify, sweep, replay, tensors):
        record["command"] = [HOSTILE]
        record["files"] = {HOSTILE: None}
        sources = [Source("x", record)]
        page = render_page(sources, list(draw(sources)))
        assert "img" not in Targets(page).tags
        assert page.count("&lt;img src=x") >= 3
