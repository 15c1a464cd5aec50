"""What made a row: code and data, so that rows of two makes are never taken for one."""

from hashlib import blake2b
from pathlib import Path
from typing import Final

import numpy as np

import capra

_SILENT: Final = ("cli", "report")
"""Folders that cannot change a row."""


def build() -> str:
    """The version, a digest of the code and data behind a row, and numpy's version.

    Not numba, nor whether it is there: its engine gives what the readable one gives, cycle by
    cycle, or a test of the engines fails.
    """
    root = Path(str(capra.__file__)).parent
    digest = blake2b(digest_size=6)
    for path in sorted([*root.rglob("*.py"), *(root / "data").iterdir()]):
        name = path.relative_to(root)
        if name.parts[0] not in _SILENT:
            digest.update(f"{name.as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return f"capra {capra.__version__} ({digest.hexdigest()}), numpy {np.__version__}"
