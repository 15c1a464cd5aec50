"""A target and a draft of one's own: the loop needs no chip and no transformer.

The target is a table of which character follows each run of ten in Python's documentation; the
draft looks the last three characters up in the text so far (prompt lookup). Speculation must not
change a character.

    python examples/own_target_and_draft.py
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from capra import CharTokenizer, Forward, ProgramRun, Proposal, decode, load_corpus

ORDER = 10


class TableTarget:
    """Greedy choice of an order-10 character model; a session is the text itself."""

    def __init__(self, text: str) -> None:
        self.tokenizer = CharTokenizer("".join(sorted(set(text))))
        self.vocab_size = len(self.tokenizer.characters)
        self.max_context = 512
        self.following: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        tokens = self.tokenizer.encode(text)
        for order in range(ORDER + 1):
            for end in range(order, len(tokens)):
                self.following[tuple(tokens[end - order : end])][tokens[end]] += 1

    def session(self) -> "TableSession":
        return TableSession(self)


class TableSession:
    """Rows of the cache are the tokens; truncating them is the whole rewind."""

    def __init__(self, target: TableTarget) -> None:
        self.target, self.tokens = target, list[int]()

    @property
    def length(self) -> int:
        return len(self.tokens)

    def prefill(self, tokens: Sequence[int]) -> tuple[ProgramRun, ...]:
        self.tokens += tokens
        return ()

    def forward(self, tokens: Sequence[int]) -> Forward:
        rows = []
        for token in tokens:
            self.tokens.append(token)
            order = min(ORDER, len(self.tokens))
            while not (found := self.target.following.get(tuple(self.tokens[-order:]))):
                order -= 1
            rows.append([float(found[t]) for t in range(self.target.vocab_size)])
        logits = np.array(rows)
        return Forward(tuple(logits.argmax(axis=1).tolist()), logits)

    def truncate(self, length: int) -> None:
        del self.tokens[length:]


class PromptLookup:
    """Proposes what followed the last three tokens the last time they were seen."""

    vocab_size = None

    def propose(self, text: Sequence[int], count: int) -> Proposal:
        for start in range(len(text) - 4, -1, -1):
            if text[start : start + 3] == text[-3:]:
                return Proposal(tuple(text[start + 3 : start + 3 + count]))
        return Proposal(())


target = TableTarget(load_corpus().train[:100_000])
prompt = target.tokenizer.encode("The with statement")
plain = decode(target, prompt, 160)
speculative = decode(target, prompt, 160, proposer=PromptLookup(), num_speculative_tokens=4)

print(target.tokenizer.decode(prompt + list(speculative.tokens)))
print(f"{len(plain.blocks)} passes plainly, {len(speculative.blocks)} speculatively")
assert plain.tokens == speculative.tokens, "speculation changed the text"
