"""Specs: the cells that they mean, their keys, and every mistake in one sentence."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.lab.sweeps import SPEC, sweep_of, write_spec
from tests.lm.samples import text_model

from capra.compiler.optimization import OPTIMIZATIONS
from capra.errors import CapraError, CheckpointError, InputError
from capra.lab.sweep.cell import Cell
from capra.lab.sweep.spec import load_sweep
from capra.lm.checkpoint import save_checkpoint


def test_a_grid_is_the_cross_product_with_the_last_field_fastest(tmp_path: Path) -> None:
    text = '[[grid]]\nk = [2, 1]\nmodel = ["random", "structured"]\ndraft_noise = [3, 0.5]'
    cells = [*sweep_of(tmp_path, text).cells.values()]
    assert cells == [
        Cell(model=model, draft_noise=noise, k=k)
        for model in ("random", "structured")
        for noise in (3.0, 0.5)
        for k in (2, 1)
    ]


def test_grids_follow_each_other_and_a_cell_of_both_is_one(tmp_path: Path) -> None:
    text = "[[grid]]\nk = [1, 2]\n[[grid]]\nk = [3, 2, 4]"
    assert [cell.k for cell in sweep_of(tmp_path, text).cells.values()] == [1, 2, 3, 4]


def test_an_empty_grid_is_the_default_cell(tmp_path: Path) -> None:
    assert [*sweep_of(tmp_path, "[[grid]]").cells.values()] == [Cell()]


def test_keys_depend_on_the_parameters_only(tmp_path: Path) -> None:
    assert [*sweep_of(tmp_path).cells] == [*sweep_of(tmp_path, SPEC + "\n# comment").cells]
    whole, real = ("[[grid]]\ndraft_noise = 3", "[[grid]]\ndraft_noise = 3.0")
    assert [*sweep_of(tmp_path, whole).cells] == [*sweep_of(tmp_path, real).cells]


def test_one_run_written_in_two_ways_is_one_cell(tmp_path: Path) -> None:
    zeros = sweep_of(tmp_path, "[[grid]]\ndraft_noise = 0.0\n[[grid]]\ndraft_noise = -0.0")
    assert list(zeros.cells) == [Cell().key({})]
    assert [str(cell.draft_noise) for cell in zeros.cells.values()] == ["0.0"]
    ways = [("1", ",".join(reversed(OPTIMIZATIONS))), ("unread-outputs,shared-zeros",) * 2]
    ways.append(("shared-zeros,unread-outputs", "unread-outputs,shared-zeros,unread-outputs"))
    text = "\n".join(f"[[grid]]\noptimize = '{way}'" for pair in ways for way in pair)
    cells = sweep_of(tmp_path, text + "\n[[grid]]\noptimize = '0'").cells.values()
    assert [cell.optimize for cell in cells] == ["1", "shared-zeros,unread-outputs", "0"]


@pytest.mark.parametrize("field", ["model", "draft"])
def test_another_content_of_a_file_makes_another_cell(field: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.safetensors"
    spec = f"[[grid]]\n{field} = '{path}'"
    keys = []
    for model in (text_model(), replace(text_model(), bigram=np.zeros((12, 12)))):
        save_checkpoint(model, path, {})
        keys += [*sweep_of(tmp_path, spec).cells]
    assert len(set(keys)) == 2
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError):
        sweep_of(tmp_path, spec)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "has no grid, expected at least one [[grid]] table"),
        ("grid = []", "has grid = [], expected at least one"),
        ("[grid]\nk = 1", "has grid = {'k': 1}, expected at least one [[grid]] table"),
        ("grid = [1]", "has grid = [1], expected"),
        ("k = 1\n[[grid]]", "has a key 'k', expected nothing but [[grid]] tables"),
        ("[[grid]]\nK = 1", "grid 1 has a key 'K', expected some of model, model_seed"),
        ("[[grid]]\n[[grid]]\nk = 'a'", "grid 2: k is 'a', expected a whole number"),
        ("[[grid]]\nk = true", "k is True, expected a whole number"),
        ("[[grid]]\nk = 1.0", "k is 1.0, expected a whole number"),
        ("[[grid]]\nk = [[1]]", "k is [1], expected a whole number"),
        ("[[grid]]\nk = []", "k is an empty list, expected at least one value"),
        ("[[grid]]\nk = [1, 2, 1]", "k has 1 twice, expected different values"),
        ("[[grid]]\ndraft_noise = [3, 3.0]", "draft_noise has 3.0 twice"),
        (f"[[grid]]\noptimize = ['1', '{','.join(OPTIMIZATIONS)}']", "optimize has '1' twice"),
        ("[[grid]]\nk = -1", "k is -1, expected a whole number of 0 .. 9223372036854775807"),
        ("[[grid]]\nmodel_seed = -1", "model_seed is -1, expected a whole number of 0 .. "),
        ("[[grid]]\ndraft_seed = [1, -1]", "draft_seed is -1, expected a whole number of 0 .. "),
        ("[[grid]]\nmodel_seed = 9223372036854775808", "is 9223372036854775808, expected a whole"),
        ("[[grid]]\nmodel = 1", "model is 1, expected a text"),
        ("[[grid]]\nmodel = 'nope'", "model is 'nope', expected structured, random, pydoc or an"),
        ("[[grid]]\ndraft = 'nope'", "draft is 'nope', expected bigram, constant, random"),
        ("[[grid]]\ndraft_noise = '3'", "draft_noise is '3', expected a number"),
        ("[[grid]]\ndraft_noise = -1", "draft_noise is -1, expected a number of 0 .. 1e+06"),
        ("[[grid]]\ndraft_noise = nan", "draft_noise is nan, expected a number of 0 .. 1e+06"),
        ("[[grid]]\nscratchpad_words = 1000", "scratchpad_words is 1000: scratchpad has 1000"),
        ("[[grid]]\noperand_depth = 1", "operand_depth is 1: operand memory has 1 entries"),
        ("[[grid]]\nprompt = 'a'\nstart_token = 1", "both prompt and start_token, expected one"),
        ("[[grid]", "is not a TOML file: "),
        (f"[[grid]]\nk = {'[' * 50_000}", "is nested too deeply, expected [[grid]] tables"),
    ],
)  # fmt: skip
def test_mistakes(text: str, part: str, tmp_path: Path) -> None:
    with pytest.raises(CapraError, match=re.escape(part)) as refusal:
        sweep_of(tmp_path, text)
    assert "\n" not in str(refusal.value)


def test_a_byte_order_mark_is_no_statement(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    cells = load_sweep(path).cells
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_sweep(path).cells == cells


def test_files_that_are_no_spec(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read .*missing.toml: No such file"):
        load_sweep(tmp_path / "missing.toml")
    path = write_spec(tmp_path)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="is not a TOML file: 'utf-8' codec"):
        load_sweep(path)


def test_a_grid_of_too_many_cells_is_refused_before_it_is_made(tmp_path: Path) -> None:
    axis = [*range(10_000)]
    text = f"[[grid]]\nmodel_seed = {axis}\ndraft_seed = {axis}\nk = {axis[:10]}"
    with pytest.raises(InputError, match="has 1,000,000,000 cells, expected at most 1,000,000"):
        sweep_of(tmp_path, text)


def test_the_example_has_at_least_500_cells() -> None:
    examples = Path(__file__).parents[2] / "examples"
    assert len(load_sweep(examples / "sweep-564.toml").cells) == 564
