"""The bench over prompts: its runs are runs of the loop, its statistics those of the runs."""

import json
from pathlib import Path
from statistics import fmean

import pytest
from tests.command import Cli
from tests.lm.samples import chip_target, pydoc_model, text_model

from capra.errors import InputError
from capra.lab.bench import (
    Prompt,
    bench,
    built_in_prompts,
    default_lengths,
    prompts_from,
    repeated_ngrams,
    summary,
)
from capra.lm.bigram import ChipBigram
from capra.lm.corpus import load_corpus
from capra.lm.models import load_bigram
from capra.spec_decode.decode import decode
from capra.spec_decode.metrics import resident_cycles, total_counters
from capra.spec_decode.proposers import ChainProposer, always_wrong

LENGTHS, KS = (4, 7), (1, 3)


@pytest.fixture(scope="module")
def draft() -> ChainProposer:
    model = text_model()
    return ChainProposer(ChipBigram(load_bigram(model, 2.0, 1), model.config.chip))


def test_every_run_is_a_run_of_the_loop(draft: ChainProposer) -> None:
    target = chip_target("text")
    prompts = [Prompt("file", (3, 1), "x"), Prompt("file", (5,), "y"), Prompt("file", (2, 2), "z")]
    calls = list[int]()
    record = bench(target, lambda _: draft, prompts, LENGTHS, KS, lambda: calls.append(1))
    assert len(calls) == 3 * (1 + 4) and len(record["runs"]) == 12 and record["tokens_equal"]
    for found in record["runs"]:
        prompt, length = prompts[found["prompt"]].tokens, found["new_tokens"]
        plain = decode(target, prompt, length)
        run = decode(target, prompt, length, proposer=draft, num_speculative_tokens=found["k"])
        assert found["plain_cycles"] == total_counters(plain.runs).total
        assert found["cycles"] == total_counters(run.runs).total
        assert found["speedup"] == found["plain_cycles"] / found["cycles"]
        assert found["resident_speedup"] == resident_cycles(plain.runs) / resident_cycles(run.runs)
        assert found["blocks"] == len(run.blocks)
        assert found["accepted"] == sum(block.accepted for block in run.blocks)
        assert sum(found["accepted_per_position"]) == found["accepted"]


def test_a_bad_draft_loses_and_is_counted() -> None:
    target = chip_target("text")
    prompts = [Prompt("file", (token,), None) for token in range(4)]
    record = bench(target, lambda text: always_wrong(text, 12), prompts, (5,), (2,))
    (entry,) = record["by_k"]
    assert entry["losses"] == entry["runs"] == 4 and entry["max"] < 1
    assert (entry["acceptance_rate"], entry["mean_acceptance_length"]) == (0.0, 1.0)


def _runs() -> list[dict[str, float]]:
    """Two prompts, two lengths: 0.5 and 1.5, then 1.0 and 3.0."""
    return [
        {"prompt": prompt, "new_tokens": length, "k": 2, "speedup": speedup,
         "resident_speedup": speedup - 0.25, "proposed": 4, "accepted": 1, "blocks": 2}
        for prompt, length, speedup in ((0, 8, 0.5), (0, 9, 1.5), (1, 8, 1.0), (1, 9, 3.0))
    ]  # fmt: skip


def test_statistics_are_worked_out_by_hand() -> None:
    found = summary(_runs(), 2, (8, 9), (2,))
    entry = found["by_k"][0]
    assert (entry["mean"], entry["median"], entry["min"], entry["max"]) == (1.5, 1.25, 0.5, 3.0)
    assert entry["low"] is entry["high"] is None, "too few prompts"
    assert (entry["losses"], entry["resident_losses"], entry["resident_mean"]) == (1, 2, 1.25)
    assert (entry["acceptance_rate"], entry["mean_acceptance_length"]) == (0.25, 1.5)
    assert found["best"] == entry
    assert [(cell["new_tokens"], cell["mean"]) for cell in found["cells"]] == [(8, 0.75), (9, 2.25)]


def test_the_interval_is_over_prompts_not_runs() -> None:
    """Runs of one prompt that differ say nothing of another prompt."""
    runs = [{**run, "prompt": number} for number in range(8) for run in _runs()[:2]]
    entry = summary(runs, 8, (8, 9), (2,))["by_k"][0]
    assert entry["low"] == entry["high"] == entry["mean"] == 1.0
    few = summary([run for run in runs if run["prompt"] < 7], 7, (8, 9), (2,))["by_k"][0]
    assert few["low"] is None


