"""The records that reports are made from: read from files, and checked before anything is drawn.

`docs/reference/records.md` says what is in them.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Any

from capra.errors import InputError
from capra.report.checks import mapping
from capra.report.head import check_head
from capra.report.kinds import KINDS
from capra.text import printable


@dataclass(frozen=True, slots=True)
class Source:
    """One record and where it comes from."""

    name: str
    """Unique among the sources of a report: the name of the file without its folder and ending.

    What cannot be printed is an escape.
    """
    record: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """One of KINDS."""
        return str(self.record["kind"])


def read_records(paths: Sequence[Path]) -> tuple[Source, ...]:
    """The records of some files, in their order.

    Raises InputError for a file that cannot be read or is no record, naming what was found. All
    are read before the first is looked into.
    """
    contents = [_content(path) for path in paths]
    sources: list[Source] = []
    for path, content in zip(paths, contents, strict=True):
        record = _parsed(path, content)
        check_record(str(path), record)
        names = {source.name for source in sources}
        stem = printable(path.stem)
        name, number = stem, 2
        while name in names:
            name, number = f"{stem}-{number}", number + 1
        sources.append(Source(name, record))
    return tuple(sources)


def check_record(where: str, record: object) -> None:
    """Raise InputError, with a sentence that starts with `where`, unless this is a record."""
    mapping(where, record)
    assert isinstance(record, dict)
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        found = "no kind" if kind is None else f"the kind {short(kind)}"
        raise InputError(f"{where} has {found}, expected a record of {', '.join(KINDS)}")
    KINDS[kind](where, record)
    check_head(where, record)


def _content(path: Path) -> bytes:
    expected = "expected a file that a command printed with --json"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"record {path}: {error.strerror}, {expected}") from None
    except ValueError as error:  # a name that no file can have
        raise InputError(f"record {path}: {error}, {expected}") from None
    if not content:
        raise InputError(f"record {path} is an empty file, {expected}")
    return content


def _parsed(path: Path, content: bytes) -> Any:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"record {path} is not UTF-8: {error.reason}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"record {path} is not JSON: {error}") from None
