"""What every record has: where it was measured, and how it is written."""

import json
import os
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from capra import __version__
from capra.errors import InputError
from capra.files import write_atomically

Record = dict[str, Any]

REFERENCE: Final = Path(__file__).parents[1] / "docs" / "reference"
BENCH: Final = REFERENCE / "bench.json"
PEERS: Final = REFERENCE / "peers.json"

_PACKAGES: Final = ("numpy", "numba")


def environment() -> Record:
    """Versions, and what of the machine decides how long something takes."""
    return {
        "capra": __version__,
        "python": platform.python_version(),
        **{name: _version(name) for name in _PACKAGES},
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def least(runs: Sequence[Record], *names: str) -> Record:
    """The first of some runs of one thing, with the least of all under the names that it has."""
    found = {name: min(run[name] for run in runs) for name in names if name in runs[0]}
    return {**runs[0], **found}


def read_bench(path: Path) -> Record:
    """The record of an earlier run, whose other parts stay. InputError if it is none."""
    try:
        record = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read as a record of this command: {error}") from None
    if not (
        isinstance(record, dict)
        and record.get("kind") == "bench"
        and isinstance(record.get("environments"), dict)
    ):
        raise InputError(
            f"{path} is JSON of another kind, expected a record of this command or no file"
        )
    return record


def write(path: Path, record: Record) -> None:
    """The record as JSON, numbers of measurements shortened to what they are worth."""
    text = json.dumps(shortened(record), indent=1)
    write_atomically(path, text.encode() + b"\n")
    print(f"wrote {path}", file=sys.stderr)


def shortened(value: Any) -> Any:
    """The same with every float at six significant digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: shortened(item) for key, item in value.items()}
    return [shortened(item) for item in value] if isinstance(value, list | tuple) else value


def say(what: str) -> None:
    """Progress of a benchmark, on stderr."""
    print(f"bench: {what} ...", file=sys.stderr, flush=True)
