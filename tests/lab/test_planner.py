"""The planner: what it predicts of runs, what it runs, and what it says of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.lm.samples import chip_target, text_model

from capra.errors import CapacityError, InputError
from capra.lab.planner import (
    Source,
    Workload,
    given_source,
    measure,
    measured_source,
    plan,
    synthetic_source,
)
from capra.lab.predict import Rates
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram
from capra.lm.target import ChipTarget
from capra.spec_decode.decode import decode
from capra.spec_decode.metrics import total_counters
from capra.spec_decode.proposers import (
    ChainProposer,
    RandomProposer,
    always_right,
    always_wrong,
)

PROMPT = (3, 1)
TOKENS = 9
MAX_K = 5


@pytest.fixture(scope="module")
def work() -> Workload:
    return Workload(chip_target("text"), PROMPT, TOKENS, MAX_K)


def _right(work: Workload) -> Source:
    return measured_source(work, lambda text: always_right(text, work.target.vocab_size))


def _bigram(work: Workload, noise: float) -> Source:
    model = text_model()
    draft = ChipBigram(load_bigram(model, noise, 1), model.config.chip)
    return measured_source(work, lambda _text: ChainProposer(draft))


def test_a_workload_is_the_plain_run(work: Workload) -> None:
    plain = decode(work.target, PROMPT, TOKENS)
    assert work.new_tokens == TOKENS
    assert work.text[: len(PROMPT) + TOKENS] == (*PROMPT, *plain.tokens)
    assert len(work.text) == work.target.max_context + 1, "to the end of the context"
    executed = total_counters([run for block in plain.blocks for run in block.runs])
    assert work.plain_cycles == executed.total


def test_a_run_ends_where_the_context_does() -> None:
    target = chip_target("text")
    work = Workload(target, PROMPT, 999, 2)
    assert work.new_tokens == target.max_context - len(PROMPT) + 1
    record = plan(work, _right(work), [1, 2])
    assert record["new_tokens"] == work.new_tokens
    for entry in record["ks"][:2]:
        assert entry["measured"]["speedup"] == pytest.approx(entry["speedup"])


@pytest.mark.parametrize(
    ("tokens", "guesses", "message"),
    [
        (5, 0, "0 guesses a block after a prompt of 2 tokens, expected 1 .. 22"),
        (5, 23, "23 guesses a block after a prompt of 2 tokens, expected 1 .. 22, what a context "
                "of 24 leaves"),
        (0, 3, "0 new tokens, expected at least 1"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused(tokens: int, guesses: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Workload(chip_target("text"), PROMPT, tokens, guesses)


def test_a_run_that_does_not_fit_the_chip_is_refused() -> None:
    model = text_model()
    chip = replace(model.config.chip, scratchpad_words=1 << 8)
    small = replace(model, config=replace(model.config, chip=chip))
    with pytest.raises(CapacityError):
        Workload(ChipTarget(small), PROMPT, TOKENS, MAX_K)


def test_a_draft_that_costs_nothing_and_is_right_pays(work: Workload) -> None:
    record = plan(work, _right(work), None)
    assert record["pays"] and record["draft_cycles"] == 0 and not record["draft_cycles_assumed"]
    best = max(record["ks"], key=lambda entry: float(entry["steady"]["speedup"]))
    assert record["best"] == {"k": best["k"], **best["steady"]}
    assert [entry["k"] for entry in record["ks"] if entry["measured"]] == [best["k"]]
    assert best["measured"]["tokens_equal"] and best["measured"]["runs"] == 1
    assert [entry["k"] for entry in record["ks"]] == list(range(1, MAX_K + 1))


def test_the_steady_state_is_the_same_for_every_length() -> None:
    """Of the runs of these lengths the best K would be 15 or 10 or another one."""
    target, own = chip_target("structured"), set[int]()
    steady = list[list[dict[str, Any]]]()
    for tokens in (1, 32, 33):
        work = Workload(target, (0,), tokens, 15)
        record = plan(work, _right(work), [])
        steady.append([record["best"], *(entry["steady"] for entry in record["ks"])])
        own.add(max(record["ks"], key=lambda entry: float(entry["speedup"]))["k"])
    assert steady[0] == steady[1] == steady[2] and len(own) > 1


def test_the_steady_state_is_that_of_a_run_to_the_end_of_the_context() -> None:
    target = chip_target("text")
    work = Workload(target, PROMPT, 999, 3)
    for entry in plan(work, _bigram(work, 2.0), [1, 2, 3])["ks"]:
        assert entry["steady"]["speedup"] == pytest.approx(entry["measured"]["speedup"], rel=0.02)
    plain = {e["steady"]["plain_cycles_per_token"] for e in plan(work, _right(work), [])["ks"]}
    assert plain == {work.plain_cycles / work.new_tokens}, "one window for every K"


def test_the_steady_state_stands_beside_the_run(work: Workload) -> None:
    for entry in plan(work, _right(work), [])["ks"]:
        steady = entry["steady"]
        ratio = steady["plain_cycles_per_token"] / steady["cycles_per_token"]
        assert steady["speedup"] == pytest.approx(ratio)
        assert entry["k"] + 1 >= steady["tokens_per_block"] > 0.8 * (entry["k"] + 1)


def test_a_draft_with_a_state_is_known_by_its_rates_only(work: Workload) -> None:
    """Asked again it guesses otherwise; certainty about it would be wrong."""
    vocab = work.target.vocab_size
    source = measured_source(work, lambda _text: RandomProposer(vocab, 5))
    record = plan(work, source, [])
    assert isinstance(source.acceptance, Rates)
    for entry in record["ks"]:
        assert set(entry["predicted"]) == {"geometric", "rates"}
        assert entry["speedup"] == pytest.approx(entry["predicted"]["rates"])


def test_a_draft_that_is_always_wrong_does_not_pay(work: Workload) -> None:
    source = measured_source(work, lambda text: always_wrong(text, work.target.vocab_size))
    record = plan(work, source, [1])
    assert not record["pays"] and record["best"]["k"] == 1 and record["best"]["speedup"] < 1
    needed = {entry["k"]: entry["break_even_acceptance"] for entry in record["ks"]}
    assert record["needed"] == {
        "k": min(needed, key=lambda k: float(needed[k])),
        "acceptance": min(needed.values()),
    }
    assert record["ks"][0]["expected"]["conditional_acceptance"] == [0.0]


def test_no_draft_pays_when_a_guess_costs_more_than_a_step(work: Workload) -> None:
    source = given_source(Rates((1.0,)), work.plain_cycles, is_assumed=True)
    record = plan(work, source)
    assert record["needed"] is None and not record["pays"]
    assert [entry["break_even_acceptance"] for entry in record["ks"]] == [None] * MAX_K


@pytest.mark.parametrize("noise", [0.0, 5.0])
def test_predictions_stand_beside_measured_runs(work: Workload, noise: float) -> None:
    ks = (1, 3, 5)
    record = plan(work, _bigram(work, noise), ks)
    for entry in record["ks"]:
        assert (entry["measured"] is not None) == (entry["k"] in ks)
        assert (entry["errors"] is not None) == (entry["k"] in ks)
        assert set(entry["predicted"]) == {"geometric", "rates", "profile"}
        if entry["k"] in ks:
            measured = entry["measured"]
            assert measured["tokens_equal"]
            assert measured["cycles"] == measured["executed_cycles"]
            assert measured["speedup"] == work.plain_cycles / measured["cycles"]
            assert measured["accepted"] + measured["blocks"] >= TOKENS
            for name, error in entry["errors"].items():
                expected = entry["predicted"][name] / measured["speedup"] - 1
                assert error == pytest.approx(expected)
            assert entry["errors"]["profile"] == pytest.approx(0, abs=1e-12)
            assert entry["speedup"] == entry["predicted"]["profile"]


def test_given_rates_are_predicted_and_not_run(work: Workload) -> None:
    rates = Rates((0.9, 0.5))
    record = plan(work, given_source(rates, 70.0, is_assumed=True))
    assert record["acceptance_source"] == "given" and record["draft_cycles_assumed"]
    for entry in record["ks"]:
        assert set(entry["predicted"]) == {"geometric", "rates"}
        assert entry["measured"] is None and entry["errors"] is None
    assert record["ks"][0]["expected"]["conditional_acceptance"] == pytest.approx([0.9])
    with pytest.raises(InputError, match="nothing can be run with a given acceptance"):
        plan(work, given_source(rates, 70.0, is_assumed=True), None)


def test_synthetic_drafts_are_right_at_their_rates(work: Workload) -> None:
    rates = Rates((0.8, 0.4))
    found = measure(work, synthetic_source(work, rates, 0.0, 1, 60), 2)
    assert found["runs"] == 60 and found["tokens_equal"]
    predicted = plan(work, given_source(rates, 0.0, is_assumed=True))["ks"][1]
    assert found["speedup"] == pytest.approx(predicted["speedup"], rel=0.05)
    share = found["accepted"] / found["proposed"]
    assert share == pytest.approx(predicted["expected"]["acceptance_rate"], abs=0.05)


def test_assumed_cycles_of_a_guess_are_counted(work: Workload) -> None:
    def run(cycles: float) -> dict[str, Any]:
        return measure(work, synthetic_source(work, Rates((0.7,)), cycles, 2, 2), 3)

    free, dear = run(0.0), run(50.0)
    assert free["executed_cycles"] == dear["executed_cycles"] == free["cycles"]
    assert dear["cycles"] == free["cycles"] + 50 * free["proposed"]
    assert dear["speedup"] == 2 * work.plain_cycles / dear["cycles"]
    other = measure(work, synthetic_source(work, Rates((0.7,)), 0.0, 99, 2), 3)
    assert other["cycles"] != free["cycles"], "the seed decides"


def test_the_curve_is_that_of_the_context(work: Workload) -> None:
    curve = plan(work, given_source(Rates((0.5,)), 0.0, is_assumed=True))["cost_curve"]
    assert curve["cache"] == 12
    rows = [point["rows"] for point in curve["points"]]
    assert rows == list(range(1, 13)), "12 rows are left behind 12"
    for point in curve["points"]:
        assert point["cycles"] == work.costs.cycles(point["rows"], 12)


def test_progress_is_told() -> None:
    steps = list[int]()
    tell: Callable[[], None] = lambda: steps.append(1)  # noqa: E731
    work = Workload(chip_target("text"), PROMPT, 3, 2, tell)
    plan(work, _right(work), [1, 2])
    assert len(steps) == work.all_tokens + 2 + 2, "tokens of the text, predictions, runs"
