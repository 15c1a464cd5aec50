"""Targets: the same row is the same integers however a text is cut into programs."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from tests.lm.samples import MODELS, chip_target, random_tokens, text_model, tiny

from capra.compiler.optimization import O1
from capra.errors import CapacityError, InputError, PoisonError
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.lm import target as target_module
from capra.lm.graphs import cache_names
from capra.lm.reference import block_logits
from capra.lm.target import (
    PREFILL_ROWS,
    ChipTarget,
    FloatSession,
    FloatTarget,
    Forward,
    IntegerSession,
    InterpretedTarget,
)
from capra.lm.tiny import random_model
from capra.numerics import FloatArray, IntArray
from capra.sim.device import Execution, SimulatedDevice

LENGTH = 20


@dataclass
class Trace:
    """All that a session told of a text, and the session."""

    session: IntegerSession
    logits: list[FloatArray] = field(default_factory=list)
    choices: list[int] = field(default_factory=list)

    def add(self, forward: Forward) -> None:
        self.logits += list(forward.logits)
        self.choices += forward.choices


def _in_blocks(
    target: ChipTarget | InterpretedTarget, tokens: Sequence[int], sizes: Sequence[int]
) -> Trace:
    trace = Trace(target.session())
    start = 0
    for size in sizes:
        trace.add(trace.session.forward(tokens[start : start + size]))
        start += size
    assert start == len(tokens) == trace.session.length
    return trace


def _cut(seed: int, length: int) -> list[int]:
    draw, sizes = random.Random(seed), list[int]()
    while sum(sizes) < length:
        sizes.append(min(draw.randint(1, 8), length - sum(sizes)))
    return sizes


def _assert_equal_caches(one: IntegerSession, other: IntegerSession, name: str) -> None:
    for tensor in cache_names(MODELS[name]().config):
        assert np.array_equal(one.cached(tensor), other.cached(tensor)), tensor


@pytest.mark.sample(5)
@pytest.mark.parametrize("name", MODELS)
def test_blocks_of_any_size_give_the_integers_of_single_steps(name: str, seed: int) -> None:
    target = chip_target(name)
    tokens = random_tokens(seed, target.vocab_size, LENGTH)
    steps = _in_blocks(target, tokens, [1] * LENGTH)
    for sizes in ([LENGTH], _cut(seed, LENGTH), _cut(seed + 100, LENGTH)):
        blocks = _in_blocks(target, tokens, sizes)
        assert np.array_equal(blocks.logits, steps.logits), sizes
        assert blocks.choices == steps.choices, sizes
        _assert_equal_caches(blocks.session, steps.session, name)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [1, 3, 17, 19])
def test_prefill_leaves_the_cache_of_single_steps(name: str, count: int) -> None:
    target = chip_target(name)
    tokens = random_tokens(count, target.vocab_size, LENGTH)
    session = target.session()
    session.prefill(tokens[:count])
    assert session.length == count
    steps = _in_blocks(target, tokens[:count], [1] * count)
    _assert_equal_caches(session, steps.session, name)
    assert np.array_equal(session.forward([4]).logits, steps.session.forward([4]).logits)


@pytest.mark.parametrize("name", MODELS)
def test_rejected_rows_leave_nothing_behind(name: str, seed: int) -> None:
    target, draw = chip_target(name), random.Random(seed)
    tokens = random_tokens(seed, target.vocab_size, LENGTH)
    steps = _in_blocks(target, tokens, [1] * LENGTH)
    trace = Trace(target.session())
    while (start := trace.session.length) < LENGTH:
        size = min(draw.randint(1, 5), LENGTH - start)
        kept = draw.randint(1, size)
        wrong = random_tokens(draw.randint(0, 99), target.vocab_size, size - kept)
        forward = trace.session.forward([*tokens[start : start + kept], *wrong])
        trace.add(Forward(forward.choices[:kept], forward.logits[:kept]))
        trace.session.truncate(start + kept)
    assert np.array_equal(trace.logits, steps.logits)
    assert trace.choices == steps.choices
    _assert_equal_caches(trace.session, steps.session, name)


@pytest.mark.parametrize("name", MODELS)
def test_the_chip_computes_what_the_interpreter_computes(name: str, seed: int) -> None:
    target = chip_target(name)
    tokens = random_tokens(seed, target.vocab_size, LENGTH)
    sizes = _cut(seed, LENGTH)
    chip = _in_blocks(target, tokens, sizes)
    interpreted = _in_blocks(InterpretedTarget(target.model), tokens, sizes)
    assert np.array_equal(chip.logits, interpreted.logits)
    assert chip.choices == interpreted.choices
    _assert_equal_caches(chip.session, interpreted.session, name)


@pytest.mark.parametrize("name", MODELS)
def test_a_choice_is_the_first_of_the_largest_logits(name: str) -> None:
    target = chip_target(name)
    forward = target.session().forward(random_tokens(3, target.vocab_size, LENGTH))
    assert list(forward.choices) == forward.logits.argmax(axis=1).tolist()
    assert forward.logits.shape == (LENGTH, target.vocab_size)


@pytest.mark.parametrize("name", MODELS)
def test_float_blocks_continue_the_text(name: str) -> None:
    model = MODELS[name]()
    tokens = random_tokens(3, model.config.vocab_size, 9)
    session = FloatTarget(model).session()
    assert session.prefill(tokens[:4]) == () and session.length == 4
    session.forward([*tokens[4:6], 0, 0])
    session.truncate(6)
    forward = session.forward(tokens[6:])
    expected = block_logits(model, tokens)[6:]
    np.testing.assert_allclose(forward.logits, expected, rtol=0, atol=1e-9)
    assert list(forward.choices) == expected.argmax(axis=1).tolist()
    assert forward.runs == ()


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 33])
def test_a_prompt_takes_one_program_for_every_16_rows(count: int) -> None:
    session = chip_target("random").session()
    runs = session.prefill([1] * count)
    shapes = [(run.role, run.rows, run.cache) for run in runs]
    starts = range(0, count, PREFILL_ROWS)
    assert shapes == [("prefill", min(16, count - start), start) for start in starts]


def test_one_row_runs_a_step_and_more_run_a_verifier() -> None:
    target = chip_target("random")
    session = target.session()
    (step,) = session.forward([3]).runs
    (verify,) = session.forward([3, 4, 5]).runs
    (prefill,) = session.prefill([6, 7])
    for run, role, rows, cache in (
        (step, "step", 1, 0), (verify, "verify", 3, 1), (prefill, "prefill", 2, 4)
    ):  # fmt: skip
        program = target.program(run.role, run.rows, run.cache)
        assert (run.role, run.rows, run.cache) == (role, rows, cache)
        assert (run.counters, run.phases) == (program.counters, program.phases)
        assert run.weight_words == program.weight_words > 0


def test_the_whole_context_can_be_used() -> None:
    target = chip_target("text")
    tokens = random_tokens(1, 12, target.max_context)
    whole = _in_blocks(target, tokens, [len(tokens)])
    parts = _in_blocks(target, tokens, [len(tokens) - 1, 1])
    assert np.array_equal(whole.logits, parts.logits)


def test_sessions_do_not_share_a_cache() -> None:
    target = chip_target("text")
    one, other = target.session(), target.session()
    one.forward([1, 2, 3])
    other.forward([4, 5])
    assert np.array_equal(
        one.forward([6]).logits, _in_blocks(target, [1, 2, 3, 6], [4]).logits[-1:]
    )


def test_cached_rows_are_a_copy() -> None:
    session = chip_target("text").session()
    session.forward([1, 2, 3])
    rows = session.cached("l1.v")
    assert rows.shape == (3, 8)
    rows[:] = 99
    assert not np.array_equal(session.cached("l1.v"), rows)


SESSIONS: dict[str, Callable[[], IntegerSession | FloatSession]] = {
    "chip": lambda: chip_target("text").session(),
    "interpreter": lambda: InterpretedTarget(text_model()).session(),
    "float": lambda: FloatTarget(text_model()).session(),
}


@pytest.fixture(params=SESSIONS)
def session(request: pytest.FixtureRequest) -> IntegerSession | FloatSession:
    """A session of a text of 12 tokens and a context of 24 rows."""
    return SESSIONS[request.param]()


@pytest.mark.parametrize("length", [-1, 4, 1.5])
def test_a_cache_cannot_grow_by_truncation(
    length: int, session: IntegerSession | FloatSession
) -> None:
    session.forward([1, 2, 3])
    with pytest.raises(InputError, match=rf"{length} rows to be kept, expected 0 \.\. 3, those c"):
        session.truncate(length)
    assert session.length == 3


def same_after(session: IntegerSession | FloatSession, tokens: Sequence[int], after: int) -> None:
    """Assert that a session holds these tokens and goes on with them as a fresh one does."""
    assert session.length == len(tokens)
    session.truncate(len(tokens) - 1)
    kind = next(k for k, v in SESSIONS.items() if type(v()) is type(session))
    fresh = SESSIONS[kind]()
    fresh.prefill(tokens[:-1])
    block = [tokens[-1], after][: 24 - session.length]
    assert np.allclose(session.forward(block).logits, fresh.forward(block).logits, atol=1e-9)


@pytest.mark.parametrize("count", [1, 3, 17])
@pytest.mark.parametrize("call", ["forward", "prefill"])
def test_a_full_session_refuses_more(
    count: int, call: str, session: IntegerSession | FloatSession
) -> None:
    tokens = random_tokens(4, 12, 24)
    cached = 24 if count == 1 else 22
    session.prefill(tokens[:cached])
    room = 24 - cached
    message = (
        rf"^{count} rows after {cached} cached ones, expected at most {room}: the context has 24 r"
    )
    with pytest.raises(InputError, match=message):
        getattr(session, call)([1] * count)
    same_after(session, tokens[:cached], 5)


@pytest.mark.parametrize("call", ["forward", "prefill"])
@pytest.mark.parametrize("token", [12, -1, 1.0])
def test_a_refused_token_leaves_a_session_as_it_was(
    call: str, token: int, session: IntegerSession | FloatSession
) -> None:
    """Also where it comes after the first program of a prompt."""
    session.forward([1, 2, 3])
    with pytest.raises(InputError, match=rf"token is {token}, expected 0 \.\. 11, the vocabulary"):
        getattr(session, call)([*[4] * 17, token])
    same_after(session, [1, 2, 3], 7)


def test_an_empty_block_is_refused(session: IntegerSession | FloatSession) -> None:
    session.forward([1, 2])
    with pytest.raises(InputError, match="the block is empty, expected at least one token"):
        session.forward([])
    assert session.prefill([]) == ()
    same_after(session, [1, 2], 7)


def test_no_program_reads_a_word_that_nobody_wrote() -> None:
    model = text_model()
    target = ChipTarget(model, SimulatedDevice(model.config.chip, poison=True))
    session = target.session()
    session.prefill(random_tokens(1, 12, 5))
    session.forward([1, 2, 3])
    session.truncate(6)
    session.forward([4])
    assert session.length == 7


class _CountingDevice:
    """A device of the user's own."""

    def __init__(self, inner: SimulatedDevice) -> None:
        self.inner = inner
        self.executed: list[str] = []

    def execute(self, program: Program, feeds: Mapping[str, IntArray]) -> Execution:
        self.executed.append(program.name)
        return self.inner.execute(program, feeds)


