"""Drafts that are out to get the loop: every order of acceptances, every role of every token.

Every run is compared with single steps: counts, tokens, and the integers of every row it kept.
"""

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import get_args

import numpy as np
import pytest
from tests.lm.samples import MODELS, chip_target
from tests.spec_decode.accounts import assert_accounts
from tests.spec_decode.toy import CONTEXT, VOCAB, ToyTarget, plain_text
from tests.system.cases import Case, WeightKind
from tests.system.rows import (
    MAKERS,
    AnyTarget,
    Steps,
    Watched,
    assert_same_rows,
    emitted_tokens,
    take_steps,
)

from capra.numerics import INT8_MAX
from capra.spec_decode.decode import Block, Decoded, Target, decode
from capra.spec_decode.proposers import (
    ConstantProposer,
    Proposal,
    Proposer,
    RandomProposer,
    ScriptedProposer,
    always_right,
)

SMALL = Case(seed=1, vocab_size=7, heads=2, head_width=2, layers=2, hidden=4, context=13,
             has_positions=True)  # fmt: skip
"""Small enough that every shape is compiled in a second."""


@cache
def _target(kind: str) -> AnyTarget:
    if kind == "text":
        return chip_target("text")
    return MAKERS[kind](SMALL.model())


@cache
def _steps(kind: str, prompt: tuple[int, ...]) -> Steps:
    return take_steps(_target(kind), prompt)


def _run(
    kind: str, prompt: tuple[int, ...], n: int, k: int, proposer: Proposer,
    stop_token: int | None = None,
) -> Decoded:  # fmt: skip
    """A run with its counts and every committed row checked against single steps."""
    watched = Watched(_target(kind))
    run = decode(
        watched, prompt, n, proposer=proposer, num_speculative_tokens=k, stop_token=stop_token
    )
    assert_accounts(run, n, k, watched.max_context)
    assert_same_rows(run, watched, _steps(kind, prompt))
    return run


def _scripted(kind: str, prompt: tuple[int, ...], accept: Sequence[int | None]) -> Proposer:
    return ScriptedProposer(_steps(kind, prompt).text, _target(kind).vocab_size, accept)


def test_the_small_model_does_not_repeat_itself() -> None:
    for kind in ("float", "chip"):
        assert len(set(_steps(kind, (0,)).text)) >= 4


def test_chip_and_interpreter_take_the_same_steps() -> None:
    chip, interpreted = _steps("chip", (0,)), _steps("interpreter", (0,))
    assert chip.text == interpreted.text
    np.testing.assert_array_equal(chip.logits, interpreted.logits)
    for name, rows in chip.cache.items():
        np.testing.assert_array_equal(rows, interpreted.cache[name], name)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kind", ["float", "chip"])
def test_every_order_of_acceptances(kind: str, k: int) -> None:
    for accept in product(range(k + 1), repeat=3):
        n = sum(accept) + 3
        run = _run(kind, (0,), n, k, _scripted(kind, (0,), accept))
        assert tuple(block.accepted for block in run.blocks) == accept


@pytest.mark.parametrize("k", [1, 2, 3])
def test_every_order_of_acceptances_of_the_toy(k: int) -> None:
    text = [3, *plain_text([3], CONTEXT)]
    for accept in product(range(k + 1), repeat=3):
        target: Target = ToyTarget()
        n = sum(accept) + 3
        run = decode(
            target, [3], n,
            proposer=ScriptedProposer(text, VOCAB, accept), num_speculative_tokens=k,
        )  # fmt: skip
        assert_accounts(run, n, k, CONTEXT)
        assert tuple(block.accepted for block in run.blocks) == accept
        assert list(run.tokens) == text[1 : n + 1]


class _ModeProposer:
    """Proposes nothing, guesses that are all wrong from the first on, or the text itself."""

    vocab_size = None

    def __init__(self, text: Sequence[int], vocab_size: int, modes: Sequence[str]) -> None:
        self._scripts = {
            "all wrong": ScriptedProposer(text, vocab_size, [0]),
            "all right": ScriptedProposer(text, vocab_size, [None]),
        }
        self._modes = list(modes)

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        mode = self._modes.pop(0)
        return Proposal(()) if mode == "nothing" else self._scripts[mode].propose(text, count)


