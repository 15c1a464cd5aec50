"""Equal logits: the first index wins, across lanes and tiles of the array, whatever the draft."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from tests.system.rows import MAKERS, Watched, assert_same_rows, take_steps
from tests.system.ties import CONTEXT, VOCAB, tied_group, tied_model

from capra.spec_decode.decode import decode
from capra.spec_decode.proposers import Proposal, Proposer, ScriptedProposer, always_right

OTHERS = (4, 7, 1, 10)
"""The other group: the first two of these that are free."""


@pytest.mark.sample(10)
@pytest.mark.parametrize("pair", [*combinations(range(VOCAB), 2)], ids=str)
def test_the_first_of_two_equal_logits_wins(pair: tuple[int, int]) -> None:
    minus = tuple(token for token in OTHERS if token not in pair)[:2]
    model = tied_model(pair, minus, seed=pair[0] * VOCAB + pair[1])
    for name, make in MAKERS.items():
        forward = make(model).session().forward(range(VOCAB))
        for token, (choice, logits) in enumerate(zip(forward.choices, forward.logits, strict=True)):
            group = tied_group(pair, minus, token)
            assert np.flatnonzero(logits == logits.max()).tolist() == group, name
            assert choice == group[0], name


class _Later:
    """Proposes the later one of the tied tokens, which is as likely and still not the choice."""

    vocab_size = None

    def __init__(self, plus: tuple[int, ...], minus: tuple[int, ...]) -> None:
        self._groups = plus, minus

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        return Proposal((tied_group(*self._groups, text[-1])[-1],) * count)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("plus", "minus"), [((3, 4), (1, 9)), ((0, 8, 10), (2, 5, 6, 7))])
def test_a_draft_that_proposes_a_later_one_is_refused(
    name: str, plus: tuple[int, ...], minus: tuple[int, ...]
) -> None:
    watched = Watched(MAKERS[name](tied_model(plus, minus)))
    steps = take_steps(watched.inner, (5,))
    drafts: dict[bool, Proposer] = {
        True: always_right(steps.text, VOCAB), False: _Later(plus, minus),
    }  # fmt: skip
    for right, draft in drafts.items():
        run = decode(watched, (5,), 99, proposer=draft, num_speculative_tokens=3)
        assert_same_rows(run, watched, steps)
        assert {min(plus), min(minus)} == set(run.tokens)
        for block in run.blocks:
            assert block.accepted == (len(block.proposed) if right else 0)


@pytest.mark.parametrize("name", MAKERS)
def test_all_logits_equal(name: str) -> None:
    watched = Watched(MAKERS[name](tied_model((), ())))
    steps = take_steps(watched.inner, (5,))
    assert all(not logits.any() for logits in steps.logits)
    for accept in ([None], [0], [1, 0, 3]):
        draft = ScriptedProposer(steps.text, VOCAB, accept)
        run = decode(watched, (5,), 99, proposer=draft, num_speculative_tokens=3)
        assert_same_rows(run, watched, steps)
        assert run.tokens == (0,) * CONTEXT
