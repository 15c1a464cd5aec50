"""A row of a block sees what is before it and nothing else, on a model whose attention matters."""

import numpy as np
import pytest
from tests.lm.samples import MODELS, chip_target, random_tokens, sharp_model

from capra.lm.reference import FloatStepper, block_logits
from capra.lm.target import ChipTarget, InterpretedTarget, Role
from capra.numerics import FloatArray
from capra.sim.device import Execution

CACHE = [3, 8, 1, 12]
BLOCKS = {
    4: [1, 2, 3, 4],  # by the first row in which a block differs from this one
    3: [1, 2, 3, 12],
    2: [1, 2, 9, 4],
    0: [5, 2, 3, 4],
}
OUTPUTS = ("logits", "l0.attn", "l0.k", "l0.v")

LOGITS_TOLERANCE = 0.15
TENSOR_TOLERANCE = 0.12


def _verify(target: ChipTarget | InterpretedTarget, block: list[int]) -> Execution:
    """A block after the cached tokens, with every output of the verifier."""
    session = target.session()
    session.prefill(CACHE)
    cache = {name: session.cached(name) for name in ("l0.k", "l0.v")}
    role: Role = "verify"
    return target.run(role, target.model.embed(block, len(CACHE)), len(CACHE), cache)


@pytest.mark.parametrize("first", BLOCKS)
def test_rows_before_a_change_are_bit_identical_and_the_others_differ(first: int) -> None:
    target = chip_target("sharp")
    reference, changed = _verify(target, BLOCKS[4]), _verify(target, BLOCKS[first])
    for name in ("logits", "l0.attn"):
        for row in range(4):
            same = np.array_equal(reference.outputs[name][row], changed.outputs[name][row])
            assert same == (row < first), (name, row)
    for name in ("l0.k", "l0.v"):  # a row of these depends on its own token alone
        for row in range(4):
            same = np.array_equal(reference.outputs[name][row], changed.outputs[name][row])
            assert same == (BLOCKS[4][row] == BLOCKS[first][row]), (name, row)


@pytest.mark.parametrize("name", ["sharp", "text"])
def test_every_row_depends_on_every_cached_row(name: str) -> None:
    target = chip_target(name)
    tokens = random_tokens(6, target.vocab_size, 8)
    logits = target.session().forward(tokens).logits
    reached = np.zeros((8, 8), dtype=bool)
    for changed in range(8):
        for token in range(target.vocab_size):
            other = [*tokens[:changed], token, *tokens[changed + 1 :]]
            rows = target.session().forward(other).logits
            reached[changed] |= (rows != logits).any(axis=1)
    assert np.array_equal(reached, np.triu(np.ones((8, 8), dtype=bool)))


@pytest.mark.parametrize("first", BLOCKS)
def test_the_compiled_verifier_is_the_interpreters(first: int) -> None:
    chip = _verify(chip_target("sharp"), BLOCKS[first])
    interpreted = _verify(InterpretedTarget(sharp_model()), BLOCKS[first])
    assert chip.outputs.keys() == interpreted.outputs.keys() == {"token", *OUTPUTS}
    for name, value in chip.outputs.items():
        assert np.array_equal(value, interpreted.outputs[name]), name


@pytest.mark.parametrize("name", ["random", "structured", "sharp"])
def test_int8_stays_near_float(name: str) -> None:
    model, target = MODELS[name](), chip_target(name)
    program = target.program("verify", 4, 4)
    scales = {slot.name: slot.scale for slot in program.slots("output")}
    outputs = _verify(target, BLOCKS[4]).outputs
    for tensor, expected in _float_outputs(name).items():
        scale = scales[tensor]
        assert scale is not None
        tolerance = LOGITS_TOLERANCE if tensor == "logits" else TENSOR_TOLERANCE
        for row, exact in zip(outputs[tensor] * scale, expected, strict=True):
            error = np.linalg.norm(row - exact) / np.linalg.norm(exact)
            assert error < tolerance, (model.config.name, tensor, error)


def _float_outputs(name: str) -> dict[str, FloatArray]:
    """What a verifier gives for BLOCKS[4], in numpy."""
    model = MODELS[name]()
    tokens = [*CACHE, *BLOCKS[4]]
    w = {key.removeprefix("layers.0."): weight for key, weight in model.weights.items()}
    x = w["embed"][tokens]
    q, k, v = x @ w["wq"], x @ w["wk"], x @ w["wv"]
    attention = []
    for row in range(4, 8):
        weights = np.exp(k[: row + 1] @ q[row] / 4)
        attention.append(weights / weights.sum() @ v[: row + 1])
    logits = block_logits(model, tokens)[4:]
    return {"logits": logits, "l0.attn": np.array(attention), "l0.k": k[4:], "l0.v": v[4:]}


def test_the_float_reference_of_these_tests_is_the_stepper() -> None:
    stepper = FloatStepper(sharp_model())
    steps = np.array([stepper.step(token) for token in [*CACHE, *BLOCKS[4]]])
    np.testing.assert_allclose(_float_outputs("sharp")["logits"], steps[4:], rtol=0, atol=1e-9)