@pytest.mark.parametrize("kind", [*MAKERS, "text"])
def test_nothing_drafted_nothing_accepted_and_all_accepted_in_every_order(kind: str) -> None:
    k, counts = 2, {"nothing": (0, 0), "all wrong": (2, 0), "all right": (2, 2)}
    for modes in product(counts, repeat=3):
        proposer = _ModeProposer(_steps(kind, (0,)).text, _target(kind).vocab_size, modes)
        expected = [counts[mode] for mode in modes]
        run = _run(kind, (0,), sum(accepted + 1 for _, accepted in expected), k, proposer)
        assert [(len(block.proposed), block.accepted) for block in run.blocks] == expected


@pytest.mark.parametrize("kind", ["interpreter", "chip"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_the_cache_after_a_rejection_at_every_position(kind: str, k: int) -> None:
    for length in range(1, 4):
        prompt = _steps(kind, (0,)).text[:length]
        for accepted in range(k + 1):
            watched = Watched(_target(kind))
            run = decode(
                watched, prompt, 1,
                proposer=_scripted(kind, prompt, [accepted]), num_speculative_tokens=k,
            )  # fmt: skip
            (block,) = run.blocks
            assert (len(block.proposed), block.accepted) == (k, accepted)
            rows = length + accepted
            alone = take_steps(_target(kind), (*prompt, *block.emitted), rows)
            assert watched.last.length == rows
            assert_same_rows(run, watched, alone)
            following = accepted + 2  # the first token of the next block, from this cache
            _run(kind, prompt, following, k, _scripted(kind, prompt, [accepted]))


@pytest.mark.sample(10)
@pytest.mark.parametrize("k", range(1, SMALL.context + 2))
@pytest.mark.parametrize("kind", ["float", "chip"])
def test_every_k_up_to_the_last_row_of_the_context(kind: str, k: int) -> None:
    drafts: dict[str, Proposer] = {
        "right": _scripted(kind, (0,), [None]),
        "wrong": _scripted(kind, (0,), [0]),
        "mixed": _scripted(kind, (0,), [1, 3, 0, 2]),
        "random": RandomProposer(SMALL.vocab_size, k),
    }
    for name, draft in drafts.items():
        run = _run(kind, (0,), 99, k, draft)
        assert run.cache_length == SMALL.context, name
        assert run.tokens == _steps(kind, (0,)).text[1:], name
        assert run.stop_reason == "context", name


class _SelfProposer:
    """The target as its own draft: a session of its own for every proposal."""

    vocab_size = None

    def __init__(self, target: AnyTarget) -> None:
        self._target = target

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        session, token, guesses = self._target.session(), text[-1], list[int]()
        session.prefill(text[:-1])
        for _ in range(count):
            (token,) = session.forward([token]).choices
            guesses.append(token)
        return Proposal(tuple(guesses))


@pytest.mark.sample(6)
@pytest.mark.parametrize("kind", [*MAKERS, "text"])
@pytest.mark.parametrize("k", [1, 3, 4])
def test_the_target_as_its_own_draft_is_always_right(kind: str, k: int) -> None:
    target = _target(kind)
    run = _run(kind, (0, 1), 99, k, _SelfProposer(target))
    proposed = sum(len(block.proposed) for block in run.blocks)
    assert proposed > 0
    assert sum(block.accepted for block in run.blocks) / proposed == 1.0
    assert run.cache_length == target.max_context
    assert len(run.blocks) == -(-(target.max_context - 1) // (k + 1))


def _role(blocks: Sequence[Block], position: int) -> str:
    """What the token at a position of the emitted text was in its block."""
    for block in blocks:
        if position < len(block.emitted):
            if position < block.accepted:
                return "accepted"
            return "bonus" if 0 < block.accepted == len(block.proposed) else "recovered"
        position -= len(block.emitted)
    raise AssertionError("no block emitted this token")


@pytest.mark.sample(9)
@pytest.mark.parametrize("name", ["text", "random", "structured"])
@pytest.mark.parametrize("role", ["accepted", "bonus", "recovered"])
@pytest.mark.parametrize("k", [1, 2, 4])
def test_every_token_of_the_text_as_stop_token_in_every_role(name: str, role: str, k: int) -> None:
    target, n = chip_target(name), 20
    plain = decode(target, (0,), n).tokens
    met = 0
    for stop in set(plain):
        first = plain.index(stop)
        before = first - k if role == "bonus" else first
        if before < 0:
            continue  # the first tokens cannot be behind k accepted ones
        last = {"accepted": None, "bonus": None, "recovered": 0}[role]
        proposer = ScriptedProposer((0, *plain), target.vocab_size, [0] * before + [last])
        run = decode(target, (0,), n, stop_token=stop, proposer=proposer, num_speculative_tokens=k)
        assert _role(run.blocks, first) == role
        assert run.tokens == plain[: first + 1] == decode(target, (0,), n, stop_token=stop).tokens
        assert run.stop_reason == "stop"
        assert emitted_tokens(run)[: first + 1] == run.tokens
        met += 1
    assert met >= len(set(plain)) - (k if role == "bonus" else 0)


@pytest.mark.sample(4)
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("name", MODELS)
def test_a_stop_token_that_only_the_draft_offers_does_not_stop(name: str, k: int) -> None:
    target, n = chip_target(name), 12
    plain, offered = decode(target, (0,), n).tokens, 0
    for stop in range(target.vocab_size):
        run = decode(
            target, (0,), n, stop_token=stop,
            proposer=ConstantProposer(stop), num_speculative_tokens=k,
        )  # fmt: skip
        assert run.tokens == (plain[: plain.index(stop) + 1] if stop in plain else plain)
        assert run.stop_reason == ("stop" if stop in plain else "length")
        offered += sum(stop in block.proposed[block.accepted :] for block in run.blocks)
    assert offered > n


def test_prompts_of_every_length_up_to_the_context() -> None:
    text = _steps("chip", (0,)).text
    for length in range(1, SMALL.context + 1):
        for accept in ([None], [0], [1, 0, None]):
            run = _run("chip", text[:length], 99, 3, _scripted("chip", text[:length], accept))
            assert run.tokens == text[length:]


@pytest.mark.parametrize("kind", MAKERS)
def test_a_vocabulary_of_one_token(kind: str) -> None:
    target = MAKERS[kind](Case(vocab_size=1, context=7, has_positions=True).model())
    steps = take_steps(target, (0,))
    assert set(steps.text) == {0}
    for k in range(1, 8):
        drafts: tuple[Proposer, ...] = (
            ConstantProposer(0),
            ConstantProposer(1),
            always_right(steps.text, 1),
        )
        for draft, accepts in zip(drafts, (True, False, True), strict=True):
            watched = Watched(target)
            run = decode(watched, (0,), 99, proposer=draft, num_speculative_tokens=k)
            assert_accounts(run, 99, k, 7)
            assert_same_rows(run, watched, steps)
            assert run.tokens == (0,) * 7
            assert all((b.accepted == len(b.proposed)) == accepts for b in run.blocks[:-1])
        stopped = decode(
            target, (0,), 99, stop_token=0, proposer=drafts[0], num_speculative_tokens=k
        )
        assert (stopped.tokens, stopped.stop_reason) == ((0,), "stop")


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["interpreter", "chip"])
@pytest.mark.parametrize("weights", get_args(WeightKind))
def test_saturated_keys_values_and_logits(kind: str, weights: WeightKind) -> None:
    """Nearly everything is -127 or 127, so that ties decide most of the text."""
    case = Case(seed=5, vocab_size=9, heads=2, context=9, has_positions=True,
                weights=weights, ranges="saturated")  # fmt: skip
    watched = Watched(MAKERS[kind](case.model()))
    steps = take_steps(watched.inner, (2, 8))
    for rows in (np.stack(steps.logits), *steps.cache.values()):
        assert np.mean(np.abs(rows) == INT8_MAX) > 0.5
    scripts: list[list[int | None]] = [[None], [0], [1, 0, 2]]
    for k, accept in product((1, 2, 4), scripts):
        draft = ScriptedProposer(steps.text, case.vocab_size, accept)
        run = decode(watched, (2, 8), 99, proposer=draft, num_speculative_tokens=k)
        assert_accounts(run, 99, k, case.context)
        assert_same_rows(run, watched, steps)
        assert run.tokens == steps.text[2:]
