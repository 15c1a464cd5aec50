"""The certificate: a wrong integer of any kind is found and named, and nothing else changes it."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from tests.lm.samples import MODELS, chip_target, random_tokens, text_model

from capra.lm.graphs import cache_names
from capra.lm.target import ChipTarget, IntegerTarget, InterpretedTarget, Role
from capra.numerics import FloatArray, Int64Array
from capra.sim.device import Execution
from capra.spec_decode.certificate import (
    CertifyingTarget,
    Difference,
    Row,
    certificate_record,
    first_difference,
)
from capra.spec_decode.decode import decode
from capra.spec_decode.proposers import (
    ConstantProposer,
    Proposer,
    RandomProposer,
    always_right,
    always_wrong,
)

PROMPT = (1, 0, 3)
LENGTH = 8
K = 3
CACHED = ("l0.k", "l0.v", "l1.k", "l1.v")


def _rows(
    target: IntegerTarget, proposer: Proposer | None = None, k: int = K, n: int = LENGTH,
    prompt: Sequence[int] = PROMPT,
) -> Sequence[Row]:  # fmt: skip
    certifying = CertifyingTarget(target)
    decode(
        certifying, prompt, n, proposer=proposer,
        num_speculative_tokens=k if proposer else 0,
    )  # fmt: skip
    return certifying.rows


def _text(name: str) -> tuple[int, ...]:
    return PROMPT + decode(chip_target(name), PROMPT, LENGTH).tokens


def _digests(rows: Sequence[Row]) -> list[str]:
    return [row.digest().hex() for row in rows]


DRAFTS: dict[str, Callable[[str], Proposer]] = {
    "constant": lambda name: ConstantProposer(_text(name)[-1]),
    "random": lambda name: RandomProposer(MODELS[name]().config.vocab_size, 5),
    "always wrong": lambda name: always_wrong(_text(name), MODELS[name]().config.vocab_size),
    "always right": lambda name: always_right(_text(name), MODELS[name]().config.vocab_size),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", MODELS)
def test_every_draft_and_k_gives_the_digests_of_the_plain_run(name: str) -> None:
    target = chip_target(name)
    plain = _rows(target)
    assert len(plain) == len(PROMPT) - 1 + LENGTH
    for draft, k in product(DRAFTS, range(1, 8)):
        record = certificate_record(plain, _rows(target, DRAFTS[draft](name), k))
        one, other = record["plain"], record["speculative"]
        assert (record["equal"], record["first_difference"]) == (True, None), (draft, k)
        assert one["digest"] == other["digest"], (draft, k)
        assert one["rows"] == other["rows"][: len(plain)], (draft, k)
        assert len(other["rows"]) == len(plain) + record["uncompared_rows"], (draft, k)


@pytest.mark.parametrize("name", MODELS)
def test_the_simulator_and_the_interpreter_have_the_same_digests(name: str) -> None:
    chip = _rows(chip_target(name))
    assert _digests(chip) == _digests(_rows(InterpretedTarget(MODELS[name]())))


def test_prompts_have_digests_of_their_own() -> None:
    prompts = (PROMPT, (1, 0, 4), (0, 1, 3), (1, 0), (0, 3))
    runs = [_rows(chip_target("text"), n=2, prompt=prompt) for prompt in prompts]
    wholes = {certificate_record(rows, rows)["plain"]["digest"] for rows in runs}
    assert len(wholes) == len(prompts)


def test_a_row_holds_what_the_session_computed(seed: int) -> None:
    target = chip_target("text")
    tokens = random_tokens(seed, target.vocab_size, 9)
    certifying, plain = CertifyingTarget(target), target.session()
    session = certifying.session()
    session.prefill(tokens[:3])
    session.forward(tokens[3:8])
    session.forward(tokens[8:])
    plain.prefill(tokens[:3])
    logits = [plain.forward([token]).logits[0] for token in tokens[3:]]
    assert len(certifying.rows) == session.length == 9
    for position, row in enumerate(certifying.rows):
        parts = dict(row.parts)
        assert (row.position, parts.pop("token")) == (position, (tokens[position],))
        assert ("logits" in parts) == (position >= 3)
        if position >= 3:
            assert list(parts.pop("logits")) == logits[position - 3].tolist()
        assert tuple(parts) == cache_names(text_model().config) == CACHED
        for name, values in parts.items():
            assert list(values) == plain.cached(name)[position].tolist()


def test_rejected_rows_leave_no_digest() -> None:
    certifying = CertifyingTarget(chip_target("text"))
    session = certifying.session()
    session.prefill([1, 2])
    session.forward([3, 7, 7, 7])
    session.truncate(3)
    assert len(certifying.rows) == session.length == 3
    session.forward([4, 9])
    session.truncate(4)
    clean = CertifyingTarget(chip_target("text"))
    session = clean.session()
    session.prefill([1, 2])
    session.forward([3])
    session.forward([4])
    assert certifying.rows == clean.rows


class _Damaging(InterpretedTarget):
    """Changes one old value of the cache whenever a later block was computed."""

    def run(
        self, role: Role, rows: FloatArray, cached: int, cache: Mapping[str, Int64Array]
    ) -> Execution:
        execution = super().run(role, rows, cached, cache)
        if cached == 3:
            cache["l1.v"][1, 4] ^= 1
        return execution


def test_a_committed_row_that_is_destroyed_later_is_found() -> None:
    plain, damaged = (_rows(target(text_model()), n=4) for target in (InterpretedTarget, _Damaging))
    found = first_difference(plain, damaged)
    assert found is not None and (found.position, found.part, found.element) == (1, "l1.v", 4)


def test_a_new_session_starts_from_nothing() -> None:
    certifying = CertifyingTarget(chip_target("text"))
    assert not certifying.rows
    decode(certifying, PROMPT, 3)
    assert len(certifying.rows) == 5
    decode(certifying, PROMPT, 0)
    assert certificate_record(certifying.rows, certifying.rows)["rows"] == 0


ROW = Row(5, {"token": (7,), "logits": (1, -2), "l0.k": (3, 4), "l0.v": (-127, 127)})


def test_a_digest_is_the_documented_one() -> None:
    def int32(value: int) -> bytes:
        return value.to_bytes(4, "little", signed=True)

    content = int32(5)
    content += b"token\0" + int32(1) + int32(7)
    content += b"logits\0" + int32(2) + int32(1) + int32(-2)
    content += b"l0.k\0" + int32(2) + int32(3) + int32(4)
    content += b"l0.v\0" + int32(2) + int32(-127) + int32(127)
    digest = hashlib.blake2b(content, digest_size=16).digest()
    assert ROW.digest() == digest
    run = certificate_record([ROW, ROW], [ROW, ROW, ROW])
    whole = hashlib.blake2b(digest + digest, digest_size=16).hexdigest()
    assert run["plain"] == {"digest": whole, "rows": [digest.hex()] * 2}
    assert run["speculative"] == {"digest": whole, "rows": [digest.hex()] * 3}
    assert (run["rows"], run["uncompared_rows"], run["equal"]) == (2, 1, True)


def _changed(**parts: tuple[int, ...]) -> Row:
    return replace(ROW, parts={**ROW.parts, **parts})


OTHERS = {
    "position": replace(ROW, position=6),
    "token": _changed(token=(8,)),
    "logit": _changed(logits=(1, -3)),
    "k": _changed(**{"l0.k": (2, 4)}),
    "v": _changed(**{"l0.v": (-127, 126)}),
    "k and v swapped": _changed(**{"l0.k": ROW.parts["l0.v"], "l0.v": ROW.parts["l0.k"]}),
    "elements swapped": _changed(logits=(-2, 1)),
    "moved to the next part": _changed(**{"l0.k": (3,), "l0.v": (4, -127, 127)}),
    "no logits": Row(5, {name: v for name, v in ROW.parts.items() if name != "logits"}),
    "another name": Row(5, {n.replace("l0.v", "l1.v"): v for n, v in ROW.parts.items()}),
}


def test_whatever_a_row_says_changes_its_digest() -> None:
    assert len({ROW.digest(), *(row.digest() for row in OTHERS.values())}) == 1 + len(OTHERS)


@pytest.mark.parametrize("name", [name for name in OTHERS if name != "position"])
def test_whatever_a_row_holds_is_compared(name: str) -> None:
    assert first_difference([ROW, ROW], [ROW, ROW]) is None
    for rows in ([ROW, ROW], [ROW, OTHERS[name]]), ([ROW, OTHERS[name]], [ROW, ROW]):
        found = first_difference(*rows)
        assert found is not None and found.position == 1


def test_a_row_that_the_speculative_run_lacks_is_a_difference() -> None:
    rows = _rows(chip_target("text"))
    token = rows[4].parts["token"][0]
    assert first_difference(rows, rows[:4]) == Difference(4, "token", 0, token, None)
    assert first_difference(rows[:4], rows) is None, "more rows are none"


def test_rows_past_the_length_asked_for_are_counted_and_not_compared() -> None:
    target = chip_target("text")
    plain, longer = _rows(target, n=4), _rows(target, always_right(_text("text"), 12), 7, 4)
    record = certificate_record(plain, longer)
    assert (record["rows"], record["uncompared_rows"], record["equal"]) == (2 + 4, 4, True)
    assert record["plain"]["digest"] == record["speculative"]["digest"]


def _next_to(value: int) -> int:
    return value - 1 if value > 0 else value + 1


Fault = Callable[[dict[str, Int64Array]], None]


class _FaultyTarget(ChipTarget):
    """Its verifiers' outputs go through a fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(text_model())
        self._fault = fault

    def run(self, *args: Any) -> Execution:
        execution = super().run(*args)
        if args[0] == "verify":
            self._fault(dict(execution.outputs))
        return execution


