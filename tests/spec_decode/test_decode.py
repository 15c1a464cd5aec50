"""The loop, on a toy target: always the target's own text, counted right."""

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.lm.samples import chip_target, tiny
from tests.spec_decode.accounts import assert_accounts
from tests.spec_decode.toy import CONTEXT, VOCAB, ListProposer, ToySession, ToyTarget, plain_text

from capra.errors import CapacityError, InputError
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram
from capra.lm.target import ChipTarget, FloatTarget, Forward
from capra.lm.tiny import random_model
from capra.sim.device import Execution, SimulatedDevice
from capra.spec_decode.decode import Decoded, count_accepted, decode
from capra.spec_decode.metrics import run_record
from capra.spec_decode.proposers import (
    ChainProposer,
    ConstantProposer,
    OutsideProposer,
    Proposal,
    Proposer,
    RandomProposer,
    ScriptedProposer,
    always_right,
    always_wrong,
)

PROMPT = (3, 1)
ALL = plain_text(PROMPT, CONTEXT)
WHOLE = [*PROMPT, *ALL]
TOKENS = st.integers(0, VOCAB - 1)


def _decode(
    proposer: Proposer | None, k: int, n: int = 99, prompt: Sequence[int] = PROMPT
) -> Decoded:
    return decode(ToyTarget(), prompt, n, proposer=proposer, num_speculative_tokens=k)


def _assert_accounts(run: Decoded, target: ToyTarget, n: int, k: int) -> None:
    """The identities of the counts, and what the cache holds."""
    assert_accounts(run, n, k, CONTEXT)
    emitted = [token for block in run.blocks for token in block.emitted]
    assert target.last.text == [*run.prompt, *emitted][:-1] if run.blocks else not run.runs


@given(k=st.integers(0, 6), n=st.integers(1, 9), right=st.booleans())
def test_a_shortened_block_ends_with_the_last_token(k: int, n: int, right: bool) -> None:
    proposer = (always_right if right else always_wrong)(WHOLE, VOCAB)
    run = decode(
        ToyTarget(), PROMPT, n,
        proposer=proposer, num_speculative_tokens=k, shorten_last_block=True,
    )  # fmt: skip
    assert list(run.tokens) == ALL[:n]
    left = n
    for block in run.blocks:
        assert len(block.proposed) == min(k, left - 1)
        left -= len(block.emitted)
    assert left == 0 and run.cache_length == len(PROMPT) - 1 + n


def test_blocks_have_as_many_guesses_unless_shortened() -> None:
    run = _decode(always_right(WHOLE, VOCAB), 3, 6)
    assert [len(block.proposed) for block in run.blocks] == [3, 3]


def test_the_longest_right_prefix_is_accepted() -> None:
    for guesses, choices, accepted in (
        ([], [4], 0),
        ([1, 2, 3], [1, 2, 3, 4], 3),
        ([9, 2, 3], [1, 2, 3, 4], 0),
        ([1, 9, 3], [1, 2, 3, 4], 1),
        ([1, 2, 9], [1, 2, 3, 4], 2),
        ([2, 3, 4], [1, 2, 3, 4], 0),
    ):
        assert count_accepted(guesses, choices) == accepted


class _Number(int):
    """Never the same object as an equal one, as numpy's numbers are not, nor those above 256."""


def test_tokens_and_counts_are_compared_by_their_values() -> None:
    assert count_accepted([_Number(1), _Number(2)], [1, 2, 3]) == 2
    run = decode(ToyTarget(), PROMPT, 9, stop_token=_Number(ALL[0]))
    assert (list(run.tokens), run.stop_reason) == (ALL[:1], "stop")
    run = decode(ToyTarget(), PROMPT, _Number(3))
    assert (list(run.tokens), run.stop_reason) == (ALL[:3], "length")
    target = ToyTarget()
    target.max_context = _Number(CONTEXT)
    run = decode(target, PROMPT, 99)
    assert (list(run.tokens), run.stop_reason) == (ALL, "context")
    assert list(_decode(RandomProposer(_Number(VOCAB), 0), 1).tokens) == ALL


