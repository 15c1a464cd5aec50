"""Models whose largest logits are equal, exactly, in float as well.

All numbers are small integers and attention adds nothing, so that every float sum is exact. The
first component of a row is +4 or -4 whatever the layer adds; its sign picks the group of equal
columns that wins.
"""

from collections.abc import Sequence

import numpy as np

from capra.lm.calibrate import calibrate_tokens
from capra.lm.model import LanguageModel, ModelConfig

VOCAB = 11
"""Three tiles of 4 columns, the last one partial."""
WIDTH = 4
HIDDEN = 5
CONTEXT = 12
SIGN = 4.0
GROUP_WEIGHT = 64.0


def tied_model(plus: Sequence[int], minus: Sequence[int], seed: int = 0) -> LanguageModel:
    """Every token is followed by a tie within `plus`, but its first one by a tie within `minus`.

    With both groups empty all logits are 0.
    """
    config = ModelConfig(
        name="tied", vocab_size=VOCAB, width=WIDTH, heads=1, layers=1, hidden=HIDDEN,
        context=CONTEXT,
    )  # fmt: skip
    draw = np.random.default_rng(seed)
    shapes = {**config.host_shapes(), **config.weight_shapes()}
    weights = {
        name: draw.integers(-1, 1, shape, endpoint=True).astype(np.float64)
        for name, shape in shapes.items()
    }
    weights["layers.0.wo"][:] = 0
    weights["layers.0.w2"][:, 0] = 0
    weights["embed"][:, 0] = SIGN
    unembed = weights["unembed"]
    unembed[0] = 0
    if not plus:
        unembed[:] = 0
    for group, sign in ((plus, 1), (minus, -1)):
        for token in group:
            unembed[:, token] = 0
            unembed[0, token] = sign * GROUP_WEIGHT
    if plus:
        weights["embed"][min(plus), 0] = -SIGN
    return calibrate_tokens(LanguageModel(config, weights))


def tied_group(plus: Sequence[int], minus: Sequence[int], token: int) -> list[int]:
    """The tokens that tie after a token, in order."""
    return sorted(minus if token == min(plus) else plus)
