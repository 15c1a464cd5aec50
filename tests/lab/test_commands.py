"""The lab on the command line: what its commands print, record and refuse."""

from pathlib import Path
from typing import Any

import pytest
from tests.command import Cli
from tests.lm.samples import chip_target, text_model

from capra.isa.program import save_program
from capra.lm.checkpoint import save_checkpoint
from capra.lm.target import ChipTarget
from capra.sim.device import Execution

QUICK = ("--start-token", 1, "--max-new-tokens", 4, "--max-k", 2)


@pytest.fixture(autouse=True)
def short_curve(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capra.lab.planner.CURVE_ROWS", 3)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "sample.safetensors"
    save_checkpoint(text_model(), path, {})
    return path


def test_trace_is_the_record_of_decode(cli: Cli, model: Path) -> None:
    args = ("--model", model, "-k", 2, "-n", 5, "--prompt", "abc", "--draft-noise", 1)
    for level in ("-O0", "-O1"):
        record = cli("trace", *args, level, "--json").json()
        decoded = cli("decode", *args, level, "--json").json()
        only = {"stop_token", "external_words", "scratchpad_words", "certify", "rtl"}
        assert decoded["settings"].keys() - record["settings"].keys() == only
        for each in (record, decoded):
            del each["command"], each["date"]
            each["settings"] = {k: v for k, v in each["settings"].items() if k not in only}
        assert record == decoded
    record = cli("trace", *args, "--json").json()
    assert record["optimize"] == []
    shown = cli("trace", *args)
    assert (shown.code, shown.err) == (0, "")
    blocks = record["speculative"]["trace"]
    lines = [line for line in shown.out.splitlines() if line[:1].isdigit()]
    assert len(lines) == len(blocks)
    assert "The tokens are equal" in shown.out


def test_anatomy_of_a_model_and_of_files(cli: Cli, model: Path, tmp_path: Path) -> None:
    record = cli("anatomy", "--model", model, "-m", 3, "-c", 2, "--json").json()
    assert record["model"] == "sample" and record["verifier"]["name"] == "verify_m3_c2"
    assert "3 steps" in cli("anatomy", "--model", model, "-m", 3, "-c", 2).out
    programs = [chip_target("text").program("step", 1, cache) for cache in (1, 4)]
    files = [tmp_path / f"{program.name}.ga2" for program in programs]
    for program, file in zip(programs, files, strict=True):
        save_program(program, file)
    record = cli("anatomy", *files, "--json").json()
    assert [each["cycles"] for each in record["programs"]] == [p.cycles for p in programs]
    assert f"{programs[1].cycles / programs[0].cycles:.2f}" in cli("anatomy", *files).out
    assert cli("anatomy", "-m", 1).code == 2


def test_causality_fails_when_it_does_not_hold(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "causality holds" in cli("causality").out
    record = cli("causality", "--json").json()
    assert record["holds"] and len(record["blocks"]) == 4
    record["holds"] = False
    monkeypatch.setattr("capra.lab.causality.causality", lambda: record)
    broken = cli("causality")
    assert broken.code == 1 and "FAILS" in broken.out
    assert broken.err == "error: a row depends on a token behind it, or not on one before it\n"


def test_serving_prints_both_tables(cli: Cli) -> None:
    shown = cli("serving", "--runs", 1, "--max-new-tokens", 2)
    assert (shown.code, shown.err) == (0, "")
    assert "c = 0.15 (assumed)" in shown.out and "(executed)" in shown.out
    assert "structured, 1 run of 2 tokens" in shown.out


def test_plan_of_a_draft(cli: Cli, model: Path) -> None:
    record = cli("plan", "--model", model, *QUICK, "--json").json()
    assert record["settings"]["draft"] == "bigram" and record["settings"]["max_k"] == 2
    assert record["acceptance_source"] == "measured" and record["new_tokens"] == 4
    assert [entry["measured"] is not None for entry in record["ks"]].count(True) == 1
    shown = cli("plan", "--model", model, *QUICK, "--measure", "all")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("Speculation ") and "rows m, 12 cached" in shown.out
    assert shown.out.count("+0.0%") >= 2, "the profile of both Ks is right"


def test_plan_of_one_token_makes_no_guess(cli: Cli, model: Path) -> None:
    shown = cli("plan", "--model", model, *QUICK, "-n", "1", "--measure", "none").out
    assert "This run, 1 token: no draft token is proposed, speculation changes nothing." in shown


def test_plan_measures_what_it_is_told(cli: Cli, model: Path) -> None:
    def measured(what: str) -> list[int]:
        record = cli("plan", "--model", model, *QUICK, "--measure", what, "--json").json()
        return [entry["k"] for entry in record["ks"] if entry["measured"]]

    assert (measured("none"), measured("2"), measured("2,1")) == ([], [2], [1, 2])


def test_plan_of_given_and_of_synthetic_acceptance(cli: Cli, model: Path) -> None:
    given = cli("plan", "--model", model, *QUICK, "--acceptance", "0.9,0.5", "--json").json()
    assert given["acceptance_source"] == "given" and given["draft_cycles"] > 0
    assert given["draft_cycles_assumed"] is False
    assert not any(entry["measured"] for entry in given["ks"])
    args = ("plan", "--model", model, *QUICK, "--synthetic-acceptance", "0.9,0.5")
    synthetic = cli(*args, "--measure", "all", "--synthetic-runs", 3, "--json").json()
    assert synthetic["acceptance_source"] == "synthetic" and synthetic["draft_cycles"] == 0
    assert synthetic["settings"]["draft"] == "synthetic" and synthetic["draft_cycles_assumed"]
    assert all(entry["measured"]["runs"] == 3 for entry in synthetic["ks"])
    assumed = cli(*args, "--draft-cycles", 99, "--measure", "none", "--json").json()
    assert assumed["draft_cycles"] == 99
    assert "99 cycles (assumed)" in cli(*args, "--draft-cycles", 99, "--measure", "none").out


def test_plan_looks_no_further_than_the_context_by_default(cli: Cli, model: Path) -> None:
    record = cli(
        "plan", "--model", model, "--prompt", "abc" * 7, "--measure", "none", "--json"
    ).json()
    assert len(record["ks"]) == 3 and record["new_tokens"] == 4


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--acceptance", "0.5", "--synthetic-acceptance", "0.5"), "expected one of them"),
        (("--draft-cycles", "5"), "--draft-cycles is 5.0 with a draft that is run"),
        (
            ("--acceptance", "0.5", "--draft-cycles", "-1"),
            "is -1.0, expected a number of 0 .. 1e+09",
        ),
        (("--acceptance", "0.5", "--draft-cycles", "1e10"), "expected a number of 0 .. 1e+09"),
        (("--acceptance", "0.5", "--draft-cycles", "nan"), "found 'nan', expected a number"),
        (("--acceptance", "0.5", "--draft-cycles", "2e9"), "expected a number of 0 .. 1e+09"),
        (("--acceptance", "0.5,1.5"), "the acceptance is 1.5, expected numbers of 0 .. 1"),
        (("--acceptance", ""), "--acceptance: found '', expected a number"),
        (("--synthetic-acceptance", "0.5,,0.3"), "--synthetic-acceptance: found '', expected a n"),
        (("--acceptance", "0.5", "--measure", "best"), "nothing can be run"),
        (("--measure", "3"), "--measure has 3, expected at most 2"),
        (
            ("--measure", "some"),
            "--measure: found 'some', expected a whole number of at least 1 (several with commas), "
            "best, all or none",
        ),
        (("--measure", "0"), "expected a whole number of at least 1"),
    ],
)
def test_plan_refuses(args: tuple[str, ...], message: str, cli: Cli, model: Path) -> None:
    result = cli("plan", "--model", model, *QUICK, *args)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ") and message in result.err


