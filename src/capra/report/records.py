"""The records that reports are made from: read from files, and checked before anything is drawn.

`docs/reference/records.md` says what is in them. Keys that are not named here are ignored.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Any, Final

from capra.errors import InputError
from capra.isa.spec import Phase, Unit

Check = Callable[[str, Any], None]
"""Raises InputError, naming the place that is given, unless a JSON value is as expected."""


@dataclass(frozen=True, slots=True)
class Source:
    """One record and where it comes from."""

    name: str
    """Unique among the sources of a report: the name of the file without its folder and ending."""
    record: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """decode, table, grid, plan or profile."""
        return str(self.record["kind"])


def read_records(paths: Sequence[Path]) -> tuple[Source, ...]:
    """The records of some files, in their order.

    Raises InputError for a file that cannot be read or is no record, naming what was found.
    """
    sources: list[Source] = []
    for path in paths:
        record = _read(path)
        check_record(str(path), record)
        names = {source.name for source in sources}
        name, number = path.stem, 2
        while name in names:
            name, number = f"{path.stem}-{number}", number + 1
        sources.append(Source(name, record))
    return tuple(sources)


def check_record(where: str, record: object) -> None:
    """Raise InputError, with a sentence that starts with `where`, unless this is a record."""
    _mapping(where, record)
    assert isinstance(record, dict)
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        found = "no kind" if kind is None else f"the kind {short(kind)}"
        raise InputError(f"{where} has {found}, expected a record of {', '.join(KINDS)}")
    KINDS[kind](where, record)


def _read(path: Path) -> Any:
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise InputError(f"record {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"record {path} is not UTF-8: {error.reason}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"record {path} is not JSON: {error}") from None


# Values


def _fail(where: str, found: Any, expected: str) -> InputError:
    return InputError(f"{where} is {short(found)}, expected {expected}")


def _whole(where: str, value: Any) -> None:
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise _fail(where, value, "a whole number of at least 0")


def _positive(where: str, value: Any) -> None:
    if type(value) is not int or not 1 <= value < 1 << 53:
        raise _fail(where, value, "a whole number of at least 1")


def _number(where: str, value: Any) -> None:
    if type(value) not in (int, float) or not 0 <= value <= 1e15:
        raise _fail(where, value, "a number of at least 0")


def _flag(where: str, value: Any) -> None:
    if type(value) is not bool:
        raise _fail(where, value, "true or false")


def _text(where: str, value: Any) -> None:
    if not isinstance(value, str) or any("\ud800" <= char <= "\udfff" for char in value):
        raise _fail(where, value, "text")


def _mapping(where: str, value: Any) -> None:
    if not isinstance(value, dict):
        raise _fail(where, value, "a JSON object")


def _one_of(words: Iterable[str]) -> Check:
    known = tuple(words)

    def check(where: str, value: Any) -> None:
        if value not in known:
            raise _fail(where, value, f"one of {', '.join(known)}")

    return check


def _list(item: Check, least: int = 0) -> Check:
    def check(where: str, value: Any) -> None:
        if not isinstance(value, list) or len(value) < least:
            raise _fail(where, value, f"a list of at least {least}")
        for index, entry in enumerate(value):
            item(f"{where}[{index}]", entry)

    return check


def _object(*also: Check, **keys: Check) -> Check:
    """An object that has these keys, and after them is as the other checks say."""

    def check(where: str, value: Any) -> None:
        _mapping(where, value)
        for key, inner in keys.items():
            if key not in value:
                raise InputError(f"{where} lacks {key}, expected it among {short(sorted(value))}")
            inner(f"{where}.{key}", value[key])
        for more in also:
            more(where, value)

    return check


def _optional(inner: Check, *keys: str) -> Check:
    """These keys of an object, where they are there."""

    def check(where: str, value: Any) -> None:
        for key in keys:
            if key in value:
                inner(f"{where}.{key}", value[key])

    return check


# Parts


def _sums(parts: str, names: Iterable[str]) -> Check:
    """An object's `cycles` are the sum of its `parts`, which are named so."""
    known = _one_of(names)

    def check(where: str, value: Any) -> None:
        for name, cycles in value[parts].items():
            known(f"a key of {where}.{parts}", name)
            _whole(f"{where}.{parts}.{name}", cycles)
        total = sum(value[parts].values())
        if total != value["cycles"]:
            raise InputError(
                f"{where}.{parts} sum to {total}, expected {value['cycles']}, the cycles"
            )

    return check


_COST: Final = _object(
    _sums("cycles_by_unit", Unit), _sums("cycles_by_phase", Phase),
    cycles=_whole, cycles_by_unit=_mapping, cycles_by_phase=_mapping,
)  # fmt: skip


def _block(where: str, value: Any) -> None:
    """Guesses are accepted from the first on, and the target has a choice after each of them."""
    accepted, most = value["accepted"], min(len(value["proposed"]), len(value["choices"]) - 1)
    if accepted > most:
        raise _fail(f"{where}.accepted", accepted, f"at most {most}, the guesses that were checked")


