"""Records are read as they are, and anything else is refused by naming the place."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.samples import RECORDS

from capra.errors import InputError
from capra.report.kinds import KINDS
from capra.report.records import check_record, read_records

KIND = pytest.mark.parametrize("kind", KINDS)


@KIND
def test_what_the_commands_print_is_a_record(kind: str) -> None:
    record = RECORDS[kind]()
    assert record["kind"] == kind
    check_record("file", record)


def test_every_kind_has_a_sample() -> None:
    assert set(RECORDS) == set(KINDS)


def test_sources_keep_their_order_and_have_names_of_their_own(tmp_path: Path) -> None:
    paths = [tmp_path / "b" / "run.json", tmp_path / "run.json", tmp_path / "plan"]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(RECORDS["plan"]()))
    sources = read_records(paths)
    assert [source.name for source in sources] == ["run", "run-2", "plan"]
    assert all(source.kind == "plan" for source in sources)
    assert sources[0].record == RECORDS["plan"]()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff", r"record .*r\.json is not UTF-8: invalid start byte"),
        (b"", r"record .*r\.json is not JSON: Expecting value"),
        (b"[" * 100_000, r"record .*r\.json is not JSON: "),
        (b"[1]", r"r\.json is \[1\], expected a JSON object"),
        (b"{}", r"r\.json has no kind, expected a record of decode, table, grid, plan, anat"),
        (b'{"kind": "x"}', r"r\.json has the kind 'x', expected a record of decode, "),
        (b'{"kind": ["decode"]}', r"r\.json has the kind \['decode'\], expected a record of "),
        (b'{"kind": "grid"}', r"r\.json lacks cells, expected it among \['kind'\]"),
        (b'{"kind": "grid", "cells": []}', r"r\.json\.cells is \[\], expected a list of at least "),
    ],
)
def test_what_is_no_record_is_refused(data: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(data)
    with pytest.raises(InputError, match=sentence):
        read_records([path])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"record .*none: No such file or directory"):
        read_records([tmp_path / "none"])


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside, of a list only those of the first and the last."""
    if isinstance(value, dict):
        entries = list(value.items())
    else:
        entries = list(enumerate(value)) if isinstance(value, list) else []
        entries = entries[:1] + entries[1:][-1:]
    for key, inner in entries:
        yield (*path, key)
        yield from _places(inner, (*path, key))


UNREAD = re.compile(
    r"settings\.(model_seed|draft_seed|max_new_tokens|chip)|chip|\.text$|stop_reason|prefill\.(programs|cycles$)"
    r"|\.tokens\.\d+$|trace\.\d+\.(tokens|emitted)|cache_length|(draft|target)_cycles"
    r"|speculative\.emitted|decode$|proposed\.\d+$|^optimize|^ratio$|unchanged$"
)
"""What a report does not look at, or where another number is as good."""

UNREAD_OF_A_PLAN = re.compile(
    r"(settings|optimize|new_tokens|acceptance_source|draft_cycles|plain_cycles|pays|best|needed"
    r"|ks\.\d+\.(break_even|expected|predicted|errors|measured$|measured\.(?!speedup))"
    r"|cost_curve\.points\.\d+\.added)"
)


@pytest.mark.sample(16)
@KIND
@pytest.mark.parametrize("value", [None, "surprise", -1, 1e300, [[]], {"x": 1}], ids=repr)
def test_every_value_that_is_read_is_checked(kind: str, value: Any) -> None:
    record = RECORDS[kind]()
    refused = 0
    for path in list(_places(record)):
        name = ".".join(map(str, path))
        if kind == "plan" and UNREAD_OF_A_PLAN.match(name):
            continue
        if UNREAD.search(name) or (isinstance(value, str) and _is_free_text(record, path)):
            continue
        if path[-1] == "origin" and value is None:
            continue  # HALT has none
        if value == -1 and re.search(r"logits\.\d+\.\d+$|error$", name):
            continue  # signed
        at: Any = record
        for key in path[:-1]:
            at = at[key]
        good, at[path[-1]] = at[path[-1]], value
        with pytest.raises(InputError) as caught:
            check_record("file", record)
        at[path[-1]] = good
        assert str(caught.value).startswith(("file", "a key of file")), name
        refused += 1
    assert refused > 5


def _is_free_text(record: Any, path: tuple[Any, ...]) -> bool:
    at = record
    for key in path:
        at = at[key]
    return isinstance(at, str) and path[-1] not in ("kind", "unit")


