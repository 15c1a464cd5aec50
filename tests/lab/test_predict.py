"""The models of a run against enumeration by hand, and against runs."""

from collections.abc import Iterator, Sequence
from itertools import product

import pytest
from tests.lm.samples import chip_target, random_tokens, text_model

from capra.errors import InputError
from capra.isa.timing import Counters
from capra.lab.costs import ProgramCosts
from capra.lab.predict import (
    Extent,
    Profile,
    Rates,
    break_even_acceptance,
    expected_run,
    geometric_speedup,
    guess_cycles,
    profile_of,
    steady_state,
)
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram
from capra.lm.target import ProgramRun
from capra.spec_decode.decode import decode
from capra.spec_decode.metrics import acceptance, total_counters
from capra.spec_decode.proposers import ChainProposer, Proposal, Proposer, RandomProposer

Run = tuple[float, int, int, list[int]]
"""Chance, cycles, proposed guesses, accepted guesses of each block."""


def cycles(rows: int, cache: int) -> int:
    """Costs of no real machine: no line in either of the two."""
    return 100 + 7 * rows * rows + 3 * cache + (cache % 3) * rows


def runs(extent: Extent, k: int, rates: tuple[float, ...], emitted: int = 0) -> Iterator[Run]:
    """Every run that is possible, one block after the other."""
    if emitted >= extent.new_tokens:
        yield 1.0, 0, 0, []
        return
    cache = extent.first_cache + emitted
    left = extent.new_tokens - emitted - 1
    guesses = min(k, extent.context - 1 - cache, left if extent.shortens_last_block else k)
    own = cycles(guesses + 1, cache) + guesses * int(extent.draft_cycles)
    for accepted in range(guesses + 1):
        chance = 1.0
        for guess in range(accepted):
            chance *= rates[guess]
        if accepted < guesses:
            chance *= 1 - rates[accepted]
        for rest, cost, proposed, blocks in runs(extent, k, rates, emitted + accepted + 1):
            yield chance * rest, cost + own, proposed + guesses, [accepted, *blocks]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("context", [9, 40])
@pytest.mark.parametrize("shortens", [False, True])
def test_the_expectation_is_that_of_all_runs(k: int, context: int, shortens: bool) -> None:
    extent, rates = Extent(2, 7, context, 5.0, shortens), (0.8, 0.3, 0.6)
    every = list(runs(extent, k, rates))
    assert sum(chance for chance, *_ in every) == pytest.approx(1)
    found = expected_run(k, Rates(rates), extent, cycles)
    assert found.cycles == pytest.approx(sum(p * cost for p, cost, _, _ in every))
    assert found.blocks == pytest.approx(sum(p * len(blocks) for p, _, _, blocks in every))
    assert found.proposed == pytest.approx(sum(p * guesses for p, _, guesses, _ in every))
    for guess, accepted in enumerate(found.accepted_per_position):
        counted = sum(p * sum(a > guess for a in blocks) for p, _, _, blocks in every)
        assert accepted == pytest.approx(counted)
    accepted = sum(p * sum(blocks) for p, _, _, blocks in every)
    assert found.acceptance_rate == pytest.approx(accepted / found.proposed)


@pytest.mark.parametrize("context", [7, 40])
@pytest.mark.parametrize("shortens", [False, True])
def test_a_shorter_block_does_not_lower_the_rates(context: int, shortens: bool) -> None:
    found = expected_run(3, Rates((1.0,)), Extent(2, 6, context, 0.0, shortens), cycles)
    assert found.rates().conditional == (1.0, 1.0, 1.0)


def test_the_rates_of_an_expectation_are_those_given_where_nothing_ends() -> None:
    found = expected_run(3, Rates((0.8, 0.3, 0.6)), Extent(0, 9, 99, 0.0), cycles)
    assert found.rates().conditional == pytest.approx((0.8, 0.3, 0.6))
    never = expected_run(2, Rates((0.0, 0.7)), Extent(0, 9, 99, 0.0), cycles)
    assert never.rates().conditional == (0.0, 0.0)