def test_the_interval_covers_what_it_says() -> None:
    """About 95 % of samples of 30 prompts have an interval with the true mean in it."""
    import numpy as np

    draw, covered = np.random.default_rng(0), 0
    for _ in range(120):
        speedups = draw.gamma(4.0, 0.25, 30)
        runs = [{**_runs()[0], "prompt": i, "speedup": s} for i, s in enumerate(speedups)]
        entry = summary(runs, 30, (8,), (2,))["by_k"][0]
        covered += entry["low"] <= 1.0 <= entry["high"]
        assert entry["mean"] == pytest.approx(fmean(speedups))
    assert 104 <= covered <= 120, covered


def test_repeated_text_is_told() -> None:
    assert repeated_ngrams(range(30)) == 0.0
    assert repeated_ngrams([1, 2] * 20) == 1 - 2 / 33
    assert repeated_ngrams([1, 1, 1]) == 0.0, "too short for an 8-gram"


def test_the_built_in_prompts_are_many_and_some_were_held_out() -> None:
    prompts = built_in_prompts(pydoc_model())
    assert len(prompts) >= 24 and len({prompt.text for prompt in prompts}) == len(prompts)
    held_out = [prompt.text for prompt in prompts if prompt.origin == "held_out"]
    corpus = load_corpus()
    assert len(held_out) >= 12
    for text in held_out:
        assert text is not None and text in corpus.held_out and text not in corpus.train, text
    assert max(map(len, (prompt.tokens for prompt in prompts))) + 96 <= 129
    tokens = built_in_prompts(chip_target("random").model)
    assert [prompt.tokens for prompt in tokens] == [(token,) for token in range(16)]
    assert default_lengths(128, prompts) == (32, 64, 96)
    assert default_lengths(2, tokens) == (1,)
    assert default_lengths(24, prompts) == (6, 7), "as far as the longest prompt leaves room"
    with pytest.raises(InputError, match="knows the characters of no built-in prompt"):
        built_in_prompts(text_model())


def test_prompts_of_a_file(tmp_path: Path) -> None:
    lines = tmp_path / "prompts.txt"
    lines.write_bytes("\ufeffabc\n\nde\r\n".encode())
    assert [prompt.text for prompt in prompts_from(lines, text_model())] == ["abc", "de"]
    listed = tmp_path / "prompts.json"
    listed.write_text(json.dumps(["ab", "", "c"]))
    assert [prompt.tokens for prompt in prompts_from(listed, text_model())] == [(0, 1), (2,)]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.txt", None, "p.txt: No such file or directory"),
        ("p.txt", b"\xff", "p.txt: .*invalid start byte"),
        ("p.txt", b"\n\n", "p.txt has 0 prompts, expected 1 .. 10000"),
        ("p.txt", b"ab\naz", "p.txt, prompt 'az': character 1 of the prompt is 'z', expected on"),
        ("p.txt", b"ab\nc\nab", "p.txt has 'ab' twice, expected different prompts"),
        ("p.json", b"{}", "p.json is not a JSON list of texts"),
        ("p.json", b"[1]", "p.json is not a JSON list of texts"),
        ("p.json", b"[" * 100000, "p.json: "),
    ],
)
def test_a_bad_file_of_prompts_is_refused(
    name: str, content: bytes | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        prompts_from(path, text_model())


def test_a_model_without_text_takes_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="model random has no text, expected no file"):
        prompts_from(tmp_path / "p", chip_target("random").model)


def test_what_does_not_fit_the_context_is_refused_before_anything_runs(
    draft: ChainProposer,
) -> None:
    target, calls = chip_target("text"), list[int]()
    prompts = [Prompt("file", (1,), "b"), Prompt("file", (1, 2, 3), "bcd")]
    with pytest.raises(InputError, match="23 new tokens after the prompt 'bcd' of 3 tokens, expe"):
        bench(target, lambda _: draft, prompts, (23,), (1,), lambda: calls.append(1))
    for lengths, ks, what in (((3, 3), (1,), "lengths"), ((3,), (2, 2), "ks"), ((), (1,), "lengt")):
        with pytest.raises(InputError, match=f"the {what}.* expected different numbers"):
            bench(target, lambda _: draft, prompts, lengths, ks, lambda: calls.append(1))
    assert not calls


def test_bench_on_the_command_line(cli: Cli, tmp_path: Path) -> None:
    args = ("bench", "--model", "random", "-n", "2,5", "-k", "1,2", "-O0")
    record = cli(*args, "--json").json()
    assert record["kind"] == "bench" and record["optimize"] == []
    assert len(record["runs"]) == 16 * 2 * 2 and record["ks"] == [1, 2]
    shown = cli(*args).out
    assert shown.startswith(f"Highest mean speedup {record['best']['mean']:.2f} (median ")
    refused = cli("bench", "--model", "random", "-k", "1,0")
    assert refused.code == 2 and "found 0, expected a whole number of at least 1" in refused.err
    refused = cli("bench", "--model", "random", "-n", "65")
    assert refused.code == 2 and "65 new tokens after the prompt" in refused.err
