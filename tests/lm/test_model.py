"""A model's shape and weights are checked when it is built."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.lm.samples import text_model, tiny

from capra.errors import CheckpointError, InputError
from capra.lm.model import LanguageModel, ModelConfig, check_token
from capra.numerics import FloatArray

SIZES = {
    "name": "m", "vocab_size": 3, "width": 4, "heads": 2, "layers": 1, "hidden": 8, "context": 5,
}  # fmt: skip


def _config(**changes: Any) -> ModelConfig:
    return ModelConfig(**{**SIZES, **changes})


def _weights(config: ModelConfig) -> dict[str, FloatArray]:
    draw = np.random.default_rng(1)
    shapes = {**config.host_shapes(), **config.weight_shapes()}
    return {name: draw.normal(size=shape) for name, shape in shapes.items()}


@pytest.mark.parametrize("what", ["vocab_size", "width", "heads", "layers", "hidden", "context"])
@pytest.mark.parametrize("value", [0, -1, 1 << 16, 2.0, "2", True, None])
def test_a_size_that_is_not_a_whole_number_in_range_is_refused(what: str, value: object) -> None:
    with pytest.raises(CheckpointError, match=f"{what} is .*expected a whole number of 1"):
        _config(**{what: value})


def test_heads_must_share_the_width_evenly() -> None:
    with pytest.raises(CheckpointError, match="width 4 is not a multiple of its 3 heads"):
        _config(heads=3)
    assert _config(heads=4).head_width == 1


def test_the_chips_weights_come_layer_by_layer_and_the_output_matrix_last() -> None:
    shapes = _config(layers=2).weight_shapes()
    layer = {"wq": (4, 4), "wk": (4, 4), "wv": (4, 4), "wo": (4, 4), "w1": (4, 8), "w2": (8, 4)}
    expected = [(f"layers.{n}.{name}", shape) for n in range(2) for name, shape in layer.items()]
    assert list(shapes.items()) == [*expected, ("unembed", (4, 3))]


def test_only_a_model_with_positions_has_a_table_of_them() -> None:
    assert _config().host_shapes() == {"embed": (3, 4)}
    assert _config(has_positions=True).host_shapes() == {"embed": (3, 4), "positions": (5, 4)}


def _drop(weights: dict[str, FloatArray]) -> None:
    del weights["layers.0.wk"]


def _add(weights: dict[str, FloatArray]) -> None:
    weights["layers.1.wk"] = np.zeros((4, 4))


def _reshape(weights: dict[str, FloatArray]) -> None:
    weights["layers.0.w1"] = weights["layers.0.w1"].T


def _put(value: float) -> Callable[[dict[str, FloatArray]], None]:
    def change(weights: dict[str, FloatArray]) -> None:
        weights["embed"][2, 1] = value

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_drop, "tensor layers.0.wk is missing, expected the 8 tensors of its 1 layers"),
        (_add, "tensor layers.1.wk is unknown, expected the 8 tensors of its 1 layers"),
        (_reshape, r"tensor layers.0.w1 has shape \(8, 4\), expected \(4, 8\)"),
        (_put(np.nan), "tensor embed holds nan, expected finite numbers"),
        (_put(np.inf), "tensor embed holds inf, expected finite numbers"),
        (_put(-np.inf), "tensor embed holds -inf, expected finite numbers"),
    ],
)
def test_wrong_tensors_are_refused(
    damage: Callable[[dict[str, FloatArray]], None], message: str
) -> None:
    weights = _weights(_config())
    LanguageModel(_config(), weights)
    damage(weights)
    with pytest.raises(CheckpointError, match=message):
        LanguageModel(_config(), weights)


def test_a_bigram_is_checked_like_a_weight() -> None:
    config = _config()
    with pytest.raises(CheckpointError, match=r"bigram has shape \(2, 3\), expected \(3, 3\)"):
        LanguageModel(config, _weights(config), bigram=np.zeros((2, 3)))
    with pytest.raises(CheckpointError, match="bigram holds nan"):
        LanguageModel(config, _weights(config), bigram=np.full((3, 3), np.nan))


def test_there_is_one_character_a_token() -> None:
    with pytest.raises(CheckpointError, match="vocabulary has 2 characters, expected 3"):
        LanguageModel(_config(), _weights(_config()), characters="ab")


def test_every_weight_has_its_own_largest_magnitude_as_range() -> None:
    model = text_model()
    for name in model.config.weight_shapes():
        largest = float(np.abs(model.weights[name]).max())
        assert largest <= model.ranges.values[name] <= largest * (1 + 2**-15)
    assert not set(model.config.host_shapes()) & set(model.ranges.values)


def test_a_row_is_the_tokens_embedding_plus_the_positions() -> None:
    model, tiny_model = text_model(), tiny("random", 1)
    rows = model.embed([3, 0, 3], 5)
    for row, (token, position) in zip(rows, [(3, 5), (0, 6), (3, 7)], strict=True):
        expected = model.weights["embed"][token] + model.weights["positions"][position]
        assert row.tolist() == expected.tolist()
    assert tiny_model.embed([4], 9)[0].tolist() == tiny_model.weights["embed"][4].tolist()


@pytest.mark.parametrize("token", [-1, 12, 1 << 70])
def test_a_token_outside_the_vocabulary_has_no_row(token: int) -> None:
    with pytest.raises(InputError, match=f"token is {token}, expected 0 .. 11"):
        text_model().embed([0, token], 0)


def test_the_vocabularys_ends_are_inside_it() -> None:
    check_token("t", 0, 5)
    check_token("t", 4, 5)
    for token in (-1, 5):
        with pytest.raises(InputError, match=f"t is {token}, expected 0 .. 4"):
            check_token("t", token, 5)


def test_weights_cannot_be_exchanged_afterwards() -> None:
    weights = _weights(_config())
    model = LanguageModel(_config(), weights)
    weights["embed"] = np.zeros((3, 4))
    assert model.weights["embed"].any()
    with pytest.raises(TypeError):
        model.weights["embed"] = np.zeros((3, 4))  # type: ignore[index]


def test_a_model_can_be_rebuilt_with_one_thing_changed() -> None:
    model = text_model()
    other = replace(model, config=replace(model.config, name="other"))
    assert other.weights == model.weights and other.config.name == "other"
