"""Records are read as they are, and anything else is refused by naming the place."""

import copy
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.report.samples import RECORDS, printed

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


def test_a_byte_order_mark_is_no_part_of_a_record(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(RECORDS["plan"]()).encode())
    assert read_records([path])[0].record == RECORDS["plan"]()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\xff", r"record .*r\.json is not UTF-8: invalid start byte"),
        (b"", r"record .*r\.json is an empty file, expected a file that a command printed wit"),
        (b" ", r"record .*r\.json is not JSON: Expecting value"),
        (b"[" * 100_000, r"record .*r\.json is not JSON: "),
        (b"[1]", r"r\.json is \[1\], expected a JSON object"),
        (b"{}", r"r\.json has no kind, expected a record of decode, table, grid, plan, benc"),
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
    r"settings\.|chip|\.text$|stop_reason|prefill\.(programs|cycles$)"
    r"|\.tokens\.\d+$|trace\.\d+\.(tokens|emitted)|cache_length|(draft|target)_cycles"
    r"|speculative\.emitted|decode$|proposed\.\d+$|^optimize|^ratio$|unchanged$"
)
"""What a report does not look at, or where another number is as good."""

UNREAD_OF_A_BENCH = re.compile(r"settings\.(prompt|vocabulary)|prompts\.\d+\.text")
READ_SETTINGS = {
    "decode": r"settings\.(model|draft|draft_noise|num_speculative_tokens|prompt|vocabulary)$",
    "anatomy": r"settings\.(rows|cache)$",
}

NULLABLE = re.compile(r"^files\..|^(tokens_equal|csv|parquet|failure)$")
"""Of the head, a sweep and a certificate: null says something."""

