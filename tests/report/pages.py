"""One page for all tests, of every kind of record."""

from functools import cache

from tests.report.samples import RECORDS, hostile

from capra.report.figures import draw
from capra.report.page import render_page
from capra.report.records import Source


@cache
def page() -> str:
    """The page of one record of every kind."""
    sources = [Source(kind, make()) for kind, make in RECORDS.items()]
    return render_page(sources, list(draw(sources)))


def make_hostile_page() -> str:
    """A page of records whose texts would run if they were not taken as text."""
    sources = [Source(f"bad-{kind}", hostile(RECORDS[kind]())) for kind in ("decode", "profile")]
    return render_page(sources, [])


@cache
def hostile_page() -> str:
    """That page, made once."""
    return make_hostile_page()
