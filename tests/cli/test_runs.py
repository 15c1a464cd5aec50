"""What every record begins with: its kind, and what made it."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import typer.main
from tests.command import Cli
from tests.lm.samples import text_model

import capra
from capra.cli.app import app
from capra.cli.invocation import option_name
from capra.cli.runs import OUTPUT_ONLY
from capra.cosim import verify
from capra.isa.program import Program
from capra.lm.checkpoint import save_checkpoint
from capra.report.records import check_record

HEAD = ["kind", "capra", "command", "date", "settings", "files"]
SECONDS = 1_790_000_000
DATE = "2026-09-21T14:13:20Z"


@pytest.fixture(autouse=True)
def fixed_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", str(SECONDS))
    monkeypatch.setattr("capra.lab.planner.CURVE_ROWS", 3)


class NoSimulator:
    """Finds every program equal, as a test needs no hardware simulator."""

    first_mismatch = None

    def finish(self) -> None:
        pass

    def record(self) -> dict[str, Any]:
        found = {"programs": 1, "mismatches": 0, "cycles": 1, "wall_seconds": 0.0, "version": "9"}
        return {"icarus": found}


@dataclass(frozen=True)
class Folder:
    """Files that commands take."""

    path: Path
    checkpoint: str
    program: str
    spec: str


@pytest.fixture
def folder(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = Folder(
        tmp_path, *(str(tmp_path / name) for name in ("m.safetensors", "p.ga2", "s.toml"))
    )
    save_checkpoint(text_model(), Path(made.checkpoint), {})
    assert cli("compile", "--model", "random", "-o", made.program).code == 0
    Path(made.spec).write_text(
        f"[[grid]]\nmodel = {made.checkpoint!r}\nprompt = 'ab'\nmax_new_tokens = 2"
    )

    def replay(_program: Program, *_: object) -> NoSimulator:
        return NoSimulator()

    monkeypatch.setattr(verify, "replay_program", replay)
    return made


Words = Callable[[Folder], list[str]]

COMMANDS: dict[str, tuple[str, Words]] = {
    "decode": ("decode", lambda f: ["--model", f.checkpoint, "--prompt", "ab", "-n", "2"]),
    "trace": ("decode", lambda f: ["--draft", "constant", "-n", "2"]),
    "table": ("table", lambda f: []),
    "grid": ("grid", lambda f: []),
    "plan": ("plan", lambda f: ["--model", "random", "--max-k", "1", "-n", "2"]),
    "bench": ("bench", lambda f: ["--model", "random", "-n", "2", "-k", "1"]),
    "anatomy": ("anatomy", lambda f: [f.program]),
    "causality": ("causality", lambda f: []),
    "serving": ("serving", lambda f: ["--runs", "1", "-n", "2"]),
    "profile": ("profile", lambda f: [f.program]),
    "replay": ("replay", lambda f: [f.program, "--rtl", "icarus"]),
    "sweep": ("sweep", lambda f: [f.spec, "--workers", "1"]),
    "certify": ("certify", lambda f: ["--model", "random", "--max-context", "0"]),
    "eval": ("eval", lambda f: ["--model", f.checkpoint, "--windows", "1"]),
}
"""Every command that prints a record: its kind, and words that make it short."""


def commands() -> dict[str, Any]:
    return dict(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_every_command_with_json_is_known_here() -> None:
    assert set(COMMANDS) == {
        name
        for name, command in commands().items()
        if any("--json" in parameter.opts for parameter in command.params)
    }


@pytest.mark.parametrize("name", COMMANDS)
def test_a_record_says_what_made_it(name: str, cli: Cli, folder: Folder) -> None:
    kind, words = COMMANDS[name]
    given = [name, *words(folder), "--json"]
    record = cli(*given).json()
    assert list(record)[: len(HEAD)] == HEAD
    assert record["kind"] == kind
    assert record["capra"] == capra.__version__
    assert record["command"] == given
    assert record["date"] == DATE
    if name not in ("grid", "table", "plan"):  # a grid of a test may be shorter than the recorded
        check_record(name, record)


@pytest.mark.parametrize("name", COMMANDS)
def test_settings_have_every_option_that_changes_a_record(
    name: str, cli: Cli, folder: Folder
) -> None:
    """By the command's own list of options, so that a new one cannot be forgotten."""
    settings = cli(name, *COMMANDS[name][1](folder), "--json").json()["settings"]
    options = {option_name(parameter) for parameter in commands()[name].params}
    assert {"json", "csv", "parquet", "wave"} == OUTPUT_ONLY
    assert options - OUTPUT_ONLY <= settings.keys()
    assert not OUTPUT_ONLY & settings.keys()


