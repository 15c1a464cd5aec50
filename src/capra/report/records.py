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
from capra.report.kinds import KINDS


@dataclass(frozen=True, slots=True)
class Source:
    """One record and where it comes from."""

    name: str
    """Unique among the sources of a report: the name of the file without its folder and ending."""
    record: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """One of KINDS."""
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
    mapping(where, record)
    assert isinstance(record, dict)
    kind = record.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        found = "no kind" if kind is None else f"the kind {short(kind)}"
        raise InputError(f"{where} has {found}, expected a record of {', '.join(KINDS)}")
    KINDS[kind](where, record)


def _read(path: Path) -> Any:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"record {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"record {path} is not UTF-8: {error.reason}") from None
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"record {path} is not JSON: {error}") from None
