"""The text that ships with Python, in two parts."""

import hashlib
from pydoc_data.topics import topics

from capra.lm.corpus import load_corpus


def test_the_parts_are_the_whole_text() -> None:
    corpus = load_corpus()
    whole = corpus.train + corpus.held_out
    assert whole.isascii()
    assert len(corpus.held_out) == len(whole) // 10
    assert corpus.digest == hashlib.sha256(whole.encode()).hexdigest()


def test_topics_come_in_the_order_of_their_names() -> None:
    corpus = load_corpus()
    first, last = min(topics), max(topics)
    assert corpus.train.startswith(_ascii(topics[first]))
    assert corpus.held_out.endswith(_ascii(topics[last])[-len(corpus.held_out) :])


def test_no_ascii_character_is_lost() -> None:
    corpus = load_corpus()
    assert len(corpus.train + corpus.held_out) == sum(len(_ascii(t)) for t in topics.values())


def _ascii(text: str) -> str:
    return text.encode("ascii", "ignore").decode()