@pytest.mark.parametrize(
    "command",
    [
        ("table",),
        ("grid",),
        ("trace", "--model", "structured", "--draft", "always-right", "-n", "4"),
        ("decode", "--model", "structured", "--draft", "always-right", "-n", "4"),
        ("serving", "--model", "structured", "--runs", "1", "-n", "4"),
        ("plan", "--model", "structured", "--max-k", "2", "-n", "4"),
    ],
    ids=lambda command: command[0],
)
def test_changed_tokens_fail_every_command_that_compares_them(
    command: tuple[str, ...], cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A verifier whose choices are not those of the plain steps."""
    small = {
        "NEW_TOKENS": 2, "TABLE": (("structured", ((0.0, 3),)),),
        "GRID_KS": (1,), "GRID_NOISES": (0.0,),
    }  # fmt: skip
    for name, value in small.items():
        monkeypatch.setattr(f"capra.lab.experiments.{name}", value)
    right = ChipTarget.run

    def wrong(*args: Any) -> Execution:
        execution = right(*args)
        if args[1] == "verify":
            tokens = execution.outputs["token"]
            tokens[...] = (tokens + 1) % 16
        return execution

    monkeypatch.setattr(ChipTarget, "run", wrong)
    result = cli(*command, "--json")
    assert result.code == 1
    assert result.err == (
        "error: speculation changed the tokens, expected those of plain decoding\n"
    )
