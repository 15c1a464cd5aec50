"""Damaged records: refused with one sentence, or drawn, soon.

Each kind of record gets a third of CAPRA_FUZZ examples. Figures, which take longest, get a tenth of
those, but of records that are not refused.
"""

import copy
import json
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from tests.fuzz.test_inputs import EXAMPLES, VALUES, fuzz, soon
from tests.report.samples import RECORDS

from capra.errors import InputError
from capra.report.figures import FIGURES, draw
from capra.report.figures.style import png
from capra.report.page import render_page
from capra.report.perfetto import program_trace, run_trace
from capra.report.records import Source, check_record

HOSTILE = VALUES | st.sampled_from(
    [1, 2**31, 2**52, 2**53, 2**64, -(2**52), 1e-300, 1e15, False, "\ud800", "\0", "$x^2$",
     "decode", [0], [None], {"x": 1}]
)  # fmt: skip
SECONDS_OF_FIGURES = 10.0
TRACES = {"decode": run_trace, "profile": program_trace}


@cache
def sample(kind: str) -> str:
    return json.dumps(RECORDS[kind]())


@st.composite
def damaged_records(draw: st.DrawFn, kind: str) -> Any:
    """A record of a kind, in which one or two values are replaced, removed or repeated."""
    record = json.loads(sample(kind))
    for _ in range(draw(st.integers(1, 2))):
        at, inner = record, record
        while True:
            entries = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            key = draw(st.sampled_from(entries))
            at, inner = inner, inner[key]
            if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 5)) == 0:
                break
        match draw(st.sampled_from(["replace", "replace", "replace", "remove", "repeat"])):
            case "replace":
                at[key] = copy.deepcopy(draw(HOSTILE))  # as it may be damaged again
            case "remove" if len(at) > 1:
                del at[key]
            case "repeat" if isinstance(at, list):
                at.insert(key, copy.deepcopy(inner))
    return record


def accepted(record: Any) -> Source | None:
    """The record as a source, or None where it is refused."""
    try:
        check_record("file", record)
    except InputError as error:
        assert str(error).startswith(("file", "a key of file", "the ")), error
        assert "\n" not in str(error)
        return None
    return Source("damaged", record)


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", RECORDS)
@given(data=st.data())
@settings(fuzz, max_examples=max(EXAMPLES // 3, 1))
def test_a_damaged_record_is_refused_or_on_the_page(data: st.DataObject, kind: str) -> None:
    record = data.draw(damaged_records(kind))
    with soon():
        source = accepted(record)
        if source is not None:
            assert render_page([source], []).startswith("<!doctype html>")
            if source.kind in TRACES:
                assert json.dumps(TRACES[source.kind](source.record))


@pytest.mark.sample(1)
@pytest.mark.parametrize("kind", [kind for kind, figures in FIGURES.items() if figures])
@given(data=st.data())
@settings(fuzz, max_examples=max(EXAMPLES // 30, 1), suppress_health_check=list(HealthCheck))
def test_the_figures_of_a_damaged_record_are_drawn(data: st.DataObject, kind: str) -> None:
    record = data.draw(damaged_records(kind))
    source = accepted(record)
    assume(source is not None)
    assert source is not None
    with soon(SECONDS_OF_FIGURES):
        for drawing in draw([source]):
            assert png(drawing)