def test_every_run_is_one_execution_on_the_given_device() -> None:
    model = text_model()
    device = _CountingDevice(SimulatedDevice(model.config.chip))
    session = ChipTarget(model, device).session()
    session.prefill([1] * 18)
    session.forward([2])
    session.forward([2, 3])
    assert device.executed == ["prefill_m16_c0", "prefill_m2_c16", "step_c18", "verify_m2_c19"]


class _FailingDevice(_CountingDevice):
    """One whose third program fails."""

    def execute(self, program: Program, feeds: Mapping[str, IntArray]) -> Execution:
        if len(self.executed) == 2:
            self.executed.clear()
            raise PoisonError("a broken device")
        return super().execute(program, feeds)


def test_a_prompt_that_fails_half_way_leaves_a_session_as_it_was() -> None:
    model = text_model()
    session = ChipTarget(model, _FailingDevice(SimulatedDevice(model.config.chip))).session()
    session.forward([1])
    with pytest.raises(PoisonError, match="a broken device"):
        session.prefill([2] * 20)
    same_after(session, [1], 7)


def test_a_shape_is_compiled_once() -> None:
    target = ChipTarget(text_model())
    assert target.program("verify", 3, 2) is target.program("verify", 3, 2)
    assert target.program("verify", 3, 2) is not target.program("verify", 2, 3)