def test_any_number_of_guesses_may_be_right() -> None:
    assert count_accepted([1] * 1000, [1] * 1001) == 1000


@given(
    prompt=st.lists(TOKENS, min_size=1, max_size=CONTEXT),
    proposals=st.lists(st.lists(st.integers(-1, VOCAB), max_size=6), max_size=12),
    n=st.integers(0, CONTEXT + 2),
    k=st.integers(0, 7),
)
def test_no_proposal_changes_the_text(
    prompt: list[int], proposals: list[list[int]], n: int, k: int
) -> None:
    target = ToyTarget()
    run = decode(target, prompt, n, proposer=ListProposer(proposals), num_speculative_tokens=k)
    assert list(run.tokens) == plain_text(prompt, n)
    _assert_accounts(run, target, n, k)


@given(
    prompt=st.lists(TOKENS, min_size=1, max_size=CONTEXT),
    script=st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=6),
    k=st.integers(1, 6),
)
def test_a_script_of_acceptances_is_what_happens(
    prompt: list[int], script: list[int | None], k: int
) -> None:
    target, n = ToyTarget(), CONTEXT
    whole = [*prompt, *plain_text(prompt, CONTEXT)]
    proposer = ScriptedProposer(whole, VOCAB, script)
    run = decode(target, prompt, n, proposer=proposer, num_speculative_tokens=k)
    assert list(run.tokens) == whole[len(prompt) :][:n]
    _assert_accounts(run, target, n, k)
    for number, block in enumerate(run.blocks):
        told = script[min(number, len(script) - 1)]
        possible = len(block.proposed)
        assert block.accepted == (possible if told is None else min(told, possible))


@pytest.mark.parametrize("k", range(1, 8))
def test_every_number_of_accepted_guesses_is_reached(k: int) -> None:
    for j in range(k + 1):
        run = _decode(ScriptedProposer(WHOLE, VOCAB, [j]), k)
        assert list(run.tokens) == ALL
        full = [block for block in run.blocks if len(block.proposed) == k]
        assert full and all(block.accepted == j for block in full)


def test_a_block_is_the_last_token_and_the_guesses() -> None:
    target = ToyTarget()
    run = decode(
        target, PROMPT, 3, proposer=ListProposer([[ALL[0], 9, 1]]), num_speculative_tokens=3
    )
    first, second = run.blocks
    assert first.tokens == (PROMPT[-1], ALL[0])  # 9 is outside, and so is what is behind it
    assert first.proposed == (ALL[0], 9, 1)
    assert first.choices == (ALL[0], ALL[1])
    assert (first.accepted, first.emitted) == (1, (ALL[0], ALL[1]))
    assert second.tokens == (ALL[1],)
    assert target.last.calls == [
        ("prefill", PROMPT[:-1]),
        ("forward", first.tokens), ("truncate", 3),
        ("forward", second.tokens), ("truncate", 4),
    ]  # fmt: skip


def test_rows_behind_the_accepted_guesses_are_dropped() -> None:
    wrong = (ALL[0] + 1) % VOCAB
    target = ToyTarget()
    proposer = ListProposer([[wrong, 0, 0]])
    decode(target, PROMPT, 1, proposer=proposer, num_speculative_tokens=3)
    assert target.last.text == [*PROMPT]


