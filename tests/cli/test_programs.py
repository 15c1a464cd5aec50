"""capra compile --graph: a graph of your own becomes a program file for the other commands."""

import json
import sys
from pathlib import Path

import pytest
from tests.command import Cli
from tests.lm.samples import text_model, tiny

from capra.compiler.optimization import O1
from capra.compiler.pipeline import compile_graph
from capra.ir.ranges import Ranges, parse_ranges
from capra.ir.text import parse_graph, print_graph
from capra.isa.chip import Chip
from capra.isa.program import load_program
from capra.lm.checkpoint import save_checkpoint

EXAMPLES = Path(__file__).parents[2] / "examples"
GRAPH, RANGES = EXAMPLES / "classifier.graph", EXAMPLES / "classifier.json"
TEXT = GRAPH.read_text()
VALUES = json.loads(RANGES.read_text())


@pytest.fixture
def compiled(cli: Cli, tmp_path: Path) -> Path:
    path = tmp_path / "c.ga2"
    assert cli("compile", "--graph", GRAPH, "--ranges", RANGES, "-o", path).code == 0
    return path


def test_a_graph_of_the_users_own_is_compiled(compiled: Path, cli: Cli) -> None:
    program = load_program(compiled)
    assert (program.name, program.chip) == ("classifier", Chip())
    assert [slot.name for slot in program.slots("input", "weight", "output")] == [
        "x", "w1", "w2", "label", "scores",
    ]  # fmt: skip
    profile = cli("profile", compiled, "--json").json()
    assert profile["program"] == "classifier" and profile["cycles"] == program.cycles
    scales = cli("compile", "--graph", GRAPH, "--ranges", RANGES, "--emit", "scales").out
    assert "hidden" in scales


def test_it_computes_what_the_library_compiles(compiled: Path) -> None:
    made = compile_graph(parse_graph(TEXT), Ranges(VALUES), Chip(), optimize=O1)
    assert load_program(compiled) == made


def test_emitted_graphs_are_compiled_again(cli: Cli, tmp_path: Path) -> None:
    """A verifier's graph, printed, with the ranges of its model, is the same program."""
    text = cli("compile", "--model", "random", "-m", "3", "-c", "5", "--emit", "graph").out
    ranges = dict(tiny("random", 1).ranges.values)
    graph, file = tmp_path / "v.graph", tmp_path / "v.json"
    graph.write_text(text)
    file.write_text(json.dumps(ranges))
    assert print_graph(parse_graph(text)) == text
    own, model = tmp_path / "own.ga2", tmp_path / "model.ga2"
    assert cli("compile", "--graph", graph, "--ranges", file, "-o", own).code == 0
    assert cli("compile", "--model", "random", "-m", "3", "-c", "5", "-o", model).code == 0
    assert own.read_bytes() == model.read_bytes()


def test_the_chip_is_large_enough_unless_its_sizes_are_given(cli: Cli, tmp_path: Path) -> None:
    graph, ranges, out = tmp_path / "wide.graph", tmp_path / "r.json", tmp_path / "w.ga2"
    graph.write_text("graph wide\nx = input 40x500\ny = relu x\nz = add y x\noutput z\n")
    ranges.write_text('{"x": 1, "z": 2}')
    args = ("compile", "--graph", graph, "--ranges", ranges, "-o", out)
    assert cli(*args).code == 0
    chip = load_program(out).chip
    assert chip.external_words == 1 << 16 and chip.scratchpad_words >= 40_000
    result = cli(*args, "--scratchpad-words", "8192")
    assert result.code == 2 and "the scratchpad needs" in result.err
    assert cli(*args, "--external-words", "50000").code == 0
    assert load_program(out).chip.external_words == 50_000