UNREAD_OF_A_PLAN = re.compile(
    r"(settings|optimize|new_tokens|acceptance_source|draft_cycles|plain_cycles|needed"
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
        if kind == "bench" and UNREAD_OF_A_BENCH.match(name):
            continue
        unread = UNREAD.search(name) and not re.match(READ_SETTINGS.get(kind, "$"), name)
        if unread or (isinstance(value, str) and _is_free_text(record, path)):
            continue
        if value is None and kind != "decode" and NULLABLE.search(name):
            continue
        if isinstance(value, str) and name in ("csv", "parquet"):
            continue  # where null, a name is as good
        if isinstance(value, dict) and name == "settings":
            continue  # any mapping
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
        ("decode", "plain.tokens", [], r"tokens_equal is True, expected False, as the toke"),
        ("decode", "speculative.tokens", [], r"speculative\.kept is 12, expected 0, the n"),
        ("decode", "speculative.tokens_per_block", 9.0, r"per_block is 9\.0, expected \d.*, kept"),
        ("decode", "resident_weights.speedup", 9.0, r"weights\.speedup is 9\.0, expected 1\."),
        ("decode", "resident_weights.weight_words", 9, r"weight_words is 9, expected 2560,"),
        ("decode", "resident_weights.plain_cycles", 9, r"plain_cycles is 9, expected 63491"),
        ("plan", "pays", False, r"file\.pays is False, expected True, as the best steady state"),
        ("plan", "best.k", 2, r"file\.best is \{.*, expected \{'k': \d, .*, the best steady"),
        ("plan", "ks.0.steady.speedup", 1.01, r"ks\[0\]\.steady\.speedup is 1\.01, expected 1\."),
        ("bench", "runs.3.speedup", 9.0, r"runs\[3\]\.speedup is 9\.0, expected \d.*, plain"),
        ("bench", "runs.3.prompt", 2, r"runs has 2 runs of prompt 2, 3 tokens, k = 1, expected 1"),
        ("bench", "runs.3.accepted", 99, r"runs\[3\]\.accepted is 99, expected at most \d"),
        ("bench", "by_k.1.losses", 99, r"by_k\[1\]\.losses is 99, expected \d+, that of the runs"),
        ("bench", "cells.1.mean", 9.0, r"cells\[1\]\.mean is 9\.0, expected \d.*, that of"),
        ("bench", "cells.1.low", 9.0, r"cells\[1\]\.mean is \d.*, expected one of 9\.0 \.\. \d"),
        ("bench", "tokens_equal", False, r"tokens_equal is False, expected True, as the runs say"),
        ("bench", "ks", [1], r"the number of file\.runs is 64, expected 32"),
        ("bench", "new_tokens", [3, 6, 9], r"runs has 0 runs of prompt 0, 9 tokens, k = 1, expect"),
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
        ("profile", "instructions.0.shares.1.origin", 999, r"shares\[1\]\.origin is 999, exp"),
        ("profile", "instructions.0.shares.0.origin", 1, r"shares\[0\]\.origin is 1, expected 0, "),
        ("profile", "instructions.0.shares.1.cycles", 9, r"cycles of .*\.shares is \d+, exp"),
        ("profile", "instructions.0.shares", [], r"\[0\]\.shares is \[\], expected a list of at "),
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
    resident = record["resident_weights"]  # the programs go in with what they cost but weights
    for run in ("plain", "speculative"):
        program = record[run]["prefill"]["trace"][-1]
        resident[f"{run}_cycles"] += program["cycles"] - program["weight_words"]
    resident["speedup"] = resident["plain_cycles"] / resident["speculative_cycles"]
    check_record("file", record)
    assert record["decode_speedup"] == before != record["speedup"]


def without_first(entries: list[Any]) -> None:
    del entries[0]


def without_last(entries: list[Any]) -> None:
    del entries[-1]


def with_first_twice(entries: list[Any]) -> None:
    entries.append(copy.deepcopy(entries[0]))


def with_second_twice(entries: list[Any]) -> None:
    entries.append(copy.deepcopy(entries[1]))


@pytest.mark.parametrize(
    ("kind", "path", "change", "sentence"),
    [
        ("table", "runs", without_last, "runs lacks random with noise 0, k = 3, expected all of t"),
        ("table", "runs", with_first_twice, "runs has the plain run of structured 2 times, expect"),
        ("table", "runs", with_second_twice, "runs has structured with noise 0, k = 3 2 times, ex"),
        ("grid", "cells", without_first, "cells lacks noise 0, k = 1, expected all of the experim"),
        ("grid", "cells", without_last, "cells lacks noise 6, k = 5, expected all of the experime"),
        ("grid", "cells", with_second_twice, "cells has noise 0, k = 2 2 times, expected it once"),
        ("plan", "ks", without_first, "ks lacks k = 1, expected all of the experiment"),
        ("plan", "ks", without_last, "ks lacks k = 5, expected all of the experiment"),
        ("plan", "ks", with_first_twice, "ks has k = 1 2 times, expected it once"),
        ("plan", "cost_curve.points", without_first, "points lacks rows = 1, expected all of the"),
        ("plan", "cost_curve.points", with_first_twice, "points has rows = 1 2 times, expected i"),
        ("serving", "rows", without_last, r"rows lacks acceptance 0\.9, k = 8, expected all of th"),
        ("serving", "rows", with_first_twice, r"rows has acceptance 0\.6, k = 2 2 times, expecte"),
        ("causality", "blocks", without_last, r"blocks lacks the block \[5, 2, 3, 4\], expected a"),
        ("causality", "blocks", with_first_twice, r"blocks has the block \[1, 2, 3, 4\] 2 times, "),
        ("causality", "cache", without_last, r"cache is \[3, 8, 1\], expected \[3, 8, 1, 12\]"),
        ("anatomy", "steps", without_last, "steps lacks the step at cache 6, expected all of the"),
        ("anatomy", "steps", with_first_twice, "steps has the step at cache 4 2 times, expected "),
    ],
)  # fmt: skip
def test_a_record_with_a_run_left_out_or_twice_is_refused(
    kind: str, path: str, change: Callable[[list[Any]], None], sentence: str
) -> None:
    record = RECORDS[kind]()
    at: Any = record
    for key in path.split("."):
        at = at[key]
    change(at)
    with pytest.raises(InputError, match=rf"^file\.([a-z_]+\.)*{sentence}"):
        check_record("file", record)


@pytest.mark.parametrize(
    ("kind", "path", "value", "sentence"),
    [
        ("table", "runs.1.k", 2, "runs lacks structured with noise 0, k = 3, expected all of"),
        ("grid", "cells.3.draft_noise", 1, "cells lacks noise 0, k = 4, expected all of the"),
        ("plan", "settings.max_k", 7, "ks lacks k = 6, expected all of the experiment"),
        ("plan", "settings.max_k", 4, "ks has k = 5, expected only those of the experiment"),
        ("plan", "settings.max_k", 2**52, "ks lacks k = 6, expected all of the experiment"),
        ("serving", "rows.0.k", 3, r"rows lacks acceptance 0\.6, k = 2, expected all"),
        ("serving", "costs.0.c", 0.5, r"costs lacks the assumed cost 0\.01, expected all of"),
        ("serving", "costs.3.assumed", True, "costs lacks the executed cost, expected all of the"),
        ("anatomy", "settings.rows", 4, "steps lacks the step at cache 7, expected all of the"),
        ("anatomy", "settings.cache", 3, "steps lacks the step at cache 3, expected all of the"),
        ("anatomy", "ratio", 0.9, r"ratio is 0\.9, expected the verifier's cycles over the steps'"),
        ("anatomy", "steps.0.words_loaded", 1, r"steps_together\.words_loaded is \d+, expected \d"),
    ],
)  # fmt: skip
def test_a_record_of_another_experiment_is_refused(
    kind: str, path: str, value: Any, sentence: str
) -> None:
    record = RECORDS[kind]()
    *keys, last = [int(key) if key.isdigit() else key for key in path.split(".")]
    at: Any = record
    for key in keys:
        at = at[key]
    at[last] = value
    with pytest.raises(InputError, match=rf"^file\.{sentence}"):
        check_record("file", record)


@KIND
@pytest.mark.parametrize("key", ["capra", "command", "date", "settings", "files"])
def test_a_record_of_an_older_capra_is_refused_with_what_to_do(kind: str, key: str) -> None:
    record = RECORDS[kind]()
    del record[key]
    with pytest.raises(InputError, match=rf"^file(\.{key})? lacks {key}, |^file lacks {key}, "):
        check_record("file", record)
    record = RECORDS["table"]()
    del record[key]
    with pytest.raises(
        InputError, match=f"file lacks {key}, which every record of this Capra has: make it again"
    ):
        check_record("file", record)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("date", "yesterday", r"date is 'yesterday', expected a time in UTC such as 2026-01-31T"),
        ("date", "2026-01-31T12:00:00", r"date is .*, expected a time in UTC such"),
        ("command", [], r"command is \[\], expected a list of at least 1"),
        ("command", [1], r"command\[0\] is 1, expected text"),
        ("capra", None, "capra is None, expected text"),
        ("files", {"x": "abc"}, r"files\.x is 'abc', expected 32 hex digits"),
        ("files", [], r"files is \[\], expected a JSON object"),
    ],
)
def test_what_made_a_record_is_checked(key: str, value: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=rf"^file\.{sentence}"):
        check_record("file", RECORDS["grid"]() | {key: value})
    check_record("file", RECORDS["grid"]() | {"files": {"gone": None}})


