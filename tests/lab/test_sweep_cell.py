"""Cells: the same figures as capra decode, refusals as rows, nothing left of the cell before."""

import inspect
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.lm.samples import text_model

from capra.cli import main
from capra.cli.decode import decode
from capra.errors import CheckpointError, SweepError
from capra.files import digests
from capra.lab.sweep import cell as module
from capra.lab.sweep.cell import COLUMNS, PARAMETERS, RESULTS, Cell, CellRunner
from capra.lm.checkpoint import save_checkpoint
from capra.lm.model import LanguageModel

QUICK = Cell(model="random", model_seed=3, start_token=2, max_new_tokens=9, draft_noise=2.0, k=2)


def test_the_defaults_are_those_of_capra_decode() -> None:
    options = inspect.signature(decode).parameters
    names = {"k": "num_speculative_tokens"}
    cell = asdict(Cell())
    shared = {name for name in cell if names.get(name, name) in options}
    assert set(cell) - shared == {"operand_depth", "program_entries"}
    for name in shared:
        assert cell[name] == options[names.get(name, name)].default, name


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "cell",
    [
        QUICK,
        replace(QUICK, draft="always-wrong", scratchpad_words=2048),
        replace(QUICK, model="pydoc", start_token=None, prompt="is ", max_new_tokens=3),
        replace(QUICK, k=0),
    ],
)  # fmt: skip
def test_a_cell_is_what_capra_decode_runs(
    cell: Cell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {name: value for name, value in asdict(cell).items() if value is not None}
    options["num_speculative_tokens"] = options.pop("k")
    words = [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]
    monkeypatch.setattr("sys.argv", ["capra", "decode", *words, "--json"])
    with pytest.raises(SystemExit, match="0"):
        main()
    record = json.loads(capsys.readouterr().out)
    plain, speculative = record["plain"], record["speculative"]
    row = CellRunner({}).run(cell)
    assert row["refusal"] is None
    assert row["tokens_equal"] is record["tokens_equal"] is True
    assert (row["speedup"], row["decode_speedup"]) == (record["speedup"], record["decode_speedup"])
    assert (row["plain_cycles"], row["plain_programs"]) == (plain["cycles"], plain["programs"])
    assert row["new_tokens"] == len(speculative["tokens"])
    assert row["prefill_cycles"] == speculative["prefill"]["cycles"]
    assert json.loads(str(row["accepted_per_position"])) == speculative["accepted_per_position"]
    for unit in ("matrix", "dma", "vector", "control"):
        assert row[f"{unit}_cycles"] == speculative["cycles_by_unit"][unit]
        assert row[f"plain_{unit}_cycles"] == plain["cycles_by_unit"][unit]
    for name in (
        "stop_reason", "programs", "cycles", "draft_cycles", "target_cycles", "blocks", "proposed",
        "accepted", "acceptance_rate", "mean_acceptance_length",
    ):  # fmt: skip
        assert row[name] == speculative[name], name


def test_a_row_has_the_types_of_its_columns() -> None:
    row = {"key": "", **asdict(QUICK), **CellRunner({}).run(QUICK)}
    assert list(row) == list(COLUMNS)
    for name, kind in COLUMNS.items():
        assert row[name] is None or type(row[name]) is kind, name
    assert PARAMETERS["external_words"] is int and PARAMETERS["prompt"] is str


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"external_words": 2000}, r"external memory needs \d+ words .* at most 2000"),
        ({"start_token": 16}, r"start token is 16, expected 0 \.\. 15"),
        ({"start_token": None, "prompt": "a"}, "the prompt is 'a', but model random has no text"),
    ],
)  # fmt: skip
def test_a_refusal_is_a_row(change: dict[str, Any], sentence: str) -> None:
    row = CellRunner({}).run(replace(QUICK, **change))
    assert re.search(sentence, str(row["refusal"]))
    assert set(row) == set(RESULTS)
    assert all(row[name] is None for name in RESULTS if name != "refusal")


@pytest.mark.parametrize("field", ["model", "draft"])
def test_a_file_that_changed_is_no_refusal_of_its_cell(field: str, tmp_path: Path) -> None:
    """Replaced by a good file or a damaged one, or gone; and the same file again is a row."""
    file, steady = tmp_path / "mine.safetensors", tmp_path / "steady.safetensors"
    for path in (file, steady):
        save_checkpoint(text_model(), path, {})
    content, files = file.read_bytes(), digests([str(file), str(steady)])
    names = {"model": str(steady), "draft": "bigram", field: str(file)}
    cell = Cell(**names, max_new_tokens=2, prompt="ab", k=1)  # type: ignore[arg-type]
    row = CellRunner(files).run(cell)
    assert row["refusal"] is None
    refused = replace(cell, prompt="no such text")
    assert CellRunner(files).run(refused)["refusal"]
    other = replace(text_model(), bigram=np.zeros((12, 12)))
    kept = CellRunner(files)
    assert kept.run(cell) == row
    for change, sentence in (
        (lambda: save_checkpoint(other, file, {}), r"has the digest \w{32}, expected \w{32} as"),
        (lambda: file.write_bytes(content[:-1]), "the file was whole when|has the digest"),
        (file.unlink, "cannot be read, expected"),
    ):
        change()
        for each, runner in ((cell, CellRunner(files)), (refused, CellRunner(files)), (cell, kept)):
            with pytest.raises(SweepError, match=sentence):
                runner.run(each)
    file.write_bytes(content)
    assert CellRunner(files).run(cell) == row


def test_a_checkpoint_that_is_damaged_while_it_is_read_is_no_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be whole again when its digest is taken."""

    def load(name: str, _seed: int) -> LanguageModel:
        raise CheckpointError(f"{name} is half a file")

    monkeypatch.setattr(module, "load_model", load)
    with pytest.raises(SweepError, match="mine is half a file; the file was whole when the sweep"):
        CellRunner({}).run(replace(QUICK, model="mine"))


@pytest.mark.full
def test_a_row_does_not_depend_on_the_cells_before_it() -> None:
    """Neither on their targets nor on their random drafts."""
    cells = [
        replace(QUICK, draft="random"),
        replace(QUICK, draft="random", k=3),
        replace(QUICK, draft="random", start_token=4),
        replace(QUICK, draft="random", draft_seed=2),
        replace(QUICK, external_words=2000),
        replace(QUICK, model_seed=4),
        replace(QUICK, draft="random", max_new_tokens=5),
        QUICK,
    ]
    alone = [CellRunner({}).run(cell) for cell in cells]
    runner = CellRunner({})
    assert [runner.run(cell) for cell in cells] == alone
    assert [runner.run(cell) for cell in reversed(cells)] == alone[::-1]
    assert len({json.dumps(row) for row in alone}) > len(cells) // 2
