"""What became of each token of a block, worked out by hand."""

import pytest

from capra.report.verdicts import verdicts


@pytest.mark.parametrize(
    ("guesses", "accepted", "found"),
    [
        (0, 0, "plain"),
        (1, 1, "accepted bonus"),
        (1, 0, "rejected recovered"),
        (3, 3, "accepted accepted accepted bonus"),
        (3, 2, "accepted accepted rejected recovered"),
        (3, 0, "rejected unreached unreached recovered"),
        (4, 1, "accepted rejected unreached unreached recovered"),
    ],
)
def test_verdicts_of_a_block(guesses: int, accepted: int, found: str) -> None:
    block = {"proposed": [7] * guesses, "accepted": accepted}
    assert [verdict.value for verdict in verdicts(block)] == found.split()
