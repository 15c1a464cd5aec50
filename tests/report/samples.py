"""Records for the tests of reports, printed by the commands themselves, each once."""

import contextlib
import copy
import io
import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.lm.samples import text_model

from capra.cli.app import app
from capra.lm.checkpoint import save_checkpoint

HOSTILE = "</script><img src=x onerror=alert(1)>&<!--{{data}}$x^2$"
"""Text that would run, or break a page or a label, where it is not taken as text."""


@cache
def printed(*arguments: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        app(list(arguments), standalone_mode=False)
    return out.getvalue()


def decode_record() -> dict[str, Any]:
    """A run of the structured model with a draft that is right now and then."""
    return json.loads(printed(  # type: ignore[no-any-return]
        "decode", "--model", "structured", "--draft-noise", "4", "-n", "12", "-k", "3", "--json"
    ))  # fmt: skip


def table_record() -> dict[str, Any]:
    """The table."""
    return json.loads(printed("table", "--json"))  # type: ignore[no-any-return]


def grid_record() -> dict[str, Any]:
    """The grid."""
    return json.loads(printed("grid", "--json"))  # type: ignore[no-any-return]


@cache
def _of_files(make: Callable[[Path], list[str]]) -> str:
    """What a command prints whose files are made in a folder of their own, made once."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stderr(io.StringIO()):
        return printed(*make(Path(folder)), "--json")


def _program(folder: Path) -> list[str]:
    file = str(folder / "verify.ga2")
    model = ("--model", "random", "--rows", "2", "--cache", "3", "--output", file)
    app(["compile", *model], standalone_mode=False)
    return ["profile", file]


def _spec(folder: Path) -> list[str]:
    spec = folder / "spec.toml"
    spec.write_text("[[grid]]\nmodel = 'random'\nmax_new_tokens = 2\nstart_token = [0, 99]\n")
    return ["sweep", str(spec), "--workers", "1"]


def _checkpoint(folder: Path) -> list[str]:
    file = folder / "small.safetensors"
    save_checkpoint(text_model(), file, {})
    return ["eval", "--model", str(file), "--windows", "2"]


def profile_record() -> dict[str, Any]:
    """A verifier of two rows of the random model."""
    return json.loads(_of_files(_program))  # type: ignore[no-any-return]


def plan_record() -> dict[str, Any]:
    """A plan of which two numbers of guesses were run."""
    return json.loads(printed(  # type: ignore[no-any-return]
        "plan", "--model", "structured", "--max-k", "5", "-n", "8", "--measure", "1,4", "--json"
    ))  # fmt: skip


def bench_record() -> dict[str, Any]:
    """Short runs from every token of the random model."""
    return json.loads(printed(  # type: ignore[no-any-return]
        "bench", "--model", "random", "-n", "3,6", "-k", "1,3", "--json"
    ))  # fmt: skip


def anatomy_record() -> dict[str, Any]:
    """A verifier of three rows of the random model, beside its steps and the draft."""
    return json.loads(printed("anatomy", "--rows", "3", "--json"))  # type: ignore[no-any-return]


def causality_record() -> dict[str, Any]:
    """The experiment."""
    return json.loads(printed("causality", "--json"))  # type: ignore[no-any-return]


def serving_record() -> dict[str, Any]:
    """Short runs, one a cell."""
    return json.loads(printed(  # type: ignore[no-any-return]
        "serving", "--runs", "1", "--max-new-tokens", "6", "--json"
    ))  # fmt: skip


def certify_record() -> dict[str, Any]:
    """Graphs and programs of the random model at two caches."""
    return json.loads(printed(  # type: ignore[no-any-return]
        "certify", "--model", "random", "--max-context", "1", "--max-rows", "2", "--instructions",
        "--json",
    ))  # fmt: skip


def sweep_record() -> dict[str, Any]:
    """One run and one refusal."""
    return json.loads(_of_files(_spec))  # type: ignore[no-any-return]


def eval_record() -> dict[str, Any]:
    """Two windows of a small text model."""
    return json.loads(_of_files(_checkpoint))  # type: ignore[no-any-return]


def replay_record() -> dict[str, Any]:
    """The profiled program, as if Verilator had replayed it: a test needs no simulator."""
    profile = profile_record()
    kept = ("capra", "date", "files", "program", "cycles", "cycles_by_unit", "cycles_by_phase")
    return {
        "kind": "replay", **{key: profile[key] for key in kept},
        "command": ["replay", profile["command"][1], "--json"],
        "settings": {"file": profile["command"][1], "rtl": "verilator", "seed": 1},
        "seed": 1,
        "rtl": {
            "verilator": {
                "programs": 1, "mismatches": 0, "cycles": profile["cycles"], "wall_seconds": 0.5,
                "version": "Verilator 5.006",
            }
        },
    }  # fmt: skip


RECORDS = {
    "decode": decode_record, "table": table_record, "grid": grid_record, "plan": plan_record,
    "bench": bench_record,
    "anatomy": anatomy_record, "causality": causality_record, "serving": serving_record,
    "profile": profile_record, "sweep": sweep_record, "certify": certify_record,
    "eval": eval_record, "replay": replay_record,
}  # fmt: skip


def hostile(record: dict[str, Any]) -> dict[str, Any]:
    """The decode or profile record with hostile text wherever it has text of a user's."""
    changed = copy.deepcopy(record)
    if record["kind"] == "decode":
        settings = changed["settings"]
        settings["model"] = settings["draft"] = HOSTILE
        settings["vocabulary"] = [HOSTILE for _ in settings["vocabulary"]]
    else:
        changed["program"] = HOSTILE
        for origin in changed["origins"]:
            origin["tensor"] = origin["text"] = HOSTILE
        for inst in changed["instructions"]:
            inst["text"] = HOSTILE
    return changed
