"""The recorded experiments of the reference system: trace, anatomy, causality, serving, speedups.

The figures are constants of this file, recorded there, not made here.
"""

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.command import Cli

from capra.lab.anatomy import verifier_anatomy
from capra.lab.causality import causality
from capra.lab.experiments import grid_cells
from capra.lm.bigram import ChipBigram, compile_bigram, fitted_logits
from capra.lm.models import load_bigram, load_model
from capra.lm.target import ChipTarget, ProgramRun
from capra.spec_decode.decode import Block, decode
from capra.spec_decode.proposers import ChainProposer

TRACE = [
    {"block": [0, 5, 3, 13], "choices": [5, 3, 13, 9], "accepted": 3, "emitted": [5, 3, 13, 9]},
    {"block": [9, 10, 9, 10], "choices": [1, 11, 10, 11], "accepted": 0, "emitted": [1]},
    {"block": [1, 11, 11, 11], "choices": [11, 11, 11, 11], "accepted": 3,
     "emitted": [11, 11, 11, 11]},
]  # fmt: skip
"""Three blocks of random(1), k = 3. After token 1 the fitted draft has two equal best tokens, 9 and
11. The trace's float draft took 11; the chip's takes the first, as its argmax does."""

TIED = (1, 9, 11)

SERVING = {
    "0.6/2": [1.92, 1.78, 1.51], "0.6/4": [2.22, 1.92, 1.44], "0.6/8": [2.29, 1.77, 1.12],
    "0.8/2": [2.39, 2.22, 1.88], "0.8/4": [3.23, 2.80, 2.10], "0.8/8": [4.01, 3.09, 1.97],
    "0.9/2": [2.66, 2.46, 2.08], "0.9/4": [3.94, 3.41, 2.56], "0.9/8": [5.67, 4.38, 2.78],
}  # fmt: skip
"""By acceptance and k; a guess costs 0.01, 0.05, 0.15 steps."""

MODEL_OF_SPEEDUP = {
    (0, 3): (1.0, 1.92, 1.93),
    (3, 3): (0.96, 1.82, 1.69),
    (4, 3): (0.4, 0.78, 1.01),
}
"""By noise and k: acceptance, predicted by the geometric model, measured."""

CAUSALITY = {
    (1, 2, 3, 4): [[31, 0, 3, -8, -26], [-37, 22, 39, 5, 6], [18, 14, -30, -39, -43],
                   [-3, -2, 24, 12, 14]],
    (1, 2, 3, 12): [[31, 0, 3, -8, -26], [-37, 22, 39, 5, 6], [18, 14, -30, -39, -43],
                    [3, -4, 17, -16, -24]],
    (1, 2, 9, 4): [[31, 0, 3, -8, -26], [-37, 22, 39, 5, 6], [-24, 8, 3, 4, -1],
                   [4, -6, 21, 9, 17]],
    (5, 2, 3, 4): [[-24, 34, 26, -4, -24], [-35, 32, 35, 3, 6], [17, 18, -30, -38, -40],
                   [-3, 1, 20, 13, 18]],
}  # fmt: skip
"""First five logits of each row. Scales are each system's own: a few steps apart, no more."""

FEW_STEPS = 4


def _as_recorded(blocks: Sequence[Block]) -> list[dict[str, Any]]:
    return [
        {"block": list(block.tokens), "choices": list(block.choices), "accepted": block.accepted,
         "emitted": list(block.emitted)}
        for block in blocks
    ]  # fmt: skip


class _OtherTie:
    """The chip's draft, but for the recorded tie, of which it takes the other token."""

    def __init__(self, draft: ChipBigram) -> None:
        self._draft = draft
        self.vocab_size = draft.vocab_size

    def next(self, token: int) -> tuple[int, tuple[ProgramRun, ...]]:
        guess, runs = self._draft.next(token)
        return (TIED[2] if token == TIED[0] else guess), runs


def test_the_trace_of_three_blocks() -> None:
    model = load_model("random")
    target, draft = ChipTarget(model), ChipBigram(load_bigram(model), model.config.chip)

    def blocks(proposer: ChainProposer) -> list[dict[str, Any]]:
        run = decode(target, [0], 9, proposer=proposer, num_speculative_tokens=3)
        return _as_recorded(run.blocks)

    assert blocks(ChainProposer(_OtherTie(draft))) == TRACE
    scores = fitted_logits(model)[TIED[0]]
    assert scores[TIED[1]] == scores[TIED[2]] == scores.max(), "the tie is exact"
    chip = blocks(ChainProposer(draft))
    assert chip[:2] == TRACE[:2]
    assert (chip[2]["block"][:2], chip[2]["accepted"]) == ([TIED[0], TIED[1]], 0)


