"""Writing files so that a reader never meets half of one, and digests of files that were read."""

import os
import secrets
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path

from capra.errors import InputError


def write_atomically(path: Path, data: bytes) -> None:
    """Write `data` to `path` in one step: the old file stays until the new one is whole.

    A new file has the permissions that the umask leaves; a file that is replaced passes its own on.
    Raises InputError when the path cannot be written; nothing is left behind then.
    """
    check_writable(path)
    try:
        path = path.resolve()  # a link stays, and what it points to is replaced
        mode = path.stat().st_mode & 0o777 if path.exists() else None
        temporary = path.with_name(f".capra-{secrets.token_hex(8)}")
        handle = os.open(
            temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else mode
        )
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        if mode is not None:
            temporary.chmod(mode)  # what the umask took
        temporary.replace(path)
    except BaseException as error:
        temporary.unlink()
        if isinstance(error, OSError):
            raise InputError(f"cannot write {path}: {error.strerror}") from None
        raise


def check_writable(path: Path) -> None:
    """Raise InputError unless a file can be written at `path`; for use before long work."""
    try:
        folder = path.resolve().parent
        if path.exists() and not path.is_file():
            raise InputError(f"cannot write {path}: it is there and is not a regular file")
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            raise InputError(f"cannot write {path}, expected a file name in a writable directory")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from None


def check_distinct(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Raise InputError for an output that is an input or another output, links followed."""
    taken = {os.path.realpath(path): path for path in inputs}
    for path in outputs:
        real = os.path.realpath(path)
        if real in taken:
            raise InputError(
                f"cannot write {path}: it is {taken[real]} too, expected a file of its own"
            )
        taken[real] = path


def digests(names: Iterable[str]) -> dict[str, str | None]:
    """Digests of the content of files by name, 32 hex digits; None for one that cannot be read."""
    return {name: digest(Path(name)) for name in names}


def digest(path: Path) -> str | None:
    """BLAKE2b of 16 bytes of a file's content, as 32 hex digits; None where it cannot be read."""
    try:
        return blake2b(path.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return None
