"""Text from outside (names, prompts, records, checkpoints) as a terminal or a page may have it."""

import re
from typing import Final

_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no page may have: control characters but tabs and line ends, and lone surrogates."""


def printable(text: str) -> str:
    """The text in one line: what cannot be printed, line ends too, as an escape."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def printable_lines(text: str) -> str:
    """The text with its line ends; anything else that cannot be printed as an escape."""
    return "\n".join(map(printable, text.split("\n")))


def visible(text: str) -> str:
    """The text with control characters and lone surrogates, but no spaces or line ends, escaped."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