def test_settings_have_the_values_that_were_given(cli: Cli) -> None:
    settings = cli(
        "decode", "--model", "random", "--model-seed", 7, "--draft", "random", "--draft-seed", 3,
        "--stop-token", 4, "-k", 2, "-n", 5, "-O", "block-attention", "--external-words", 9000,
        "--certify", "--json",
    ).json()["settings"]  # fmt: skip
    expected = {
        "model": "random", "model_seed": 7, "draft": "random", "draft_seed": 3, "draft_noise": 0.0,
        "stop_token": 4, "num_speculative_tokens": 2, "max_new_tokens": 5, "prompt": [0],
        "optimize": "block-attention", "external_words": 9000, "scratchpad_words": None,
        "start_token": None, "certify": True, "rtl": None,
    }  # fmt: skip
    assert {key: settings[key] for key in expected} == expected
    assert settings["chip"]["external_words"] == 9000
    assert set(settings) == {*expected, "chip", "vocabulary"}


def test_a_plan_has_what_it_found_for_options_that_were_left_out(cli: Cli) -> None:
    args = ("plan", "--model", "random", "-n", 2, "--synthetic-acceptance", "0.5", "--json")
    settings = cli(*args).json()["settings"]
    assert (settings["max_k"], settings["measure"], settings["draft"]) == (15, "all", "synthetic")
    assert settings["synthetic_acceptance"] == "0.5" and settings["synthetic_runs"] == 8


def digest(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def test_a_record_has_the_digests_of_the_files_that_it_used(cli: Cli, folder: Folder) -> None:
    copy = folder.path / "draft.safetensors"
    copy.write_bytes(Path(folder.checkpoint).read_bytes())
    checkpoint = {folder.checkpoint: digest(Path(folder.checkpoint))}
    program = {folder.program: digest(Path(folder.program))}

    def files_of(*words: object) -> Any:
        return cli(*words, "--json").json()["files"]

    text = ("--model", folder.checkpoint, "--prompt", "ab")
    assert files_of("decode", *text, "-n", 2) == checkpoint
    assert files_of("trace", *text, "-n", 2, "--draft", copy) == {
        **checkpoint, str(copy): digest(copy),
    }  # fmt: skip
    assert files_of("plan", *text, "-n", 2, "--max-k", 1, "--measure", "none") == checkpoint
    assert files_of("anatomy", "--model", folder.checkpoint, "-m", 2, "-c", 1) == checkpoint
    assert files_of("certify", "--model", folder.checkpoint, "--max-context", 0) == checkpoint
    assert files_of("eval", "--model", folder.checkpoint, "--windows", 1) == checkpoint
    assert files_of("sweep", folder.spec, "--workers", 1) == {
        folder.spec: digest(Path(folder.spec)), **checkpoint,
    }  # fmt: skip
    for command in ("anatomy", "profile", "replay"):
        assert files_of(command, folder.program) == program
    packaged = Path(str(files("capra") / "data" / "pydoc.safetensors"))
    assert files_of("decode", "-n", 1, "-k", 0) == {"pydoc": digest(packaged)}
    assert files_of("decode", "--model", "random", "-n", 1) == {}


def test_without_the_variable_the_date_is_now_in_utc(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    date = cli("causality", "--json").json()["date"]
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", date)
    assert date != DATE


@pytest.mark.parametrize("value", ["", "x", "-1", "1.5", "9" * 30, "\u0663", "253402300800"])
def test_a_date_that_is_none_is_refused_before_anything_runs(
    value: str, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    result = cli("causality", "--json")
    assert (result.code, result.out) == (2, "")
    assert re.fullmatch(
        r"error: SOURCE_DATE_EPOCH is '.*', expected whole seconds of 0 \.\. 253402300799\n",
        result.err,
    )


def test_the_same_command_at_the_same_date_gives_the_same_bytes(cli: Cli) -> None:
    once, again = (cli("trace", "-n", 3, "--json").out for _ in range(2))
    assert once == again and json.loads(once)["date"] == DATE
