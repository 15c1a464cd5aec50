"""HTML from values: whatever is not HTML already is escaped, control characters too."""

import html
from collections.abc import Collection, Iterable, Sequence

from capra.text import visible


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def element(tag: str, *content: str, **attributes: str) -> Html:
    """An element. `aria_label` stands for the attribute aria-label, `class_` for class."""
    names = {name.rstrip("_").replace("_", "-"): value for name, value in attributes.items()}
    head = "".join(f' {name}="{_escaped(value)}"' for name, value in names.items())
    return Html(f"<{tag}{head}>{join(content)}</{tag}>")


def join(parts: Iterable[str]) -> Html:
    """Parts after each other."""
    return Html("".join(p if isinstance(p, Html) else _escaped(p) for p in parts))


def _escaped(text: str) -> str:
    return html.escape(visible(text))


def table(
    caption: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    texts: int = 1,
    sums: Collection[str] = (),
) -> Html:
    """A table: the first cell of a row is its heading, the first `texts` columns are words.

    Rows with a heading among `sums` stand out.
    """

    def cell(tag: str, column: int, content: str, **attributes: str) -> Html:
        if column >= texts:
            attributes["class_"] = "number"
        return element(tag, content, **attributes)

    head = [cell("th", column, text, scope="col") for column, text in enumerate(header)]
    body = [
        element(
            "tr",
            *(
                cell("td", column, text) if column else cell("th", 0, text, scope="row")
                for column, text in enumerate(row)
            ),
            **({"class_": "sum"} if row[0] in sums else {}),
        )
        for row in rows
    ]
    return element(
        "div",
        element(
            "table",
            element("caption", caption),
            element("thead", element("tr", *head)),
            element("tbody", *body),
        ),
        class_="scroll", tabindex="0", role="region", aria_label=caption,
    )  # fmt: skip
