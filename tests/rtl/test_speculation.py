"""Speculative runs of random models and of models with equal logits, replayed on the RTL."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.system.cases import is_refused, random_case
from tests.system.plays import GuessProposer, random_play
from tests.system.ties import VOCAB, tied_group, tied_model

from capra.cosim.jobs import Job
from capra.cosim.record import RecordingDevice
from capra.cosim.replay import Replay
from capra.cosim.toolchain import Simulator
from capra.isa.program import Program
from capra.lm.model import LanguageModel
from capra.lm.target import ChipTarget
from capra.numerics import IntArray
from capra.spec_decode.decode import decode

Check = Callable[..., Replay]

MODELS_PER_SEED = 8

PAIRS = ((0, 1), (3, 4), (2, 6), (1, 10), (8, 9), (0, 10))
"""Within a tile, at its border, in two tiles at the same lane, with the last and partial one."""


def _recording(model: LanguageModel, jobs: list[Job]) -> ChipTarget:
    """A target whose programs become jobs, every word of them defined."""
    return ChipTarget(
        model,
        RecordingDevice(
            model.config.chip, lambda job, _left: jobs.append(replace(job, external_known=None))
        ),
    )


def test_random_models(simulator: Simulator, check: Check, seed: int) -> None:
    jobs: list[Job] = []
    for number in range(1000 * seed, 1000 * seed + MODELS_PER_SEED):
        case = random_case(number)
        model, play = case.model(), random_play(random.Random(number), case)
        print(f"{case}\n{play}")
        if is_refused(model):
            continue
        text = [*play.prompt, *decode(ChipTarget(model), play.prompt, case.context).tokens]
        decode(
            _recording(model, jobs), play.prompt, play.max_new_tokens,
            proposer=GuessProposer(text, play.guesses), num_speculative_tokens=play.k,
        )  # fmt: skip
    assert len(jobs) > MODELS_PER_SEED
    check(simulator, jobs)


def _tokens(program: Program, words: IntArray) -> list[int]:
    (slot,) = (slot for slot in program.slots("output") if slot.name == "token")
    return [int(word) for word in words[slot.address : slot.end]]


@pytest.mark.full
def test_the_first_of_equal_logits_wins(simulator: Simulator, check: Check) -> None:
    """What the simulated hardware left in the token slot, not only that it left the same."""
    groups = [(pair, tuple(t for t in (4, 7, 5) if t not in pair)[:2]) for pair in PAIRS]
    tokens = range(VOCAB)
    jobs, expected = list[Job](), list[list[int]]()
    for plus, minus in groups:
        _recording(tied_model(plus, minus), jobs).session().forward(tokens)
        expected.append([tied_group(plus, minus, token)[0] for token in tokens])
    _recording(tied_model((), ()), jobs).session().forward(tokens)
    expected.append([0] * VOCAB)
    result = check(simulator, jobs)
    for job, outcome, choices in zip(jobs, result.outcomes, expected, strict=True):
        assert _tokens(job.program, outcome.external) == choices
