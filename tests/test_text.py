"""Text as a terminal may have it."""

from capra.text import printable, printable_lines


def test_what_a_terminal_would_obey_is_an_escape() -> None:
    assert printable("a\x1b[2J\rb\n\x00\u2028\x85\ud800é") == (
        r"a\x1b[2J\rb\n\x00\u2028\x85\ud800é"
    )


def test_lines_of_a_text_stay_lines() -> None:
    assert printable_lines("a\n\nb\r\n\x1b]0;x\x07") == "a\n\nb\\r\n\\x1b]0;x\\x07"
    assert printable_lines("\n") == "\n"