def test_the_trace_command_shows_these_blocks(cli: Cli) -> None:
    blocks = cli("trace", "--json").json()["speculative"]["trace"]
    found = [
        {
            "block": block["tokens"],
            **{key: block[key] for key in ("choices", "accepted", "emitted")},
        }
        for block in blocks
    ]
    assert found[:2] == TRACE[:2]
    assert found[2]["block"][:2] == [TIED[0], TIED[1]]


def test_the_anatomy_of_the_verifier(cli: Cli) -> None:
    record = cli("anatomy", "--json").json()
    verifier = record["verifier"]
    assert verifier["histogram"] == {
        "LD": 10, "MM": 56, "RQ": 23, "SM": 4, "ST": 5, "VADD": 2, "AMAX": 4, "HALT": 1
    }  # fmt: skip
    assert (verifier["words_loaded"], verifier["cycles"]) == (2496, 12330)
    assert verifier["weight_words"] == 2304
    assert verifier["cycles_by_unit"] == {
        "matrix": 7732, "dma": 2856, "vector": 1532, "control": 210
    }  # fmt: skip
    steps = [(step["cache"] + 1, step["cycles"], step["words_loaded"]) for step in record["steps"]]
    assert steps == [(5, 7378, 2448), (6, 7457, 2480), (7, 7536, 2512), (8, 7615, 2544)]
    assert round(record["ratio"], 2) == 0.41
    assert record["draft"]["cycles"] == 810
    assert record["draft"]["cycles_by_unit"] == {
        "matrix": 440, "dma": 311, "vector": 37, "control": 22
    }  # fmt: skip


@pytest.mark.parametrize(("cache", "cycles"), [(0, 11268), (4, 12330), (12, 14410), (24, 17530)])
def test_verifiers_by_cache(cache: int, cycles: int) -> None:
    model = load_model("structured")
    draft = compile_bigram(load_bigram(model), model.config.chip)
    assert verifier_anatomy(ChipTarget(model), 4, cache, draft)["verifier"]["cycles"] == cycles


def test_causality_row_by_row() -> None:
    record = causality()
    assert record["holds"]
    blocks = {tuple(block["tokens"]): block for block in record["blocks"]}
    assert blocks.keys() == CAUSALITY.keys()
    first = CAUSALITY[1, 2, 3, 4]
    for tokens, recorded in CAUSALITY.items():
        equal = [row == other for row, other in zip(recorded, first, strict=True)]
        assert blocks[tokens]["equal"] == equal
        for row, expected in zip(blocks[tokens]["logits"], recorded, strict=True):
            assert all(abs(a - b) <= FEW_STEPS for a, b in zip(row[:5], expected, strict=True))


def test_the_serving_table(cli: Cli) -> None:
    record = cli("serving", "--json", "--runs", 1, "--max-new-tokens", 2).json()
    assumed = [place for place, cost in enumerate(record["costs"]) if cost["assumed"]]
    assert [record["costs"][place]["c"] for place in assumed] == [0.01, 0.05, 0.15]
    found = {
        f"{row['acceptance']}/{row['k']}": [
            round(row["cells"][place]["formula"], 2) for place in assumed
        ]
        for row in record["rows"]
    }
    assert found == SERVING


@pytest.mark.full
def test_the_geometric_model_is_as_far_off_as_recorded_and_the_profile_is_not() -> None:
    cells = {(cell["draft_noise"], cell["k"]): cell for cell in grid_cells(predict=True)}
    for place, (rate, predicted, measured) in MODEL_OF_SPEEDUP.items():
        cell = cells[place]
        assert round(cell["acceptance_rate"], 2) == rate
        assert round(cell["predicted"]["geometric"], 2) == predicted
        assert round(cell["speedup"], 2) == measured
    assert len(cells) == 25
    errors = {name: [abs(cell["errors"][name]) for cell in cells.values()]
              for name in ("geometric", "rates", "profile")}  # fmt: skip
    assert max(errors["profile"]) <= 0.02
    assert max(errors["rates"]) <= 0.06 < max(errors["geometric"])


def test_the_grid_is_the_same_with_predictions(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capra.lab.experiments.GRID_NOISES", (3.0,))
    monkeypatch.setattr("capra.lab.experiments.GRID_KS", (1, 2))
    plain, both = (json.loads(cli("grid", "--json", *more).out)["cells"] for more in
                   ((), ("--predict",)))  # fmt: skip
    assert [{key: cell[key] for key in plain[0]} for cell in both] == plain
    assert set(both[0]) - set(plain[0]) == {"predicted", "errors"}
