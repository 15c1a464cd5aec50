"""Traces in the Trace Event Format, which Perfetto and chrome://tracing open.

A microsecond of the trace is one cycle. All spans are complete events (`ph` is X), and no two spans
of one thread overlap.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from capra.isa.spec import Phase, Unit
from capra.report.shares import parts_of
from capra.report.verdicts import Verdict, verdicts

Event = dict[str, Any]

GRAPH_THREAD: Final = len(Unit) + 1
RUN_THREADS: Final = ("blocks", "target", "draft")


def program_trace(profile: Mapping[str, Any]) -> dict[str, Any]:
    """A profile record as a trace: a thread a unit, and one for the tensors of the graph.

    Every instruction is a span of its fetch on the control unit, then one of its own unit. A
    transfer of several tensors is one span for each of them on the tensors' thread.
    """
    threads = [*(unit.value for unit in Unit), "graph tensor"]
    events = list(_names(1, profile["program"], threads))
    place = {unit.value: number for number, unit in enumerate(Unit, start=1)}
    for index, inst in enumerate(profile["instructions"]):
        fetch = inst["phases"].get(Phase.FETCH, 0)
        mnemonic, start = inst["text"].split(" ")[0], inst["start"]
        args = {"instruction": index, "text": inst["text"], "tensor": _tensors(profile, inst)}
        if fetch:
            events.append(_span(1, place[Unit.CONTROL], f"fetch {mnemonic}", start, fetch, args))
        if inst["cycles"] > fetch:
            phases = {name: n for name, n in inst["phases"].items() if name != Phase.FETCH}
            events.append(
                _span(1, place[inst["unit"]], mnemonic, start + fetch, inst["cycles"] - fetch,
                      args | phases)
            )  # fmt: skip
    parts = (part for inst in profile["instructions"] for part in parts_of(inst))
    for origin, group in groupby(parts, lambda part: part.origin):
        run = list(group)
        if origin is not None:
            found = profile["origins"][origin]
            cycles = sum(part.cycles for part in run)
            args = {"graph": found["text"], "instructions": len(run)}
            events.append(_span(1, GRAPH_THREAD, found["tensor"], run[0].start, cycles, args))
    return _trace(events)


def run_trace(record: Mapping[str, Any]) -> dict[str, Any]:
    """A decode record as a trace: a process for the plain run and one for the speculative one.

    Blocks are the spans of one thread; below them, the programs of target and draft are those of
    two others. The programs of a run follow each other, as they do on the chip.
    """
    events: list[Event] = []
    for process, name in enumerate(("plain", "speculative"), start=1):
        run = record[name]
        events += _names(process, name, RUN_THREADS)
        now = 0
        parts = [("prompt", None, run["prefill"]["trace"])] if run["prefill"]["trace"] else []
        parts += [(f"block {i}", b, b["programs"]) for i, b in enumerate(run["trace"])]
        for label, block, programs in parts:
            start = now
            for program in programs:
                thread = 3 if program["role"] == "draft" else 2
                args = {
                    "rows": program["rows"], "cache": program["cache"], **program["cycles_by_unit"],
                }  # fmt: skip
                events.append(_span(process, thread, program["role"], now, program["cycles"], args))
                now += program["cycles"]
            args = {} if block is None else _block_args(block, record["settings"]["vocabulary"])
            events.append(_span(process, 1, label, start, now - start, args))
    return _trace(events)


def _block_args(block: Mapping[str, Any], vocabulary: Sequence[str]) -> dict[str, Any]:
    found = verdicts(block)
    emitted = block["choices"][: block["accepted"] + 1]
    return {
        "text": "".join(vocabulary[token] for token in emitted),
        "proposed": len(block["proposed"]),
        "accepted": found.count(Verdict.ACCEPTED),
        "last token": found[-1].value,
    }


def _tensors(profile: Mapping[str, Any], inst: Mapping[str, Any]) -> str | None:
    """The tensor of an instruction, or those that a transfer moves."""
    origins = [part.origin for part in parts_of(inst) if part.origin is not None]
    return ", ".join(profile["origins"][origin]["tensor"] for origin in origins) or None


def _span(
    process: int, thread: int, name: str, start: int, cycles: int, args: Mapping[str, Any]
) -> Event:
    return {
        "ph": "X", "pid": process, "tid": thread, "name": name, "ts": start, "dur": cycles,
        "args": dict(args),
    }  # fmt: skip


def _names(process: int, name: str, threads: Sequence[str]) -> Iterator[Event]:
    def meta(kind: str, thread: int, **args: object) -> Event:
        return {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": args}

    yield meta("process_name", 0, name=name)
    for number, thread in enumerate(threads, start=1):
        yield meta("thread_name", number, name=thread)
        yield meta("thread_sort_index", number, sort_index=number)


def _trace(events: list[Event]) -> dict[str, Any]:
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": {"1 us": "one cycle"}}
