"""The planner on the packaged text model: its predictions against runs, within 3 %."""

import pytest
from tests.lm.samples import chip_target, pydoc_model

from capra.lab.planner import Workload, measured_source, plan
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram
from capra.lm.tokenizer import CharTokenizer
from capra.spec_decode.proposers import ChainProposer

PROMPTS = ("A list of", "The with statement", "class ")
SHORT, LONG = (6, (1, 2)), (64, (1, 2, 3, 4, 5, 7))
"""Tokens, and numbers of guesses."""

WITHIN = 0.03


@pytest.mark.parametrize(
    ("prompt", "length"),
    [
        (PROMPTS[0], SHORT),
        *(pytest.param(prompt, LONG, marks=pytest.mark.full) for prompt in PROMPTS),
    ],
)
def test_predictions_are_within_3_percent(prompt: str, length: tuple[int, tuple[int, ...]]) -> None:
    new_tokens, ks = length
    model = pydoc_model()
    assert model.characters is not None
    tokens = CharTokenizer(model.characters).encode(prompt)
    work = Workload(chip_target("pydoc"), tuple(tokens), new_tokens, max(ks))
    draft = ChainProposer(ChipBigram(load_bigram(model), model.config.chip))
    record = plan(work, measured_source(work, lambda _text: draft), ks)
    for k in ks:
        entry = record["ks"][k - 1]
        assert entry["measured"]["tokens_equal"] and entry["measured"]["proposed"]
        assert abs(entry["errors"]["profile"]) <= WITHIN, (k, entry["errors"])
    rows = [point["rows"] for point in record["cost_curve"]["points"] if point["is_cliff"]]
    assert rows == [5, 9, 13], "a row of tiles fills at 4, 8 and 12 rows"
