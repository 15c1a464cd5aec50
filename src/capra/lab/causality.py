"""Causality on the chip: a row of a block sees what is before it and nothing else.

The recorded experiment: blocks that first differ in a later and later token, after the same cache,
on a model whose attention matters. Rows before the difference must be the same integers, the rows
from it on must not.
"""

from typing import Any, Final

from capra.isa.chip import Chip
from capra.lm.target import ChipTarget
from capra.lm.tiny import sharp_model
from capra.spec_decode.recorded import CAUSALITY_BLOCKS as BLOCKS
from capra.spec_decode.recorded import CAUSALITY_CACHE as CACHE

MODEL_SEED: Final = 2

Record = dict[str, Any]


def causality(chip: Chip | None = None) -> Record:
    """The logits of every row of the four blocks, compared with those of the first block.

    equal[i] says whether row i has the logits of the first block's row i; it must be so in the
    first `unchanged` rows, and in no other. `holds` if it is.
    """
    target = ChipTarget(sharp_model(MODEL_SEED, chip))
    blocks = list[Record]()
    for tokens in BLOCKS:
        session = target.session()
        session.prefill(CACHE)
        logits = session.forward(tokens).logits.astype(int).tolist()
        pairs = zip(tokens, BLOCKS[0], strict=True)
        unchanged = next((row for row, (a, b) in enumerate(pairs) if a != b), len(tokens))
        first = blocks[0]["logits"] if blocks else logits
        equal = [row == reference for row, reference in zip(logits, first, strict=True)]
        blocks.append(
            {"tokens": list(tokens), "logits": logits, "unchanged": unchanged, "equal": equal}
        )
    holds = all(
        block["equal"] == [row < block["unchanged"] for row in range(len(block["tokens"]))]
        for block in blocks
    )
    return {
        "model": f"random({MODEL_SEED}) with Wq and Wk times 4", "cache": list(CACHE),
        "blocks": blocks, "holds": holds,
    }  # fmt: skip
