"""Both runs of a prompt: the same text, and what the second one is given."""

from dataclasses import replace

import pytest
from tests.lm.samples import text_model

from capra.compiler.optimization import O0, O1, Optimization
from capra.errors import CapacityError
from capra.lm.target import ChipTarget
from capra.spec_decode.certificate import CertifyingTarget
from capra.spec_decode.comparison import Comparison
from capra.spec_decode.proposers import Proposer, always_right

PROMPT = (3, 1, 4)


def _runs(k: int, new: int = 6, optimize: Optimization = O0) -> Comparison:
    target = ChipTarget(text_model(), optimize=optimize)
    return Comparison(
        target, PROMPT, new, k, lambda text: always_right(text, target.vocab_size)
    )  # fmt: skip


@pytest.mark.parametrize("optimize", [O0, O1])
def test_the_text_is_the_same_and_o1_shortens_the_last_block(optimize: Optimization) -> None:
    runs = _runs(3, 6, optimize)
    plain = runs.plain()
    speculative = runs.speculative(plain)
    assert plain.prompt == speculative.prompt == PROMPT
    assert plain.tokens == speculative.tokens and len(plain.tokens) == 6
    assert all(not block.proposed for block in plain.blocks)
    # Four tokens and then two, of which one is the target's own; the proposer knows both.
    first, last = speculative.blocks
    assert len(first.proposed) == first.accepted == 3
    assert len(last.proposed) == (1 if optimize else 2)


def test_the_proposer_knows_the_plain_text_and_is_not_made_without_guesses() -> None:
    texts: list[tuple[int, ...]] = []

    def make(text: tuple[int, ...]) -> Proposer:
        texts.append(text)
        return always_right(text, runs.target.vocab_size)

    runs = replace(_runs(0), make_proposer=make)
    plain = runs.plain()
    assert runs.speculative(plain).tokens == plain.tokens and texts == []
    runs = replace(runs, num_speculative_tokens=2)
    runs.speculative(plain)
    assert texts == [PROMPT + plain.tokens]


def test_a_stop_token_and_listeners_reach_both_runs() -> None:
    runs = _runs(2, 8)
    whole = runs.plain().tokens
    stop = whole[4]
    runs = replace(runs, stop_token=stop)
    heard: tuple[list[int], list[int]] = [], []
    plain = runs.plain(heard[0].extend)
    speculative = runs.speculative(plain, heard[1].extend)
    expected = list(whole[: whole.index(stop) + 1])
    assert list(plain.tokens) == list(speculative.tokens) == heard[0] == heard[1] == expected


def test_runs_go_through_another_target() -> None:
    runs = _runs(2)
    first, second = CertifyingTarget(runs.target), CertifyingTarget(runs.target)
    plain = runs.plain(through=first)
    assert len(first.rows) == plain.cache_length and not second.rows
    speculative = runs.speculative(plain, through=second)
    assert len(second.rows) == speculative.cache_length >= len(first.rows)


def test_what_does_not_fit_is_refused_before_anything_runs() -> None:
    runs = _runs(2)
    model = runs.target.model
    chip = replace(model.config.chip, scratchpad_words=128)
    small = replace(model, config=replace(model.config, chip=chip))
    with pytest.raises(CapacityError, match="scratchpad"):
        replace(runs, target=ChipTarget(small))


def test_the_record_names_the_passes() -> None:
    runs = _runs(2, optimize=O1)
    plain = runs.plain()
    record = runs.record(plain, runs.speculative(plain))
    assert "block-attention" in record["optimize"] and record["tokens_equal"] is True
    assert record["plain"]["tokens"] == list(plain.tokens)
