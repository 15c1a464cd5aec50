"""What the options of a model mean, and how a record tells them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from capra.errors import InputError

if TYPE_CHECKING:
    from capra.lm.model import LanguageModel


def chosen_model(
    name: str, seed: int, external_words: int | None = None, scratchpad_words: int | None = None
) -> "LanguageModel":
    """The model of a name, on a chip with other memories where these are given."""
    from capra.lm.models import load_model, on_chip

    sizes = {"external_words": external_words, "scratchpad_words": scratchpad_words}
    return on_chip(load_model(name, seed), sizes)


def read_text(path: Path, what: str) -> str:
    """The text of a file of the user's, without a byte order mark. InputError if it has none."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{what} {path} cannot be read: {reason}") from None


def text_steps(model: "LanguageModel", prompt: Sequence[int], max_new_tokens: int) -> int:
    """How many tokens a plain run makes at most: as many as are asked for and have room."""
    return max(0, min(max_new_tokens, model.config.context - len(prompt) + 1))


def settings_record(
    model: "LanguageModel", prompt: Sequence[int], **options: str | float
) -> dict[str, Any]:
    """The settings of a run: its options, the chip, the prompt and the vocabulary."""
    from capra.lm.prompts import detokenizer

    detokenize = detokenizer(model)
    return {
        "model": model.config.name,
        **options,
        "prompt": list(prompt),
        "chip": asdict(model.config.chip),
        "vocabulary": [detokenize([token]) for token in range(model.config.vocab_size)],
    }
