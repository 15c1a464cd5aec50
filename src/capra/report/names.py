"""Names of records as parts of file names: short, and of characters that every system has."""

import re
from hashlib import blake2b
from typing import Final

_SAFE: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,79}")
_LONGEST: Final = 40


def slug(name: str) -> str:
    """The name itself where it is safe; otherwise what is safe of it, and a digest of all of it."""
    if _SAFE.fullmatch(name):
        return name
    kept = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:_LONGEST].rstrip("-")
    mark = blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{kept or 'record'}-{mark}"
