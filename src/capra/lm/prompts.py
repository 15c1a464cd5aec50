"""Prompts: what a model is to continue as tokens, and its tokens as text."""

from collections.abc import Callable, Sequence

from capra.errors import InputError
from capra.lm.model import LanguageModel, check_token
from capra.lm.tokenizer import DEFAULT_PROMPT, CharTokenizer


def prompt_tokens(model: LanguageModel, prompt: str | None, start_token: int | None) -> list[int]:
    """The tokens to continue, from whichever of the two suits the model; at most one is given.

    With neither they are DEFAULT_PROMPT, or token 0 for a model without text. Raises InputError
    for both, for text that the model does not know, and for a token outside the vocabulary.
    """
    if prompt is not None and start_token is not None:
        raise InputError("both a prompt and a start token are given, expected one of them")
    if start_token is not None:
        check_token("start token", start_token, model.config.vocab_size)
        return [start_token]
    if model.characters is None:
        if prompt is not None:
            raise InputError(
                f"the prompt is {prompt!r}, but model {model.config.name} has no text, expected a "
                "start token (--start-token)"
            )
        return [0]
    return CharTokenizer(model.characters).encode(DEFAULT_PROMPT if prompt is None else prompt)


def detokenizer(model: LanguageModel) -> Callable[[Sequence[int]], str]:
    """Tokens to text; numbers for a model without characters."""
    if model.characters is None:
        return lambda tokens: "".join(f"{token} " for token in tokens)
    return CharTokenizer(model.characters).decode
