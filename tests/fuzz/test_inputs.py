"""Damaged and hostile input: one sentence or the same thing as before, soon, and in little memory.

CAPRA_FUZZ is the number of examples of each test. Time is that of the process, so that a busy
machine fails nothing.
"""

import json
import os
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.fuzz.mutations import damaged, nasty_words
from tests.isa.test_program import PROGRAM, forge, parts
from tests.lm.samples import text_model

from capra.cli import main
from capra.compiler.printer import print_program
from capra.errors import CapraError, GraphError, ProgramError
from capra.ir.text import parse_graph, print_graph
from capra.isa.assembler import assemble, disassemble
from capra.isa.encoding import to_words
from capra.isa.instruction import Instruction, instruction
from capra.isa.program import load_program, save_program
from capra.lm.checkpoint import load_checkpoint, save_checkpoint
from capra.lm.graphs import verifier_graph

EXAMPLES = int(os.environ.get("CAPRA_FUZZ", "60"))
fuzz = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SECONDS = 2.0
MEBIBYTES = 1500
"""Of addresses, most of which numpy's threads reserve and never touch."""


@contextmanager
def soon(seconds: float = SECONDS) -> Iterator[None]:
    begin = time.process_time()
    yield
    spent = time.process_time() - begin
    assert spent < seconds, f"took {spent:.1f} s, expected less than {seconds}"


# program files


