"""A run is refused before its first token, or it ends."""

import random
from dataclasses import replace
from itertools import product

import pytest
from tests.lm.samples import gaussian_model

from capra.compiler.optimization import O0, O1, Optimization
from capra.compiler.pipeline import Room
from capra.errors import CapacityError
from capra.isa.chip import Chip
from capra.isa.instruction import instruction
from capra.isa.program import Program
from capra.lm.fit import RunShapes, check_run
from capra.lm.model import LanguageModel, ModelConfig
from capra.lm.target import ChipTarget, Role
from capra.spec_decode.comparison import Comparison
from capra.spec_decode.proposers import RandomProposer

LEVELS = pytest.mark.parametrize("optimize", [O0, O1], ids=["O0", "O1"])
SEEDS = (*range(12), 47, 72)
"""In the last two, first fit alone would refuse a run after some tokens."""


def narrow_model() -> LanguageModel:
    """One whose scratchpad holds the buffers of its longest step and no word more than needed."""
    return gaussian_model(
        ModelConfig(
            "narrow", vocab_size=42, width=32, heads=4, layers=1, hidden=26, context=24,
            chip=Chip(external_words=1 << 14, scratchpad_words=2048),
        ),
        seed=0,
    )  # fmt: skip


@LEVELS
def test_a_shorter_cache_fits_where_a_longer_one_does(optimize: Optimization) -> None:
    """First fit leaves a hole at a cache of 14 that no longer cache leaves."""
    target = ChipTarget(narrow_model(), optimize=optimize)
    target.check_fit(1, 16, 0)
    session = target.session()
    for _ in range(24):
        session.forward([0])
    assert session.length == 24


def test_what_does_not_fit_is_said_with_the_program() -> None:
    model = narrow_model()
    chip = replace(model.config.chip, scratchpad_words=1024)
    target = ChipTarget(replace(model, config=replace(model.config, chip=chip)))
    message = r"^step_c0: the scratchpad needs 1056 words for layers\.0\.wq, expected at most 1024$"
    with pytest.raises(CapacityError, match=message):
        target.check_fit(1, 1, 0)


def random_run(seed: int) -> tuple[LanguageModel, int, int, int]:
    """A small model on a chip that it hardly fits; length of the prompt, new tokens, guesses."""
    draw = random.Random(seed)
    heads = draw.choice((1, 2, 3))
    width = heads * draw.randint(2, 8)
    config = ModelConfig(
        f"random_{seed}", vocab_size=draw.randint(2, 40), width=width, heads=heads,
        layers=draw.choice((1, 1, 2)), hidden=draw.randint(1, 40), context=draw.randint(2, 24),
        chip=Chip(
            external_words=draw.choice((2048, 8192)),
            scratchpad_words=draw.choice((256, 512, 512, 1024, 1024, 2048)),
            program_entries=draw.choice((700, 1 << 14)),
        ),
    )  # fmt: skip
    prompt = draw.randint(1, config.context)
    new_tokens, guesses = draw.randint(1, config.context), draw.randint(0, 6)
    return gaussian_model(config, seed), prompt, new_tokens, guesses


def comparison(seed: int, optimize: Optimization) -> Comparison:
    """Both runs of `random_run`; CapacityError where they are refused."""
    model, prompt, new_tokens, guesses = random_run(seed)
    vocab = model.config.vocab_size
    return Comparison(
        ChipTarget(model, optimize=optimize), [seed % vocab] * prompt, new_tokens, guesses,
        lambda _text: RandomProposer(vocab, seed),
    )  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", SEEDS)
@LEVELS
def test_a_random_run_is_refused_at_once_or_ends(seed: int, optimize: Optimization) -> None:
    try:
        runs = comparison(seed, optimize)
    except CapacityError:
        return
    plain = runs.plain()
    assert runs.speculative(plain).tokens == plain.tokens


@LEVELS
def test_some_random_runs_are_refused_and_some_are_not(optimize: Optimization) -> None:
    refused = 0
    for seed in SEEDS:
        try:
            comparison(seed, optimize)
        except CapacityError:
            refused += 1
    assert len(SEEDS) // 4 <= refused <= 3 * len(SEEDS) // 4


@pytest.mark.parametrize("seed", range(8))
@LEVELS
def test_what_there_is_room_for_fits(seed: int, optimize: Optimization) -> None:
    """Every smaller program of those that the compiler vouches for without making them."""
    model, *_ = random_run(seed)
    found = set()
    for words in (64, 256, 512, 1024, 2048, 4096, 1 << 14):
        chip = Chip(external_words=1 << 14, scratchpad_words=words)
        target = ChipTarget(
            replace(model, config=replace(model.config, chip=chip)), optimize=optimize
        )
        for rows, cache in ((5, 9), (3, 4)):
            room = target.room("verify", rows, cache)
            found.add(room)
            if room.for_all:
                for count, cached in product(range(2, rows + 1), range(cache + 1)):
                    target.program("verify", count, cached)
            elif room.for_shorter_caches and compiles(target, rows, cache):
                for cached in range(1, cache):
                    target.program("verify", rows, cached)
    assert Room(True, True) in found and Room(False, False) in found


def compiles(target: ChipTarget, rows: int, cache: int) -> bool:
    """True where the program of a block fits."""
    try:
        target.program("verify", rows, cache)
    except CapacityError:
        return False
    return True


class _Shapes:
    """Programs that fit, but for some; `room` promises what it is told to."""

    def __init__(self, too_large: set[tuple[str, int, int]], room: Room) -> None:
        self._too_large = too_large
        self._room = room

    def program(self, role: Role, rows: int, cache: int) -> Program:
        if (role, rows, cache) in self._too_large:
            raise CapacityError(f"{role} of {rows} after {cache}")
        return Program("fits", Chip(), (instruction("HALT"),))

    def room(self, role: Role, rows: int, cache: int) -> Room:
        return self._room


@pytest.mark.parametrize(
    ("shape", "promised"),
    [
        (("step", 1, 5), Room(False, False)),
        (("verify", 3, 5), Room(False, False)),
        (("verify", 2, 4), Room(False, False)),
        (("step", 1, 0), Room(False, True)),
        (("verify", 3, 0), Room(False, True)),
        (("prefill", 4, 0), Room(True, True)),
    ],
    ids=str,
)
def test_one_program_that_does_not_fit_refuses_the_run(
    shape: tuple[str, int, int], promised: Room
) -> None:
    """Of shorter caches than the last, of the empty one, of fewer rows, of the prompt."""
    prompt = 5 if shape[0] == "prefill" else 1
    shapes = RunShapes(prompt, 9, 2, 64, 16, is_shortened=False)
    check_run(_Shapes(set(), promised), shapes)
    with pytest.raises(CapacityError, match=f"{shape[0]} of {shape[1]} after {shape[2]}"):
        check_run(_Shapes({shape}, promised), shapes)