@pytest.mark.parametrize(
    ("graph", "ranges", "sentence"),
    [
        (TEXT, None, "g needs the largest magnitudes of x, w1, w2, hidden, scores, expected them "
         "in --ranges FILE.json, a JSON object such as {\"x\": 1.5}"),
        (TEXT, '{"x": 1, "hidden": 2}', "of w1, w2, scores, expected them in "),
        (TEXT, "[]", "the ranges are list, expected a JSON object"),
        (TEXT, "{", "the ranges are not JSON: "),
        (TEXT, "[" * 100_000, "the ranges are not JSON: "),
        (TEXT, '{"x": true}', "range of 'x' is True, expected a number of 0 .. 1e+30"),
        (TEXT, '{"x": NaN}', "range of 'x' is nan, expected a number of 0 .. 1e+30"),
        (TEXT, '{"x": -1}', "range of 'x' is -1, expected a number of 0 .. 1e+30"),
        (TEXT, '{"x": 1' + "0" * 400 + "}", "expected a number of 0 .. 1e+30"),
        (TEXT, '{"x": "1"}', "range of 'x' is '1', expected a number of 0 .. 1e+30"),
        ("", "{}", "g: the text is empty, expected 'graph NAME'"),
        ("graph g\nx = input 1_0x2\n", "{}", "g: line 2: shape is '1_0x2', expected ROWSxCOLS"),
        ("graph g\nx = input 1x2\n", "{}", "g: g: the graph has no output"),
    ],
)  # fmt: skip
def test_mistakes_are_one_sentence_and_leave_no_file(
    graph: str, ranges: str | None, sentence: str, cli: Cli, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("g").write_text(graph)
    if ranges is not None:
        Path("r").write_text(ranges)
    result = cli("compile", "--graph", "g", *(() if ranges is None else ("--ranges", "r")))
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("error: ") and result.err.count("\n") == 1
    assert sentence in result.err
    assert not list(tmp_path.glob("*.ga2"))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--graph", GRAPH, "--model", "pydoc"), "--model is given with --graph, expected"),
        (("--graph", GRAPH, "-m", "1"), "--rows is given with --graph, expected a model or"),
        (("--graph", GRAPH, "-c", "0"), "--cache is given with --graph, expected a model or"),
        (("--ranges", RANGES), "expected it with --graph only"),
        (("--graph", "/no/such"), "graph /no/such cannot be read: No such file or directory"),
        (("--graph", sys.executable), " cannot be read: 'utf-8' codec"),
        (("--graph", GRAPH, "--ranges", "/"), "ranges / cannot be read: Is a directory"),
    ],
)
def test_options_that_do_not_go_together(
    options: tuple[object, ...], sentence: str, cli: Cli
) -> None:
    result = cli("compile", *options)
    assert (result.code, result.out) == (2, "") and sentence in result.err


def test_a_byte_order_mark_is_no_statement(cli: Cli, tmp_path: Path) -> None:
    mark, out = b"\xef\xbb\xbf", tmp_path / "c.ga2"
    graph, ranges = tmp_path / "g", tmp_path / "r"
    graph.write_bytes(mark + GRAPH.read_bytes())
    ranges.write_bytes(mark + RANGES.read_bytes())
    assert cli("compile", "--graph", graph, "--ranges", ranges, "-o", out).code == 0
    assert parse_ranges(RANGES.read_text()) == Ranges(VALUES)


def test_no_input_of_compile_is_overwritten(cli: Cli, tmp_path: Path) -> None:
    graph, ranges, model = tmp_path / "g.graph", tmp_path / "r.json", tmp_path / "m.safetensors"
    graph.write_bytes(GRAPH.read_bytes())
    ranges.write_bytes(RANGES.read_bytes())
    save_checkpoint(text_model(), model, {})
    own = ("--graph", graph, "--ranges", ranges)
    for file, args in ((graph, own), (ranges, own), (model, ("--model", model))):
        before = file.read_bytes()
        refused = cli("compile", *args, "-o", file)
        assert refused.code == 2 and f"cannot write {file}: it is {file} too" in refused.err
        assert file.read_bytes() == before
