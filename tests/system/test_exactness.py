"""Speculative tokens are plain tokens, on the chip, whatever the draft; and every cycle is real."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from tests.lm.samples import MODELS, chip_target, text_model, tiny

from capra.isa.program import Program
from capra.isa.timing import Counters
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram
from capra.lm.target import ChipTarget, Forward, InterpretedTarget, ProgramRun
from capra.lm.tiny import successor
from capra.numerics import IntArray
from capra.sim.device import Execution, SimulatedDevice
from capra.spec_decode.decode import Decoded, decode
from capra.spec_decode.metrics import comparison_record
from capra.spec_decode.proposers import (
    ChainProposer,
    ConstantProposer,
    OutsideProposer,
    Proposer,
    RandomProposer,
    ScriptedProposer,
)

LENGTH = 20


@cache
def _plain(name: str, prompt: tuple[int, ...], count: int = 999) -> Decoded:
    return decode(chip_target(name), prompt, count)


@cache
def _bigram(name: str, noise: float = 0.0) -> ChipBigram:
    model = MODELS[name]()
    return ChipBigram(load_bigram(model, noise, 1), model.config.chip)


def _whole(name: str, prompt: tuple[int, ...]) -> tuple[int, ...]:
    return prompt + _plain(name, prompt).tokens


def _scripted(name: str, prompt: tuple[int, ...], *accept: int | None) -> Proposer:
    return ScriptedProposer(_whole(name, prompt), MODELS[name]().config.vocab_size, accept)


DRAFTS: dict[str, Callable[[str, tuple[int, ...]], Proposer]] = {
    "bigram": lambda name, _: ChainProposer(_bigram(name)),
    "noisy bigram": lambda name, _: ChainProposer(_bigram(name, 20.0)),
    "constant": lambda name, prompt: ConstantProposer(_plain(name, prompt).tokens[0]),
    "random": lambda name, _: RandomProposer(MODELS[name]().config.vocab_size, 5),
    "always right": lambda name, prompt: _scripted(name, prompt, None),
    "always wrong": lambda name, prompt: _scripted(name, prompt, 0),
    "mixed": lambda name, prompt: _scripted(name, prompt, 2, 0, None, 1, 3),
    "outside": lambda name, prompt: OutsideProposer(_scripted(name, prompt, None), 1, 1 << 20),
}


def _speculate(
    name: str, draft: str, k: int, n: int = LENGTH, prompt: tuple[int, ...] = (0,)
) -> Decoded:
    return decode(
        chip_target(name), prompt, n,
        proposer=DRAFTS[draft](name, prompt), num_speculative_tokens=k,
    )  # fmt: skip


@pytest.mark.sample(20)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("k", [1, 3, 4, 7])
def test_no_draft_changes_the_text(name: str, draft: str, k: int) -> None:
    run, plain = _speculate(name, draft, k), _plain(name, (0,), LENGTH)
    assert run.tokens == plain.tokens
    blocks, accepted = len(run.blocks), sum(block.accepted for block in run.blocks)
    emitted = sum(len(block.emitted) for block in run.blocks)
    assert emitted == accepted + blocks == run.cache_length
    assert LENGTH / (k + 1) <= blocks <= LENGTH


def test_the_models_of_these_tests_do_not_just_repeat_themselves() -> None:
    for name, distinct in (("text", 6), ("sharp", 5), ("structured", 16)):
        assert len(set(_plain(name, (0,), LENGTH).tokens)) >= distinct


@pytest.mark.parametrize("name", MODELS)
def test_the_chips_text_is_the_interpreters(name: str) -> None:
    reference = decode(InterpretedTarget(MODELS[name]()), [0], LENGTH)
    assert reference.tokens == _plain(name, (0,), LENGTH).tokens


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("noise", [0.0, 3.0, 12.0])
def test_the_chip_follows_the_rule(k: int, noise: float) -> None:
    run = decode(
        chip_target("structured"), [5], LENGTH,
        proposer=ChainProposer(_bigram("structured", noise)), num_speculative_tokens=k,
    )  # fmt: skip
    text = (5, *run.tokens)
    assert text[1:] == tuple(successor(token) for token in text[:-1])
    if noise == 0:
        assert all(block.accepted == k for block in run.blocks)


@pytest.mark.sample(4)
@pytest.mark.parametrize("k", range(1, 8))
def test_every_number_of_accepted_guesses(k: int) -> None:
    plain = _plain("text", (0,))
    for j in range(k + 1):
        proposer = _scripted("text", (0,), j)
        run = decode(chip_target("text"), [0], 999, proposer=proposer, num_speculative_tokens=k)
        assert run.tokens == plain.tokens
        assert len(run.blocks[0].proposed) == k
        assert all(block.accepted == min(j, len(block.proposed)) for block in run.blocks)


@pytest.mark.parametrize("position", range(4))
@pytest.mark.parametrize("token", [-1, 12, 1 << 62])
def test_ids_outside_the_vocabulary_never_reach_the_chip(position: int, token: int) -> None:
    right = _scripted("text", (0,), None)
    run = decode(
        chip_target("text"), [0], LENGTH,
        proposer=OutsideProposer(right, position, token), num_speculative_tokens=3,
    )  # fmt: skip
    assert run.tokens == _plain("text", (0,), LENGTH).tokens
    assert all(len(block.tokens) == 1 + position for block in run.blocks[:-1] if position < 3)


@pytest.mark.parametrize("k", range(1, 8))
def test_lengths_are_exact(k: int) -> None:
    plain = _plain("text", (0,)).tokens
    for n in range(k + 3):
        for draft in ("always right", "mixed"):
            assert _speculate("text", draft, k, n).tokens == plain[:n]


@pytest.mark.parametrize("k", [1, 2, 3, 7])
def test_prompts_that_end_below_the_context_limit(k: int) -> None:
    context = text_model().config.context
    whole = _whole("text", (0,))
    for room in range(k + 2):
        prompt = whole[: context - room]
        for draft in ("always right", "always wrong", "bigram"):
            run = _speculate("text", draft, k, 999, prompt)
            assert run.tokens == _plain("text", prompt).tokens == whole[len(prompt) :]
            assert len(run.tokens) == room + 1 and run.cache_length == context


@pytest.mark.parametrize("name", ["text", "random"])
@pytest.mark.parametrize("k", [1, 3, 7, 100])
def test_a_right_draft_is_accepted_completely_up_to_the_context(name: str, k: int) -> None:
    run = _speculate(name, "always right", k, 999)
    assert run.tokens == _plain(name, (0,)).tokens and run.stop_reason == "context"
    assert all(block.accepted == len(block.proposed) for block in run.blocks)
    assert len(run.blocks) == -(-MODELS[name]().config.context // (k + 1))


@pytest.mark.parametrize("name", MODELS)
def test_no_speculative_tokens_is_plain_decoding_to_the_cycle(name: str) -> None:
    plain = _plain(name, (0, 1, 2), 9)
    zero = decode(
        chip_target(name), (0, 1, 2), 9,
        proposer=ChainProposer(_bigram(name)), num_speculative_tokens=0,
    )  # fmt: skip
    assert zero == plain
    assert [run.role for run in zero.runs] == ["prefill"] + ["step"] * 9


@pytest.mark.sample(2)
@pytest.mark.parametrize("k", [0, 1, 3, 5])
def test_every_token_of_the_text_as_stop_token(k: int) -> None:
    plain = _plain("text", (0,), LENGTH).tokens
    for stop in range(12):
        for draft in ("always right", "mixed", "bigram"):
            parts: list[int] = []
            run = decode(
                chip_target("text"), [0], LENGTH, stop_token=stop, on_tokens=parts.extend,
                proposer=DRAFTS[draft]("text", (0,)), num_speculative_tokens=k,
            )  # fmt: skip
            assert run.tokens == (plain[: plain.index(stop) + 1] if stop in plain else plain)
            assert tuple(parts) == run.tokens
            assert run.stop_reason == ("stop" if stop in plain else "length")


@dataclass
class _Witness:
    """A device that notes every program it executed and what the machine counted."""

    inner: SimulatedDevice
    seen: list[tuple[str, Counters]] = field(default_factory=list)

    def execute(self, program: Program, feeds: Mapping[str, IntArray]) -> Execution:
        execution = self.inner.execute(program, feeds)
        self.seen.append((program.name, execution.counters))
        return execution


PREFIX = {"step": "step_c{cache}", "verify": "verify_m{rows}_c{cache}", "draft": "draft",
          "prefill": "prefill_m{rows}_c{cache}"}  # fmt: skip


@pytest.mark.parametrize("draft", ["bigram", "outside"])
def test_every_reported_program_was_executed_and_cost_what_its_code_costs(draft: str) -> None:
    model = text_model()
    device = _Witness(SimulatedDevice(model.config.chip, poison=True))
    target = ChipTarget(model, device)
    chip_bigram = ChipBigram(load_bigram(model), model.config.chip, device)
    inner: Proposer = ChainProposer(chip_bigram)
    proposer = inner if draft == "bigram" else OutsideProposer(inner, 1, 99)
    run = decode(target, [0] * 18, 6, proposer=proposer, num_speculative_tokens=3)
    reported = [(PREFIX[r.role].format(rows=r.rows, cache=r.cache), r.counters) for r in run.runs]
    assert reported == device.seen
    for r in run.runs:
        if r.role == "draft":
            assert r.counters == chip_bigram.program.counters
        else:
            assert r.counters == target.program(r.role, r.rows, r.cache).counters


def test_the_record_sums_the_executed_programs() -> None:
    plain, run = _plain("text", (0, 1), 9), _speculate("text", "bigram", 3, 9, (0, 1))
    record = comparison_record(plain, run, lambda _tokens: "")
    for part, decoded in (("plain", plain), ("speculative", run)):
        units: Counter[str] = Counter()
        for r in decoded.runs:
            units.update(r.counters.by_unit())
        assert record[part]["cycles_by_unit"] == dict(units)
        assert record[part]["cycles"] == sum(units.values())
        assert record[part]["programs"] == len(decoded.runs)
    assert record["speedup"] == record["plain"]["cycles"] / record["speculative"]["cycles"]


class _MyTarget:
    """The protocol is all that the loop needs: a target that counts up, with a list as cache."""

    vocab_size = 10
    max_context = 30

    def session(self) -> "_MySession":
        return _MySession()


class _MySession:
    def __init__(self) -> None:
        self._text: list[int] = []

    @property
    def length(self) -> int:
        return len(self._text)

    def prefill(self, tokens: Sequence[int]) -> tuple[ProgramRun, ...]:
        self._text += tokens
        return ()

    def forward(self, tokens: Sequence[int]) -> Forward:
        self._text += tokens
        choices = tuple((token + 1) % 10 for token in tokens)
        return Forward(choices, np.eye(10)[list(choices)])

    def truncate(self, length: int) -> None:
        del self._text[length:]


def test_a_target_of_ones_own() -> None:
    run = decode(_MyTarget(), [3], 12, proposer=RandomProposer(10, 1), num_speculative_tokens=2)
    assert run.tokens == tuple((4 + i) % 10 for i in range(12))


def test_tiny_models_of_other_seeds() -> None:
    for seed in (2, 3):
        model = tiny("random", seed)
        target = ChipTarget(model)
        plain = decode(target, [5], 12)
        draft = ChainProposer(ChipBigram(load_bigram(model), model.config.chip))
        run = decode(target, [5], 12, proposer=draft, num_speculative_tokens=3)
        assert run.tokens == plain.tokens