def test_old_programs_are_dropped_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    keeping, target = ChipTarget(text_model()), ChipTarget(text_model())
    tokens = random_tokens(2, 12, 12)
    expected = _in_blocks(keeping, tokens, [1] * 12).logits
    size = len(keeping.program("step", 1, 11).instructions)
    monkeypatch.setattr(target_module, "CACHED_INSTRUCTIONS", 3 * size)
    first = target.program("step", 1, 0)
    assert np.array_equal(_in_blocks(target, tokens, [1] * 12).logits, expected)
    assert target.program("step", 1, 11) is target.program("step", 1, 11)
    assert target.program("step", 1, 0) is not first


def test_a_model_that_does_not_fit_says_so() -> None:
    model = tiny("random", 1)
    chip = replace(model.config.chip, external_words=2000)
    small = replace(model, config=replace(model.config, chip=chip))
    with pytest.raises(CapacityError, match=r"external memory.*expected at most 2000"):
        ChipTarget(small).session().forward([0])


def test_what_will_not_fit_is_known_before_anything_runs() -> None:
    model = random_model(1, Chip(external_words=2480))
    target = ChipTarget(model)
    target.check_fit(1, 0, 0)
    with pytest.raises(CapacityError, match="step_c5: external memory"):
        target.check_fit(1, 6, 0)
    with pytest.raises(CapacityError, match="verify_m3_c0: external memory"):
        target.check_fit(1, 1, 2)


