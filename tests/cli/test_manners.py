"""What the commands print the same way: tables, progress, a text while it is made."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.table import Table
from tests.command import Cli
from tests.lm.samples import text_model

from capra.cli.output import print_table
from capra.lm.checkpoint import save_checkpoint

SCRIPT = Path(sys.executable).with_name("capra")


@pytest.mark.parametrize("columns", ["5", "30", "80"])
def test_no_cell_of_a_table_is_cut_or_broken(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    table = Table("cycles", "accepted / proposed", "a name", box=None)
    cells = ("268,346,123,456,789", "24 / 24 of some", "l0.h1.probs.r2 of verify_m3_c2")
    table.add_row(*cells)
    print_table(table)
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["cycles", "accepted", "/", "proposed", "a", "name"]
    assert all(cell in row for cell in cells)


def test_a_table_is_the_same_on_any_terminal(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def table_at(columns: int) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        return cli("trace", "--model", "random", "-n", "4").out

    assert table_at(20) == table_at(80)


@pytest.mark.parametrize(
    "command",
    [
        ("plan", "--max-k", "2", "-n", "3"),
        ("plan", "--max-k", "2", "-n", "3", "--measure", "all"),
        ("plan", "--max-k", "2", "-n", "100", "--measure", "none"),
        ("plan", "--max-k", "2", "-n", "3", "--acceptance", "0.5"),
        ("plan", "--max-k", "2", "-n", "3", "--synthetic-acceptance", "0.5"),
        ("plan", "--max-k", "2", "-n", "3", "--synthetic-acceptance", "0.5", "--measure", "none"),
        ("serving", "-n", "2", "--runs", "1"),
        ("decode", "-n", "3", "--json"),
        ("decode", "-n", "1000000", "--json"),
        ("trace", "-n", "1000"),
        ("certify", "--max-context", "2", "--max-rows", "2"),
        ("certify", "--max-context", "2", "--max-rows", "2", "--instructions"),
    ],
    ids=" ".join,
)
def test_progress_ends_at_its_total(
    command: tuple[str, ...], cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bars: list[dict[str, int | None]] = []

    @contextmanager
    def counting(
        _what: str, total: int | None, *, hidden: bool = False
    ) -> Iterator[Callable[..., None]]:
        bar: dict[str, int | None] = {"done": 0, "total": total}
        bars.append(bar)

        def advance(new_total: int | None = None, count: int = 1) -> None:
            assert isinstance(bar["done"], int)
            bar["done"] += count
            bar["total"] = new_total or bar["total"]

        yield advance

    for module in ("plan", "lab", "decode", "certify"):
        monkeypatch.setattr(sys.modules[f"capra.cli.{module}"], "progress_bar", counting)
    model = tmp_path / "model"
    save_checkpoint(text_model(), model, {})
    first, *rest = command
    prompt = () if first == "certify" else ("--prompt", "abc")
    result = cli(first, "--model", model, *prompt, *rest)
    assert result.code == 0, result.err
    (bar,) = bars
    assert bar["done"] == bar["total"] and bar["total"]


def test_a_text_is_printed_while_it_is_made() -> None:
    """Through a pipe, without -u: the first token is there long before the last."""
    command = [str(SCRIPT), "decode", "-n", "40", "--prompt", "The "]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as running:  # noqa: S603
        assert running.stdout is not None
        begin = b""
        while len(begin) < len(b"\n[plain] The ") + 1:
            piece = running.stdout.read(1)
            assert piece
            begin += piece
        assert running.poll() is None
        rest = running.stdout.read()
    assert begin.startswith(b"\n[plain] The ") and b"[speculative] The " in rest
    assert running.returncode == 0