def test_the_last_rate_goes_on() -> None:
    assert Rates((0.5, 0.25)).accepted(3, 3) == pytest.approx([0.5, 0.375, 0.09375, 0.03125])
    assert Rates((1.0,)).accepted(0, 2) == [0.0, 0.0, 1.0]


def test_a_profile_is_certain() -> None:
    profile = Profile((0, 3, 1), (4, 4, 1))
    assert [profile.guesses(position, 2) for position in range(3)] == [2, 2, 1]
    assert profile.accepted(0, 2) == [1.0]
    assert profile.accepted(1, 2) == [0.0, 0.0, 1.0]
    assert profile.accepted(1, 4) == [0.0, 0.0, 0.0, 1.0]
    assert profile.accepted(2, 2) == [0.0, 1.0]


@pytest.mark.parametrize("bad", [(), (1.2,), (0.5, -0.1)])
def test_rates_are_chances(bad: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="acceptance"):
        Rates(bad)


class _Follower:
    """Guesses the token after the last one, by a cyclic rule that fails after multiples of 4."""

    vocab_size = None

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        guesses = tuple((text[-1] + 1 + j) % 10 for j in range(count))
        return Proposal(guesses, (ProgramRun("draft", 1, 0, Counters(matrix=6)),) * count)


def test_a_profile_counts_right_guesses_at_every_position() -> None:
    text = [1, 2, 3, 5, 6, 7, 8, 8, 9]
    profile, cost = profile_of(_Follower(), text, 1, 5, 3)
    assert profile.right == (2, 1, 0, 3, 2)
    assert cost == 6.0
    behind, _ = profile_of(_Follower(), text, 8, 2, 3)
    assert behind.right == (1, 0), "guesses behind the end of the text count as wrong"
    assert guess_cycles(_Follower(), [4]) == 6.0
    assert guess_cycles(RandomProposer(10, 1), [4]) == 0.0


class _Lookup:
    """Guesses what followed the last token when it came up before: fewer than asked, or nothing."""

    vocab_size = None

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        before = list(text[:-1])
        start = len(before) - before[::-1].index(text[-1]) if text[-1] in before else len(text)
        return Proposal(tuple(text[start : start + count]))


def test_a_draft_may_guess_less_than_it_is_asked_for() -> None:
    target = chip_target("structured")
    text = decode(target, [0], 40)
    profile, guess = profile_of(_Lookup(), text.prompt + text.tokens, 1, 30, 3)
    assert guess == 0 and {0, 3} <= set(profile.proposed)
    costs, extent = ProgramCosts(target), Extent(0, 30, target.max_context, 0.0)
    for k in (1, 3):
        run = decode(target, [0], 30, proposer=_Lookup(), num_speculative_tokens=k)
        found = expected_run(k, profile, extent, costs.cycles)
        assert found.cycles == total_counters(run.runs).total
        assert found.proposed == acceptance(run)["proposed"] < k * found.blocks


def test_profiles_predict_runs_to_the_cycle(seed: int) -> None:
    """Every noise, every k, up to the end of the context and behind it."""
    target, model = chip_target("text"), text_model()
    prompt = random_tokens(seed, target.vocab_size, 1 + seed)
    text = decode(target, prompt, 99)
    costs, compared = ProgramCosts(target), 0
    for noise in (0.0, 4.0):
        draft: Proposer = ChainProposer(
            ChipBigram(load_bigram(model, noise, seed), model.config.chip)
        )
        for new_tokens in (9, target.max_context - len(prompt) + 1):
            whole = text.prompt + text.tokens
            profile, guess = profile_of(draft, whole, len(prompt), new_tokens, 5)
            for k, shorten in product((1, 2, 5), (False, True)):
                extent = Extent(len(prompt) - 1, new_tokens, target.max_context, guess, shorten)
                run = decode(
                    target, prompt, new_tokens, proposer=draft, num_speculative_tokens=k,
                    shorten_last_block=shorten,
                )  # fmt: skip
                counts, found = acceptance(run), expected_run(k, profile, extent, costs.cycles)
                executed = total_counters([r for block in run.blocks for r in block.runs])
                assert found.cycles == executed.total, (noise, new_tokens, k)
                assert found.blocks == counts["blocks"] and found.proposed == counts["proposed"]
                per_position = list(found.accepted_per_position)
                assert per_position == counts["accepted_per_position"]
                compared += counts["accepted"]
    assert compared > 30, "nothing was accepted anywhere"


