"""The two float references agree, and neither looks ahead."""

import numpy as np
import pytest
from tests.lm.samples import MODELS, random_tokens, sharp_model, text_model, tiny

from capra.lm.reference import FloatStepper, block_logits, greedy_tokens

CACHE = 4
TOLERANCE = 1e-9


@pytest.mark.parametrize("model_seed", [1, 2, 3])
@pytest.mark.parametrize("rows", [1, 2, 4, 5])
def test_block_form_equals_sequential_form(model_seed: int, rows: int) -> None:
    for name in ("random", "structured"):
        model = tiny(name, model_seed)
        tokens = random_tokens(model_seed, 16, CACHE + rows)
        stepper = FloatStepper(model)
        steps = np.array([stepper.step(token) for token in tokens])
        np.testing.assert_allclose(block_logits(model, tokens), steps, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("name", MODELS)
def test_the_forms_agree_where_attention_matters(name: str, seed: int) -> None:
    model = MODELS[name]()
    tokens = random_tokens(seed, model.config.vocab_size, 20)
    stepper = FloatStepper(model)
    steps = np.array([stepper.step(token) for token in tokens])
    np.testing.assert_allclose(block_logits(model, tokens), steps, rtol=0, atol=TOLERANCE)
    assert stepper.length == 20


@pytest.mark.parametrize("name", ["text", "sharp"])
def test_a_row_depends_on_itself_and_on_what_is_before_it(name: str) -> None:
    model = MODELS[name]()
    tokens = random_tokens(8, model.config.vocab_size, 8)
    logits = block_logits(model, tokens)
    for changed in range(8):
        other = list(tokens)
        other[changed] = (other[changed] + 1) % model.config.vocab_size
        rows = np.abs(block_logits(model, other) - logits).max(axis=1)
        assert (rows[:changed] < TOLERANCE).all()
        assert (rows[changed:] > TOLERANCE).all()


def test_one_token_attends_only_to_itself() -> None:
    model = sharp_model()
    w = {name.removeprefix("layers.0."): weight for name, weight in model.weights.items()}
    x = w["embed"][7]
    h = x + x @ w["wv"] @ w["wo"]
    y = h + np.maximum(h @ w["w1"], 0) @ w["w2"]
    np.testing.assert_allclose(FloatStepper(model).step(7), y @ w["unembed"], rtol=0, atol=1e-12)


def test_two_tokens_are_weighed_by_the_softmax_of_their_scaled_products() -> None:
    model = sharp_model()
    w = {name.removeprefix("layers.0."): weight for name, weight in model.weights.items()}
    x = w["embed"][[7, 2]]
    scores = (x[1] @ w["wq"]) @ (x @ w["wk"]).T / 4  # the root of the width of 16
    probs = np.exp(scores) / np.exp(scores).sum()
    h = x[1] + probs @ (x @ w["wv"]) @ w["wo"]
    y = h + np.maximum(h @ w["w1"], 0) @ w["w2"]
    expected = y @ w["unembed"]
    np.testing.assert_allclose(block_logits(model, [7, 2])[1], expected, rtol=0, atol=1e-9)


def test_greedy_text_is_the_most_likely_next_token_again_and_again() -> None:
    model = text_model()
    text = [4, *greedy_tokens(model, 4, 15)]
    assert len(text) == 16
    assert text[1:] == block_logits(model, text[:-1]).argmax(axis=1).tolist()
    assert greedy_tokens(model, 4, 0) == []
