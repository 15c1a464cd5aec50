"""Speculation over many prompts: how much it gains, how often it loses, how far the mean is known.

One run says little: the same draft gains on one prompt and loses on the next. Every prompt is
decoded once plainly, then speculatively for every length and every k, each run on executed
programs. A plain run of n tokens is the first n steps of a longer one, so its cycles are counted
from the longest.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from capra.errors import InputError
from capra.lm.model import LanguageModel
from capra.lm.target import ChipTarget, ProgramRun
from capra.lm.tokenizer import CharTokenizer
from capra.spec_decode.comparison import Comparison
from capra.spec_decode.decode import Decoded
from capra.spec_decode.metrics import acceptance, resident_cycles, total_counters
from capra.spec_decode.proposers import Proposer

CONFIDENCE: Final = 0.95
RESAMPLES: Final = 10_000
RESAMPLES_AT_ONCE: Final = 500
"""Of the most prompts, 10,000, they take 40 MB."""

MIN_PROMPTS: Final = 8
"""Fewer prompts give no interval: it would look far more certain than it is."""

RESAMPLE_SEED: Final = 0
MOST_PROMPTS: Final = 10_000
SHARES: Final = (1, 2, 3)
"""Default lengths in quarters of the context."""

NGRAM: Final = 8
"""Tokens of the n-grams whose repetition is reported: text that loops is easy to guess."""

Origin = Literal["written", "held_out", "token", "file"]
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt and where it comes from: written for this, held-out text, a token, or a file."""

    origin: Origin
    tokens: tuple[int, ...]
    text: str | None
    """None for a model without characters."""


def built_in_prompts(model: LanguageModel) -> list[Prompt]:
    """The prompts that come with Capra: 28 texts, or every token of a model without characters.

    Of the texts, 12 were written for this and 16 are the start of a word and what follows it in the
    part of Python's documentation that training held out. InputError where the model's vocabulary
    lacks a character of every text.
    """
    if model.characters is None:
        tokens = range(min(model.config.vocab_size, MOST_PROMPTS))
        return [Prompt("token", (token,), None) for token in tokens]
    texts: dict[Origin, list[str]] = json.loads(
        (files("capra") / "data" / "prompts.json").read_text(encoding="utf-8")
    )
    known = set(model.characters)
    tokenizer = CharTokenizer(model.characters)
    found = [
        Prompt(origin, tuple(tokenizer.encode(text)), text)
        for origin, group in texts.items()
        for text in group
        if known.issuperset(text)
    ]
    if not found:
        raise InputError(
            f"model {model.config.name} knows the characters of no built-in prompt, expected a "
            "file of prompts (--prompts FILE)"
        )
    return found


