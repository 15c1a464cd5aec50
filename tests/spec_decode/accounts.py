"""What must hold of the counts of every run, whatever its target and its draft."""

from capra.spec_decode.decode import Decoded


def assert_accounts(run: Decoded, max_new_tokens: int, k: int, max_context: int) -> None:
    """Identities of a run that was asked for so many tokens with k guesses a block."""
    assert len(run.tokens) <= max_new_tokens
    if max_new_tokens == 0:
        assert not run.blocks and not run.prefill and run.cache_length == 0
        return
    text = list(run.prompt)
    for block in run.blocks:
        room = max_context - len(text)  # rows behind that of the last token
        assert len(block.proposed) <= min(k, room)
        checked = block.tokens[1:]
        assert block.tokens == (text[-1], *block.proposed[: len(checked)])
        assert len(block.choices) == len(block.tokens)
        assert 0 <= block.accepted <= len(checked)
        assert checked[: block.accepted] == block.choices[: block.accepted]
        if block.accepted < len(checked):
            assert checked[block.accepted] != block.choices[block.accepted]
        assert block.emitted == block.choices[: block.accepted + 1]
        text += block.emitted
    blocks, accepted = len(run.blocks), sum(block.accepted for block in run.blocks)
    proposed = sum(len(block.proposed) for block in run.blocks)
    emitted = text[len(run.prompt) :]
    assert accepted <= proposed <= blocks * k
    assert len(emitted) == accepted + blocks
    assert run.cache_length == len(run.prompt) - 1 + len(emitted) <= max_context
    assert run.tokens == tuple(emitted[: len(run.tokens)])
    assert len(emitted) - len(run.tokens) <= k
    assert len(run.tokens) / (k + 1) <= blocks <= len(run.tokens)
    if run.stop_reason == "length":
        assert len(run.tokens) == max_new_tokens
    if run.stop_reason == "context":
        assert run.cache_length == max_context and len(run.tokens) == len(emitted)
