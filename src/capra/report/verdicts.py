"""What became of every token of a block."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """A guess is accepted, rejected or unreached; the target's own token ends the block."""

    ACCEPTED = "accepted"
    """A guess that is the target's own choice, like all before it."""
    REJECTED = "rejected"
    """The first guess that is not."""
    UNREACHED = "unreached"
    """A guess behind a rejected one."""
    RECOVERED = "recovered"
    """The target's token in place of the rejected guess."""
    BONUS = "bonus"
    """The target's token behind guesses that were all accepted."""
    PLAIN = "plain"
    """The target's token where nothing was guessed."""


def verdicts(block: Mapping[str, Any]) -> list[Verdict]:
    """One a guess, then that of the target's own token, for a block of a decode record."""
    guesses, accepted = len(block["proposed"]), block["accepted"]
    found = [Verdict.ACCEPTED] * accepted
    if accepted == guesses:
        return [*found, Verdict.BONUS if guesses else Verdict.PLAIN]
    behind = [Verdict.UNREACHED] * (guesses - accepted - 1)
    return [*found, Verdict.REJECTED, *behind, Verdict.RECOVERED]
