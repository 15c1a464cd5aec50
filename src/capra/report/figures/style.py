"""How figures look, and how they become files: the same figure gives the same bytes.

Every colour comes with a hatch or a marker, so that nothing is told by colour alone. The eight hues
are those of Okabe and Ito, which people with any kind of colour vision can tell apart.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from capra.isa.spec import Unit

INK: Final = "#24292f"
RULE: Final = "#d0d7de"
PAPER: Final = "#ffffff"

BLUE: Final = "#0072b2"
SKY: Final = "#56b4e9"
GREEN: Final = "#009e73"
YELLOW: Final = "#f0e442"
ORANGE: Final = "#e69f00"
RED: Final = "#d55e00"
PURPLE: Final = "#cc79a7"
GREY: Final = "#8c959f"

LINES: Final = (
    (BLUE, "o", "-"), (ORANGE, "s", "--"), (GREEN, "^", "-."), (RED, "D", ":"), (PURPLE, "v", "-"),
    (SKY, "P", "--"), (GREY, "X", "-."),
)  # fmt: skip
"""Colour, marker and dashes of the lines of one chart, in order."""

_ON_PAGE: Final = ((INK, "currentColor"), (RULE, "var(--rule)"), (PAPER, "var(--paper)"))
"""Colours that follow those of the page."""

UNIT_STYLES: Final = {
    Unit.DMA: (ORANGE, "//"),
    Unit.MATRIX: (BLUE, ""),
    Unit.VECTOR: (GREEN, ".."),
    Unit.CONTROL: (GREY, "xx"),
}
"""Colour and hatch of every unit."""

_SETTINGS: Final[dict[Any, Any]] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.axisbelow": True,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8.0,
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
    "text.parse_math": False,  # a name with dollars is a name
    "svg.fonttype": "none",
    "figure.dpi": 100.0,
    "savefig.dpi": 150.0,
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure with its title, and what it shows as a sentence for those who do not see it."""

    name: str
    """A file name without its ending."""
    ident: str
    """What identifiers of the figure begin with on a page; no other figure has it."""
    title: str
    description: str
    figure: Figure


@contextmanager
def style() -> Iterator[None]:
    """Figures made and saved inside look as this module says, whatever a matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def chart(
    width: float, height: float, x: str = "", y: str = "", *, rules: str = "y"
) -> tuple[Figure, Axes]:
    """A figure of this many inches with one pair of axes, and rules across the named ones."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if rules:
        axes.grid(axis=rules)  # type: ignore[arg-type]
    return figure, axes


def show_counts(axis: Axis) -> None:
    """Few ticks, at whole numbers with commas."""
    axis.set_major_locator(MaxNLocator(5, integer=True))
    axis.set_major_formatter(lambda value, _: f"{value:,.0f}")


def lay_out(figure: Figure) -> None:
    """Place everything once: laid out anew, the figure would move a little with every drawing."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def png(drawing: Drawing) -> bytes:
    """The figure as PNG on white."""
    data = io.BytesIO()
    with style():
        drawing.figure.savefig(data, format="png", facecolor=PAPER, metadata={"Software": None})
    return data.getvalue()


def svg(drawing: Drawing) -> str:
    """The figure as SVG on nothing."""
    data = io.StringIO()
    with style(), mpl.rc_context({"svg.hashsalt": drawing.name}):
        drawing.figure.savefig(
            data, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    return data.getvalue()


def inline_svg(drawing: Drawing) -> str:
    """The figure as an element of a page: in the page's ink, and with names that are its own."""
    text = svg(drawing)
    text = text[text.index("<svg") :].strip()
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)

    def on_page(tag: re.Match[str]) -> str:
        inside = tag[0]
        for colour, variable in _ON_PAGE:
            inside = inside.replace(colour, variable)
        return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{drawing.ident}-", inside)

    text = re.sub(r"<[^<>]*>", on_page, text)  # labels between tags are not looked at
    return text.replace("<svg", '<svg aria-hidden="true" focusable="false"', 1)