def prompts_from(path: Path, model: LanguageModel) -> list[Prompt]:
    """The prompts of a file: one per line, without empty lines, or a JSON list of texts in *.json.

    Raises InputError for a file that cannot be read or holds no prompt, for a model without
    characters, and for a character that the model does not know.
    """
    if model.characters is None:
        raise InputError(
            f"--prompts is {path}, but model {model.config.name} has no text, expected no file"
        )
    try:
        text = path.read_text(encoding="utf-8-sig")
        texts = json.loads(text) if path.suffix == ".json" else text.splitlines()
    except OSError as error:
        raise InputError(f"prompts {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"prompts {path}: {error}") from None
    if not isinstance(texts, list) or not all(isinstance(each, str) for each in texts):
        raise InputError(f"prompts {path} is not a JSON list of texts, expected one")
    texts = [each for each in texts if each]
    if not 1 <= len(texts) <= MOST_PROMPTS:
        raise InputError(f"prompts {path} has {len(texts)} prompts, expected 1 .. {MOST_PROMPTS}")
    tokenizer, found = CharTokenizer(model.characters), list[Prompt]()
    for each in texts:
        try:
            found.append(Prompt("file", tuple(tokenizer.encode(each)), each))
        except InputError as error:
            raise InputError(f"prompts {path}, prompt {each!r}: {error}") from None
    twice = next((each for i, each in enumerate(texts) if each in texts[:i]), None)
    if twice is not None:
        raise InputError(f"prompts {path} has {twice!r} twice, expected different prompts")
    return found


def default_lengths(context: int, prompts: Sequence[Prompt]) -> tuple[int, ...]:
    """A quarter, a half and three quarters of the context, as far as all prompts leave room."""
    room = context + 1 - max(len(prompt.tokens) for prompt in prompts)
    lengths = (max(1, min(context * share // 4, room)) for share in SHARES)
    return tuple(dict.fromkeys(lengths))


def bench(
    target: ChipTarget,
    make_proposer: Callable[[tuple[int, ...]], Proposer],
    prompts: Sequence[Prompt],
    lengths: Sequence[int],
    ks: Sequence[int],
    on_run: Callable[[], None] = lambda: None,
) -> Record:
    """All runs, and what they say together: see `summary`.

    `speedup` = plain cycles / speculative cycles, prompt and draft included. `resident_speedup` is
    the same with the cycles of `resident_cycles`. `on_run` is called after each of the
    prompts x (1 + lengths x ks) runs.

    Raises InputError where a prompt and the longest length exceed the context, or where the longest
    k leaves no room for a block; CapacityError where a program does not fit the chip.
    """
    _check(target, prompts, lengths, ks)
    longest = list[Decoded]()
    for prompt in prompts:
        comparison = Comparison(target, prompt.tokens, max(lengths), max(ks), make_proposer)
        longest.append(comparison.plain())
        on_run()
    runs = list[Record]()
    for k in ks:  # programs of one k after the other: those of all ks are too many to keep
        for length in lengths:
            for number, (prompt, plain) in enumerate(zip(prompts, longest, strict=True)):
                comparison = Comparison(target, prompt.tokens, length, k, make_proposer)
                run = comparison.speculative(plain)
                runs.append({"prompt": number, **_run_record(length, k, plain, run)})
                on_run()
    return {
        "prompts": [
            {**asdict(prompt), "repeated_8grams": repeated_ngrams(plain.tokens)}
            for prompt, plain in zip(prompts, longest, strict=True)
        ],
        "new_tokens": list(lengths),
        "ks": list(ks),
        "runs": runs,
        "repeated_8grams": sum(repeated_ngrams(p.tokens) for p in longest) / len(longest),
        "tokens_equal": all(run["tokens_equal"] for run in runs),
        **summary(runs, len(prompts), lengths, ks),
    }


def repeated_ngrams(tokens: Sequence[int]) -> float:
    """The share of a text's 8-grams that occurred in it before: near 1 for a text that loops."""
    ngrams = [tuple(tokens[at : at + NGRAM]) for at in range(len(tokens) - NGRAM + 1)]
    return 1 - len({*ngrams}) / len(ngrams) if ngrams else 0.0


def _check(
    target: ChipTarget, prompts: Sequence[Prompt], lengths: Sequence[int], ks: Sequence[int]
) -> None:
    for what, values in (("lengths", lengths), ("ks", ks)):
        if not values or len({*values}) < len(values):
            raise InputError(f"the {what} are {list(values)}, expected different numbers")
    for prompt in prompts:
        room = target.max_context - len(prompt.tokens) + 1
        if max(lengths) > room:
            shown = prompt.tokens if prompt.text is None else prompt.text
            raise InputError(
                f"{max(lengths)} new tokens after the prompt {shown!r} of {len(prompt.tokens)} "
                f"tokens, expected at most {room}, what a context of {target.max_context} leaves"
            )


def _run_record(length: int, k: int, plain: Decoded, run: Decoded) -> Record:
    programs = _first_steps(plain, length)
    before, after = (total_counters(each).total for each in (programs, run.runs))
    counts = acceptance(run)
    names = ("blocks", "proposed", "accepted", "accepted_per_position")
    return {
        "new_tokens": length,
        "k": k,
        "plain_cycles": before,
        "cycles": after,
        "speedup": before / after,
        "resident_speedup": resident_cycles(programs) / resident_cycles(run.runs),
        **{name: counts[name] for name in names},
        "tokens_equal": run.tokens == plain.tokens[:length],
    }


def _first_steps(plain: Decoded, length: int) -> Sequence[ProgramRun]:
    """The programs of a plain run of this many tokens, which is the start of a longer one."""
    steps = [run for block in plain.blocks[:length] for run in block.runs]
    return [*plain.prefill, *steps]


def summary(
    runs: Sequence[Mapping[str, Any]], prompts: int, lengths: Sequence[int], ks: Sequence[int]
) -> Record:
    """Statistics of the runs for every length and k (`cells`), and for every k over all lengths.

    `best` has the largest mean, `resident_best` the largest one with resident weights.

    `mean` is the mean speedup over prompts, of their means where there are several lengths; `low`
    and `high` bound it with a confidence of 95 % (percentile bootstrap over prompts: lengths of one
    prompt are no independent runs), or are None for fewer than MIN_PROMPTS prompts. `losses` counts
    the runs of a speedup below 1.
    """
    by_k = [_statistics([run for run in runs if run["k"] == k], prompts) for k in ks]
    cells = [
        {
            "new_tokens": length,
            "k": k,
            **_statistics([r for r in runs if (r["new_tokens"], r["k"]) == (length, k)], prompts),
        }
        for length in lengths
        for k in ks
    ]
    found = [{"k": k, **each} for k, each in zip(ks, by_k, strict=True)]
    best = max(found, key=lambda entry: float(entry["mean"]))
    resident = max(found, key=lambda entry: float(entry["resident_mean"]))
    return {
        "confidence": CONFIDENCE,
        "cells": cells,
        "by_k": found,
        "best": dict(best),
        "resident_best": dict(resident),
    }


def _statistics(runs: Sequence[Mapping[str, Any]], prompts: int) -> Record:
    speedups = np.array([run["speedup"] for run in runs])
    of_prompt = np.array([
        np.mean([run["speedup"] for run in runs if run["prompt"] == number])
        for number in range(prompts)
    ])  # fmt: skip
    low, high = _interval(of_prompt)
    proposed = sum(run["proposed"] for run in runs)
    accepted = sum(run["accepted"] for run in runs)
    return {
        "runs": len(runs),
        "mean": float(of_prompt.mean()),
        "low": low,
        "high": high,
        "median": float(np.median(speedups)),
        "min": float(speedups.min()),
        "max": float(speedups.max()),
        "losses": int((speedups < 1).sum()),
        "acceptance_rate": accepted / proposed if proposed else 0.0,
        "mean_acceptance_length": 1 + accepted / sum(run["blocks"] for run in runs),
        "resident_mean": float(np.mean([run["resident_speedup"] for run in runs])),
        "resident_losses": sum(run["resident_speedup"] < 1 for run in runs),
    }


def _interval(values: np.ndarray) -> tuple[float, float] | tuple[None, None]:
    """The percentile-bootstrap interval of a mean; the same for the same values."""
    if len(values) < MIN_PROMPTS:
        return None, None
    draw, size = np.random.default_rng(RESAMPLE_SEED), len(values)
    means = [
        values[draw.integers(0, size, (RESAMPLES_AT_ONCE, size))].mean(axis=1)
        for _ in range(RESAMPLES // RESAMPLES_AT_ONCE)
    ]
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return float(low), float(high)
