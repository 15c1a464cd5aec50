"""The causality experiment notices a mask that lets a row see too much or too little."""

from collections.abc import Sequence

import numpy as np
import pytest

from capra.lab.causality import causality
from capra.lm.target import Forward, IntegerSession
from capra.spec_decode.recorded import CAUSALITY_BLOCKS


def test_rows_are_compared_with_those_of_the_first_block() -> None:
    record = causality()
    assert record["holds"]
    assert [block["tokens"] for block in record["blocks"]] == list(map(list, CAUSALITY_BLOCKS))
    assert [block["unchanged"] for block in record["blocks"]] == [4, 3, 2, 0]
    for block in record["blocks"]:
        assert len(block["logits"]) == 4 and {len(row) for row in block["logits"]} == {16}
        assert block["equal"] == [row < block["unchanged"] for row in range(4)]


@pytest.mark.parametrize("leak", ["a row sees behind itself", "no row sees another"])
def test_a_wrong_mask_does_not_hold(leak: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right = IntegerSession.forward

    def wrong(session: IntegerSession, tokens: Sequence[int]) -> Forward:
        found = right(session, tokens)
        if leak == "no row sees another":
            rows = np.array([[token] * 16 for token in tokens], dtype=np.float64)
        else:
            rows = found.logits + tokens[-1]
        return Forward(found.choices, rows, found.runs)

    monkeypatch.setattr(IntegerSession, "forward", wrong)
    assert not causality()["holds"]
