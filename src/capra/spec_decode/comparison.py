"""Two runs of one prompt, side by side: the target alone, and with a draft."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from capra.compiler.optimization import SHORT_LAST_BLOCK, names_of
from capra.lm.prompts import detokenizer
from capra.lm.target import ChipTarget
from capra.spec_decode.decode import Decoded, Target, decode
from capra.spec_decode.metrics import comparison_record
from capra.spec_decode.proposers import Proposer

OnTokens = Callable[[Sequence[int]], None]


def _ignore(_tokens: Sequence[int]) -> None:
    pass


@dataclass(frozen=True)
class Comparison:
    """What both runs have in common, and the draft of the second.

    `make_proposer` makes a fresh proposer, given the prompt and the plain run's continuation. Each
    run may go through another target that wraps `target`.

    Raises CapacityError where a program of the runs does not fit the chip.
    """

    target: ChipTarget
    prompt: Sequence[int]
    max_new_tokens: int
    num_speculative_tokens: int
    make_proposer: Callable[[tuple[int, ...]], Proposer]
    stop_token: int | None = None

    def __post_init__(self) -> None:
        self.target.check_fit(
            len(self.prompt), self.max_new_tokens, self.num_speculative_tokens,
            shorten_last_block=SHORT_LAST_BLOCK in self.target.optimize,
        )  # fmt: skip

    def plain(self, on_tokens: OnTokens = _ignore, through: Target | None = None) -> Decoded:
        """The target's own text, a token a pass."""
        return decode(
            through or self.target, self.prompt, self.max_new_tokens,
            stop_token=self.stop_token, on_tokens=on_tokens,
        )  # fmt: skip

    def speculative(
        self, plain: Decoded, on_tokens: OnTokens = _ignore, through: Target | None = None
    ) -> Decoded:
        """The same with the draft's guesses; the target's optimization says how it ends."""
        text, k = plain.prompt + plain.tokens, self.num_speculative_tokens
        return decode(
            through or self.target, self.prompt, self.max_new_tokens,
            stop_token=self.stop_token, on_tokens=on_tokens,
            proposer=self.make_proposer(text) if k else None, num_speculative_tokens=k,
            shorten_last_block=SHORT_LAST_BLOCK in self.target.optimize,
        )  # fmt: skip

    def record(self, plain: Decoded, speculative: Decoded) -> dict[str, Any]:
        """The passes of the compiler, and both runs as `comparison_record` puts them.

        `tokens_equal` is None where neither run has a token: nothing was compared.
        """
        record = comparison_record(plain, speculative, detokenizer(self.target.model))
        if not plain.tokens and not speculative.tokens:
            record["tokens_equal"] = None
        return {"optimize": names_of(self.target.optimize), **record}
