"""What commands print the same way: JSON that is whole, and text that no terminal obeys."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from tests.command import Cli
from tests.isa.test_program import PROGRAM, forge, parts
from tests.lm.samples import CHARACTERS, text_model

from capra.cli.output import exit_unless_equal, finish_replays, print_json
from capra.errors import InputError
from capra.isa.program import save_program
from capra.lm.checkpoint import save_checkpoint

NASTY = "a[b]c[/] [red]:smile:\x1b[2J\r\x07\u202e\x85"
SHOWN = r"a[b]c[/] [red]:smile:\x1b[2J\r\x07\u202e\x85"


def test_numbers_of_numpy_are_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    """As the tokens of a draft of a user's own may be."""
    print_json(
        {"proposed": [np.int64(3), np.uint8(4)], "rate": np.float32(0.5), "equal": np.bool_(True)}
    )
    printed = json.loads(capsys.readouterr().out)
    assert printed == {"proposed": [3, 4], "rate": 0.5, "equal": True}
    assert printed["equal"] is True and type(printed["proposed"][0]) is int


@pytest.mark.parametrize(
    "value", [object(), b"5", {1, 2}, np.arange(3), float("nan"), np.float32("inf"), {(1,): 2}]
)
def test_what_is_no_json_is_refused_and_nothing_printed(
    value: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match="the record is not printed, expected values of JSON: "):
        print_json({"kind": "x", "value": value})
    assert capsys.readouterr().out == ""


def nasty_program(path: Path) -> Path:
    save_program(PROGRAM, path)
    header, code = parts(path.read_bytes())
    header["name"] = NASTY
    path.write_bytes(forge(header, code))
    return path


def assert_plain(text: str) -> None:
    assert all(c.isprintable() or c == "\n" for c in text)


def test_a_programs_name_is_shown_letter_by_letter(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = nasty_program(tmp_path / "program")
    monkeypatch.setenv("COLUMNS", "400")
    for command in (["profile", file], ["anatomy", file, file], ["dis", file]):
        shown = cli(*command)
        assert (shown.code, shown.err) == (0, "")
        assert SHOWN in shown.out
        assert_plain(shown.out)


def test_names_of_files_are_shown_letter_by_letter(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / f"{NASTY}.ga2".replace("/", "")
    result = cli("compile", "--model", "random", "-o", file)
    assert result.code == 0 and r"a[b]c[] [red]:smile:\x1b[2J\r\x07" in result.err
    assert_plain(result.err)
    missing = cli("report", tmp_path / "no\x1b[2J.json", "-o", tmp_path / "x.html")
    assert missing.code == 2 and r"no\x1b[2J.json: No such file" in missing.err
    assert_plain(missing.err)


def test_a_checkpoints_name_and_characters_are_shown_letter_by_letter(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Line ends of the text stay; whatever else a terminal would obey does not."""
    monkeypatch.setenv("COLUMNS", "400")
    model = text_model()
    swapped = dict(zip(CHARACTERS, "\x1b\n\r[]" + CHARACTERS[5:], strict=True))
    characters = "".join(swapped[c] for c in CHARACTERS)
    nasty = replace(model, config=replace(model.config, name=NASTY), characters=characters)
    file = tmp_path / "nasty.safetensors"
    save_checkpoint(nasty, file, {})
    args = ("--model", file, "--prompt", characters[:5], "-n", "12")
    decoded = cli("decode", *args)
    assert (decoded.code, decoded.err) == (0, "")
    assert "[plain] \\x1b\n\\r[]" in decoded.out
    assert_plain(decoded.out)
    for command in (
        ["trace", *args],
        ["certify", "--model", file, "--max-context", "0", "--max-rows", "1"],
        ["eval", "--model", file, "--windows", "1"],
        ["anatomy", "--model", file, "-m", "2", "-c", "1"],
        ["compile", "--model", file, "--emit", "graph"],
    ):
        shown = cli(*command)
        assert shown.code == 0, (command, shown.err)
        assert_plain(shown.out)
        if command[0] in ("certify", "anatomy"):
            assert SHOWN in " ".join(shown.out.split()), command


def test_the_certificate_of_no_rows_is_no_success(cli: Cli) -> None:
    """It was asked for; -n 0 alone asks for nothing."""
    args = ("decode", "--model", "random", "-n", "0")
    quiet = cli(*args)
    assert (quiet.code, quiet.err) == (0, "")
    assert quiet.out.splitlines()[-1] == "Nothing was compared: no token was generated."
    assert cli(*args, "--json").json()["tokens_equal"] is None
    asked = cli(*args, "--certify")
    assert asked.code == 1
    assert asked.out.splitlines()[-1] == (
        "certificate: nothing was compared, as the plain run has no row."
    )
    assert asked.err == "error: nothing was certified, expected at least one row\n"
    record = cli(*args, "--certify", "--json").json(code=1)
    assert (record["certificate"]["rows"], record["certificate"]["equal"]) == (0, None)


def test_a_replay_of_nothing_is_no_success(capsys: pytest.CaptureFixture[str]) -> None:
    class Nothing:
        first_mismatch = None

        def finish(self) -> None:
            pass

        def record(self) -> dict[str, Any]:
            return {"icarus": {"programs": 0, "mismatches": 0}}

    assert finish_replays(Nothing(), {}) is True  # type: ignore[arg-type]
    assert capsys.readouterr().err == (
        "error: no program was replayed on the RTL, expected at least one\n"
    )


def test_what_was_not_compared_is_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    exit_unless_equal([{"tokens_equal": None}, {"tokens_equal": True}])
    assert capsys.readouterr().err == ""
    with pytest.raises(typer.Exit):
        exit_unless_equal([{"tokens_equal": None}, {"tokens_equal": False}])
    assert capsys.readouterr().err.startswith("error: speculation changed the tokens, ")
