"""Speculative rows are plain rows, for models, ranges, caches, blocks, drafts and K of any kind.

A failure names the values that bring it back: `_speculate(Case(...), Play(...))`, or the seed of
one model for CAPRA_SEED. CAPRA_RANDOM_BLOCKS sets the number of random speculative blocks.
"""

import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.spec_decode.accounts import assert_accounts
from tests.system.cases import Case, RangeKind, WeightKind, is_refused, random_case
from tests.system.plays import GuessProposer, Play, random_play
from tests.system.rows import AnyTarget, Watched, assert_same_rows, compare, take_steps

from capra.lm.model import LanguageModel
from capra.lm.target import ChipTarget, FloatTarget, InterpretedTarget
from capra.spec_decode.decode import Decoded, decode

BLOCKS: Final = int(os.environ.get("CAPRA_RANDOM_BLOCKS", "200"))
SEED: Final = int(os.environ.get("CAPRA_SEED", "0"))
CORNER_MODELS: Final = 120
RUNS_PER_MODEL: Final = 6
MAX_REFUSED: Final = 0.05


def _prompt(case: Case, play: Play) -> tuple[int, ...]:
    return tuple(token % case.vocab_size for token in play.prompt[: case.context])


def _run(watched: Watched, text: Sequence[int], prompt: Sequence[int], play: Play) -> Decoded:
    run = decode(
        watched, prompt, play.max_new_tokens,
        proposer=GuessProposer(text, play.guesses), num_speculative_tokens=play.k,
    )  # fmt: skip
    assert_accounts(run, play.max_new_tokens, play.k, watched.max_context)
    return run


def _speculate(make: Callable[[LanguageModel], AnyTarget], case: Case, play: Play) -> Decoded:
    """The run of a play, compared with single steps: accounts, tokens, rows."""
    watched, prompt = Watched(make(case.model())), _prompt(case, play)
    steps = take_steps(watched.inner, prompt)
    run = _run(watched, steps.text, prompt, play)
    if run.blocks:
        assert_same_rows(run, watched, steps)
    return run


def cases(*weights: WeightKind) -> st.SearchStrategy[Case]:
    return st.builds(
        Case,
        seed=st.integers(0, 1 << 16),
        vocab_size=st.integers(1, 11),
        heads=st.integers(1, 3),
        head_width=st.integers(1, 3),
        layers=st.integers(1, 2),
        hidden=st.integers(1, 6),
        context=st.integers(1, 8),
        has_positions=st.booleans(),
        weights=st.sampled_from(weights or get_args(WeightKind)),
        ranges=st.sampled_from(get_args(RangeKind)),
    )


PLAYS: Final = st.builds(
    Play,
    prompt=st.lists(st.integers(0, 10), min_size=1, max_size=8).map(tuple),
    guesses=st.lists(
        st.tuples(st.integers(0, 5), st.lists(st.integers(-1, 11), max_size=4).map(tuple)),
        min_size=1, max_size=5,
    ).map(tuple),
    k=st.integers(0, 8),
    max_new_tokens=st.integers(0, 9),
)  # fmt: skip


@given(case=cases("gaussian", "sharp", "outlier"), play=PLAYS)
@settings(max_examples=60)
def test_float_logits_are_those_of_single_steps(case: Case, play: Play) -> None:
    """Not the weights of -1, 0 and 1: float breaks their ties by the last bits of its sums."""
    _speculate(FloatTarget, case, play)


@pytest.mark.full
@given(case=cases(), play=PLAYS)
@settings(max_examples=25)
def test_chip_and_interpreter_make_one_run_of_equal_rows(case: Case, play: Play) -> None:
    assume(not is_refused(case.model()))
    chip = _speculate(ChipTarget, case, play)
    interpreted = _speculate(InterpretedTarget, case, play)
    assert [b.choices for b in chip.blocks] == [b.choices for b in interpreted.blocks]
    assert chip.tokens == interpreted.tokens


