"""Checks of JSON values, which say where a value stands, what was found and what was expected."""

from collections.abc import Callable, Iterable
from reprlib import repr as short
from typing import Any

from capra.errors import InputError

Check = Callable[[str, Any], None]
"""Raises InputError, naming the place that is given, unless a JSON value is as expected."""


def fail(where: str, found: Any, expected: str) -> InputError:
    """The error of a place."""
    return InputError(f"{where} is {short(found)}, expected {expected}")


def whole(where: str, value: Any) -> None:
    """0 .. 2^53 - 1, as a JSON integer."""
    if type(value) is not int or not 0 <= value < 1 << 53:
        raise fail(where, value, "a whole number of at least 0")


def positive(where: str, value: Any) -> None:
    """1 .. 2^53 - 1, as a JSON integer."""
    if type(value) is not int or not 1 <= value < 1 << 53:
        raise fail(where, value, "a whole number of at least 1")


def number(where: str, value: Any) -> None:
    """A number of 0 .. 10^15."""
    if type(value) not in (int, float) or not 0 <= value <= 1e15:
        raise fail(where, value, "a number of at least 0")


def signed(where: str, value: Any) -> None:
    """A number between -10^15 and 10^15."""
    if type(value) not in (int, float) or not -1e15 <= value <= 1e15:
        raise fail(where, value, "a number")


def integer(where: str, value: Any) -> None:
    """A JSON integer."""
    if type(value) is not int:
        raise fail(where, value, "a whole number")


def flag(where: str, value: Any) -> None:
    """true or false."""
    if type(value) is not bool:
        raise fail(where, value, "true or false")


def text(where: str, value: Any) -> None:
    """A string without lone surrogates."""
    if not isinstance(value, str) or any("\ud800" <= char <= "\udfff" for char in value):
        raise fail(where, value, "text")


def mapping(where: str, value: Any) -> None:
    """A JSON object."""
    if not isinstance(value, dict):
        raise fail(where, value, "a JSON object")


def one_of(words: Iterable[str]) -> Check:
    """One of some words."""
    known = tuple(words)

    def check(where: str, value: Any) -> None:
        if value not in known:
            raise fail(where, value, f"one of {', '.join(known)}")

    return check


def list_of(item: Check, least: int = 0) -> Check:
    """A list of at least `least` such entries."""

    def check(where: str, value: Any) -> None:
        if not isinstance(value, list) or len(value) < least:
            raise fail(where, value, f"a list of at least {least}")
        for index, entry in enumerate(value):
            item(f"{where}[{index}]", entry)

    return check


def object_with(*also: Check, **keys: Check) -> Check:
    """An object that has these keys, and after them is as the other checks say."""

    def check(where: str, value: Any) -> None:
        mapping(where, value)
        for key, inner in keys.items():
            if key not in value:
                raise InputError(f"{where} lacks {key}, expected it among {short(sorted(value))}")
            inner(f"{where}.{key}", value[key])
        for more in also:
            more(where, value)

    return check


def optional(inner: Check, *keys: str) -> Check:
    """These keys of an object, where they are there."""

    def check(where: str, value: Any) -> None:
        for key in keys:
            if key in value:
                inner(f"{where}.{key}", value[key])

    return check


def nullable(inner: Check) -> Check:
    """null, or such a value."""

    def check(where: str, value: Any) -> None:
        if value is not None:
            inner(where, value)

    return check


def same_length(first: str, *others: str) -> Check:
    """Lists of an object that have as many entries as the first of them."""

    def check(where: str, value: Any) -> None:
        for key in others:
            if len(value[key]) != len(value[first]):
                raise fail(
                    f"the length of {where}.{key}", len(value[key]),
                    f"{len(value[first])}, as many as {first}",
                )  # fmt: skip

    return check


def sums(parts: str, names: Iterable[str], whole_name: str = "cycles") -> Check:
    """An object's `cycles`, or what is named, are the sum of its `parts`, which are named so."""
    known = one_of(names)

    def check(where: str, value: Any) -> None:
        for name, count in value[parts].items():
            known(f"a key of {where}.{parts}", name)
            whole(f"{where}.{parts}.{name}", count)
        total = sum(value[parts].values())
        if total != value[whole_name]:
            raise InputError(
                f"{where}.{parts} sum to {total}, expected {value[whole_name]}, the {whole_name}"
            )

    return check
