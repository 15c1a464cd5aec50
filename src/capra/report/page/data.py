"""What the page's scripts show: the blocks of runs, and programs down to the instruction."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from capra.isa.spec import Phase, Unit
from capra.report.attribution import NAMES
from capra.report.records import Source
from capra.report.shares import parts_of
from capra.report.verdicts import verdicts

Record = Mapping[str, Any]


def page_data(sources: Sequence[Source]) -> dict[str, Any]:
    """`runs` for the block viewer, `programs` for the timeline, and the names that both use."""
    return {
        "units": [unit.value for unit in Unit],
        "phases": [NAMES[phase] for phase in Phase],
        "runs": [run for source in sources if source.kind == "decode" for run in _runs(source)],
        "programs": [_program(source) for source in sources if source.kind == "profile"],
    }


def _runs(source: Source) -> Iterator[dict[str, Any]]:
    vocabulary = source.record["settings"]["vocabulary"]

    def text(token: int) -> str | None:
        return vocabulary[token] if 0 <= token < len(vocabulary) else None

    for name in ("speculative", "plain"):
        run = source.record[name]
        yield {
            "title": f"{source.name}, {name}",
            "prompt": "".join(map(text, source.record["settings"]["prompt"])),  # type: ignore[arg-type]
            "kept": len(run["tokens"]),
            "blocks": [
                {
                    "guesses": [text(token) for token in block["proposed"]],
                    "choices": [text(token) for token in block["choices"]],
                    "verdicts": verdicts(block),
                    "programs": [
                        [p["role"], p["rows"], p["cache"], p["cycles"]] for p in block["programs"]
                    ],
                }
                for block in run["trace"]
            ],
        }


def _program(source: Source) -> dict[str, Any]:
    """Instructions as columns: there may be thousands. Few have several tensors, in `partsOf`."""
    record = source.record
    units, phases = [unit.value for unit in Unit], [phase.value for phase in Phase]
    instructions: Sequence[Record] = record["instructions"]
    return {
        "title": f"{source.name}, program {record['program']}",
        "cycles": record["cycles"],
        "origins": [[origin["tensor"], origin["text"]] for origin in record["origins"]],
        "texts": [inst["text"] for inst in instructions],
        "units": [units.index(inst["unit"]) for inst in instructions],
        "starts": [inst["start"] for inst in instructions],
        "cyclesOf": [inst["cycles"] for inst in instructions],
        "phases": [
            [[phases.index(name), n] for name, n in inst["phases"].items()] for inst in instructions
        ],
        "originOf": [inst["origin"] for inst in instructions],
        "partsOf": {
            index: [[part.origin, part.cycles] for part in parts_of(inst)]
            for index, inst in enumerate(instructions)
            if "shares" in inst
        },
    }
