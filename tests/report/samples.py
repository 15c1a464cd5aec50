"""Records for the tests of reports, printed by the commands themselves, each once."""

import contextlib
import copy
import io
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from capra.cli.app import app

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
    """The speculative runs of the table as a grid of five cells, the random model's as noise 5."""
    cells = [run for run in table_record()["runs"] if "decode" not in run]
    for cell in cells:
        if cell.pop("model") == "random":
            cell["draft_noise"] = 5
    return {"kind": "grid", "cells": cells}


def profile_record() -> dict[str, Any]:
    """A verifier of two rows of the random model."""
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "verify.ga2"))
        model = ("--model", "random", "--rows", "2", "--cache", "3", "--output", file)
        with contextlib.redirect_stderr(io.StringIO()):
            app(["compile", *model], standalone_mode=False)
        return json.loads(printed("profile", file, "--json"))  # type: ignore[no-any-return]


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


RECORDS = {
    "decode": decode_record, "table": table_record, "grid": grid_record, "plan": plan_record,
    "bench": bench_record,
    "anatomy": anatomy_record, "causality": causality_record, "serving": serving_record,
    "profile": profile_record,
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