def _in_vocabulary(where: str, value: Any) -> None:
    """Every token that is shown has a text; a guess may be any number, and has none."""
    size = len(value["settings"]["vocabulary"])
    texts = {"settings.prompt": value["settings"]["prompt"]}
    for run in ("plain", "speculative"):
        texts[f"{run}.tokens"] = value[run]["tokens"]
        for index, block in enumerate(value[run]["trace"]):
            texts[f"{run}.trace[{index}].choices"] = block["choices"]
    for place, tokens in texts.items():
        for token in tokens:
            if token >= size:
                raise _fail(f"{where}: a token of {place}", token, f"0 .. {size - 1}")


def _guess(where: str, value: Any) -> None:
    if type(value) is not int:
        raise _fail(where, value, "a whole number")


def _adds_up(where: str, value: Any) -> None:
    """The cycles of a run are those of its programs, phase by phase."""
    programs = [program for block in value["trace"] for program in block["programs"]]
    programs += value["prefill"]["trace"]
    for phase in Phase:
        found = sum(program["cycles_by_phase"].get(phase, 0) for program in programs)
        whole = value["cycles_by_phase"].get(phase, 0)
        if found != whole:
            raise InputError(
                f"{where}: the cycles of {phase} of all programs sum to {found}, expected {whole}, "
                "those of the run"
            )


_PROGRAM_RUN: Final = _object(_COST, role=_text, rows=_whole, cache=_whole)
_RUN: Final = _object(
    _COST,
    _adds_up,
    tokens=_list(_whole),
    programs=_whole,
    prefill=_object(trace=_list(_PROGRAM_RUN)),
    trace=_list(
        _object(
            _block,
            proposed=_list(_guess), choices=_list(_whole, 1), accepted=_whole,
            programs=_list(_PROGRAM_RUN),
        )
    ),
)  # fmt: skip
_CELL: Final = _object(
    _COST,
    _optional(_object(profile=_number), "predicted"),
    cycles=_positive,
    draft_noise=_number, k=_whole, accepted=_whole, proposed=_whole, blocks=_positive,
    acceptance_rate=_number, programs=_whole, speedup=_number, tokens_equal=_flag,
)  # fmt: skip
_PLAIN_RUN: Final = _object(_COST, model=_text, programs=_whole, tokens_equal=_flag)


def _table_run(where: str, value: Any) -> None:
    _mapping(where, value)
    _PLAIN_RUN(where, value)
    if "decode" not in value:
        _CELL(where, value)


def _has_a_plain_run(where: str, value: Any) -> None:
    plain = {run["model"] for run in value["runs"] if "decode" in run}
    for index, run in enumerate(value["runs"]):
        if run["model"] not in plain:
            raise _fail(f"{where}.runs[{index}].model", run["model"], "one that has a plain run")


def _instructions(where: str, value: Any) -> None:
    """One after the other, from cycle 0 to the last, each from an origin that is there."""
    start = 0
    for index, inst in enumerate(value["instructions"]):
        at = f"{where}.instructions[{index}]"
        if inst["start"] != start:
            raise _fail(f"{at}.start", inst["start"], f"{start}, where the one before it ends")
        start += inst["cycles"]
        if inst["origin"] is not None:
            _whole(f"{at}.origin", inst["origin"])
            if inst["origin"] >= len(value["origins"]):
                raise _fail(f"{at}.origin", inst["origin"], f"less than {len(value['origins'])}")
    if start != value["cycles"]:
        raise _fail(f"{where}.cycles", value["cycles"], f"{start}, those of the instructions")


def _measured(where: str, value: Any) -> None:
    """A number of guesses that was run has its speedup."""
    if value.get("measured") is not None:
        _object(speedup=_number)(f"{where}.measured", value["measured"])


KINDS: Final[Mapping[str, Check]] = {
    "decode": _object(
        _in_vocabulary,
        settings=_object(
            model=_text, draft=_text, draft_noise=_number, num_speculative_tokens=_whole,
            prompt=_list(_whole, 1), vocabulary=_list(_text, 1),
        ),
        plain=_RUN,
        speculative=_object(
            _RUN,
            blocks=_whole, proposed=_whole, accepted=_whole, acceptance_rate=_number,
            mean_acceptance_length=_number, accepted_per_position=_list(_whole),
        ),
        tokens_equal=_flag, speedup=_number, decode_speedup=_number,
    ),
    "table": _object(_has_a_plain_run, runs=_list(_table_run, 1)),
    "grid": _object(cells=_list(_CELL, 1)),
    "plan": _object(
        cost_curve=_object(
            cache=_whole,
            points=_list(
                _object(rows=_positive, cycles=_positive, relative=_number, is_cliff=_flag), 1
            ),
        ),
        ks=_list(_object(_measured, k=_whole, speedup=_number), 1),
    ),
    "profile": _object(
        _COST, _instructions,
        program=_text,
        origins=_list(_object(tensor=_text, text=_text)),
        instructions=_list(
            _object(
                _sums("phases", Phase),
                text=_text, unit=_one_of(Unit), start=_whole, cycles=_whole, phases=_mapping,
                origin=lambda _where, _value: None,
            ),
            1,
        ),
    ),
}  # fmt: skip
"""The kinds of record, each with what one must have for a report."""
