"""The page in a browser: it opens without a complaint and can be used from the keyboard alone."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.report.pages import hostile_page, page
from tests.report.samples import HOSTILE, decode_record, profile_record

BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium; a missing one skips the tests at home and fails them in CI."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        assert not os.environ.get("CI"), "no Chromium is installed"
        pytest.skip("no Chromium is installed")
    with sync_playwright() as playwright:
        # Chromium refuses its sandbox to root; the page is our own.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class Opened:
    """A page with everything that went wrong in it."""

    def __init__(self, browser: Browser, path: Path, **options: Any) -> None:
        self.page: Page = browser.new_page(**options)
        self.complaints: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on(
            "request",
            lambda request: (
                None if request.url == path.as_uri() else self.complaints.append(request.url)
            ),
        )
        self.page.goto(path.as_uri())

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def rows(self, selector: str) -> list[list[str]]:
        return [
            row.locator("th, td").all_inner_texts()
            for row in self.page.locator(f"{selector} tr").all()
        ]

    def press(self, selector: str, *keys: str) -> None:
        self.page.focus(selector)
        for key in keys:
            self.page.keyboard.press(key)


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    path = tmp_path / "report.html"
    path.write_text(page())
    shown = Opened(browser, path)
    yield shown
    assert shown.complaints == []
    shown.page.close()


def test_every_section_is_there(opened: Opened) -> None:
    for section in ("summary", "figures", "blocks", "timeline", "cycles"):
        assert opened.page.locator(f"#{section}").is_visible()
        assert opened.page.locator(f"nav a[href='#{section}']").count() == 1
    assert opened.page.locator(".empty:visible").count() == 0
    for svg in opened.page.locator("figure svg").all():
        box = svg.bounding_box()
        assert box is not None and box["width"] > 150 and box["height"] > 80


def test_blocks_are_walked_with_the_arrow_keys(opened: Opened) -> None:
    trace = decode_record()["speculative"]["trace"]
    options = opened.page.locator("#text [role=option]")
    assert options.count() == len(trace)

    def chosen() -> str | None:
        (found,) = opened.page.locator("#text [aria-selected=true]").all()
        assert opened.page.locator("#text").get_attribute("aria-activedescendant") == (
            found.get_attribute("id")
        )
        return found.get_attribute("id")

    assert chosen() == "block-0"
    opened.press("#text", "ArrowRight", "ArrowRight")
    assert chosen() == "block-2"
    opened.press("#text", "ArrowLeft")
    assert chosen() == "block-1"
    opened.press("#text", "End", "ArrowRight")
    assert chosen() == f"block-{len(trace) - 1}"
    opened.press("#text", "Home", "ArrowLeft")
    assert chosen() == "block-0"
    cycles = sum(program["cycles"] for program in trace[0]["programs"])
    assert f"{cycles:,}" in opened.text("#block")
    assert len(opened.rows("#block table:last-of-type tbody")) == len(trace[0]["programs"])


def test_tokens_tell_what_they_are_without_colour(opened: Opened) -> None:
    run = decode_record()["speculative"]
    count = opened.page.locator("#text .accepted").count()
    assert count == run["accepted"]
    signs = {
        opened.page.locator(f"#verdict-legend .{verdict}").get_attribute("data-sign")
        for verdict in ("accepted", "rejected", "unreached", "recovered", "bonus", "plain")
    }
    assert len(signs) == 6
    rejected = opened.page.locator("#text .rejected").first
    assert rejected.is_visible()
    opened.page.locator("#show-guesses").uncheck()
    assert rejected.is_hidden()
    label = opened.page.locator("#block-0").get_attribute("aria-label") or ""
    assert re.match(r"block 0: .* (accepted|rejected|plain)", label)


def test_another_run_can_be_chosen(opened: Opened) -> None:
    assert opened.page.locator("#run option").all_inner_texts() == [
        "decode, speculative", "decode, plain",
    ]  # fmt: skip
    opened.page.locator("#run").select_option(label="decode, plain")
    plain = decode_record()["plain"]["trace"]
    assert opened.page.locator("#text [role=option]").count() == len(plain)
    assert opened.page.locator("#text .plain").count() == len(plain)
    opened.page.locator("#block-next").click()
    assert opened.page.locator("#block-1").get_attribute("aria-selected") == "true"


def test_the_timeline_goes_down_to_the_instruction(opened: Opened) -> None:
    record = profile_record()
    code = record["instructions"]

    def shows(index: int) -> None:
        inst = code[index]
        text = opened.text("#instruction")
        assert inst["text"] in text and f"Instruction {index} (" in text
        for share in inst.get("shares", [inst]):
            if share["origin"] is not None:
                assert record["origins"][share["origin"]]["text"] in text
        (row,) = [
            row.all_inner_texts()
            for row in [opened.page.locator("#instructions [aria-current=true] td")]
        ]
        assert row[0] == str(index) and row[3] == f"{inst['start']:,}"

    shows(0)
    opened.press("#chart", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft")
    shows(2)
    opened.press("#chart", "End", "ArrowRight")
    shows(len(code) - 1)
    opened.press("#chart", "Home", "ArrowLeft")
    shows(0)
    starts = [i for i, inst in enumerate(code) if i == 0 or inst["origin"] != code[i - 1]["origin"]]
    opened.press("#chart", "ArrowDown", "ArrowDown")
    shows(starts[2])
    opened.press("#chart", "ArrowRight", "ArrowUp")
    shows(starts[2])
    opened.press("#chart", "ArrowUp")
    shows(starts[1])


def test_the_timeline_zooms_about_the_chosen_instruction(opened: Opened) -> None:
    record = profile_record()

    def view() -> tuple[int, int]:
        label = opened.page.locator("#chart").get_attribute("aria-label") or ""
        found = re.search(r"cycles ([\d,]+) to ([\d,]+) of ([\d,]+)", label)
        assert found and found[3] == f"{record['cycles']:,}"
        return int(found[1].replace(",", "")), int(found[2].replace(",", ""))

    assert view() == (0, record["cycles"])
    opened.press("#chart", *["ArrowDown"] * 6, *["+"] * 30)
    chosen = opened.page.locator("#instructions [aria-current=true] td").all_inner_texts()
    start, end = view()
    assert end - start <= 25
    assert start <= int(chosen[3].replace(",", "")) + int(chosen[4].replace(",", "")) / 2 <= end
    opened.page.locator("#zoom-all").click()
    assert view() == (0, record["cycles"])
    chart = opened.page.locator("#chart")
    # The last click may have left the page scrolling: this one waits until it stands still.
    chart.click(position={"x": chart.evaluate("chart => chart.clientWidth") - 10, "y": 30})
    late = opened.page.locator("#instructions [aria-current=true] td").all_inner_texts()
    assert int(late[3].replace(",", "")) > 0.9 * record["cycles"]


def test_tensors_lead_to_their_instructions(opened: Opened) -> None:
    record = profile_record()
    rows = opened.rows("#tensors")
    totals: dict[str, int] = {}
    for inst in record["instructions"]:
        for share in inst.get("shares", [inst]):
            if share["origin"] is not None:
                name = record["origins"][share["origin"]]["tensor"]
                totals[name] = totals.get(name, 0) + share["cycles"]
    assert {row[0]: row[3] for row in rows} == {name: f"{n:,}" for name, n in totals.items()}
    assert [row[3] for row in rows] == [f"{n:,}" for n in sorted(totals.values(), reverse=True)]
    button = opened.page.locator("#tensors button").nth(3)
    button.focus()
    opened.page.keyboard.press("Enter")
    assert rows[3][0] in opened.text("#instruction")


def test_everything_is_reached_with_the_tab_key(opened: Opened) -> None:
    reached = set()
    for _ in range(60):
        opened.page.keyboard.press("Tab")
        reached.add(opened.page.evaluate("document.activeElement.id"))
    wanted = {"run", "block-previous", "show-guesses", "text", "program", "zoom-in", "chart"}
    assert wanted <= reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_light_and_dark(browser: Browser, scheme: str, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page())
    shown = Opened(browser, path, color_scheme=scheme)
    selectors = ["body", "caption", ".hint", "nav a", ".facts dd", "figcaption span", "button",
                 *(f"#verdict-legend .{v}" for v in ("accepted", "rejected", "unreached",
                                                     "recovered", "bonus", "plain"))]  # fmt: skip
    ratios = {
        selector: shown.page.locator(selector).first.evaluate(CONTRAST) for selector in selectors
    }
    assert min(ratios.values()) >= 4.5, ratios  # WCAG AA
    assert shown.complaints == []
    shown.page.close()


CONTRAST = """element => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  let under = element;
  while (under && (parse(getComputedStyle(under).backgroundColor)[3] ?? 1) === 0) under = under.parentElement;
  const channel = (value) => (value /= 255) <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const light = (c) => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  const [a, b] = [getComputedStyle(element).color, getComputedStyle(under).backgroundColor].map(parse).map(light);
  return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
}"""  # noqa: E501
"""The contrast of an element's text with what is behind it, after WCAG 2."""


def test_a_narrow_window_does_not_scroll_sideways(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page())
    shown = Opened(browser, path, viewport={"width": 380, "height": 700})
    width = shown.page.evaluate("document.documentElement.scrollWidth")
    assert width <= 380
    shown.page.close()


def test_hostile_text_is_shown_and_does_nothing(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "hostile.html"
    path.write_text(hostile_page())
    shown = Opened(browser, path)
    shown.page.wait_for_timeout(200)
    assert shown.complaints == []
    assert shown.page.locator("img").count() == 0
    assert HOSTILE in shown.text("#instruction")
    assert "<img" in shown.text("#text")
    shown.page.close()


def test_without_records_of_its_kind_a_viewer_says_so(browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "empty.html"
    nothing = json.dumps({"units": [], "phases": [], "runs": [], "programs": []})
    text = re.sub(r'(id="data">).*?(</script>)', rf"\g<1>{nothing}\g<2>", page())
    path.write_text(text)
    shown = Opened(browser, path)
    assert shown.page.locator(".empty:visible").count() == 2
    assert shown.page.locator(".viewer:visible").count() == 0
    assert shown.complaints == []
    shown.page.close()