@pytest.mark.parametrize(
    ("kind", "path", "value", "sentence"),
    [
        ("decode", "plain.cycles_by_unit.dma", 0, r"plain\.cycles_by_unit sum to \d+, expected \d"),
        ("decode", "plain.cycles_by_phase.load", 1, r"plain\.cycles_by_phase sum to \d+, expected"),
        ("decode", "plain.cycles_by_phase.lode", 1, r"cycles_by_phase is 'lode', expected one of "),
        ("decode", "speculative.trace.0.accepted", 4, r"\.accepted is 4, expected at most 3, "),
        ("decode", "plain.trace.0.choices.0", 16, r"trace\[0\]\.choices is 16, expected 0 \.\. 15"),
        ("decode", "plain.trace.0.programs", [], r"plain: the cycles of load of all programs sum "),
        ("decode", "plain.cycles_by_unit", {"dma": 1}, r"cycles_by_unit lacks matrix, expected "),
        ("decode", "speedup", 1.0, r"file\.speedup is 1\.0, expected 1\.\d+, plain cycles over sp"),
        ("decode", "decode_speedup", 1.0, r"file\.decode_speedup is 1\.0, expected 1\.\d+, plain "),
        ("decode", "tokens_equal", False, r"tokens_equal is False, expected True, as the tokens"),
        ("decode", "speculative.tokens", [], r"tokens_equal is True, expected False, as the toke"),
        ("decode", "plain.programs", 1, r"plain\.programs is 1, expected 12, those of the trace"),
        ("decode", "speculative.programs", 1, r"speculative\.programs is 1, expected \d\d, those"),
        ("decode", "speculative.blocks", 99, r"speculative\.blocks is 99, expected \d, that of t"),
        ("decode", "speculative.proposed", 99, r"ive\.proposed is 99, expected \d+, that of the t"),
        ("decode", "speculative.accepted", 0, r"speculative\.accepted is 0, expected \d, that of "),
        ("decode", "speculative.acceptance_rate", 0.5, r"rate is 0\.5, expected 0\.\d+, accepted"),
        ("decode", "speculative.mean_acceptance_length", 9, r"length is 9, expected \d\.\d+, 1 "),
        ("decode", "speculative.accepted_per_position", [0] * 999, r"expected \[\d, \d, \d\], t"),
        ("decode", "speculative.trace.0.programs.-1.rows", 2**52, r"rows is 450\d+, expected 4, o"),
        ("table", "runs.1.speedup", 9, r"runs\[1\]\.speedup is 9, expected \d\.\d+, the cycles "),
        ("table", "runs.1.acceptance_rate", 0.1, r"runs\[1\]\.acceptance_rate is 0\.1, expected "),
        ("grid", "cells.0.acceptance_rate", 0.1, r"cells\[0\]\.acceptance_rate is 0\.1, expected"),
        ("grid", "cells.0.accepted", 2**52, r"cells\[0\]\.accepted is 450\d+, expected at most "),
        ("anatomy", "draft.cycles_by_unit", {"dma": 1}, r"draft\.cycles_by_unit lacks matrix, e"),
        ("grid", "cells.0.blocks", 0, r"cells\[0\]\.blocks is 0, expected a whole number of at l"),
        ("decode", "settings.prompt.0", 99, r"settings\.prompt is 99, expected 0 \.\. 15"),
        ("table", "runs.0.model", "x", r"runs\[1\]\.model is 'structured', expected one that has"),
        ("profile", "instructions.1.start", 7, r"instructions\[1\]\.start is 7, expected \d+, w"),
        ("profile", "instructions.1.start", 10**6, r"instructions\[1\]\.start is 1000000, exp"),
        ("anatomy", "draft.histogram.MM", 0, r"draft\.histogram sum to \d+, expected \d+, the ins"),
        ("anatomy", "draft.histogram.MN", 0, r"draft\.histogram is 'MN', expected one of"),
        ("causality", "blocks.1.equal", [True], r"\[1\]\.equal is 1, expected 4"),
        ("serving", "rows.2.cells", [], r"rows\[2\]\.cells is 0, expected 4, one"),
        ("profile", "instructions.0.origin", 999, r"instructions\[0\]\.origin is 999, exp"),
    ],
)  # fmt: skip
def test_numbers_that_disagree_are_refused(kind: str, path: str, value: Any, sentence: str) -> None:
    record = RECORDS[kind]()
    *keys, last = [int(key) if re.fullmatch(r"-?\d+", key) else key for key in path.split(".")]
    at: Any = record
    for key in keys:
        at = at[key]
    at[last] = value
    with pytest.raises(InputError, match=sentence):
        check_record("file", record)


@pytest.mark.parametrize("kind", ["decode", "table", "profile"])
def test_cycles_of_one_unit_are_not_anothers(kind: str) -> None:
    record = RECORDS[kind]()
    cost = record["plain"] if kind == "decode" else record["runs"][0] if kind == "table" else record
    units = cost["cycles_by_unit"]
    units["dma"], units["vector"] = units["dma"] - 1, units["vector"] + 1
    with pytest.raises(
        InputError, match=r": the phases of \w+ sum to \d+, expected \d+, its cycle"
    ):
        check_record("file", record)


def test_ratios_may_differ_by_rounding() -> None:
    record = RECORDS["decode"]()
    record["speedup"] *= 1 + 1e-12
    record["speculative"]["acceptance_rate"] *= 1 - 1e-12
    check_record("file", record)
    record["speedup"] *= 1 + 1e-6
    with pytest.raises(InputError, match=r"file\.speedup is "):
        check_record("file", record)


def test_the_decode_speedup_leaves_out_the_programs_of_the_prompt() -> None:
    record = RECORDS["decode"]()
    for run in (record["plain"], record["speculative"]):
        program = run["trace"][0]["programs"][-1]
        run["prefill"]["trace"].append(program)
        run["programs"] += 1
        run["cycles"] += program["cycles"]
        for parts in ("cycles_by_unit", "cycles_by_phase"):
            for name, cycles in program[parts].items():
                run[parts][name] += cycles
    before = record["speedup"]
    record["speedup"] = record["plain"]["cycles"] / record["speculative"]["cycles"]
    check_record("file", record)
    assert record["decode_speedup"] == before != record["speedup"]
