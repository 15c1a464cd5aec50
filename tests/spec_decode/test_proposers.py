"""Each proposer does what its name says."""

from itertools import pairwise

import pytest

from capra.errors import InputError
from capra.isa.timing import Counters
from capra.lm.target import ProgramRun
from capra.spec_decode.proposers import (
    ChainProposer,
    ConstantProposer,
    OutsideProposer,
    Proposal,
    RandomProposer,
    ScriptedProposer,
    always_right,
    always_wrong,
    right_at_rates,
)

TEXT = [3, 1, 4, 1, 5, 0, 2]


class _Doubler:
    """Guesses 2 t mod 11, at the cost of one numbered program."""

    vocab_size = 11

    def next(self, token: int) -> tuple[int, tuple[ProgramRun, ...]]:
        return 2 * token % 11, (ProgramRun("draft", 1, token, Counters()),)


def test_a_chain_guesses_from_the_guess_before() -> None:
    proposer = ChainProposer(_Doubler())
    proposal = proposer.propose([7, 1], 4)
    assert proposal.tokens == (2, 4, 8, 5)
    assert [run.cache for run in proposal.runs] == [1, 2, 4, 8]
    assert proposer.propose([7, 1], 0) == Proposal(())
    assert proposer.vocab_size == 11


def test_a_constant_is_constant() -> None:
    assert ConstantProposer(6).propose(TEXT, 3) == Proposal((6, 6, 6))
    assert ConstantProposer(6).vocab_size is None


def test_random_draws_come_from_a_seed() -> None:
    one, same, other = RandomProposer(7, 1), RandomProposer(7, 1), RandomProposer(7, 2)
    draws = [one.propose(TEXT, 5).tokens for _ in range(40)]
    assert draws == [same.propose(TEXT, 5).tokens for _ in range(40)]
    assert draws != [other.propose(TEXT, 5).tokens for _ in range(40)]
    assert {token for draw in draws for token in draw} == set(range(7))
    assert one.vocab_size == 7


def test_a_script_is_right_as_often_as_it_says() -> None:
    proposer = ScriptedProposer(TEXT, 6, [2, 0, None])
    assert proposer.propose(TEXT[:1], 4).tokens == (1, 4, 2, 5)  # the third is wrong
    assert proposer.propose(TEXT[:2], 3).tokens == (5, 1, 5)
    assert proposer.propose(TEXT[:3], 2).tokens == (1, 5)
    assert proposer.propose(TEXT[:3], 9).tokens == (1, 5, 0, 2)  # the last count goes on
    assert proposer.propose(TEXT, 3).tokens == ()  # its text ends here


def test_a_wrong_guess_stays_in_the_vocabulary() -> None:
    assert always_wrong([0, 5], 6).propose([0], 1).tokens == (0,)


def test_always_right_and_always_wrong() -> None:
    assert always_right(TEXT, 6).propose(TEXT[:2], 3).tokens == (4, 1, 5)
    assert always_wrong(TEXT, 6).propose(TEXT[:2], 3).tokens == (5, 1, 5)


def test_a_draft_at_rates_is_right_as_often_as_they_say(seed: int) -> None:
    text, blocks = [0] * 4000, 2000
    proposer = right_at_rates(text, 7, (0.9, 0.5), seed)
    accepted = []
    for _ in range(blocks):
        guesses = proposer.propose(text[:1], 6).tokens
        accepted.append(next((place for place, guess in enumerate(guesses) if guess), 6))
    reached = [sum(count >= right for count in accepted) for right in range(5)]
    for rate, (before, after) in zip((0.9, 0.5, 0.5, 0.5), pairwise(reached), strict=True):
        assert after / before == pytest.approx(rate, abs=0.08)


def test_rates_of_0_and_1_are_certain_and_seeds_decide_the_rest() -> None:
    assert right_at_rates(TEXT, 6, (1.0,), 3).propose(TEXT[:1], 4).tokens == tuple(TEXT[1:5])
    assert right_at_rates(TEXT, 6, (1.0, 0.0), 3).propose(TEXT[:1], 2).tokens == (TEXT[1], 5)

    def draws(seed: int) -> list[tuple[int, ...]]:
        proposer = right_at_rates([0] * 99, 6, (0.5,), seed)
        return [proposer.propose([0], 4).tokens for _ in range(50)]

    assert draws(1) == draws(1) != draws(2)
    with pytest.raises(InputError, match="rates are empty, expected at least one"):
        right_at_rates(TEXT, 6, (), 1)


def test_a_script_needs_a_count() -> None:
    with pytest.raises(InputError, match="script accepts no counts, expected at least one"):
        ScriptedProposer(TEXT, 6, [])


@pytest.mark.parametrize("right", range(4))
def test_an_outside_id_replaces_one_guess(right: int) -> None:
    proposer = OutsideProposer(always_right(TEXT, 6), right, -1)
    guesses = [1, 4, 1]
    if right < 3:
        guesses[right] = -1
    assert proposer.propose(TEXT[:1], 3).tokens == tuple(guesses)


def test_an_outside_proposer_keeps_the_programs_of_the_other() -> None:
    proposer = OutsideProposer(ChainProposer(_Doubler()), 1, 99)
    assert proposer.vocab_size == 11
    proposal = proposer.propose([1], 3)
    assert proposal.tokens == (2, 99, 8) and len(proposal.runs) == 3
