"""The packaged text model: speculative tokens are plain tokens for many prompts, drafts and K.

`make test` takes a seeded sample and short texts, the full suite every case at full length.
No text and no cycle count is written down here, so that the checkpoint can be trained anew.
"""

import random
from collections.abc import Callable
from functools import cache
from itertools import product

import numpy as np
import pytest
from tests.lm.samples import chip_target, pydoc_model

from capra.lm.bigram import ChipBigram
from capra.lm.graphs import cache_names
from capra.lm.models import load_bigram
from capra.lm.target import InterpretedTarget
from capra.lm.tokenizer import CharTokenizer
from capra.spec_decode.decode import Decoded, decode
from capra.spec_decode.proposers import (
    ChainProposer,
    ConstantProposer,
    Proposer,
    RandomProposer,
    always_right,
    always_wrong,
)

SHORT, LONG = 6, 64
"""Tokens of a text."""

PROMPTS = (
    "The with statement", "class ", "If the expression", "Note: ", "A function definition",
    "import ", "for x in ", "The following", "raise ValueError", "\n\nChanged in version 3.",
)  # fmt: skip


@cache
def _bigram() -> ChipBigram:
    return ChipBigram(load_bigram(pydoc_model()), pydoc_model().config.chip)


def _encode(text: str) -> tuple[int, ...]:
    characters = pydoc_model().characters
    assert characters is not None
    return tuple(CharTokenizer(characters).encode(text))


DRAFTS: dict[str, Callable[[tuple[int, ...]], Proposer]] = {
    "bigram": lambda _: ChainProposer(_bigram()),
    "constant": lambda _: ConstantProposer(_encode(" ")[0]),
    "random": lambda _: RandomProposer(pydoc_model().config.vocab_size, 3),
    "always wrong": lambda text: always_wrong(text, pydoc_model().config.vocab_size),
    "always right": lambda text: always_right(text, pydoc_model().config.vocab_size),
}


@cache
def _plain(prompt: tuple[int, ...], count: int) -> Decoded:
    return decode(chip_target("pydoc"), prompt, count)


def _assert_exact(prompt: tuple[int, ...], count: int, k: int, draft: str) -> Decoded:
    plain = _plain(prompt, count)
    run = decode(
        chip_target("pydoc"), prompt, count,
        proposer=DRAFTS[draft](prompt + plain.tokens), num_speculative_tokens=k,
    )  # fmt: skip
    assert run.tokens == plain.tokens
    assert run.stop_reason == plain.stop_reason
    accepted = sum(block.accepted for block in run.blocks)
    assert sum(len(block.emitted) for block in run.blocks) == accepted + len(run.blocks)
    return run


CASES = list(product(PROMPTS, range(1, 8), DRAFTS))


@pytest.mark.parametrize(
    ("prompt", "k", "draft", "length"),
    [
        *((*case, SHORT) for case in random.Random(0).sample(CASES, 6)),
        *(pytest.param(*case, LONG, marks=pytest.mark.full) for case in CASES),
    ],
)
def test_no_draft_changes_the_text(prompt: str, k: int, draft: str, length: int) -> None:
    run = _assert_exact(_encode(prompt), length, k, draft)
    assert len(run.tokens) == length
    if draft == "always wrong":
        assert all(block.accepted == 0 for block in run.blocks if block.proposed)


@pytest.mark.parametrize(
    "k", [2, *(pytest.param(k, marks=pytest.mark.full) for k in range(1, 8) if k != 2)]
)
def test_lengths_are_exact(k: int) -> None:
    prompt = _encode(PROMPTS[0])
    for count in range(1, k + 2):
        for draft in ("bigram", "always right"):
            assert len(_assert_exact(prompt, count, k, draft).tokens) == count


@pytest.mark.parametrize(
    ("k", "draft"),
    [
        pytest.param(*case, marks=[pytest.mark.full] * (case != (1, "bigram")))
        for case in product(range(1, 8), ("bigram", "always right", "random"))
    ],
)
def test_prompts_that_end_below_the_context_limit(k: int, draft: str) -> None:
    context = pydoc_model().config.context
    text = _encode(" ".join(PROMPTS * 3))
    for room in range(k + 2):
        run = _assert_exact(text[: context - room], context, k, draft)
        assert len(run.tokens) == room + 1 and run.cache_length == context


LENGTHS = pytest.mark.parametrize("length", [SHORT, pytest.param(LONG, marks=pytest.mark.full)])


@LENGTHS
def test_no_speculative_tokens_is_plain_decoding_to_the_cycle(length: int) -> None:
    prompt = _encode(PROMPTS[0])
    assert _assert_exact(prompt, length, 0, "bigram") == _plain(prompt, length)


@LENGTHS
def test_a_right_draft_is_accepted_completely(length: int) -> None:
    run = _assert_exact(_encode(PROMPTS[1]), length, 3, "always right")
    assert all(block.accepted == len(block.proposed) for block in run.blocks)
    assert len(run.blocks) == -(-length // 4)


def test_blocks_of_any_size_give_the_integers_of_single_steps() -> None:
    target, tokens = chip_target("pydoc"), _encode("for the statement")
    steps, blocks = target.session(), target.session()
    logits = np.vstack([steps.forward([token]).logits for token in tokens])
    prefilled = 5
    blocks.prefill(tokens[:prefilled])
    blocks.forward([*tokens[prefilled:8], 0, 0])
    blocks.truncate(8)
    rest = blocks.forward(tokens[8:])
    assert np.array_equal(rest.logits, logits[8:])
    for name in cache_names(pydoc_model().config):
        assert np.array_equal(blocks.cached(name), steps.cached(name)), name


def test_the_chip_computes_what_the_interpreter_computes() -> None:
    tokens = _encode("The statement")
    chip = chip_target("pydoc").session()
    interpreted = InterpretedTarget(pydoc_model()).session()
    chip.prefill(tokens[:7])
    interpreted.prefill(tokens[:7])
    logits = chip.forward(tokens[7:]).logits
    assert np.array_equal(logits, interpreted.forward(tokens[7:]).logits)
