"""What the options of a model mean."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from capra.lm.model import LanguageModel


def chosen_model(
    name: str, seed: int, external_words: int | None = None, scratchpad_words: int | None = None
) -> "LanguageModel":
    """The model of a name, on a chip with other memories where these are given."""
    from capra.lm.models import load_model, on_chip

    sizes = {"external_words": external_words, "scratchpad_words": scratchpad_words}
    return on_chip(load_model(name, seed), sizes)
