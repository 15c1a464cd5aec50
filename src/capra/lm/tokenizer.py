"""Character tokenizer: token i is character i of the vocabulary."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from capra.errors import InputError

DEFAULT_PROMPT: Final = "A list of"
"""What a text model continues when nobody says what."""


@dataclass(frozen=True, slots=True)
class CharTokenizer:
    """Text to tokens and back."""

    characters: str

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; InputError names the first character outside the vocabulary."""
        index = {character: token for token, character in enumerate(self.characters)}
        for position, character in enumerate(text):
            if character not in index:
                raise InputError(
                    f"character {position} of the prompt is {character!r}, expected one of the "
                    f"vocabulary's {len(self.characters)}: {self.characters!r}"
                )
        return [index[character] for character in text]

    def decode(self, tokens: Iterable[int]) -> str:
        """The text of tokens."""
        return "".join(self.characters[token] for token in tokens)
