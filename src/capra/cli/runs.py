"""What the options of a run mean: the model, the prompt, the draft and the text."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from capra.errors import InputError

if TYPE_CHECKING:
    from capra.compiler.optimization import Optimization
    from capra.lm.model import LanguageModel
    from capra.sim.device import Device
    from capra.spec_decode.proposers import Proposer

DEFAULT_PROMPT = "A list of"


def chosen_model(
    name: str, seed: int, external_words: int | None = None, scratchpad_words: int | None = None
) -> "LanguageModel":
    """The model of a name, on a chip with other memories where these are given."""
    from capra.lm.models import load_model

    model = load_model(name, seed)
    chip = model.config.chip
    if external_words is not None:
        chip = replace(chip, external_words=external_words)
    if scratchpad_words is not None:
        chip = replace(chip, scratchpad_words=scratchpad_words)
    return replace(model, config=replace(model.config, chip=chip))


def prompt_tokens(model: "LanguageModel", prompt: str | None, start_token: int | None) -> list[int]:
    """The tokens to continue, from whichever of the two options suits the model."""
    from capra.lm.model import check_token
    from capra.lm.tokenizer import CharTokenizer

    if prompt is not None and start_token is not None:
        raise InputError("both --prompt and --start-token are given, expected one of them")
    if start_token is not None:
        check_token("--start-token", start_token, model.config.vocab_size)
        return [start_token]
    if model.characters is None:
        if prompt is not None:
            raise InputError(
                f"--prompt is {prompt!r}, but model {model.config.name} has no text, expected "
                "--start-token"
            )
        return [0]
    return CharTokenizer(model.characters).encode(DEFAULT_PROMPT if prompt is None else prompt)


def draft_maker(
    name: str,
    model: "LanguageModel",
    noise: float,
    seed: int,
    device: "Device | None",
    optimize: "Optimization",
) -> Callable[[tuple[int, ...]], "Proposer"]:
    """How to make the proposer of a name, given the prompt and the plain run's continuation.

    What can be refused is refused now; only the scripted proposers need that text.
    """
    from capra.lm.bigram import ChipBigram
    from capra.lm.models import is_file, load_bigram, load_bigram_from
    from capra.spec_decode import proposers

    vocab = model.config.vocab_size
    scripted = {"always-right": proposers.always_right, "always-wrong": proposers.always_wrong}
    if name in scripted:
        return lambda text: scripted[name](text, vocab)
    proposer: Proposer
    if name == "constant":
        proposer = proposers.ConstantProposer(0)
    elif name == "random":
        proposer = proposers.RandomProposer(vocab, seed)
    elif name == "bigram" or is_file(name):
        bigram = (
            load_bigram(model, noise, seed)
            if name == "bigram"
            else load_bigram_from(Path(name), model, noise, seed)
        )
        draft = ChipBigram(bigram, model.config.chip, device, optimize=optimize)
        proposer = proposers.ChainProposer(draft)
    else:
        raise InputError(
            f"--draft is {name!r}, expected bigram, constant, random, always-right, always-wrong "
            "or an existing checkpoint file"
        )
    return lambda _text: proposer


def detokenizer(model: "LanguageModel") -> Callable[[Sequence[int]], str]:
    """Tokens to text; numbers for a model without characters."""
    from capra.lm.tokenizer import CharTokenizer

    if model.characters is None:
        return lambda tokens: "".join(f"{token} " for token in tokens)
    return CharTokenizer(model.characters).decode
