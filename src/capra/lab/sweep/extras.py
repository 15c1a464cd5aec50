"""Packages that only some users need."""

from importlib import import_module
from typing import Any

from capra.errors import InputError


def import_extra(package: str, extra: str) -> Any:
    """The module of an optional package; InputError that says how to install it."""
    try:
        return import_module(package)
    except ImportError:
        raise InputError(
            f"{package} is not installed, expected pip install '.[{extra}]' in the checkout"
        ) from None
