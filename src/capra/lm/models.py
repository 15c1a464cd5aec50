"""Models and drafts by name, as the command line knows them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

from capra.errors import InputError
from capra.lm.bigram import Bigram, factored, fitted_logits, with_noise
from capra.lm.checkpoint import load_checkpoint
from capra.lm.foreign import foreign_kind
from capra.lm.model import LanguageModel
from capra.lm.tiny import random_model, structured_model

TINY_MODELS: Final = {"structured": structured_model, "random": random_model}
PYDOC: Final = "pydoc"
MAX_NOISE: Final = 1e6
"""Far above any logit; what comes later need not fear overflows."""

MAX_FITTED_VOCAB: Final = 1024
"""Fitting a bigram writes a text from every token."""


def load_model(name: str, seed: int = 1) -> LanguageModel:
    """A tiny model of a seed, the packaged pydoc model, or the model of a checkpoint file.

    Raises InputError for a name that is neither a model nor a file, CheckpointError for a file
    that is not a checkpoint.
    """
    if name in TINY_MODELS:
        return TINY_MODELS[name](seed)
    if name == PYDOC:
        with packaged_checkpoint() as path:
            return load_checkpoint(path)
    if not is_file(name):
        raise InputError(
            f"model is {name!r}, expected structured, random, pydoc or an existing checkpoint file"
        )
    return load_checkpoint(Path(name))


@contextmanager
def packaged_checkpoint() -> Iterator[Path]:
    """The checkpoint file of the pydoc model, while it is used."""
    with as_file(files("capra") / "data" / "pydoc.safetensors") as path:
        yield path


def on_chip(model: LanguageModel, sizes: Mapping[str, int | None]) -> LanguageModel:
    """The model on a chip with these sizes, by field of Chip; None keeps the model's own.

    Raises CapacityError for a size outside what GA2 allows.
    """
    given = {name: size for name, size in sizes.items() if size is not None}
    chip = replace(model.config.chip, **given)
    return replace(model, config=replace(model.config, chip=chip))


def is_file(name: str) -> bool:
    """Whether `load_checkpoint` has something to say of a name: a file, or a folder with a model.

    What cannot be a file's name is none.
    """
    try:
        return Path(name).is_file() or (
            Path(name).is_dir() and foreign_kind(Path(name)) is not None
        )
    except OSError:
        return False


def load_bigram(model: LanguageModel, noise: float = 0.0, seed: int = 1) -> Bigram:
    """The bigram draft of a model, made worse by noise of this deviation from this seed.

    It is stored with a checkpoint and with the structured model, whose rule it is; any other is
    fitted to the model's own greedy text. A tiny model's draft uses the model's embedding; a text
    model has more tokens than columns, so its draft has an embedding of its own.
    Raises InputError for a noise that is negative or above MAX_NOISE, and for a bigram that would
    take too long to fit.
    """
    if not 0 <= noise <= MAX_NOISE:
        raise InputError(f"draft noise is {noise}, expected a number of 0 .. {MAX_NOISE:g}")
    vocab = model.config.vocab_size
    if model.bigram is None and vocab > MAX_FITTED_VOCAB:
        raise InputError(
            f"model {model.config.name} has no bigram and {vocab} tokens, expected at most "
            f"{MAX_FITTED_VOCAB} to fit one"
        )
    logits = fitted_logits(model) if model.bigram is None else model.bigram
    logits = with_noise(logits, noise, seed)
    if vocab <= model.config.width:
        return Bigram.from_logits(model.weights["embed"], logits)
    return factored(logits)


def load_bigram_from(path: Path, target: LanguageModel, noise: float, seed: int) -> Bigram:
    """The bigram of another checkpoint as a draft for a target.

    Raises InputError unless both have the same vocabulary, character by character.
    """
    other = load_checkpoint(path)
    if other.characters != target.characters:
        raise InputError(
            f"the draft {path} has a vocabulary of {other.config.vocab_size} tokens "
            f"({other.characters!r}), expected the target's {target.config.vocab_size} "
            f"({target.characters!r})"
        )
    return load_bigram(other, noise, seed)
