"""Models and drafts by name."""

from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from tests.lm.samples import CHARACTERS, text_model, tiny

from capra.errors import CheckpointError, InputError
from capra.lm.bigram import with_noise
from capra.lm.checkpoint import save_checkpoint
from capra.lm.model import LanguageModel
from capra.lm.models import load_bigram, load_bigram_from, load_model


def _save(model: LanguageModel, path: Path) -> Path:
    save_checkpoint(model, path, {})
    return path


def test_a_seed_names_a_tiny_model() -> None:
    for name in ("random", "structured"):
        one, same, other = load_model(name, 1), load_model(name, 1), load_model(name, 2)
        assert one.config.name == name
        assert np.array_equal(one.weights["layers.0.wq"], same.weights["layers.0.wq"])
        assert not np.array_equal(one.weights["layers.0.wq"], other.weights["layers.0.wq"])


def test_the_packaged_model_is_small_enough_to_ship() -> None:
    data = (files("capra") / "data" / "pydoc.safetensors").read_bytes()
    assert len(data) <= 2.5e6


def test_a_path_names_a_checkpoint(tmp_path: Path) -> None:
    assert load_model(str(_save(text_model(), tmp_path / "m"))).characters == CHARACTERS


@pytest.mark.parametrize("name", ["", "Random", "no/such/file", "/", "a" * 5000, "\0"])
def test_any_other_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"model is .*expected structured, random, pydoc or an"):
        load_model(name)


def test_a_file_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(CheckpointError, match=r"notes.txt cannot be read"):
        load_model(str(tmp_path / "notes.txt"))


@pytest.mark.parametrize("noise", [-1.0, float("nan"), float("inf"), 1e308])
def test_noise_must_be_a_sensible_number(noise: float) -> None:
    with pytest.raises(InputError, match=r"draft noise is .*expected a number of 0"):
        load_bigram(tiny("structured", 1), noise)


def test_a_checkpoint_keeps_its_own_bigram_whatever_its_name() -> None:
    model = text_model()
    named = replace(model, config=replace(model.config, name="structured"))
    assert np.array_equal(load_bigram(named).table, load_bigram(model).table)


def test_a_checkpoint_without_a_bigram_gets_one_fitted_within_its_context() -> None:
    model = text_model()
    config = replace(model.config, context=4, name="structured")
    weights = {**model.weights, "positions": model.weights["positions"][:4]}
    draft = load_bigram(LanguageModel(config, weights, characters=CHARACTERS))
    assert draft.vocab_size == len(CHARACTERS)


def test_a_draft_may_come_from_another_checkpoint(tmp_path: Path) -> None:
    other = text_model()
    assert other.bigram is not None
    other = replace(other, bigram=with_noise(other.bigram, 1.0, 1).astype(np.float32))
    draft = load_bigram_from(_save(other, tmp_path / "draft"), text_model(), 0.0, 1)
    assert np.array_equal(draft.table, load_bigram(other).table)


def test_a_draft_of_another_vocabulary_is_refused(tmp_path: Path) -> None:
    model = text_model()
    path = _save(replace(model, characters=CHARACTERS[::-1]), tmp_path / "draft")
    with pytest.raises(InputError, match=r"'lkjihgfedcba'.*expected the target's 12 .*'abcdefgh"):
        load_bigram_from(path, model, 0.0, 1)
    with pytest.raises(InputError, match=r"vocabulary of 12 tokens .*expected the target's 16"):
        load_bigram_from(path, tiny("random", 1), 0.0, 1)