def test_blocks_that_are_shortened_need_no_more_room_than_they_have_rows() -> None:
    """Of five tokens, a block has five rows at most, whatever the number of guesses."""
    target = ChipTarget(random_model(1, Chip(external_words=2752)), optimize=O1)
    for guesses in (4, 63, 1000):
        target.check_fit(1, 5, guesses, shorten_last_block=True)
    target.session().forward([0, 1, 2, 3, 4])
    with pytest.raises(CapacityError, match="verify_m7_c0: external memory"):
        target.check_fit(1, 7, 1000, shorten_last_block=True)


@pytest.mark.parametrize("make", [lambda: chip_target("text"), lambda: FloatTarget(text_model())])
def test_tokens_of_any_integer_type_and_container_are_the_same_block(
    make: Callable[[], ChipTarget | FloatTarget],
) -> None:
    expected: list[int] | None = None
    for kind in (list, tuple, np.array, iter):
        session = make().session()
        session.prefill(kind([1, 2]))
        session.prefill(kind([3, 4]))
        forward = session.forward(kind([5, 6]))
        assert session.length == 6
        expected = expected or list(forward.choices)
        assert list(forward.choices) == expected
    for bad in (True, 1.0, "1"):
        with pytest.raises(InputError, match=f"token is {bad}, expected 0 .. 11"):
            session.forward([bad])  # type: ignore[list-item]
        assert session.length == 6