@given(case=cases(), tokens=st.lists(st.integers(0, 10), min_size=8, max_size=8), data=st.data())
@settings(max_examples=25)
def test_any_cache_gives_chip_and_interpreter_the_same_integers(
    case: Case, tokens: list[int], data: st.DataObject
) -> None:
    """Caches that no text leaves behind: any integers of -127 .. 127."""
    model = case.model()
    assume(not is_refused(model))
    rows = data.draw(st.integers(1, case.context), "rows")
    cached = data.draw(st.integers(0, case.context - rows), "cached rows")
    draw = np.random.default_rng(data.draw(st.integers(0, 1 << 16), "seed of the cache"))
    targets = (ChipTarget(model), InterpretedTarget(model))
    block = model.embed([token % case.vocab_size for token in tokens[:rows]], cached)
    shape = (case.context, model.config.width)
    cache_ = {
        f"l{layer}.{kv}": draw.integers(-127, 127, shape, endpoint=True)
        for layer in range(case.layers) for kv in "kv"
    }  # fmt: skip
    for role in ("verify", "prefill") if rows > 1 else ("step",):
        chip, interpreted = (t.run(role, block, cached, cache_).outputs for t in targets)
        assert chip.keys() == interpreted.keys()
        for name in chip:
            np.testing.assert_array_equal(chip[name], interpreted[name], f"{role}: {name}")


def test_random_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    """Blocks of random models on the simulated chip, every integer of their rows counted."""
    seed, blocks, compared, differing, refused = SEED, 0, 0, 0, 0
    first: str | None = None
    while blocks < BLOCKS:
        case = random_case(seed)
        model, draw = case.model(), random.Random(f"plays of {seed}")
        if is_refused(model):
            refused += 1
        else:
            watched = Watched(ChipTarget(model))
            for _ in range(RUNS_PER_MODEL):
                play = random_play(draw, case)
                steps = take_steps(watched.inner, _prompt(case, play))
                run = _run(watched, steps.text, _prompt(case, play), play)
                found = compare(run, watched, steps)
                blocks += len(run.blocks)
                compared += found.compared
                differing += found.differing
                if first is None and found.first is not None:
                    first = f"seed {seed}, _speculate(ChipTarget, {case}, {play}): {found.first}"
        seed += 1
    with capsys.disabled():
        print(
            f"\n{blocks} speculative blocks of {seed - SEED - refused} models (seeds {SEED} .. "
            f"{seed - 1}, {refused} refused): {compared} integers compared, {differing} differ"
        )
    assert differing == 0, first
    assert refused <= max(1, MAX_REFUSED * (seed - SEED))


@cache
def _corners() -> Counter[str]:
    """How many of the random models show what the tests are meant to meet."""
    met = Counter[str]()
    for seed in range(CORNER_MODELS):
        case, model = random_case(seed), random_case(seed).model()
        if is_refused(model) or case.vocab_size == 1:
            continue
        tokens = [i % case.vocab_size for i in range(case.context)]
        session = InterpretedTarget(model).session()
        forward = session.forward(tokens)
        logits, values = forward.logits, session.cached("l0.v")
        ties = (logits == logits.max(axis=1, keepdims=True)).sum(axis=1) > 1
        met["a tie"] += bool(ties.any())
        met["logits saturated"] += bool((np.abs(logits) == 127).mean() > 0.9)
        met["all logits -1, 0 or 1"] += bool((np.abs(logits) <= 1).all())
        met["values saturated"] += bool((np.abs(values) == 127).mean() > 0.5)
        met["more than one choice"] += len(set(forward.choices)) > 1
    return met


@pytest.mark.parametrize(
    "what",
    ["a tie", "logits saturated", "all logits -1, 0 or 1", "values saturated",
     "more than one choice"],
)  # fmt: skip
def test_the_random_models_meet(what: str) -> None:
    assert _corners()[what] >= 3


def test_the_random_models_have_every_shape() -> None:
    drawn = [random_case(seed) for seed in range(CORNER_MODELS)]
    for name, values in {
        "vocab_size": {1, 2, 3, 5, 7, 9, 13}, "heads": {1, 2, 3}, "layers": {1, 2},
        "context": set(range(1, 11)), "has_positions": {True, False},
        "weights": set(get_args(WeightKind)), "ranges": set(get_args(RangeKind)),
    }.items():  # fmt: skip
        assert {getattr(case, name) for case in drawn} == values
