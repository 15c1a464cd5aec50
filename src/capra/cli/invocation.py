"""The command that runs: its words, its options and when it began, as its record will tell them."""

import os
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

import typer
from typer.core import TyperCommand

from capra.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])

EPOCH: Final = "SOURCE_DATE_EPOCH"
"""Seconds since 1970 that stand for the time, so that a record can be made again to the byte."""

LAST_SECOND: Final = 253402300799
"""Of the year 9999."""


@dataclass(frozen=True)
class Invocation:
    """One run of a command."""

    command: tuple[str, ...]
    """The words that were given, from the command's name on."""
    date: str
    """When it began: ISO 8601, in UTC, to the second."""
    options: Mapping[str, Any]
    """Every option and argument, given or by default, by its name on the command line."""


_running: ContextVar[Invocation] = ContextVar("running")


def invocation() -> Invocation:
    """That of the command that runs."""
    return _running.get()


def now() -> str:
    """The time, or the one that SOURCE_DATE_EPOCH gives; InputError where that is no time."""
    given = os.environ.get(EPOCH)
    if given is None:
        time = datetime.now(UTC)
    elif given.isdecimal() and given.isascii() and int(given[:20]) <= LAST_SECOND:
        time = datetime.fromtimestamp(int(given), UTC)
    else:
        raise InputError(f"{EPOCH} is {given!r}, expected whole seconds of 0 .. {LAST_SECOND}")
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


class RecordedCommand(TyperCommand):
    """A command that keeps its invocation."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """The context of the parsed words."""
        words = (str(info_name), *args)
        context = super().make_context(info_name, args, parent, **extra)
        _running.set(Invocation(words, now(), dict(_options(context))))
        return context


class RecordedApp(typer.Typer):
    """An application whose commands keep their invocations."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Command], Command]:
        """As of Typer."""
        return super().command(name, cls=RecordedCommand, **settings)


def option_name(parameter: Any) -> str:
    """`max_k` of --max-k; the name of an argument."""
    longest: str = max(parameter.opts, key=len)
    return longest.removeprefix("--").replace("-", "_").lower()


def _options(context: Any) -> Iterator[tuple[str, Any]]:
    for parameter in context.command.params:
        yield option_name(parameter), _plain(context.params[parameter.name])


def _plain(value: Any) -> Any:
    """As JSON has it."""
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return str(value) if isinstance(value, Path) else value
