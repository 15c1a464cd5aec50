"""The text the character models learn: the help topics that come with Python.

The topics are part of the standard library (`pydoc_data.topics`, what `help("with")` prints), so
the text is there wherever Python is and nothing has to be downloaded. It differs a little between
Python versions; `Corpus.digest` tells which text a checkpoint was trained on.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pydoc_data.topics import topics

HELD_OUT_PARTS = 10
"""One part in this many of the text, the last one, is held out of training."""


@dataclass(frozen=True)
class Corpus:
    """ASCII text in two disjoint parts; `train + held_out` is the whole text.

    `digest` is the SHA-256, in hexadecimal, of the whole text encoded as ASCII.
    """

    train: str
    held_out: str
    digest: str


def load_corpus() -> Corpus:
    """The help topics in the order of their names, without the characters that are not ASCII.

    The last tenth, counted in characters, is held out. With Python 3.11 the whole is 464 thousand
    characters, 94 of them distinct. The same on every call and machine for one Python version.
    """
    joined = "".join(topics[name] for name in sorted(topics))
    text = "".join(char for char in joined if ord(char) < 128)
    cut = len(text) - len(text) // HELD_OUT_PARTS
    digest = hashlib.sha256(text.encode("ascii")).hexdigest()
    return Corpus(train=text[:cut], held_out=text[cut:], digest=digest)