DIGEST = {"digest": "ab", "rows": []}
CERTIFICATE: dict[str, Any] = {
    "rows": 0, "uncompared_rows": 0, "equal": None, "first_difference": None, "plain": DIGEST,
    "speculative": DIGEST,
}  # fmt: skip
DIFFERENCE = {"position": 0, "part": "l0.k", "element": 1, "plain": 2, "speculative": None}
REPLAYED = {"programs": 1, "mismatches": 2, "cycles": 0, "wall_seconds": 0, "version": ""}


@pytest.mark.parametrize(
    ("kind", "changes", "sentence"),
    [
        ("decode", {"certificate": CERTIFICATE | {"equal": True}}, "equal is True, expected None"),
        ("decode", {"certificate": CERTIFICATE | {"rows": 1}}, "equal is None, expected True"),
        (
            "decode",
            {"certificate": CERTIFICATE | {"rows": 1, "first_difference": DIFFERENCE}},
            "equal is None, expected False",
        ),
        ("decode", {"tokens_equal": None}, "tokens_equal is None, expected True"),
        ("decode", {"rtl": {"icarus": REPLAYED}}, "mismatches is 2, expected at most 1"),
        ("table", {"rtl": {"icarus": REPLAYED}}, "mismatches is 2, expected at most 1"),
        ("replay", {"rtl": {"icarus": REPLAYED}}, "mismatches is 2, expected at most 1"),
        ("certify", {"graphs": {"step": 0}}, "graphs is {'step': 0}, expected at least one"),
        ("certify", {"certified": False}, "certified is False, expected True, as failure says"),
        ("certify", {"graphs": {"stop": 1}}, "a key of file.graphs is 'stop', expected one of st"),
        ("sweep", {"executed": 1}, "cells is 2, expected 1, stored before and executed"),
        ("sweep", {"refused": 3}, "refused is 3, expected at most 2, the cells"),
        ("sweep", {"refused": 2}, "tokens_equal is True, expected None: all cells are refusals"),
        ("eval", {"chip_over_float": 1.5}, "chip_over_float is 1.5, expected chip bits over"),
        ("eval", {"greedy_agreement": 1.5}, "greedy_agreement is 1.5, expected a number of 0 .. 1"),
        ("replay", {"cycles": 1}, "cycles_by_unit sum to "),
    ],
)
def test_what_was_verified_agrees_with_itself(
    kind: str, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=re.escape(sentence)):
        check_record("file", RECORDS[kind]() | changes)


