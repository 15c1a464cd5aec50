"""Characters to tokens and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capra.errors import InputError
from capra.lm.tokenizer import CharTokenizer

TOKENIZER = CharTokenizer("ba\n é")


def test_token_i_is_character_i() -> None:
    assert TOKENIZER.encode("ab\né") == [1, 0, 2, 4]
    assert TOKENIZER.decode([1, 0, 2, 4]) == "ab\né"
    assert TOKENIZER.encode("") == [] and TOKENIZER.decode([]) == ""


@given(st.text("ba\n é"))
def test_a_text_comes_back(text: str) -> None:
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text


@pytest.mark.parametrize(("text", "where", "what"), [("z", 0, "'z'"), ("ab\ta", 2, r"'\\t'")])
def test_the_first_unknown_character_is_named(text: str, where: int, what: str) -> None:
    with pytest.raises(InputError, match=f"character {where} of the prompt is {what}, expected"):
        TOKENIZER.encode(text)