def test_the_recorded_blocks_of_the_random_model() -> None:
    """The third one began with a tie between 9 and 11, which the record broke otherwise."""
    model = tiny("random", 1)
    run = decode(
        FloatTarget(model), [0], 5,
        proposer=ChainProposer(load_bigram(model, 0.0, 1)), num_speculative_tokens=3,
    )  # fmt: skip
    assert [(b.tokens, b.choices, b.accepted, b.emitted) for b in run.blocks] == [
        ((0, 5, 3, 13), (5, 3, 13, 9), 3, (5, 3, 13, 9)),
        ((9, 10, 9, 10), (1, 11, 10, 11), 0, (1,)),
    ]
    guesses = ListProposer([[11, 11, 11]])
    third = decode(
        FloatTarget(model), [0, 5, 3, 13, 9, 1], 4, proposer=guesses, num_speculative_tokens=3
    )
    assert [(b.tokens, b.accepted, b.emitted) for b in third.blocks] == [
        ((1, 11, 11, 11), 3, (11, 11, 11, 11))
    ]


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", ["random1", "random2", "structured3"])
@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_exact_in_float_with_every_draft(name: str, k: int) -> None:
    model = tiny(name[:-1], int(name[-1]))
    plain = decode(FloatTarget(model), [5], 20)
    drafts: list[Proposer] = [RandomProposer(16, 1), ConstantProposer(11)]
    drafts += [ChainProposer(load_bigram(model, noise, 1)) for noise in (0.0, 3.0, 100.0)]
    for draft in drafts:
        run = decode(FloatTarget(model), [5], 20, proposer=draft, num_speculative_tokens=k)
        assert run.tokens == plain.tokens and len(run.tokens) == 20
        blocks, accepted = len(run.blocks), sum(block.accepted for block in run.blocks)
        emitted = sum(len(block.emitted) for block in run.blocks)
        assert sum(len(block.proposed) for block in run.blocks) == blocks * k
        assert accepted <= blocks * k
        assert emitted == accepted + blocks == run.cache_length
        assert 20 / (k + 1) <= blocks <= 20


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("token", [-1, VOCAB, 1 << 40])
def test_ids_outside_the_vocabulary_end_the_right_guesses(position: int, token: int) -> None:
    run = _decode(OutsideProposer(always_right(WHOLE, VOCAB), position, token), 3)
    assert list(run.tokens) == ALL
    for block in run.blocks:
        assert block.accepted == min(position, len(block.proposed))
        assert (token in block.proposed) == (position < len(block.proposed))


