"""Drafts by name, as the command line and the sweeps know them."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from capra.compiler.optimization import O0, Optimization
from capra.errors import InputError
from capra.lm.bigram import ChipBigram
from capra.lm.model import LanguageModel
from capra.lm.models import is_file, load_bigram, load_bigram_from
from capra.sim.device import Device
from capra.spec_decode.proposers import (
    ChainProposer,
    ConstantProposer,
    Proposer,
    RandomProposer,
    always_right,
    always_wrong,
)

BIGRAM: Final = "bigram"
SCRIPTED: Final = {"always-right": always_right, "always-wrong": always_wrong}
DRAFTS: Final = (BIGRAM, "constant", "random", *SCRIPTED)


def check_draft(name: str) -> None:
    """Raise InputError unless this is the name of a draft or of a file."""
    if name not in DRAFTS and not is_file(name):
        raise InputError(
            f"draft is {name!r}, expected {', '.join(DRAFTS)} or an existing checkpoint file"
        )


def draft_maker(
    name: str,
    model: LanguageModel,
    noise: float,
    seed: int,
    device: Device | None = None,
    optimize: Optimization = O0,
) -> Callable[[tuple[int, ...]], Proposer]:
    """How to make the proposer of a name, given the prompt and the plain run's continuation.

    What can be refused is refused now; only the scripted proposers need that text. A proposer may
    have a state, so that every run needs one of its own.
    """
    check_draft(name)
    vocab = model.config.vocab_size
    if name in SCRIPTED:
        return lambda text: SCRIPTED[name](text, vocab)
    if name == "constant":
        return lambda _text: ConstantProposer(0)
    if name == "random":
        return lambda _text: RandomProposer(vocab, seed)
    bigram = (
        load_bigram(model, noise, seed)
        if name == BIGRAM
        else load_bigram_from(Path(name), model, noise, seed)
    )
    draft = ChipBigram(bigram, model.config.chip, device, optimize=optimize)
    return lambda _text: ChainProposer(draft)
