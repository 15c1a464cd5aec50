"""The command line: what it prints, and how it refuses.

Most commands run in this process, which is quick; a handful run as a user's would.
"""

import json
import os
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors import safe_open
from safetensors.numpy import save
from tests.command import Cli, Result
from tests.lm.samples import CHARACTERS, text_model, tiny
from typer.main import get_command

import capra
from capra.cli.app import app
from capra.cli.help import PANELS
from capra.compiler.optimization import O1, OPTIMIZATIONS
from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import PASSES
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.ir.scales import Scales
from capra.ir.text import parse_graph
from capra.ir.visible import Visible
from capra.isa.assembler import assemble, disassemble
from capra.isa.program import Program, load_program
from capra.lm.checkpoint import save_checkpoint
from capra.lm.graphs import verifier_graph
from capra.lm.reference import greedy_tokens
from capra.lm.target import ChipTarget
from capra.lm.train import TrainedModel
from capra.sim.device import Execution

SCRIPT = Path(sys.executable).with_name("capra")
COMMANDS = (
    "decode", "bench", "table", "grid", "trace", "anatomy", "causality", "serving", "plan",
    "sweep", "report", "compile", "dis", "profile", "replay", "certify", "eval", "train",
)  # fmt: skip


def _script(*args: str) -> Result:
    """Runs a command as a process of its own, with no terminal anywhere."""
    done = subprocess.run([SCRIPT, *args], capture_output=True, text=True, check=False)  # noqa: S603
    return Result(done.returncode, done.stdout, done.stderr)