@pytest.mark.parametrize("k", range(1, 15))
def test_a_right_draft_is_accepted_completely_up_to_the_context(k: int) -> None:
    run = _decode(always_right(WHOLE, VOCAB), k)
    assert list(run.tokens) == ALL and run.stop_reason == "context"
    assert all(block.accepted == len(block.proposed) for block in run.blocks)
    rows = CONTEXT - len(PROMPT) + 1
    assert len(run.blocks) == -(-rows // (k + 1))


def test_a_wrong_draft_costs_a_pass_a_token() -> None:
    run = _decode(always_wrong(WHOLE, VOCAB), 3)
    assert list(run.tokens) == ALL
    assert len(run.blocks) == len(ALL)


@pytest.mark.parametrize("k", range(8))
@pytest.mark.parametrize("n", range(10))
def test_lengths_are_exact(k: int, n: int) -> None:
    for proposer in (always_right(WHOLE, VOCAB), ConstantProposer(ALL[0])):
        run = _decode(proposer, k, n)
        assert list(run.tokens) == ALL[:n]
        assert run.stop_reason == "length"


@pytest.mark.parametrize("room", range(9))
@pytest.mark.parametrize("k", range(8))
def test_a_prompt_near_the_context_limit_goes_on_up_to_it(room: int, k: int) -> None:
    prompt = (WHOLE * 2)[: CONTEXT - room]
    whole = [*prompt, *plain_text(prompt, 99)]
    run = _decode(always_right(whole, VOCAB), k, 99, prompt)
    assert list(run.tokens) == whole[len(prompt) :] and len(run.tokens) == room + 1
    assert run.stop_reason == "context"
    assert run.cache_length == CONTEXT


def test_guesses_are_asked_for_while_there_is_room_to_check_them() -> None:
    proposer = ListProposer([])
    run = _decode(proposer, 4)
    assert list(run.tokens) == ALL
    room = [CONTEXT - len(text) for text, _ in proposer.asked]
    assert [count for _, count in proposer.asked] == [min(4, places) for places in room]
    assert room == list(range(CONTEXT - len(PROMPT), 0, -1))


def test_the_draft_sees_the_whole_text() -> None:
    proposer = ListProposer([[0], [1, 2], [3]])
    _decode(proposer, 2, 6)
    for text, _ in proposer.asked:
        assert list(text) == WHOLE[: len(text)]


def test_no_speculative_tokens_is_plain_decoding() -> None:
    plain = decode(ToyTarget(), PROMPT, 6)
    proposer = ListProposer([[0]])
    zero = decode(ToyTarget(), PROMPT, 6, proposer=proposer, num_speculative_tokens=0)
    assert zero == plain
    assert proposer.asked == []
    assert [run.role for run in zero.runs] == ["prefill"] + ["step"] * 6


def test_no_new_tokens_run_nothing() -> None:
    target = ToyTarget()
    run = decode(target, PROMPT, 0)
    assert (run.tokens, run.runs, run.stop_reason) == ((), (), "length")
    assert target.last.calls == []


def test_runs_come_in_order_draft_before_verifier() -> None:
    proposer = ListProposer([[1, 2], [0]])
    run = decode(ToyTarget(), PROMPT, 4, proposer=proposer, num_speculative_tokens=2)
    roles = [r.role for r in run.runs]
    assert roles[:6] == ["prefill", "draft", "draft", "verify", "draft", "verify"]
    assert run.runs == run.prefill + sum((block.runs for block in run.blocks), ())


@pytest.mark.parametrize("k", [0, 1, 3, 6])
@pytest.mark.parametrize("stop", range(VOCAB))
def test_text_ends_after_the_first_stop_token_in_any_role(k: int, stop: int) -> None:
    expected = ALL[: ALL.index(stop) + 1] if stop in ALL else ALL
    reason = "stop" if stop in ALL else "context"
    for accept in range(k + 1):  # makes it an accepted guess, the bonus or the recovered token
        proposer = ScriptedProposer(WHOLE, VOCAB, [accept])
        run = decode(
            ToyTarget(), PROMPT, 99, stop_token=stop, proposer=proposer, num_speculative_tokens=k
        )
        assert list(run.tokens) == expected
        assert run.stop_reason == reason


def test_a_stop_token_that_only_the_draft_offers_does_not_stop() -> None:
    stop = (ALL[0] + 1) % VOCAB
    count = ALL.index(stop) if stop in ALL else len(ALL)
    assert count > 1
    run = decode(
        ToyTarget(), PROMPT, count, stop_token=stop,
        proposer=ConstantProposer(stop), num_speculative_tokens=3,
    )  # fmt: skip
    assert list(run.tokens) == ALL[:count]
    assert run.stop_reason == "length"


def test_a_stop_token_in_the_prompt_does_not_stop() -> None:
    prompt = [ALL[0], 2, 2]
    run = decode(ToyTarget(), prompt, 1, stop_token=2)
    assert len(run.tokens) == 1


def test_a_stop_token_behind_the_last_token_asked_for_does_not_matter() -> None:
    stop = max(set(ALL), key=ALL.index)
    count = ALL.index(stop)
    assert count > 1
    run = decode(
        ToyTarget(), PROMPT, count, stop_token=stop,
        proposer=always_right(WHOLE, VOCAB), num_speculative_tokens=count + 2,
    )  # fmt: skip
    assert (list(run.tokens), run.stop_reason) == (ALL[:count], "length")


@given(
    script=st.lists(st.integers(0, 4), min_size=1, max_size=5),
    k=st.integers(0, 5),
    n=st.integers(0, CONTEXT),
    stop=st.none() | TOKENS,
)
def test_the_stream_is_the_result_and_never_a_token_more(
    script: list[int], k: int, n: int, stop: int | None
) -> None:
    parts: list[list[int]] = []
    run = decode(
        ToyTarget(), PROMPT, n, stop_token=stop,
        proposer=ScriptedProposer(WHOLE, VOCAB, list(script)), num_speculative_tokens=k,
        on_tokens=lambda fresh: parts.append(list(fresh)),
    )  # fmt: skip
    assert [token for part in parts for token in part] == list(run.tokens)
    assert all(parts) and len(parts) == len(run.blocks)


def test_every_call_starts_from_nothing() -> None:
    target = ToyTarget()
    others = [(3, 1), (2,), (4, 4, 4, 0), (3, 1)]
    together = [decode(target, prompt, 6).tokens for prompt in others]
    assert together == [decode(ToyTarget(), prompt, 6).tokens for prompt in others]
    assert together[0] == together[3]


class _Rude:
    """Guesses like another proposer, and does something to the text that it is given."""

    vocab_size = None

    def __init__(self, inner: Proposer, deed: Callable[[list[int]], object]) -> None:
        self._inner = inner
        self._deed = deed
        self._kept: list[list[int]] = []

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        found = self._inner.propose(list(text), count)
        assert isinstance(text, list)
        self._kept.append(text)
        for each in self._kept:  # those of earlier blocks too
            self._deed(each)
        return found


@pytest.mark.parametrize(
    "deed",
    [
        lambda text: text.append(0),
        lambda text: text.clear(),
        lambda text: text.reverse(),
        lambda text: text.__setitem__(slice(None), [4] * len(text)),
    ],
    ids=["append", "clear", "reverse", "overwrite"],
)
@pytest.mark.parametrize("k", [1, 3])
def test_a_draft_that_changes_its_list_does_not_change_the_text(
    deed: Callable[[list[int]], object], k: int
) -> None:
    polite = _decode(always_right(WHOLE, VOCAB), k)
    rude = _decode(_Rude(always_right(WHOLE, VOCAB), deed), k)
    assert rude == polite and list(rude.tokens) == ALL


def test_a_rude_draft_does_not_change_the_text_on_the_chip() -> None:
    target, bigram = chip_target("random"), load_bigram(tiny("random", 1))
    plain = decode(target, [0], 12).tokens
    draft = ChainProposer(ChipBigram(bigram, target.model.config.chip))
    rude = _Rude(draft, lambda text: text.append(7))
    run = decode(target, [0], 12, proposer=rude, num_speculative_tokens=3)
    assert run.tokens == plain


class _Answers:
    """Proposes whatever it is given."""

    vocab_size = None

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        return self._answer  # type: ignore[return-value]


@pytest.mark.parametrize(
    "tokens", [np.array(ALL[:2]), [np.int64(ALL[0]), np.uint8(ALL[1])], tuple(ALL[:2])],
    ids=["array", "numpy integers", "tuple"],
)  # fmt: skip
def test_draft_tokens_of_any_integer_type_become_plain_integers(tokens: Sequence[int]) -> None:
    run = _decode(_Answers(Proposal(tokens)), 2, 3)  # type: ignore[arg-type]
    assert run.blocks[0].accepted == 2
    kinds = {type(token) for block in run.blocks for token in (*block.proposed, *block.tokens)}
    assert kinds == {int}
    assert json.loads(json.dumps(run_record(run, str)))["trace"][0]["proposed"] == ALL[:2]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Proposal((1.7,)), r"the draft proposed \[1.7\], expected whole numbers"),  # type: ignore[arg-type]
        (Proposal((1, math.nan)), r"the draft proposed \[1, nan\], expected whole numbers"),  # type: ignore[arg-type]
        (Proposal(("1",)), r"the draft proposed \['1'\], expected whole numbers"),  # type: ignore[arg-type]
        (None, "the draft answered None, expected a Proposal"),
        (Proposal(None), "the draft's tokens are None, expected a sequence"),  # type: ignore[arg-type]
        (Proposal((1,), None), "the draft's runs are None, expected a sequence"),  # type: ignore[arg-type]
        ((1, 2), r"the draft answered \(1, 2\), expected a Proposal"),
    ],
)
def test_draft_tokens_that_are_not_whole_are_refused(answer: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _decode(_Answers(answer), 2)


class _OtherTarget(ToyTarget):
    """A toy target whose choices go through a function."""

    def __init__(self, changed: Callable[[tuple[int, ...]], Any]) -> None:
        super().__init__()
        self._changed = changed

    def session(self) -> ToySession:
        session, forward = super().session(), ToySession.forward

        def changed(tokens: Sequence[int]) -> Forward:
            found = forward(session, tokens)
            return replace(found, choices=self._changed(found.choices))

        session.forward = changed  # type: ignore[method-assign]
        return session


def test_choices_of_any_integer_type_become_plain_integers() -> None:
    run = decode(_OtherTarget(np.array), PROMPT, 99)
    assert list(run.tokens) == ALL and {type(token) for token in run.tokens} == {int}
    json.dumps(run_record(run, str))


def test_a_target_chooses_one_token_per_row() -> None:
    with pytest.raises(InputError, match="the target chose 2 tokens, expected 1, one per row"):
        decode(_OtherTarget(lambda choices: (*choices, 0)), PROMPT, 9)


class _Greedy:
    """Proposes one more than it was asked for."""

    vocab_size = VOCAB

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        return Proposal((0,) * (count + 1))


def test_a_draft_that_proposes_too_many_is_refused() -> None:
    with pytest.raises(InputError, match="proposed 4 tokens, expected at most 3"):
        _decode(_Greedy(), 3)


@pytest.mark.parametrize(
    ("prompt", "n", "k", "stop", "message"),
    [
        ([], 1, 0, None, "the prompt is empty, expected at least one token"),
        ([0] * 13, 1, 0, None, "the prompt has 13 tokens, expected at most 12, the context"),
        ([0, 5], 1, 0, None, "prompt token is 5, expected 0 .. 4"),
        ([-1], 1, 0, None, "prompt token is -1, expected 0 .. 4"),
        ([0], -1, 0, None, "number of new tokens is -1, expected a whole number of at least 0"),
        (
            [0],
            1,
            -2,
            None,
            "number of speculative tokens is -2, expected a whole number of at least 0",
        ),
        ([0], 1, 1, None, "1 speculative tokens without a draft, expected a proposer"),
        ([0], 1, 0, 5, "stop token is 5, expected 0 .. 4"),
        ([0], 1, 0, -1, "stop token is -1, expected 0 .. 4"),
        ([], 0, 0, None, "the prompt is empty"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(
    prompt: list[int], n: int, k: int, stop: int | None, message: str
) -> None:
    target = ToyTarget()
    untouched = target.last
    with pytest.raises(InputError, match=message):
        decode(target, prompt, n, num_speculative_tokens=k, stop_token=stop)
    assert target.last is untouched and not untouched.calls


@pytest.mark.parametrize("size", [VOCAB - 1, VOCAB + 1])
def test_a_draft_of_another_vocabulary_is_refused(size: int) -> None:
    message = f"draft has a vocabulary of {size} tokens, expected 5, the target's"
    with pytest.raises(InputError, match=message):
        _decode(RandomProposer(size, 0), 1)


def test_a_run_that_cannot_end_does_not_start() -> None:
    """The last cached rows do not fit this chip: nothing is executed before that is known."""
    chip = Chip(external_words=3000)
    device = SimulatedDevice(chip)
    executed = list[str]()
    execute = device.execute

    def counting(program: Program, feeds: Any) -> Execution:
        executed.append(program.name)
        return execute(program, feeds)

    device.execute = counting  # type: ignore[method-assign]
    target = ChipTarget(random_model(1, chip), device)
    with pytest.raises(CapacityError, match=r"external memory needs .* expected at most 3000"):
        decode(target, [0], 40)
    assert not executed
    assert len(decode(target, [0], 9).tokens) == 9 and executed