def _speculative_with(fault: Fault) -> Difference | None:
    right = always_right(_text("text"), 12)
    return first_difference(_rows(chip_target("text")), _rows(_FaultyTarget(fault), right))


# The first verifier's rows are at positions 2 .. 5; a fault is in its second row.
POSITION = len(PROMPT)


@pytest.mark.parametrize("part", ["logits", *CACHED])
@pytest.mark.parametrize("element", [0, 7])
def test_one_wrong_integer_of_a_verifier_is_found_and_named(part: str, element: int) -> None:
    def fault(outputs: dict[str, Int64Array]) -> None:
        outputs[part][1, element] = _next_to(int(outputs[part][1, element]))

    expected = _rows(chip_target("text"))[POSITION].parts[part][element]
    found = _speculative_with(fault)
    assert found == Difference(POSITION, part, element, expected, _next_to(expected))


def test_a_wrong_token_of_a_verifier_is_found_where_it_is_fed() -> None:
    def fault(outputs: dict[str, Int64Array]) -> None:
        outputs["token"][1] = (outputs["token"][1] + 1) % 12

    expected = _text("text")[POSITION + 1]
    found = _speculative_with(fault)
    assert found == Difference(POSITION + 1, "token", 0, expected, (expected + 1) % 12)


def test_keys_and_values_swapped_by_a_verifier_are_found() -> None:
    def fault(outputs: dict[str, Int64Array]) -> None:
        keys = outputs["l1.k"].copy()
        outputs["l1.k"][:], outputs["l1.v"][:] = outputs["l1.v"], keys

    found = _speculative_with(fault)
    assert found is not None and (found.position, found.part) == (POSITION - 1, "l1.k")