def test_nothing_compared_is_a_record_too() -> None:
    record = RECORDS["decode"]()
    check_record("file", record | {"certificate": CERTIFICATE})
    right = {"rows": 1, "equal": True}
    wrong = {"rows": 1, "equal": False, "first_difference": DIFFERENCE}
    for changes in (right, wrong):
        check_record("file", record | {"certificate": CERTIFICATE | changes})
    check_record("file", RECORDS["sweep"]() | {"refused": 2, "tokens_equal": None})
    with pytest.raises(InputError, match=r"file\.certificate\.equal is False, expected True, as"):
        check_record("file", record | {"certificate": CERTIFICATE | right | {"equal": False}})


def test_a_run_of_no_tokens_is_a_record() -> None:
    record = json.loads(printed("decode", "--model", "random", "-n", "0", "--json"))
    assert record["tokens_equal"] is None
    check_record("file", record)


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "null"])
def test_what_cannot_be_read_is_named_before_anything_is_looked_into(
    kind: str, tmp_path: Path
) -> None:
    bad, damaged = tmp_path / f"{kind}.json", tmp_path / "damaged.json"
    damaged.write_text("{")
    said = {"missing": ": No such file or directory", "folder": ": Is a directory",
            "empty": " is an empty file", "null": ": embedded null byte"}[kind]  # fmt: skip
    if kind == "folder":
        bad.mkdir()
    elif kind == "empty":
        bad.touch()
    elif kind == "null":
        bad = tmp_path / "nu\0ll.json"
    with pytest.raises(InputError) as caught:
        read_records([damaged, bad])
    assert str(caught.value) == (
        f"record {bad}{said}, expected a file that a command printed with --json"
    )


def test_a_prediction_without_a_number_is_refused() -> None:
    record = RECORDS["grid"]()
    record["cells"][1]["predicted"] = {"profile": 1.5}
    check_record("file", record)
    record["cells"][1]["predicted"] = {"profile": "1.5"}
    with pytest.raises(
        InputError, match=r"file\.cells\[1\]\.predicted\.profile is '1.5', expected"
    ):
        check_record("file", record)


def test_cycles_of_a_program_that_are_not_those_of_its_units_are_refused() -> None:
    record = RECORDS["anatomy"]()
    record["draft"]["cycles_by_unit"]["dma"] += 1
    with pytest.raises(InputError, match=r"file\.draft\.cycles_by_unit sum to \d+, expected \d+"):
        check_record("file", record)


def test_programs_without_a_ratio_each_are_refused() -> None:
    whole = RECORDS["anatomy"]()
    program = whole["draft"]
    head = {key: whole[key] for key in ("kind", "capra", "command", "date", "files")}
    record = (
        head
        | {"settings": {"files": ["a.ga2", "b.ga2"]}}
        | {"programs": [program, program], "ratios": [1.0, 1.0]}
    )
    check_record("file", record)
    record["ratios"] = [1.0]
    with pytest.raises(
        InputError, match=r"the length of file\.ratios is 1, expected 2, as many as"
    ):
        check_record("file", record)
