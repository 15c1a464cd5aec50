"""Rows as CSV: what is read is what was written, whatever the texts hold."""

import csv
import io
from pathlib import Path

import pytest

from capra.lab.sweep.cell import COLUMNS, Row
from capra.lab.sweep.export import write_csv

TEXTS = [
    "a\rb", "a\r\nb", "a\nb", "\r", "\n", 'a"b', '"', "a,b", "a\0b", "\0", " a ", "\x85\u2028", "é",
    "#", 'x\r"y",\n',
]  # fmt: skip


def row(**values: str | float | bool | None) -> Row:
    return {**dict.fromkeys(COLUMNS), "key": "k", **values}


@pytest.mark.parametrize("text", TEXTS, ids=repr)
@pytest.mark.parametrize("newline", ["", None], ids=["as it is", "line ends made one"])
def test_a_text_is_read_as_it_was_written(text: str, newline: str | None, tmp_path: Path) -> None:
    """Also by who takes every kind of line end for one: no row falls apart."""
    path = tmp_path / "rows.csv"
    write_csv([row(prompt=text, refusal=text), row(prompt="next")], path)
    with path.open(newline=newline, encoding="utf-8") as file:
        first, second = csv.DictReader(file, strict=True)
    expected = text if newline == "" else text.replace("\r\n", "\n").replace("\r", "\n")
    assert first["prompt"] == first["refusal"] == expected
    assert second["prompt"] == "next"


def test_a_text_with_a_carriage_return_stands_in_quotes(tmp_path: Path) -> None:
    write_csv([row(prompt="a\rb")], tmp_path / "rows.csv")
    heading, line = (tmp_path / "rows.csv").read_bytes().decode().split("\n", 1)
    assert heading == ",".join(COLUMNS)
    assert ',"a\rb",' in line and line.endswith("\n") and "\r\n" not in line


def test_numbers_and_truths_are_exact(tmp_path: Path) -> None:
    write_csv([row(tokens_equal=True, speedup=0.1 + 0.2, k=3)], tmp_path / "rows.csv")
    (found,) = csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text()))
    assert (found["tokens_equal"], found["speedup"], found["k"]) == (
        "true", "0.30000000000000004", "3",
    )  # fmt: skip
    assert found["refusal"] == ""
