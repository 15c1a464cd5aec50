"""The experiments: which runs they make; what comes out is in tests/system."""

from typing import Any

import pytest

from capra.lab import experiments
from capra.lab.experiments import grid_cells, table_runs

COST_KEYS = {"programs", "cycles", "cycles_by_unit", "cycles_by_phase"}
PLAIN_KEYS = COST_KEYS | {"model", "decode", "tokens_equal"}
CELL_KEYS = COST_KEYS | {
    "draft_noise", "k", "accepted", "proposed", "blocks", "acceptance_rate", "speedup",
    "resident_speedup",
    "tokens_equal",
}  # fmt: skip


@pytest.fixture(autouse=True)
def few_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "NEW_TOKENS", 5)


def test_the_table_is_a_plain_run_and_its_speculative_ones_per_model() -> None:
    seen: list[dict[str, Any]] = []
    runs = table_runs(seen.append)
    assert runs == seen and len(runs) == experiments.RUNS
    assert [(run["model"], run.get("draft_noise"), run.get("k")) for run in runs] == [
        ("structured", None, None), ("structured", 0, 3), ("structured", 3, 3),
        ("structured", 4, 3), ("random", None, None), ("random", 0, 1), ("random", 0, 3),
    ]  # fmt: skip
    for run in runs:
        assert sum(run["cycles_by_phase"].values()) == run["cycles"]
        assert set(run) == (PLAIN_KEYS if "decode" in run else CELL_KEYS | {"model"})
        assert run["tokens_equal"] is True
        assert run.get("proposed") != 0, "a speculative run proposes something"


def test_the_grid_is_every_noise_with_every_k() -> None:
    seen: list[dict[str, Any]] = []
    cells = grid_cells(seen.append)
    assert cells == seen and len(cells) == experiments.CELLS
    expected = [(noise, k) for noise in (0, 3, 4, 5, 6) for k in (1, 2, 3, 4, 5)]
    assert [(cell["draft_noise"], cell["k"]) for cell in cells] == expected
    assert all(set(cell) == CELL_KEYS and cell["tokens_equal"] for cell in cells)
    assert all(cell["proposed"] for cell in cells)


def test_a_fractional_noise_is_reported_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "GRID_NOISES", (0.5,))
    monkeypatch.setattr(experiments, "GRID_KS", (1,))
    assert grid_cells()[0]["draft_noise"] == 0.5