def test_pooled_rates_count_every_position_alike() -> None:
    """Of three positions with three guesses: 2 of 3 right, then 2 of 2, then 1 of 2."""
    assert Profile((2, 0, 3), (3, 3, 3)).pooled() == Rates((2 / 3, 1.0, 0.5))
    assert Profile((1, 0), (1, 0)).pooled() == Rates((1.0,))
    assert Profile((0,), (0,)).pooled() == Rates((0.0,))


def test_the_geometric_model_takes_costs_at_one_cache() -> None:
    extent = Extent(0, 30, 64, 10.0)
    expected = (1 + 0.5 + 0.25) * cycles(1, 12) / (2 * 10 + cycles(3, 12))
    assert geometric_speedup(2, 0.5, extent, cycles) == pytest.approx(expected)
    short = geometric_speedup(2, 0.5, Extent(0, 5, 10, 10.0), cycles)
    assert short == pytest.approx(1.75 * cycles(1, 7) / (20 + cycles(3, 7)))


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("tokens", [1, 6])
def test_the_steady_state_is_that_of_all_texts_up_to_the_context(k: int, tokens: int) -> None:
    rates, context = (0.8, 0.3, 0.6), 9
    extent, end = Extent(2, tokens, context, 5.0, shortens_last_block=True), context - 2

    def blocks(chance: float, position: int) -> Iterator[tuple[float, int, int, int]]:
        """Chance, position, draft tokens and tokens of every block from here on."""
        if position >= end:
            return
        guesses = min(k, context - 3 - position)
        for accepted in range(guesses + 1):
            share = chance
            for guess in range(accepted):
                share *= rates[guess]
            share *= 1 - rates[accepted] if accepted < guesses else 1
            yield share, position, guesses, accepted + 1
            yield from blocks(share, position + accepted + 1)

    every = list(blocks(1.0, 0))
    assert sum(share * made for share, _, _, made in every) == pytest.approx(end)
    cost = sum(share * (cycles(g + 1, 2 + position) + 5 * g) for share, position, g, _ in every)
    plain = sum(cycles(1, 2 + position) for position in range(end))
    found = steady_state(k, Rates(rates), extent, cycles)
    assert found.cycles == pytest.approx(cost / end)
    assert found.plain_cycles == pytest.approx(plain / end)
    assert found.tokens_per_block == pytest.approx(end / sum(share for share, *_ in every))
    assert found.speedup == pytest.approx(plain / cost)


def test_the_length_of_a_run_has_no_part_in_the_steady_state() -> None:
    """A perfect draft with 15 draft tokens: two blocks are 32 tokens, 33 take three."""
    found = {
        steady_state(15, Rates((1.0,)), Extent(0, tokens, 200, 5.0), cycles)
        for tokens in range(1, 60)
    }
    assert len(found) == 1


@pytest.mark.parametrize("k", [1, 3])
def test_at_the_break_even_acceptance_both_cost_the_same(k: int) -> None:
    extent = Extent(3, 20, 64, 12.0)
    found = break_even_acceptance(k, extent, cycles)
    assert found is not None and 0 < found < 1
    assert steady_state(k, Rates((found,)), extent, cycles).speedup == pytest.approx(1)
    assert steady_state(k, Rates((found + 0.02,)), extent, cycles).speedup > 1


def test_some_drafts_never_pay_and_some_always_do() -> None:
    assert break_even_acceptance(2, Extent(0, 9, 64, 1e6), cycles) is None
    assert break_even_acceptance(2, Extent(0, 9, 64, 0.0), lambda _rows, _cache: 100) == 0.0
