"""The overlap checker: a correct program passes, and bugs planted into it are found."""

from dataclasses import replace

import pytest

from capra.compiler.ops import Load, Store
from capra.compiler.overlap import check_buffers, check_program
from capra.compiler.passes.buffers import Buffer, allocate_buffers
from capra.compiler.passes.scales import assign_scales
from capra.compiler.passes.tile import tile_operations
from capra.compiler.passes.views import Place, place_tensors
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.isa.chip import Chip
from capra.isa.instruction import instruction
from capra.isa.program import Program


@pytest.fixture
def program() -> Program:
    """LD x, LD w, MM, RQ p, SM, RQ s, ST: x at 0, w at 4, the sums at 12, p at 0, later s."""
    graph = Graph("g")
    graph.input("x", 1, 4)
    graph.weight("w", 4, 2)
    graph.matmul("p", "x", "w")
    graph.softmax("s", "p")
    graph.output("s")
    program = compile_graph(graph, Ranges(dict.fromkeys(graph.nodes, 1.0)), Chip())
    assert [inst.mnemonic for inst in program.instructions] == [
        "LD", "LD", "MM", "RQ", "SM", "RQ", "ST", "HALT",
    ]  # fmt: skip
    return program


def with_home(
    program: Program,
    name: str,
    *,
    base: int | None = None,
    first: int | None = None,
    ready: int | None = None,
    until: int | None = None,
) -> Program:
    """The program with a false claim about one tensor."""
    old = program.tensors[name]
    claim = old._replace(
        base=old.base if base is None else base,
        first=old.first if first is None else first,
        ready=old.ready if ready is None else ready,
        until=old.until if until is None else until,
    )
    return replace(program, tensors={**program.tensors, name: claim})


def with_fields(program: Program, index: int, **changes: int) -> Program:
    """The program with some operands of one instruction changed."""
    old = program.instructions[index]
    fields = {f.name: old[f.name] for f in old.op.fields} | changes
    code = list(program.instructions)
    code[index] = instruction(old.mnemonic, **fields)
    return replace(program, instructions=tuple(code))


def test_compiled_program_passes(program: Program) -> None:
    assert program.tensors, "there is something to check"
    check_program(program)


def test_tensor_moved_onto_a_living_one_is_found(program: Program) -> None:
    moved = with_home(program, "x", base=program.tensors["%p.sums"].base - 3)
    with pytest.raises(AssertionError, match=r"g: x, whole after instruction 0 .* by instruction"):
        check_program(moved)


def test_write_into_a_living_tensor_is_found(program: Program) -> None:
    with pytest.raises(AssertionError, match=r"g: x, .* until 2, is overwritten by instruction 1"):
        check_program(with_fields(program, 1, d=3, n=9))


def test_tensor_that_should_have_lived_longer_is_found(program: Program) -> None:
    with pytest.raises(AssertionError, match=r"g: x, .* until 3, is overwritten by instruction 3"):
        check_program(with_home(program, "x", until=3))


def test_tensor_that_is_called_ready_too_early_is_found(program: Program) -> None:
    with pytest.raises(AssertionError, match=r"g: p, .* is overwritten by instruction 3"):
        check_program(with_home(program, "p", first=2, ready=2))


@pytest.mark.parametrize(("index", "word"), [(0, 0), (1, 4)])
def test_missing_load_is_found(program: Program, index: int, word: int) -> None:
    code = list(program.instructions)
    del code[index]
    without = replace(program, instructions=code, tensors={}, origins=())
    with pytest.raises(AssertionError, match=rf"instruction 1 \(MM .* word {word} which no"):
        check_program(without)


def test_sums_that_nobody_wrote_are_found(program: Program) -> None:
    """An accumulating tile reads what it writes, so it cannot be the first to write it."""
    with pytest.raises(AssertionError, match=r"instruction 2 \(MM .* word 12 which no"):
        check_program(with_fields(program, 2, acc=1))


def test_load_that_is_too_short_is_found(program: Program) -> None:
    with pytest.raises(AssertionError, match=r"instruction 2 \(MM .* word 11 which no"):
        check_program(with_fields(program, 1, n=7))


def test_read_past_the_end_of_a_tensor_is_found(program: Program) -> None:
    with pytest.raises(AssertionError, match=r"instruction 6 \(ST .* word 14 which no"):
        check_program(with_fields(program, 6, n=100))


@pytest.mark.parametrize("name", ["x", "w", "p", "s"])
def test_tensor_that_nobody_wrote_is_found(program: Program, name: str) -> None:
    with pytest.raises(AssertionError, match=f"g: {name}, "):
        check_program(with_home(program, name, base=1000))


def test_stale_words_of_another_tensor_are_found() -> None:
    graph = Graph("g")
    graph.input("a", 1, 8)
    graph.softmax("s", "a")
    graph.output("s")
    graph.input("b", 1, 8)
    graph.argmax("t", "b")
    graph.output("t")
    program = compile_graph(graph, Ranges(dict.fromkeys(graph.nodes, 1.0)), Chip())
    (load,) = (i for i, inst in enumerate(program.instructions) if i and inst.mnemonic == "LD")
    home = program.tensors["b"]
    assert home.base == program.tensors["a"].base  # b takes the place of a, which is dead
    # The load of b becomes a store that harms nothing: b's reader would read stale words.
    slot = program.slots("output")[0]
    code = list(program.instructions)
    code[load] = instruction("ST", d=slot.address, s=home.base, n=8)
    with pytest.raises(AssertionError, match=r"g: b, .* holds a word that instruction 2 wrote"):
        check_program(replace(program, instructions=tuple(code)))