def _assert_refused(result: Result, *parts: str) -> None:
    """Exit code 2, one sentence on stderr with these parts, and nothing else anywhere."""
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ")
    assert result.err.count("\n") == 1 and result.err.endswith("\n")
    assert "Traceback" not in result.err
    for part in parts:
        assert part in result.err


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good checkpoint and damaged copies of it."""
    folder = tmp_path_factory.mktemp("checkpoints")
    good = folder / "good"
    save_checkpoint(text_model(), good, {})
    with safe_open(good, framework="numpy") as file:
        header = json.loads(file.metadata()["capra"])
        del header["digest"], header["header_digest"]
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

    def write(file: str, tensors: dict[str, npt.NDArray[Any]], **changes: object) -> None:
        text = json.dumps({**header, **changes})
        (folder / file).write_bytes(save(tensors, {"capra": text}))

    def changed(name: str, value: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        return {**tensors, name: value}

    raw, wq = good.read_bytes(), tensors["layers.0.wq"]
    (folder / "empty").write_bytes(b"")
    (folder / "half").write_bytes(raw[: len(raw) // 2])
    (folder / "flipped").write_bytes(raw[:9] + bytes([raw[9] ^ 1]) + raw[10:])
    (folder / "text").write_text("this is no checkpoint\n")
    write("renamed", {name.upper(): tensor for name, tensor in tensors.items()})
    write("reshaped", changed("layers.0.wq", wq[:-1]))
    write("halved", changed("layers.0.wq", wq.astype(np.float16)))
    write("nan", changed("layers.0.wq", np.full_like(wq, np.nan)))
    write("inf", changed("layers.0.wq", np.full_like(wq, np.inf)))
    write("vast", changed("layers.0.wq", np.full_like(wq, 3e38)))
    write("two lines", tensors, name="two\nlines", format=7)
    write("huge", tensors, width=60000)
    write("no ranges", tensors, ranges={})
    write("other vocabulary", tensors, vocab=list(CHARACTERS[::-1]))
    write("unbounded", {n: t for n, t in tensors.items() if n != "bigram"}, name="structured")
    return folder


TEXT_BAD = {
    "empty": ["empty cannot be read", "expected a safetensors checkpoint"],
    "half": ["half cannot be read", "expected a safetensors checkpoint"],
    "flipped": ["flipped cannot be read", "expected a safetensors checkpoint"],
    "text": ["text cannot be read", "expected a safetensors checkpoint"],
    "renamed": ["tensor BIGRAM is unknown, expected the 14 tensors of its 2 layers"],
    "reshaped": ["tensor layers.0.wq has shape (7, 8), expected (8, 8)"],
    "halved": ["tensor layers.0.wq is float16, expected float32"],
    "nan": ["tensor layers.0.wq holds nan, expected finite numbers"],
    "inf": ["tensor layers.0.wq holds inf, expected finite numbers"],
    "vast": ["range of layers.0.wq is 3", "expected 0 .. 1e+30"],
    "two lines": ["model two lines has the format 7, expected 1"],
    "huge": ["words of external memory, expected at most 16777216"],
    "no ranges": ["no range for x", "expected one from calibration"],
}


@pytest.mark.parametrize("name", TEXT_BAD)
def test_a_bad_checkpoint_is_refused(name: str, cli: Cli, checkpoints: Path) -> None:
    _assert_refused(
        cli("decode", "--model", checkpoints / name, "--prompt", "abc"), *TEXT_BAD[name]
    )


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["--prompt", ""], ["the prompt is empty, expected at least one token"]),
        (["--prompt", "abz"], ["character 2 of the prompt is 'z'", "expected", CHARACTERS]),
        (["--prompt", "a" * 25], ["the prompt has 25 tokens, expected at most 24, the context"]),
        (["--start-token", "12"], ["start token is 12, expected 0 .. 11"]),
        (["--start-token", "-1"], ["start token is -1, expected 0 .. 11"]),
        (["--start-token", "a"], ["--start-token", "'a', expected a whole number"]),
        (["--start-token", "1", "--prompt", "a"], ["both a prompt and a start token", "expected"]),
        (["--stop-token", "12", "--prompt", "a"], ["stop token is 12, expected 0 .. 11"]),
        (["--draft", "nope", "--prompt", "a"], ["draft is 'nope', expected bigram, constant"]),
        (["--draft", "/", "--prompt", "a"], ["draft is '/', expected bigram, constant"]),
        (["--draft", "b" * 5000, "--prompt", "a"], ["expected bigram, constant"]),
        (["--draft-noise", "nan", "--prompt", "a"], ["'nan', expected a number"]),
        (["--draft-noise", "inf", "--prompt", "a"], ["'inf', expected a number"]),
        (["--draft-noise", "1e999", "--prompt", "a"], ["'1e999', expected a number"]),
        (["--draft-noise", "1_0.5", "--prompt", "a"], ["'1_0.5', expected a number"]),
        (["--draft-noise", "-1", "--prompt", "a"], ["draft noise is -1.0, expected a number"]),
        (["--draft-noise", "1e308", "--prompt", "a"], ["draft noise is 1e+308, expected"]),
        (["--draft-noise", "x", "--prompt", "a"], ["'x', expected a number"]),
        (["--external-words", "100", "--prompt", "a"], ["external memory", "expected at most 100"]),
        (["--scratchpad-words", "64", "--prompt", "a"], ["scratchpad", "expected at most 64"]),
        (["--scratchpad-words", "1000", "--prompt", "a"], ["1000 words, expected a power of two"]),
        (["--external-words", "99999999", "--prompt", "a"], ["99999999", "expected 16 .. 167772"]),
        (["--external-words", "0", "--prompt", "a"], ["found 0, expected a whole number of at le"]),
    ],
)
def test_bad_input_to_a_text_model_is_refused(
    args: list[str], parts: list[str], cli: Cli, checkpoints: Path
) -> None:
    _assert_refused(cli("decode", "--model", checkpoints / "good", *args), *parts)


@pytest.mark.parametrize("option", ["-k", "--num-speculative-tokens", "-n", "--max-new-tokens"])
@pytest.mark.parametrize(
    "value", ["-1", "1.5", "two", "", "1e3", "nan", "1_0", "+5", " 3", "0x10", "١٢", "9" * 5000]
)
def test_counts_are_whole_numbers_from_0(option: str, value: str, cli: Cli) -> None:
    _assert_refused(cli("decode", option, value), option, "expected a whole number", value)


def test_every_number_is_read_as_plain_decimal() -> None:
    numbers = [
        f"{command} {option.opts[-1]}"
        for command, made in get_command(app).commands.items()  # type: ignore[attr-defined]
        for option in made.params
        if type(option.type).__name__ in ("IntParamType", "FloatParamType", "IntRange")
    ]
    assert numbers == [], "given to Python's int or float as they are"


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("decode", "--model-seed"), ("decode", "--draft-seed"), ("plan", "--draft-seed"),
        ("serving", "--seed"), ("train", "--seed"),
    ],
)  # fmt: skip
def test_a_seed_below_0_is_no_other_name_of_that_above(command: str, option: str, cli: Cli) -> None:
    _assert_refused(cli(command, option, "-3"), option, "-3, expected a whole number of at least 0")


@pytest.mark.parametrize(
    ("args", "parts"),
    [
        (["decode", "--model", "nope"], ["model is 'nope', expected structured, random, pydoc"]),
        (["decode", "--model", ""], ["model is '', expected"]),
        (["decode", "--model", "/"], ["model is '/', expected"]),
        (["decode", "--model", "a" * 5000], ["expected structured, random, pydoc"]),
        (
            ["decode", "--model", "random", "--prompt", "x"],
            ["'x'", "expected a start token (--start-t"],
        ),
        (["decode", "--model", "random", "--start-token", "16"], ["16, expected 0 .. 15"]),
        (["decode", "--model", "random", "--model-seed", "x"], ["'x', expected a whole number"]),
        (["decode", "--model", "random", "--external-words", "2000"], ["expected at most 2000"]),
        (["decode", "--prompt", "\t\u20ac"], ["character 0 of the prompt is '\\t', expected"]),
        (["compile", "--model", "nope"], ["model is 'nope', expected"]),
        (["compile", "--model", "random", "--emit", "x"], ["--emit is 'x', expected one of graph"]),
        (["compile", "--model", "random", "-m", "0"], ["found 0, expected", "at least 1"]),
        (["compile", "--model", "random", "-c", "-1"], ["found -1, expected", "at least 0"]),
        (["compile", "--rows", "9", "--cache", "120"], ["is 129 tokens, expected at most 128"]),
        (
            ["compile", "--model", "random", "--rows", "65"],
            ["65, expected at most 64, the context"],
        ),
        (
            ["compile", "--model", "random", "--rows", "1", "--cache", "64"],
            ["--rows 1 after --cache 64 is 65 tokens, expected at most 64, the context"],
        ),
        (["plan", "--model", "random", "--max-k", "1000000000000"], ["expected 1 .. 63"]),
        (
            [
                "plan",
                "--model",
                "random",
                "--synthetic-acceptance",
                "0.5",
                "--synthetic-runs",
                "1000000000000",
            ],
            ["found 1000000000000, expected a whole number of 1 .. 10000"],
        ),
        (
            ["serving", "--runs", "1000000000000"],
            ["found 1000000000000, expected a whole number of 1 .. 10000"],
        ),
        (
            ["plan", "--model", "random", "--acceptance", "0.8, 0.6"],
            ["--acceptance", "found ' 0.6', expected a number"],
        ),
        (
            ["plan", "--model", "random", "--measure", "1,1_0"],
            ["--measure", "found '1_0', expected a whole number of at least 1"],
        ),
        (["dis", "/no/such/file"], ["program file /no/such/file"]),
        (["eval", "--model", "random"], ["model random has no characters, expected"]),
        (["eval", "--windows", "0"], ["found 0, expected a whole number of at least 1"]),
        (["certify", "--max-rows", "200"], ["200, expected 1 .. 128, the context of pydoc"]),
        (["certify", "--model", "random", "--max-context", "65"], ["65, expected 0 .. 64"]),
        (["certify", "--caches", "3"], ["3 without programs, expected --instructions"]),
        (["certify", "--instructions", "--caches", "0"], ["found 0, expected"]),
        (["train", "-o", "/no/such/folder/file"], ["cannot write /no/such/folder/file"]),
        (["train"], ["--output"]),
        (["dis"], ["file"]),
        (["nothing"], ["nothing"]),
        (["decode", "--nothing"], ["--nothing"]),
        (["--nothing"], ["--nothing"]),
        (["decode", "-k"], ["-k"]),
        (["table", "extra"], ["extra"]),
    ],
)
def test_other_bad_input_is_refused(args: list[str], parts: list[str], cli: Cli) -> None:
    _assert_refused(cli(*args), *parts)


def test_a_draft_of_another_vocabulary_is_refused(cli: Cli, checkpoints: Path) -> None:
    draft = ("--draft", checkpoints / "other vocabulary")
    _assert_refused(
        cli("decode", "--model", checkpoints / "good", "--prompt", "a", *draft),
        "'lkjihgfedcba'", "expected the target's 12", "'abcdefghijkl'",
    )  # fmt: skip
    _assert_refused(cli("decode", "--model", "random", *draft), "expected the target's 16")


@pytest.mark.parametrize("where", ["missing/file.ga2", "", "file.ga2/file.ga2"])
def test_an_unwritable_path_leaves_nothing(where: str, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "file.ga2").write_text("mine")
    result = cli("compile", "--model", "random", "-o", tmp_path / where)
    _assert_refused(result, f"cannot write {tmp_path}")
    assert [path.name for path in tmp_path.iterdir()] == ["file.ga2"]
    assert (tmp_path / "file.ga2").read_text() == "mine"


def test_a_refused_compilation_writes_no_file(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "file.ga2"
    _assert_refused(
        cli("compile", "--model", "random", "-o", path, "--external-words", "1000"),
        "expected at most 1000",
    )
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_program_file_is_refused(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "file.ga2"
    assert cli("compile", "--model", "random", "-o", path).code == 0
    raw = path.read_bytes()
    for damaged in (b"", raw[:50], raw[:-1], raw[:200] + b"\xff" + raw[201:]):
        path.write_bytes(damaged)
        _assert_refused(cli("dis", path), str(path), "expected")


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("args", "part"),
    [
        (["decode", "--model", "nope"], "model is 'nope', expected"),
        (["decode", "-k", "-1"], "found -1, expected a whole number of at least 0"),
        (["compile", "--model", "random", "-o", "/no/such/file"], "cannot write /no/such/file"),
        (["nothing"], "nothing"),
    ],
)
def test_a_user_sees_the_same_refusals(args: list[str], part: str) -> None:
    _assert_refused(_script(*args), part)


def test_an_engine_that_is_not_installed_is_refused_with_what_installs_it(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAPRA_ENGINE", "compiled")
    monkeypatch.setattr("capra.sim.machine.has_numba", lambda: False)
    _assert_refused(
        cli("decode", "--model", "random", "--json"), "pip install '.[fast]' in the checkout"
    )


def test_the_version() -> None:
    assert _script("--version") == Result(0, f"capra {capra.__version__}\n", "")


def test_without_arguments_there_is_help(cli: Cli) -> None:
    result = cli()
    assert (result.code, result.err) == (0, "")
    assert result.out == cli("--help").out
    for command in COMMANDS:
        assert f"\n  {command} " in result.out


def test_help_groups_its_commands_and_cuts_no_description(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = cli("--help").out
    assert "..." not in shown.partition("Run:")[2]
    assert max(map(len, shown.splitlines())) <= 80
    headings = [line for line in shown.splitlines() if line.endswith(":") and line[0] != " "]
    assert headings == ["Options:", *(f"{heading}:" for heading in PANELS)]
    assert sorted(name for panel in PANELS.values() for name in panel) == sorted(COMMANDS)
    words = " ".join(shown.split())
    assert "Say whether speculation pays for a model and a draft, and with how many" in words


def test_a_command_without_a_heading_is_listed_under_others(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PANELS, "Models", ("eval",))
    assert "\nOthers:\n  train      Train the pydoc model" in cli("--help").out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_asks_capra_itself(shell: str, cli: Cli) -> None:
    script = cli("--show-completion", shell)
    assert script.code == 0 and f"_CAPRA_COMPLETE=complete_{shell}" in script.out
    _assert_refused(cli("--show-completion", "tcsh"), "'tcsh', expected one of bash, zsh, fish")


@pytest.mark.parametrize(
    ("words", "completed"),
    [("capra de", "decode"), ("capra decode --num", "--num-speculative-tokens")],
)
def test_bash_completes_commands_and_options(words: str, completed: str) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    environment = {**os.environ, **asked, "_CAPRA_COMPLETE": "complete_bash"}
    done = subprocess.run(  # noqa: S603
        [SCRIPT], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [completed], "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(command: str, cli: Cli) -> None:
    result = cli(command, "--help")
    assert (result.code, result.err) == (0, "")
    assert f"Example: capra {command}" in result.out
    assert result.out == cli(command, "-h").out


def test_help_tells_the_types_of_numbers(cli: Cli) -> None:
    shown = cli("decode", "--help").out
    assert "--num-speculative-tokens <int>" in shown
    assert "--draft-noise <float>" in shown


PLAIN_KEYS = {
    "tokens", "text", "stop_reason", "programs", "cycles", "cycles_by_unit", "cycles_by_phase",
    "prefill", "trace",
}  # fmt: skip
SPECULATIVE_KEYS = PLAIN_KEYS | {
    "blocks", "proposed", "accepted", "emitted", "acceptance_rate", "mean_acceptance_length",
    "accepted_per_position", "kept", "tokens_per_block", "cache_length", "draft_cycles",
    "target_cycles",
}  # fmt: skip


HEAD = ["kind", "capra", "command", "date", "settings", "files"]
"""What every record begins with."""


def without_head(record: dict[str, Any]) -> dict[str, Any]:
    """A record without what made it."""
    return {key: value for key, value in record.items() if key not in HEAD}


def test_decode_reports_both_runs_as_json(cli: Cli, checkpoints: Path) -> None:
    record = cli(
        "decode", "--model", checkpoints / "good", "--prompt", "bad", "--max-new-tokens", "9",
        "--num-speculative-tokens", "3", "-O0", "--json",
    ).json()  # fmt: skip
    results = {"plain", "speculative", "tokens_equal", "speedup", "decode_speedup"}
    results |= {"resident_weights"}
    assert set(record) == {*HEAD, "optimize", *results}
    assert (record["kind"], record["optimize"]) == ("decode", [])
    plain, speculative = record["plain"], record["speculative"]
    assert set(plain) == PLAIN_KEYS and set(speculative) == SPECULATIVE_KEYS
    assert record["tokens_equal"] is True
    assert plain["tokens"] == speculative["tokens"] and len(plain["tokens"]) == 9
    assert plain["text"] == "".join(CHARACTERS[token] for token in plain["tokens"])
    for part in (plain, speculative):
        assert set(part["cycles_by_unit"]) == {"matrix", "dma", "vector", "control"}
        assert sum(part["cycles_by_unit"].values()) == part["cycles"]
        assert sum(part["cycles_by_phase"].values()) == part["cycles"]
    assert record["speedup"] == plain["cycles"] / speculative["cycles"]
    accepted, blocks = speculative["accepted"], speculative["blocks"]
    assert speculative["proposed"] == 3 * blocks
    assert speculative["acceptance_rate"] == accepted / speculative["proposed"]
    assert speculative["mean_acceptance_length"] == 1 + accepted / blocks
    assert sum(speculative["accepted_per_position"]) == accepted
    assert speculative["programs"] == 1 + blocks * (3 + 1)


def test_decode_counts_the_programs_of_the_chip(cli: Cli) -> None:
    record = cli(
        "decode", "--model", "random", "--start-token", "4", "-n", "6", "-k", "0", "--json"
    ).json()
    target = ChipTarget(tiny("random", 1), optimize=O1)
    assert record["plain"]["cycles"] == sum(
        target.program("step", 1, cache).cycles for cache in range(6)
    )
    assert record["plain"]["tokens"] == greedy_tokens(tiny("random", 1), 4, 6)
    for key in PLAIN_KEYS:
        assert record["plain"][key] == record["speculative"][key]
    assert record["speedup"] == 1.0


@pytest.mark.parametrize("draft", ["bigram", "constant", "random", "always-right", "always-wrong"])
def test_decode_takes_every_draft(draft: str, cli: Cli) -> None:
    record = cli(
        "decode", "--model", "structured", "--draft", draft, "-n", "8", "-k", "3", "--json"
    ).json()
    assert record["tokens_equal"] is True
    accepted = record["speculative"]["accepted"]
    assert accepted == {"bigram": 6, "always-right": 6, "always-wrong": 0}.get(draft, accepted)


def test_decode_takes_seeds_and_noise(cli: Cli) -> None:
    def run(*args: str) -> tuple[list[int], list[int]]:
        args = ("decode", "--model", "random", "-n", "5", "-k", "5", "--json", *args)
        record = cli(*args).json()
        assert record["tokens_equal"] is True
        return record["plain"]["tokens"], record["speculative"]["accepted_per_position"]

    tokens, accepted = run()
    assert run("--model-seed", "2")[0] != tokens
    first, second = (run("--draft-noise", "20", "--draft-seed", seed) for seed in ("1", "4"))
    assert first[0] == second[0] == tokens
    assert len({str(accepted), str(first[1]), str(second[1])}) == 3


def test_decode_takes_the_bigram_of_a_checkpoint(cli: Cli, checkpoints: Path) -> None:
    good = ("decode", "--model", checkpoints / "good", "--prompt", "abc", "-n", "5", "--json")
    one, two = cli(*good, "--draft", checkpoints / "good").json(), cli(*good).json()
    assert one.pop("settings") == {**two.pop("settings"), "draft": str(checkpoints / "good")}
    assert without_head(one) == without_head(two)


def test_decode_makes_a_draft_for_a_checkpoint_without_one(cli: Cli, checkpoints: Path) -> None:
    record = cli(
        "decode", "--model", checkpoints / "unbounded", "--prompt", "abc", "-n", "5", "--json"
    ).json()
    assert record["tokens_equal"] is True


@pytest.mark.parametrize("k", ["5", "1000000000000"])
def test_more_guesses_than_there_is_room_for_are_no_error(
    k: str, cli: Cli, checkpoints: Path
) -> None:
    record = cli(
        "decode", "--model", checkpoints / "good", "--prompt", "a" * 22, "-k", k, "--json",
        "--draft", "always-right",
    ).json()  # fmt: skip
    assert record["plain"]["stop_reason"] == "context"
    assert len(record["speculative"]["tokens"]) == 3
    assert record["speculative"]["blocks"] == 1


def test_decode_stops_after_the_stop_token(cli: Cli) -> None:
    record = cli("decode", "--model", "structured", "--stop-token", "4", "--json").json()
    assert record["speculative"]["tokens"] == [3, 2, 13, 4]
    assert record["speculative"]["stop_reason"] == "stop"


def test_decode_of_nothing(cli: Cli) -> None:
    record = cli("decode", "--model", "random", "-n", "0", "--json").json()
    assert record["plain"]["tokens"] == record["speculative"]["tokens"] == []
    assert (record["plain"]["programs"], record["speedup"]) == (0, 1.0)


def test_decode_streams_the_text_and_then_a_table(cli: Cli, checkpoints: Path) -> None:
    args = ("decode", "--model", checkpoints / "good", "--prompt", "bad", "-n", "6")
    text = cli(*args, "--json").json()["plain"]["text"]
    result = cli(*args)
    assert (result.code, result.err) == (0, "")
    assert f"[plain] bad{text}\n" in result.out
    assert f"[speculative] bad{text}\n" in result.out
    assert "mean acceptance length" in result.out
    assert "The tokens are equal; speculative decoding took" in result.out


def test_decode_without_a_model_is_the_packaged_one_on_its_prompt(cli: Cli) -> None:
    result = cli("decode", "-n", "2", "-k", "1")
    assert result.code == 0 and "[plain] A list of" in result.out


def test_decode_fails_when_tokens_differ(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capra.spec_decode.decode.count_accepted", lambda guesses, _: len(guesses))
    result = cli("decode", "--model", "random", "-n", "9", "--draft", "always-wrong")
    assert result.code == 1
    assert "The tokens are NOT EQUAL" in result.out


def test_decode_certifies_both_runs(cli: Cli, checkpoints: Path) -> None:
    good = ("decode", "--model", checkpoints / "good", "--prompt", "bad", "-n", "4")
    args = (*good, "--draft", "always-right", "-k", "3", "--certify")
    record = cli(*args, "--json").json()
    certificate = record["certificate"]
    plain, speculative = certificate["plain"], certificate["speculative"]
    assert (certificate["equal"], certificate["first_difference"]) == (True, None)
    assert certificate["rows"] == len(plain["rows"]) == 2 + 4
    assert plain["rows"] == speculative["rows"] and plain["digest"] == speculative["digest"]
    line = cli(*args).out.splitlines()[-1]
    assert line == (
        "certificate: 6 rows, every integer of logits, keys and values equal; digest "
        f"{plain['digest']}."
    )
    without = cli(*args[:-1], "--json").json()
    del record["certificate"]
    assert without_head(without) == without_head(record)


def test_decode_fails_when_integers_differ_under_equal_tokens(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = ChipTarget.run

    def wrong(*args: Any) -> Execution:
        execution = right(*args)
        if args[1] == "verify":
            execution.outputs["l0.v"][0, 5] ^= 1
        return execution

    monkeypatch.setattr(ChipTarget, "run", wrong)
    args = ("decode", "--model", "random", "-n", "2", "-k", "1", "--draft", "always-right")
    assert cli(*args).code == 0, "the tokens alone do not tell"
    result = cli(*args, "--certify", "--json")
    record = json.loads(result.out)
    assert (result.code, record["tokens_equal"]) == (1, True)
    assert result.err == (
        "error: speculation changed the integers of a row, expected those of plain decoding\n"
    )
    assert record["certificate"]["equal"] is False
    found = record["certificate"]["first_difference"]
    assert (found["position"], found["part"], found["element"]) == (0, "l0.v", 5)
    text = cli(*args, "--certify")
    assert text.code == 1
    assert text.out.splitlines()[-1] == (
        f"certificate: NOT EQUAL at position 0 of 2: l0.v[5] is {found['speculative']} in the "
        f"speculative run, expected {found['plain']}."
    )


def test_table_and_grid_have_the_promised_keys(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        "NEW_TOKENS": 2, "TABLE": (("structured", ((0.0, 3),)),),
        "GRID_KS": (1, 2), "GRID_NOISES": (0.0,),
    }  # fmt: skip
    for name, value in small.items():
        monkeypatch.setattr(f"capra.lab.experiments.{name}", value)
    runs = cli("table", "--json").json()
    assert list(runs) == [*HEAD, "optimize", "runs"] and len(runs["runs"]) == 2
    cost = {"programs", "cycles", "cycles_by_unit", "cycles_by_phase"}
    assert cost | {"model", "decode", "tokens_equal"} == set(runs["runs"][0])
    assert cost | {
        "model", "draft_noise", "k", "accepted", "proposed", "blocks", "speedup", "tokens_equal",
    } <= set(runs["runs"][1])  # fmt: skip
    cells = cli("grid", "--json").json()
    assert list(cells) == [*HEAD, "optimize", "cells"] and len(cells["cells"]) == 2
    assert {"draft_noise", "k", "acceptance_rate", "speedup", "cycles", "blocks"} <= set(
        cells["cells"][0]
    )
    assert "structured" in cli("table").out and "k = 2" in cli("grid").out


def test_eval_reports_what_int8_costs(cli: Cli, checkpoints: Path) -> None:
    args = ("eval", "--model", checkpoints / "good", "--windows", "2")
    record = cli(*args, "--json").json()
    assert record["model"] == "sample" and record["windows"] == 2
    chip, exact = record["chip_bits_per_character"], record["float_bits_per_character"]
    assert record["chip_over_float"] == chip / exact
    assert 0 < record["greedy_agreement"] < 1
    assert record["greedy_texts"]["characters"] == 9
    assert len(record["greedy_texts"]["common_prefixes"]) == 2
    errors = record["tensor_errors"]
    assert errors["windows"] == 2
    assert set(errors["tensors"]) == set(text_model().ranges.values)
    assert errors["tensors"]["logits"].keys() == {"relative_l2", "largest_steps"}
    text = cli(*args).out
    assert f"{chip:.3f}" in text and f"{errors['tensors']['logits']['relative_l2']:.2%}" in text


def test_a_record_takes_no_time_for_what_it_does_not_need() -> None:
    code = (
        "import gc, sys; from capra.cli import main; before = gc.get_stats()[0]['collections']\n"
        "try: main()\n"
        "finally: print(sorted({'matplotlib', 'pydantic', 'rich'} & set(sys.modules)),"
        " gc.get_stats()[0]['collections'] - before)"
    )
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code, "table", "--json"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    record, loaded, collections = done.stdout.rpartition("\n[")[0], *done.stdout.split()[-2:]
    assert json.loads(record)["kind"] == "table"
    assert loaded == "[]", "importing them takes as long as a run"
    assert int(collections) < 20, "the collector looks through programs that live"


def test_there_are_no_progress_bars_without_a_terminal(checkpoints: Path) -> None:
    result = _script("eval", "--model", str(checkpoints / "good"), "--windows", "3")
    assert (result.code, result.err) == (0, "")


@pytest.mark.parametrize("name", PASSES)
def test_compile_prints_the_state_after_a_pass(
    name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("compile", "--model", "random", "-m", "3", "-c", "4", "--emit", name)
    assert (result.code, result.err) == (0, "")
    assert "l0.attn" in result.out or name == "buffers"
    assert len(result.out.splitlines()) > 20
    assert list(tmp_path.iterdir()) == []


def test_the_printed_graph_is_the_models(cli: Cli) -> None:
    shape = ("--model", "random", "-m", "3", "-c", "4", "-O0")
    out = cli("compile", *shape, "--emit", "graph").out
    assert list(parse_graph(out)) == list(verifier_graph(tiny("random", 1).config, 3, 4))


@pytest.mark.parametrize(("rows", "name"), [(1, "step_c4"), (3, "verify_m3_c4")])
def test_compile_writes_the_program_that_decoding_runs(
    rows: int, name: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli("compile", "--model", "random", "-m", rows, "-c", 4)
    assert (result.code, result.out) == (0, "")
    program = load_program(tmp_path / f"{name}.ga2")
    role = "step" if rows == 1 else "verify"
    target = ChipTarget(tiny("random", 1), optimize=O1)
    assert program == target.program(role, rows, 4)  # type: ignore[arg-type]
    assert f"{name}.ga2: {program.cycles:,} cycles" in result.err


def test_a_level_is_its_passes_and_zero_is_the_recorded_programs(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "program"

    def compiled(level: str) -> Program:
        cli("compile", "--model", "random", "-m", "4", "-c", "4", "-O", level, "-o", path)
        return load_program(path)

    assert compiled("0").cycles == 12330
    assert compiled("1") == compiled(",".join(reversed(OPTIMIZATIONS)))
    alone = [compiled(name).cycles for name in OPTIMIZATIONS[:4]]
    assert alone[1] == 12330 > max(alone[0], alone[2], alone[3])  # nothing hides without blocks


@pytest.mark.parametrize("level", ["2", "", "-1", "block-attention,", "blocks"])
@pytest.mark.parametrize("command", ["compile", "decode", "certify", "table", "grid"])
def test_an_unknown_level_is_refused(command: str, level: str, cli: Cli) -> None:
    result = cli(command, "-O", level)
    assert result.code != 0 and result.out == ""
    assert f"-O is {level!r}, expected 0 or 1, or names" in result.err


def test_decode_guesses_no_token_behind_the_last(cli: Cli) -> None:
    args = ("decode", "--model", "structured", "-n", "6", "-k", "3", "--json", "-O")
    recorded, optimized = (cli(*args, level).json()["speculative"] for level in ("0", "1"))
    assert recorded["proposed"] == 6 and optimized["proposed"] == 3 + 1
    assert optimized["tokens"] == recorded["tokens"]
    assert optimized["cycles"] < recorded["cycles"]


def test_certify_certifies_the_programs_of_a_level(cli: Cli) -> None:
    args = ("certify", "--model", "random", "--max-context", "3", "--max-rows", "5",
            "--instructions", "--json", "-O")  # fmt: skip
    recorded, optimized = (cli(*args, level).json() for level in ("0", "1"))
    assert recorded["certified"] and optimized["certified"]
    assert (recorded["optimize"], optimized["optimize"]) == ([], list(OPTIMIZATIONS))
    assert optimized["programs"] == recorded["programs"]
    assert optimized["digest"] == recorded["digest"]


def test_a_disassembly_can_be_assembled_again(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "program"
    shape = ("--model", "random", "-m", "4", "-c", "4", "-O", "0")
    cli("compile", *shape, "-o", path, "--emit", "emission")
    program, out = load_program(path), cli("dis", path).out
    assert assemble(out) == program.instructions
    assert out.endswith(disassemble(program.instructions))
    assert "; program verify_m4_c4: 12330 cycles" in out
    for slot in program.external:
        assert f"; {slot.kind} {slot.name} {slot.rows}x{slot.cols} at {slot.address}\n" in out


def test_train_writes_what_was_trained(
    cli: Cli, checkpoints: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with safe_open(checkpoints / "good", framework="numpy") as file:
        header = json.loads(file.metadata()["capra"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    made_on_saving = ("ranges", "digest", "header_digest")
    config = {key: value for key, value in header.items() if key not in made_on_saving}
    asked: list[tuple[int, int]] = []

    def trained(*, seed: int, steps: int, progress: Callable[[int, int, float], None]) -> Any:
        asked.append((seed, steps))
        progress(1, steps, 2.0)
        return TrainedModel(config, tensors, header["ranges"])

    monkeypatch.setattr("capra.lm.train.train", trained)
    result = cli("train", "-o", tmp_path / "new", "--seed", "4", "--steps", "7")
    assert (result.code, result.err) == (0, f"wrote {tmp_path / 'new'}\n")
    assert asked == [(4, 7)]
    assert (tmp_path / "new").read_bytes() == (checkpoints / "good").read_bytes()


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141)])
def test_what_stops_a_command_from_outside(
    error: type[BaseException], code: int, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(**_: object) -> None:
        raise error

    null = os.open(os.devnull, os.O_WRONLY)
    monkeypatch.setattr("capra.cli.app.app", stop)
    monkeypatch.setattr("sys.stdout.fileno", lambda: null, raising=False)
    assert cli() == Result(code, "", "")
    os.close(null)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "args",
    [["--version"], ["compile", "--model", "random", "--emit", "tiles"], ["table"]],
    ids=["flushed at the end", "printed", "drawn by rich"],
)
def test_a_reader_that_goes_ends_a_command_quietly(args: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(  # noqa: S603
        [SCRIPT, *args], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("way", ["module", "script"])
def test_ctrl_c_while_the_command_is_imported_ends_it_quietly(way: str, tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    module, name = project["project"]["scripts"]["capra"].split(":")
    ways = {"module": ["-m", "capra"], "script": ["-c", f"from {module} import {name}; {name}()"]}
    path = os.pathsep.join((str(tmp_path), str(Path(capra.__file__).parents[1])))
    done = subprocess.run(  # noqa: S603
        [sys.executable, *ways[way], "--version"], capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_the_package_is_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["capra", "--nothing"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module("capra", run_name="__main__")
    assert stopped.value.code == 2


def test_certify_says_how_long_its_default_takes(cli: Cli) -> None:
    shown = " ".join(cli("certify", "--help").out.split())
    assert "All of pydoc, the default, takes minutes" in shown


@pytest.mark.full
def test_certify_says_what_was_certified(cli: Cli, checkpoints: Path) -> None:
    args = [
        "certify",
        "--model",
        str(checkpoints / "good"),
        "--max-context",
        "2",
        "--max-rows",
        "2",
    ]
    record = cli(*args, "--instructions", "--json").json()
    assert record["certified"] and record["failure"] is None
    assert record["graphs"] == record["programs"] == {"step": 18, "verify": 6, "prefill": 48}
    assert record["program_caches"] == [0, 1, 2] and record["chip"]["operand_depth"] == 256
    assert "programs of blocks at caches 0 1 2" in cli(*args, "--instructions").out
    first = "sample, caches of 0 .. 2, 1 .. 2 rows: "
    whole = cli(*args, "--instructions").out
    assert whole.startswith(f"{first}graphs and programs certified\n")
    assert record["programs_covered"] == "all caches"
    shown = cli(*args, "--graphs-only").out
    assert record["digest"] in shown
    assert shown.startswith(
        f"{first}graphs certified; programs not checked (--instructions checks them)\n"
    )
    without = cli(*args, "--graphs-only", "--json").json()
    assert without["programs"] == {} and without["digest"] == record["digest"]
    assert without["programs_covered"] == "none"


def test_certify_checks_the_programs_of_any_small_model(cli: Cli, checkpoints: Path) -> None:
    shown = cli("certify", "--model", checkpoints / "good", "--max-context", 2, "--max-rows", 2)
    assert "1 .. 2 rows: graphs and programs certified" in shown.out


def test_certify_says_that_some_caches_are_not_covered(cli: Cli, checkpoints: Path) -> None:
    args = ("certify", "--model", checkpoints / "good", "--max-context", "9", "--max-rows", "1",
            "--instructions", "--caches", "2")  # fmt: skip
    record = cli(*args, "--json").json()
    assert (record["programs_covered"], record["program_caches"]) == (
        "some caches", [0, 5, 6, 7, 8, 9],  # of 1 .. 16 rows in a context of 24
    )  # fmt: skip
    assert cli(*args).out.startswith(
        "sample, caches of 0 .. 9, 1 .. 1 rows: graphs certified; programs certified at 6 caches, "
        "not checked at the others\n"
    )


def test_certify_checks_the_programs_of_a_tiny_model_unless_told_otherwise(cli: Cli) -> None:
    args = ("certify", "--model", "random", "--max-context", "2", "--max-rows", "2", "--json")
    assert cli(*args).json()["programs_covered"] == "all caches"
    assert cli(*args, "--caches", "1").json()["programs_covered"] == "all caches"  # 3 remainders
    alone = cli(*args, "--graphs-only").json()
    assert (alone["programs_covered"], alone["programs"]) == ("none", {})
    _assert_refused(cli(*args, "--graphs-only", "--caches", "2"), "2 without programs, expected")


def test_certify_refuses_a_compiler_whose_masks_are_wrong(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Visible, "runs", lambda visible, _row: [(0, visible.keys)])
    args = ("certify", "--model", "random", "--max-context", "2", "--max-rows", "2")
    result = cli(*args)
    assert result.code == 1 and "1 .. 2 rows: NOT CERTIFIED\n" in result.out
    assert "verify_m2_c0: the program differs" in result.err


def test_certify_refuses_verifiers_with_scales_of_their_own(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def own_scales(self: ChipTarget, graph: Graph) -> Scales:
        factor = 1.0 if graph.name.startswith("step") else 1.5
        ranges = self.model.ranges.values.items()
        return assign_scales(graph, Ranges({tag: value * factor for tag, value in ranges}))

    monkeypatch.setattr(ChipTarget, "scales", own_scales)
    result = cli("certify", "--model", "random", "--max-context", "2", "--max-rows", "2", "--json")
    record = json.loads(result.out)
    assert result.code == 1 and not record["certified"]
    assert record["failure"]["program"] == "verify_m1_c0"
    assert result.err.startswith("error: not certified: verify_m1_c0: row 0 of l0.k differs")
