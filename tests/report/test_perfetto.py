"""Traces: complete events, no overlap within a thread, every cycle once."""

import json
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from tests.report.samples import decode_record, profile_record

from capra.report.perfetto import program_trace, run_trace

Thread = tuple[int, str]


def spans(trace: Mapping[str, Any]) -> dict[Thread, list[dict[str, Any]]]:
    """The spans of every thread by process and name, in time; checks the format on the way."""
    json.dumps(trace)
    names: dict[tuple[int, int], str] = {}
    found: defaultdict[Thread, list[dict[str, Any]]] = defaultdict(list)
    for event in trace["traceEvents"]:
        if event["ph"] == "M":
            if event["name"] == "thread_name":
                names[event["pid"], event["tid"]] = event["args"]["name"]
            continue
        assert event["ph"] == "X" and event["name"] and event["ts"] >= 0 and event["dur"] > 0
        found[event["pid"], names[event["pid"], event["tid"]]].append(event)
    for thread in found.values():
        thread.sort(key=lambda event: event["ts"])
        assert all(a["ts"] + a["dur"] <= b["ts"] for a, b in pairwise(thread))
    return found


def cycles(thread: list[dict[str, Any]]) -> int:
    return sum(event["dur"] for event in thread)


def test_every_cycle_of_a_program_is_in_the_thread_of_its_unit() -> None:
    record = profile_record()
    found = spans(program_trace(record))
    units = {name: cycles(thread) for (_, name), thread in found.items() if name != "graph tensor"}
    assert units == record["cycles_by_unit"]
    busy = sorted((e for (_, name), t in found.items() if name != "graph tensor" for e in t),
                  key=lambda event: event["ts"])  # fmt: skip
    assert busy[0]["ts"] == 0
    assert all(a["ts"] + a["dur"] == b["ts"] for a, b in pairwise(busy)), "one unit at a time"
    assert busy[-1]["ts"] + busy[-1]["dur"] == record["cycles"]


def test_instructions_are_linked_to_the_graph() -> None:
    record = profile_record()
    found = spans(program_trace(record))
    tensors = found[1, "graph tensor"]
    assert cycles(tensors) == record["cycles"] - record["instructions"][-1]["cycles"]  # but HALT
    assert "logits" in [event["name"] for event in tensors]
    for event in found[1, "matrix"]:
        (around,) = [t for t in tensors if t["ts"] <= event["ts"] < t["ts"] + t["dur"]]
        assert event["args"]["tensor"] == around["name"]
        assert around["args"]["graph"].splitlines()[-1].startswith(f"{around['name']} = ")


def test_tensors_that_are_moved_together_have_a_span_each() -> None:
    record = profile_record()
    found = spans(program_trace(record))
    (load, store) = (inst for inst in record["instructions"] if "shares" in inst)
    assert load["text"].startswith("LD ") and store["text"].startswith("ST ")
    for inst in (load, store):
        end = inst["start"] + inst["cycles"]
        inside = [e for e in found[1, "graph tensor"] if inst["start"] <= e["ts"] < end]
        names = [record["origins"][share["origin"]]["tensor"] for share in inst["shares"]]
        assert [e["name"] for e in inside] == names and len(names) > 1
        assert [e["dur"] for e in inside] == [share["cycles"] for share in inst["shares"]]
        (span,) = [e for e in found[1, "dma"] if inst["start"] <= e["ts"] < end]
        assert span["args"]["tensor"] == ", ".join(names)
    words = {e["name"]: e["dur"] for e in found[1, "graph tensor"]}
    assert words["layers.0.w1"] == 16 * 32


def test_programs_of_a_run_follow_each_other_inside_their_blocks() -> None:
    record = decode_record()
    found = spans(run_trace(record))
    for process, name in ((1, "plain"), (2, "speculative")):
        run = record[name]
        blocks = found[process, "blocks"]
        programs = found[process, "target"] + found.get((process, "draft"), [])
        assert cycles(blocks) == cycles(programs) == run["cycles"]
        assert len(programs) == run["programs"]
        for block in blocks:
            end = block["ts"] + block["dur"]
            inside = [p for p in programs if block["ts"] <= p["ts"] and p["ts"] + p["dur"] <= end]
            assert cycles(inside) == block["dur"]
    assert cycles(found[2, "draft"]) == record["speculative"]["draft_cycles"]
    verify = next(e for e in found[2, "target"] if e["name"] == "verify")
    assert verify["args"]["rows"] == 4
    accepted = [event["args"]["accepted"] for event in found[2, "blocks"]]
    assert accepted == [block["accepted"] for block in record["speculative"]["trace"]]


def test_the_prompt_comes_before_the_first_block() -> None:
    record = decode_record()
    program = {**record["plain"]["trace"][0]["programs"][0], "role": "prefill"}
    record["plain"]["prefill"] = {"trace": [program]}
    first, second, *_ = spans(run_trace(record))[1, "blocks"]
    assert (first["name"], first["dur"]) == ("prompt", program["cycles"])
    assert (second["name"], second["ts"]) == ("block 0", program["cycles"])
