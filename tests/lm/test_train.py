"""Training without torch: its refusals, and the parts that are numpy only."""

import sys
from itertools import pairwise

import numpy as np
import pytest
from tests.lm.samples import text_model

from capra.errors import InputError
from capra.lm.reference import greedy_tokens
from capra.lm.train import continue_greedily, fit_bigram, sample_windows, train

TENSORS = {name: value.astype(np.float32) for name, value in text_model().weights.items()}
HEADS = text_model().config.heads


def test_no_steps_are_refused() -> None:
    with pytest.raises(ValueError, match="steps is 0, expected at least 1"):
        train(seed=0, steps=0)


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(InputError, match=r"torch is not .* pip install '\.\[train\]' in the"):
        train(seed=0, steps=1)


def test_texts_go_on_as_the_reference_writes_them() -> None:
    starts = np.arange(12)[:, None]
    texts = continue_greedily(TENSORS, HEADS, starts, 9)
    assert texts.shape == (12, 10)
    for start, text in enumerate(texts.tolist()):
        assert text == [start, *greedy_tokens(text_model(), start, 9)]


def test_longer_prompts_are_kept_and_continued() -> None:
    whole = continue_greedily(TENSORS, HEADS, np.array([[3], [7]]), 9)
    again = continue_greedily(TENSORS, HEADS, whole[:, :5], 5)
    assert np.array_equal(whole, again)


def test_more_than_the_context_is_refused() -> None:
    with pytest.raises(ValueError, match="5 \\+ 20 tokens do not fit the context of 24"):
        continue_greedily(TENSORS, HEADS, np.zeros((1, 5), dtype=np.int64), 20)


def test_the_bigram_counts_what_the_model_wrote() -> None:
    prompts = np.array([[0, 1], [2, 3]])
    texts = continue_greedily(TENSORS, HEADS, prompts, 8)[:, 1:]
    scores = fit_bigram(TENSORS, HEADS, prompts, 8)
    for token in range(12):
        followers = [b for text in texts for a, b in pairwise(text) if a == token]
        total = len(followers) + 0.5 * 12
        for after in range(12):
            frequency = (followers.count(after) + 0.5) / total
            assert scores[token, after] == pytest.approx(4 * np.log(12 * frequency), rel=1e-5)


def test_windows_are_parts_of_the_text() -> None:
    text = np.arange(100)
    windows = sample_windows(text, 50, 7, np.random.default_rng(0))
    assert windows.shape == (50, 7)
    assert (np.diff(windows) == 1).all() and windows.min() >= 0 and windows.max() <= 99
    assert len(set(windows[:, 0].tolist())) > 20
