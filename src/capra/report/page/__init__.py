"""The report as one HTML file that needs nothing else: no network, no other file.

What comes from records is text wherever it appears: escaped in HTML and SVG, and in the data of the
scripts, which put it on the page as text. A content security policy admits no other script.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Final

from capra.report.figures.style import Drawing, inline_svg
from capra.report.page.data import page_data
from capra.report.page.markup import Html, element, join
from capra.report.page.tables import attribution_section, summary_section
from capra.report.records import Source

SCRIPTS: Final = ("shared.js", "blocks.js", "timeline.js")


def render_page(sources: Sequence[Source], drawings: Sequence[Drawing]) -> str:
    """The page of some records and their figures; the same for the same records."""
    script = "\n".join(map(_part, SCRIPTS))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return _filled(
        _part("page.html"),
        {
            "policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
            f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
            "style": _part("page.css"),
            "records": str(element("p", ", ".join(source.name for source in sources))),
            "summary": str(join(map(summary_section, sources))),
            "figures": str(join(map(_figure, drawings))),
            "cycles": str(join(map(attribution_section, sources))),
            "data": script_data(page_data(sources)),
            "script": script,
        },
    )


def script_data(value: object) -> str:
    """A value as JSON that can stand in a script element: nothing in it ends or opens one."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _figure(drawing: Drawing) -> Html:
    name = f"{drawing.ident}-caption"
    caption = element(
        "figcaption",
        element("strong", drawing.title),
        element("span", drawing.description, id=name),
    )
    image = element("div", Html(inline_svg(drawing)), class_="drawing", role="img",
                    aria_label=drawing.title, aria_describedby=name)  # fmt: skip
    return element("figure", image, caption)


def _part(name: str) -> str:
    return (files("capra.report.page") / name).read_text(encoding="utf-8").strip()


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """The template with a part in place of every {{name}}; parts are not looked into."""
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template) + "\n"
