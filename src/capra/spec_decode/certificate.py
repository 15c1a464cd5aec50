"""A runtime certificate: the integers of every committed row, of two runs, compared and digested.

A row is one position of the cache: its token, the logits after it, and its keys and values in every
layer. Rows of the prompt that were prefilled have no logits. The digest of a row is BLAKE2b-128 of

    position                                    int32
    for token, logits, l0.k, l0.v, l1.k, ...:   the name and a zero byte, the count as int32, and
                                                the elements as int32

with every int32 little-endian; the digest of a run is BLAKE2b-128 of its rows' digests in order.
Runs on two machines computed the same integers if their digests are equal.
"""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from itertools import zip_longest
from typing import Any, Final

from capra.lm.graphs import cache_names
from capra.lm.target import Forward, IntegerSession, IntegerTarget, ProgramRun
from capra.numerics import FloatArray

DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Row:
    """All integers of one committed row, by name, in the order of its digest."""

    position: int
    parts: Mapping[str, tuple[int, ...]]

    def digest(self) -> bytes:
        """16 bytes that any other position, name, count or integer would change."""
        summary = blake2b(_int32(self.position), digest_size=DIGEST_BYTES)
        for name, values in self.parts.items():
            summary.update(name.encode() + b"\0" + _int32(len(values), *values))
        return summary.digest()


def _int32(*values: int) -> bytes:
    return struct.pack(f"<{len(values)}i", *values)


class CertifyingTarget:
    """An integer target that remembers the committed rows of the session made last."""

    def __init__(self, target: IntegerTarget) -> None:
        self.vocab_size = target.vocab_size
        self.max_context = target.max_context
        self._target = target
        self._session: CertifyingSession | None = None

    @property
    def rows(self) -> Sequence[Row]:
        """Rows of that session, as they are now."""
        return () if self._session is None else self._session.rows()

    def session(self) -> "CertifyingSession":
        """A session with an empty cache, whose rows replace those of the one before."""
        names = cache_names(self._target.model.config)
        self._session = CertifyingSession(self._target.session(), names)
        return self._session


class CertifyingSession:
    """A session that knows the token and the logits of every row of its cache."""

    def __init__(self, session: IntegerSession, names: Sequence[str]) -> None:
        self._session = session
        self._names = names
        self._heads: list[Mapping[str, tuple[int, ...]]] = []

    def rows(self) -> list[Row]:
        """The committed rows, with the keys and values that the cache holds now."""
        cached = {name: self._session.cached(name).tolist() for name in self._names}
        return [
            Row(number, {**head, **{name: tuple(rows[number]) for name, rows in cached.items()}})
            for number, head in enumerate(self._heads)
        ]

    @property
    def length(self) -> int:
        """Rows in the cache."""
        return self._session.length

    def prefill(self, tokens: Sequence[int]) -> tuple[ProgramRun, ...]:
        """Append prompt tokens; their rows have no logits."""
        runs = self._session.prefill(tokens)
        self._heads += [{"token": (int(token),)} for token in tokens]
        return runs

    def forward(self, tokens: Sequence[int]) -> Forward:
        """Append a block and return the choice after each of its rows."""
        forward = self._session.forward(tokens)
        self._heads += [
            {"token": (int(token),), "logits": _integers(logits)}
            for token, logits in zip(tokens, forward.logits, strict=True)
        ]
        return forward

    def truncate(self, length: int) -> None:
        """Keep the first `length` rows; nothing is left of the others."""
        self._session.truncate(length)
        del self._heads[length:]


def _integers(logits: FloatArray) -> tuple[int, ...]:
    values = tuple(map(int, logits.tolist()))
    assert values == tuple(logits.tolist()), "an integer target has whole logits"
    return values


@dataclass(frozen=True, slots=True)
class Difference:
    """The first integer in which two runs differ; None where one of them has no such integer."""

    position: int
    part: str
    """token, logits, or the cached tensor."""
    element: int
    plain: int | None
    speculative: int | None


def first_difference(plain: Sequence[Row], speculative: Sequence[Row]) -> Difference | None:
    """The first difference within the plain run's rows, in the order of the digest.

    Rows that the speculative run committed behind those do not count; rows that it lacks do.
    """
    for position, row in enumerate(plain):
        other = speculative[position].parts if position < len(speculative) else {}
        for part in {**row.parts, **other}:
            pairs = zip_longest(row.parts.get(part, ()), other.get(part, ()))
            for element, (expected, found) in enumerate(pairs):
                if expected != found:
                    return Difference(position, part, element, expected, found)
    return None


def certificate_record(plain: Sequence[Row], speculative: Sequence[Row]) -> dict[str, Any]:
    """What was compared, the first difference if there is one, and all digests of both runs.

    `rows` is the number compared, those of the plain run, and each `digest` covers as many. The
    speculative run may end with `uncompared_rows` more, since its last block may go past the length
    asked for; they are in its list `rows` only. `equal` is None where no row was compared.
    """
    compared = len(plain)
    difference = first_difference(plain, speculative)
    return {
        "rows": compared,
        "uncompared_rows": max(len(speculative) - compared, 0),
        "equal": difference is None if compared else None,
        "first_difference": None if difference is None else asdict(difference),
        "plain": _run_record(plain, compared),
        "speculative": _run_record(speculative, compared),
    }


def _run_record(rows: Sequence[Row], compared: int) -> dict[str, Any]:
    digests = [row.digest() for row in rows]
    whole = blake2b(b"".join(digests[:compared]), digest_size=DIGEST_BYTES)
    return {"digest": whole.hexdigest(), "rows": [digest.hex() for digest in digests]}