def test_a_live_range_that_is_too_short_is_found() -> None:
    graph = Graph("g")
    graph.input("x", 4, 4)
    graph.weight("w", 4, 4)
    graph.matmul("p", "x", "w")
    graph.weight("v", 4, 4)
    graph.matmul("y", "p", "v")
    graph.output(graph.add("z", "x", "y"))
    places = place_tensors(graph)
    scales = assign_scales(graph, Ranges(dict.fromkeys(graph.nodes, 1.0)))
    ops = tile_operations(graph, scales, places, 256)
    buffers = dict(allocate_buffers(ops, 8192))
    check_buffers(ops, buffers, 8192)
    # As if the allocator had overlooked that the addition still reads x.
    assert buffers["p"].base != buffers["x"].base
    buffers["p"] = replace(buffers["p"], base=buffers["x"].base)
    with pytest.raises(AssertionError, match=r"writes p into the words .* expected words between"):
        check_buffers(ops, buffers, 8192)


BELOW = "between the start, which ends before 0, and a, which begins at 7"
ABOVE = "between a, which ends before 12, and the end, which begins at 16"


@pytest.mark.parametrize(
    ("base", "between"), [(3, None), (4, BELOW), (8, ABOVE), (11, ABOVE), (12, None)]
)
def test_a_buffer_beside_a_needed_one_passes_and_one_over_it_is_found(
    base: int, between: str | None
) -> None:
    """Buffer a has the words 7 .. 11; b takes four from `base` on, next to it or over it."""
    a, b = Place("a", 0, 1, 5, 5), Place("b", 0, 2, 2, 2)
    ops = (Load("a", a), Load("b", b), Store("b", b), Store("a", a))
    buffers = {"a": Buffer("a", 7, 5, 0, 3), "b": Buffer("b", base, 4, 1, 2)}
    if between is None:
        check_buffers(ops, buffers, 16)
        return
    with pytest.raises(AssertionError, match=f"^operation 1 .* writes b into .* {between}$"):
        check_buffers(ops, buffers, 16)


def test_a_buffer_may_take_the_words_of_one_that_is_no_longer_needed() -> None:
    places = {name: Place(name, 0, 1, 4, 4) for name in "abc"}
    ops = tuple(op(name, place) for name, place in places.items() for op in (Load, Store))
    buffers = {
        name: Buffer(name, base, 4, 0, 0) for name, base in zip("abc", (0, 2, 0), strict=True)
    }
    check_buffers(ops, buffers, 6)
    with pytest.raises(
        AssertionError, match=r"writes b into the words 2 .. 5, .* the end, which begins at 5"
    ):
        check_buffers(ops, buffers, 5)
    buffers["a"] = replace(buffers["a"], base=-1)
    with pytest.raises(AssertionError, match="writes a into the words -1 "):
        check_buffers(ops, buffers, 6)


def test_an_operation_that_writes_over_what_it_reads_is_found() -> None:
    """A product reads its operands until its last tile."""
    graph = Graph("g")
    graph.input("x", 1, 4)
    graph.weight("w", 4, 8)
    graph.matmul("p", "x", "w")
    scales = assign_scales(graph, Ranges(dict.fromkeys(graph.nodes, 1.0)))
    ops = tile_operations(graph, scales, place_tensors(graph), 256)
    buffers = dict(allocate_buffers(ops, 8192))
    buffers["%p.sums"] = replace(buffers["%p.sums"], base=buffers["w"].base + 31)
    with pytest.raises(
        AssertionError, match=r"operation 2 .* writes %p.sums .* between w, which ends"
    ):
        check_buffers(ops, buffers, 8192)


def test_words_of_a_buffer_that_are_written_later_are_found() -> None:
    """Rows of a buffer are stored, two by two, before the last of them is written."""
    place = Place("a", 2, 4, 3, 5)
    rows = [Load("a", place.row(row)) for row in range(4)]
    upper, lower = (Store("a", place.part(row, 0, 2, 3)) for row in (0, 2))
    buffers = {"a": Buffer("a", 0, 20, 0, 9)}
    check_buffers((*rows[:2], upper, *rows[2:], lower, upper), buffers, 32)
    with pytest.raises(AssertionError, match=r"operation 4 .* reads words of a that none before"):
        check_buffers((*rows[:2], upper, rows[2], lower, rows[3]), buffers, 32)
    gap = Store("a", Place("a", 2, 1, 4, 4))
    with pytest.raises(AssertionError, match=r"operation 4 .* reads words of a that none before"):
        check_buffers((*rows, gap), buffers, 32)


def test_a_buffer_that_is_read_before_it_is_written_is_found() -> None:
    place = Place("a", 0, 1, 4, 4)
    ops = (Store("a", place), Load("a", place), Store("a", place))
    with pytest.raises(AssertionError, match=r"operation 0 .* reads words of a that none before"):
        check_buffers(ops, {"a": Buffer("a", 0, 4, 0, 2)}, 16)