@given(data=st.data())
@fuzz
def test_a_damaged_program_file_is_refused_or_the_same(data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / "program"
    save_program(PROGRAM, path)
    path.write_bytes(data.draw(damaged(path.read_bytes())))
    with soon(), suppress(ProgramError):
        assert load_program(path) == PROGRAM


@given(data=st.data())
@fuzz
def test_a_forged_program_file_is_refused_or_survives(data: st.DataObject, tmp_path: Path) -> None:
    """With a right checksum: then what is read is what is written and printed again."""
    path = tmp_path / "program"
    save_program(PROGRAM, path)
    body = data.draw(damaged(path.read_bytes()[:-4]))
    path.write_bytes(body + struct.pack("<I", zlib.crc32(body)))
    with soon():
        try:
            loaded = load_program(path)
        except ProgramError:
            return
        save_program(loaded, path)
        assert load_program(path) == loaded
        assert assemble(print_program(loaded)) == loaded.instructions


@pytest.mark.parametrize("name", ["a\nHALT", "a\r0: HALT", "a\u2028HALT", "\x85HALT", "\x1b[2J"])
def test_a_name_is_never_taken_for_code(name: str, tmp_path: Path) -> None:
    path = tmp_path / "program"
    save_program(PROGRAM, path)
    header, code = parts(path.read_bytes())
    header["name"] = header["external"][0]["name"] = name
    path.write_bytes(forge(header, code))
    text = print_program(load_program(path))
    assert assemble(text) == PROGRAM.instructions
    assert all(c.isprintable() or c == "\n" for c in text)


def large_program(path: Path, code: list[Instruction], slots: int = 0) -> None:
    save_program(PROGRAM, path)
    header, _ = parts(path.read_bytes())
    header["chip"] = {
        "external_words": 1 << 24, "scratchpad_words": 1 << 20, "operand_depth": 1 << 15,
        "program_entries": 1 << 20,
    }  # fmt: skip
    slot = {"kind": "input", "rows": 1, "cols": 1, "scale": None}
    header["external"] = [{**slot, "name": f"x{i}", "address": i} for i in range(slots)]
    header["tensors"] = header["origins"] = []
    path.write_bytes(forge(header, to_words([*code, instruction("HALT")]).tobytes()))


def test_interleaved_rectangles_are_compared_by_rows_not_by_words(tmp_path: Path) -> None:
    shape = {"r": 1023, "c": 512, "sd": 1024, "ss": 1024, "mul": 1, "sh": 8, "relu": 0}
    large_program(tmp_path / "program", [instruction("RQ", d=0, s=512, **shape)] * 200)
    with soon():
        assert len(load_program(tmp_path / "program").instructions) == 201


def test_many_slots_take_no_square_of_their_number(tmp_path: Path) -> None:
    large_program(tmp_path / "program", [], slots=10_000)
    with soon():
        assert len(load_program(tmp_path / "program").external) == 10_000


# checkpoints


@cache
def checkpoint() -> bytes:
    """A function, as a failing example would print a fixture."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint"
        save_checkpoint(text_model(), path, {})
        return path.read_bytes()


def assert_same_model(path: Path) -> None:
    model, loaded = text_model(), load_checkpoint(path)
    assert (loaded.config, loaded.characters) == (model.config, model.characters)
    assert dict(loaded.ranges.values) == dict(model.ranges.values)
    for name, weight in model.weights.items():
        assert loaded.weights[name].tobytes() == weight.tobytes()
    assert loaded.bigram is not None and model.bigram is not None
    assert loaded.bigram.tobytes() == model.bigram.tobytes()


@pytest.mark.parametrize("part", ["header", "whole"])
@given(data=st.data())
@fuzz
def test_a_damaged_checkpoint_is_refused_or_the_same(
    data: st.DataObject, part: str, tmp_path: Path
) -> None:
    raw, path = checkpoint(), tmp_path / "checkpoint"
    end = 8 + int.from_bytes(raw[:8], "little") if part == "header" else len(raw)
    path.write_bytes(data.draw(damaged(raw[:end], edits=1)) + raw[end:])
    with soon(), suppress(CapraError):
        assert_same_model(path)


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [0, -1, 1.5, 1e308, 10**30, 10**4000, 65535, True, None, "", "x", [], {}, [[]] * 9,
     float("nan"), float("inf"), "a" * 10_000, [*map(chr, range(300, 60_000))]]
)  # fmt: skip


KEYS = (
    "format", "name", "vocab", "width", "heads", "layers", "hidden", "context", "ranges", "digest",
    "header_digest",
)  # fmt: skip


@given(key=st.sampled_from(KEYS), value=VALUES)
@fuzz
def test_any_value_in_a_checkpoints_header_is_refused_or_harmless(
    key: str, value: object, tmp_path: Path
) -> None:
    raw = checkpoint()
    size = int.from_bytes(raw[:8], "little")
    outer = json.loads(raw[8 : 8 + size])
    header = json.loads(outer["__metadata__"]["capra"])
    for digest in {"digest", "header_digest"} - {key}:
        del header[digest]
    header[key] = value
    outer["__metadata__"]["capra"] = json.dumps(header)
    text = json.dumps(outer).encode()
    path = tmp_path / "checkpoint"
    path.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])
    with soon():
        try:
            loaded = load_checkpoint(path)
        except CapraError:
            return
    assert loaded.characters == text_model().characters


# text


GRAPH = print_graph(verifier_graph(text_model().config, 2, 1))


@given(text=damaged(GRAPH.encode()))
@fuzz
def test_a_damaged_graph_is_refused_or_survives(text: bytes) -> None:
    with soon():
        try:
            graph = parse_graph(text.decode(errors="replace"))
        except GraphError:
            return
        assert list(parse_graph(print_graph(graph))) == list(graph)


def _inputs(count: int) -> str:
    return "graph g\n" + "".join(f"x{i} = input 1x1\n" for i in range(count))


@pytest.mark.parametrize(
    "text",
    [
        _inputs(9000) + "all = concat_rows " + " ".join(f"x{i}" for i in range(9000)),
        _inputs(9000) + "".join(f"output x{i}\n" for i in range(9000)),
        _inputs(1) + "".join(f"x{i + 1} = relu x{i}\n" for i in range(9000)),
        _inputs(1) + "y = relu x0 tag=" + "t" * 1_000_000,
    ],
    ids=["parts", "outputs", "chain", "tag"],
)
def test_a_long_graph_takes_no_square_of_its_length(text: str) -> None:
    with soon():
        assert print_graph(parse_graph(text))


@given(text=damaged(disassemble(PROGRAM.instructions).encode()))
@fuzz
def test_damaged_assembler_text_is_refused_or_survives(text: bytes) -> None:
    with soon():
        try:
            code = assemble(text.decode(errors="replace"))
        except ProgramError:
            return
        assert assemble(disassemble(code)) == code


# the command line


COMMANDS: list[list[str]] = [
    ["decode", "--model", "random", "-n", "2", "-k", "1"],
    ["compile", "--model", "random"],
    ["certify", "--model", "random", "--max-context", "1", "--max-rows", "1"],
    ["dis", "{program}"],
    ["dis", "{checkpoint}"],
    ["decode", "--prompt", "a", "-n", "1", "-k", "1", "--model", "{checkpoint}"],
    ["decode", "--prompt", "a", "-n", "1", "-k", "1", "--model", "{program}"],
    ["eval", "--model", "{program}"],
    [],
]


@given(data=st.data())
@fuzz
def test_any_arguments_end_in_a_result_or_one_sentence(
    data: st.DataObject,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save_program(PROGRAM, tmp_path / "program")
    (tmp_path / "checkpoint").write_bytes(checkpoint())
    words = data.draw(st.sampled_from(COMMANDS)) + data.draw(st.lists(nasty_words, max_size=3))
    paths = {name: str(tmp_path / name) for name in ("program", "checkpoint")}
    argv = [paths.get(word.strip("{}"), word) for word in words]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["capra", *argv])
    with soon(), pytest.raises(SystemExit) as stopped:
        main()
    captured = capsys.readouterr()
    assert stopped.value.code in (0, 2), captured.err
    if stopped.value.code == 2:
        assert captured.err.startswith("error: ") and captured.err.count("\n") == 1


# memory


def _huge_program(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    save_program(PROGRAM, folder / "program")
    header, code = parts((folder / "program").read_bytes())
    change(header)
    (folder / "program").write_bytes(forge(header, code))


def _rows(header: dict[str, Any]) -> None:
    header["external"][0]["rows"] = 10**15


def _stride(header: dict[str, Any]) -> None:
    header["tensors"][0].update(rows=10**12, cols=10**12, stride=10**12)


def _chip(header: dict[str, Any]) -> None:
    header["chip"]["scratchpad_words"] = 1 << 62


def _deep(header: dict[str, Any]) -> None:
    nested: list[Any] = []
    for _ in range(900):
        nested = [nested]
    header["name"] = nested


@pytest.mark.sample(1)
@pytest.mark.parametrize("change", [_rows, _stride, _chip, _deep])
def test_declared_sizes_take_no_memory(
    change: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    _huge_program(tmp_path, change)
    assert _refused_in_little_memory("dis", tmp_path / "program").startswith("error: ")


@pytest.mark.sample(1)
@pytest.mark.parametrize("size", [1 << 40, (1 << 63) - 1, (1 << 64) - 1, 100_000_000])
def test_the_declared_header_of_a_checkpoint_takes_no_memory(size: int, tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(struct.pack("<Q", size) + checkpoint()[8:])
    refused = _refused_in_little_memory("decode", "--model", path)
    assert "expected a safetensors checkpoint" in refused


@pytest.mark.sample(1)
@pytest.mark.parametrize("shape", [[1 << 62], [1 << 31, 1 << 31], [10**30], [1 << 40, 0]])
def test_the_declared_shape_of_a_tensor_takes_no_memory(shape: list[int], tmp_path: Path) -> None:
    text = json.dumps({"embed": {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
    path = tmp_path / "checkpoint"
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(4))
    refused = _refused_in_little_memory("decode", "--model", path)
    assert "expected a safetensors checkpoint" in refused


def _refused_in_little_memory(*args: object) -> str:
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({MEBIBYTES << 20},) * 2)\n"
        "from capra.cli import main; main()"
    )
    command = [sys.executable, "-c", code, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)  # noqa: S603
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr
