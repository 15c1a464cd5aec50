"""Survivors of `mutants.general`, each with the argument why no test can, or should, notice it."""

from collections.abc import Mapping
from typing import Final

EXPLAINED: Final[Mapping[str, Mapping[tuple[str, str], str]]] = {}
"""By file, then by the changed line before and after."""
