"""What every record begins with, whatever its kind: what made it."""

import re
from typing import Any, Final

from capra.errors import InputError
from capra.report.checks import fail, list_of, mapping, nullable, object_with, text

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_DIGEST: Final = re.compile(r"[0-9a-f]{32}")


def _date(where: str, value: Any) -> None:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise fail(where, value, "a time in UTC such as 2026-01-31T12:00:00Z")


def _digest(where: str, value: Any) -> None:
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise fail(where, value, "32 hex digits")


def _digests(where: str, value: Any) -> None:
    mapping(where, value)
    for name, digest in value.items():
        text(f"a key of {where}", name)
        nullable(_digest)(f"{where}.{name}", digest)


def _made(where: str, value: Any) -> None:
    """An older Capra wrote records without these: say what to do about one."""
    for key in ("capra", "command", "date", "settings", "files"):
        if key not in value:
            raise InputError(
                f"{where} lacks {key}, which every record of this Capra has: make it again with "
                "the command that printed it"
            )


HEAD: Final = object_with(
    capra=text, command=list_of(text, 1), date=_date, settings=mapping, files=_digests
)
"""Required of every record: one of an older Capra can be made again."""


def check_head(where: str, value: Any) -> None:
    """Raise InputError unless a record says what made it."""
    _made(where, value)
    HEAD(where, value)
