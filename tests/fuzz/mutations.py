"""How input is damaged: edits of bytes, and words that no command line expects."""

from typing import Final

from hypothesis import strategies as st

_PIECES: Final = (
    b"\0", b"\xff", b"\n", b"\r", b" ", b"#", b";", b"=", b":", b",", b'"', b"{", b"}", b"[", b"0",
    b"-1", b"1e999", b"NaN", b"Infinity", b"9" * 30, b"9" * 5000, b"[" * 2000, b"\xed\xa0\x80",
    b"\xe2\x80\xa8", b'"name": "x", ', b"null", b"true",
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, raw: bytes, edits: int = 4) -> bytes:
    """`raw` after one to `edits` edits: spans replaced, removed or repeated, or the end cut off."""
    for _ in range(draw(st.integers(1, edits))):
        at = draw(st.integers(0, len(raw)))
        end = min(len(raw), at + draw(st.sampled_from([0, 1, 2, 4, 8, 64])))
        match draw(st.sampled_from(["replace", "bits", "repeat", "cut"])):
            case "replace":
                piece = draw(st.sampled_from(_PIECES) | st.binary(max_size=8))
                raw = raw[:at] + piece + raw[end:]
            case "bits":
                mask = draw(st.integers(1, 255))
                raw = raw[:at] + bytes(byte ^ mask for byte in raw[at:end]) + raw[end:]
            case "repeat":
                raw = raw[:end] + raw[at:end] + raw[end:]
            case "cut":
                raw = raw[:at]
    return raw


nasty_words: Final = st.sampled_from(
    ["", "-", "--", "-k", "-n", "--json", "--emit", "graph", "--rows", "--cache", "--draft",
     "constant", "--draft-noise", "--draft-seed", "--start-token", "--stop-token", "--prompt",
     "--external-words", "--scratchpad-words", "--max-rows", "--max-context", "--caches",
     "--instructions", "--rtl", "none", "-1", "0", "1", "3", "64", "65536", "1e999", "nan", "inf",
     "9" * 30, "9" * 5000, "0x10", "1_0", "\u0663", "\x00", "\ud800", "\n", "a" * 5000, "/", ".",
     "/dev/null", "{program}", "{checkpoint}", "-o", "--help", "--version", "certified"]
) | st.text(max_size=5)  # fmt: skip
"""Options, values and nonsense; pydoc, train and whole tables would take too long."""
