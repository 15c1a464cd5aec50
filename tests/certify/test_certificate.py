"""The certificate: given to what is exact, refused to what is not, with the reason."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from tests.lm.samples import MODELS, pydoc_model, text_model

from capra.certify.certificate import Certificate, Subject, _spread, certify
from capra.compiler.ops import Op
from capra.compiler.optimization import O0, O1, Optimization
from capra.compiler.passes.buffers import Buffer, allocate_buffers
from capra.compiler.passes.scales import assign_scales
from capra.compiler.passes.views import Place, place_tensors
from capra.compiler.pipeline import compile_graph
from capra.errors import InputError
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.ir.scales import Scales
from capra.ir.text import parse_graph, print_graph
from capra.ir.visible import Visible
from capra.isa.chip import Chip
from capra.isa.program import Program
from capra.isa.spec import ARRAY_SIZE
from capra.lm.target import ChipTarget, Role
from capra.numerics import Rescale

CACHE, ROWS = 6, 5


@pytest.fixture(autouse=True)
def few_prefill_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capra.certify.certificate.PREFILL_ROWS", 4)


def subject() -> Subject:
    return Subject.of(ChipTarget(text_model()))


def of_graphs(change: Callable[[str], str], at: str) -> Certificate:
    """A certificate where the text of one graph is changed."""
    honest, changed = subject(), list[str]()

    def graph(role: Role, rows: int, cache: int) -> Graph:
        made = honest.graph(role, rows, cache)
        if made.name != at:
            return made
        text = print_graph(made)
        changed.append(change(text))
        assert changed[-1] != text
        return parse_graph(changed[-1])

    certificate = certify(replace(honest, graph=graph), CACHE, ROWS)
    assert changed
    return certificate


def of_scales(change: Callable[[Scales], Scales], at: str) -> Certificate:
    """A certificate where the scales of one graph are changed."""
    honest = subject()

    def scales(graph: Graph) -> Scales:
        made = honest.scales(graph)
        return change(made) if graph.name == at else made

    return certify(replace(honest, scales=scales), CACHE, ROWS)


@pytest.mark.sample(2)
@pytest.mark.parametrize("optimize", [O0, O1], ids=["O0", "O1"])
@pytest.mark.parametrize("name", MODELS)
def test_an_exact_model_is_certified(name: str, optimize: Optimization) -> None:
    target = ChipTarget(MODELS[name](), optimize=optimize)
    certificate = certify(Subject.of(target), CACHE, ROWS, instruction_caches=3)
    assert certificate.failure is None
    graphs = {"step": CACHE + ROWS, "verify": (CACHE + 1) * ROWS, "prefill": (CACHE + 1) * 4}
    assert certificate.graphs == graphs
    assert certificate.programs == {"step": 11, "verify": 4 * ROWS, "prefill": 4 * 4}
    assert certificate.program_caches == (0, 3, 5, 6)
    assert certificate.programs_covered == "some caches"


def test_levels_have_the_same_digest_and_other_programs() -> None:
    targets = [ChipTarget(text_model(), optimize=level) for level in (O0, O1)]
    recorded, optimized = (certify(Subject.of(target), CACHE, ROWS) for target in targets)
    assert recorded.digest == optimized.digest
    slow, fast = (target.program("verify", ROWS, CACHE).cycles for target in targets)
    assert fast < slow


@pytest.mark.parametrize(
    "wrong",
    [
        lambda visible, _row: visible.keys,
        lambda visible, row: min(visible.count(row) + 1, visible.keys),
        lambda visible, row: visible.count(row) - (row > 0),
    ],
    ids=["sees the whole block", "sees a later row", "is blind to itself"],
)
def test_a_program_whose_visible_sets_are_wrong_is_refused(
    wrong: Callable[[Visible, int], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph is right: only what the compiler makes of it is changed."""
    monkeypatch.setattr(Visible, "runs", lambda visible, row: [(0, wrong(visible, row))])
    target = ChipTarget(text_model(), optimize=O1)
    certificate = certify(Subject.of(target), 0, 3, instruction_caches=1)
    assert certificate.failure is not None
    assert certificate.failure.program == "verify_m2_c0"
    assert certificate.failure.tensor == "the program"


@pytest.mark.parametrize(
    ("name", "remainder"),
    [*((name, r) for name in ("text", "random") for r in range(ARRAY_SIZE)), ("pydoc", 3)],
)
def test_a_visible_set_that_is_wrong_at_one_remainder_is_refused(
    name: str, remainder: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight caches spread evenly over 0 .. 14 are all even: they alone would miss two of these."""
    made = set[int]()

    def runs(visible: Visible, row: int) -> list[tuple[int, int]]:
        cache, seen = visible.prefix, visible.count(row)
        if row and cache % ARRAY_SIZE == remainder:
            made.add(cache)
            return [(0, seen - 1)]  # blind to itself
        return [(0, seen)]

    model = pydoc_model() if name == "pydoc" else MODELS[name]()
    subject = Subject.of(ChipTarget(model, optimize=O1))
    monkeypatch.setattr(Visible, "runs", runs)
    certificate = certify(subject, 14, 2, instruction_caches=8)
    assert made
    assert certificate.failure is not None
    assert certificate.failure.tensor == "the program"
    assert certificate.failure.program.startswith("verify_m2_c")


@pytest.mark.parametrize("last", [*range(20), 63, 120])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 9, 16])
def test_caches_have_both_ends_and_every_remainder(count: int, last: int) -> None:
    caches = _spread(count, last)
    assert caches == sorted(set(caches)) and set(caches) <= set(range(last + 1))
    assert {cache % ARRAY_SIZE for cache in caches} == {c % ARRAY_SIZE for c in range(last + 1)}
    assert caches[-1] == last and (count == 1 or caches[0] == 0)
    assert min(count, last + 1) <= len(caches) <= count + ARRAY_SIZE - 1
    assert _spread(0, last) == []


@pytest.mark.full
def test_prefills_are_certified_as_far_as_a_session_makes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.undo()
    certificate = certify(subject(), 1, 2, instruction_caches=1)
    assert certificate.failure is None
    assert certificate.graphs == {"step": 17, "verify": 4, "prefill": 32}
    assert certificate.programs == {"step": 17, "verify": 4, "prefill": 32}


def test_every_cache_is_every_cache() -> None:
    caches = set[int]()
    honest = subject()

    def program(role: Role, rows: int, cache: int) -> Program:
        if role == "verify":
            caches.add(cache)
        return honest.program(role, rows, cache)

    certificate = certify(replace(honest, program=program), 4, 2, instruction_caches=99)
    assert caches == set(range(5)) and certificate.programs["verify"] == 10
    assert certificate.programs_covered == "all caches"


def test_programs_are_certified_up_to_the_last_that_fits_the_context() -> None:
    context, shapes = text_model().config.context, set[tuple[int, int]]()
    honest = subject()

    def program(role: Role, rows: int, cache: int) -> Program:
        shapes.add((rows, cache))
        return honest.program(role, rows, cache)

    certificate = certify(replace(honest, program=program), context, 2, instruction_caches=2)
    assert certificate.failure is None
    assert certificate.graphs["verify"] == 2 * (context + 1)
    assert {(1, 0), (2, 0), (4, 0), (1, context - 1), (2, context - 2)} <= shapes
    assert max(rows + cache for rows, cache in shapes) == context


def test_the_digest_is_of_the_functions() -> None:
    one = certify(subject(), 3, 2)
    assert certify(subject(), 3, 2, instruction_caches=2).digest == one.digest
    assert certify(subject(), 3, 3).digest != one.digest
    assert certify(Subject.of(ChipTarget(MODELS["random"]())), 3, 2).digest != one.digest
    context = text_model().config.context
    assert certify(subject(), context, 2).digest == certify(subject(), context, 3).digest


def test_ranges_of_its_own_for_every_program_are_refused() -> None:
    """As if each program were calibrated on its own, by what its own rows reach."""
    model = text_model()

    def ranges(graph: Graph) -> Ranges:
        rows = graph["x"].rows
        return Ranges({tag: value * (1 + rows / 64) for tag, value in model.ranges.values.items()})

    own = replace(subject(), scales=lambda graph: assign_scales(graph, ranges(graph)))
    certificate = certify(own, CACHE, ROWS)
    assert certificate.failure is not None
    assert certificate.failure.program == "verify_m2_c0"
    # Blocks of one row have the step's own ranges.
    assert certificate.graphs["verify"] == CACHE + 1
    assert "in steps of" in certificate.failure.reason or "scale" in certificate.failure.reason


def test_programs_compiled_from_other_ranges_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target compiles what its scales do not say: only its programs can tell."""

    def compile_wider(
        graph: Graph, ranges: Ranges, chip: Chip, *, optimize: Optimization
    ) -> Program:
        factor = 1 + graph["x"].rows / 64
        wider = Ranges({tag: value * factor for tag, value in ranges.values.items()})
        return compile_graph(graph, wider, chip, optimize=optimize)

    monkeypatch.setattr("capra.lm.target.compile_graph", compile_wider)
    certificate = certify(subject(), CACHE, ROWS, instruction_caches=2)
    assert certificate.failure is not None and certificate.failure.program == "step_c0"
    assert certificate.failure.tensor == "the program"


@pytest.mark.parametrize("side", [0, 1])
def test_one_wrong_rescale_of_an_addend_is_named(side: int) -> None:
    def change(scales: Scales) -> Scales:
        addends = list(scales.addends["l0.out"])
        old = addends[side]
        addends[side] = Rescale(old.multiplier + 1, old.shift)
        return replace(scales, addends={**scales.addends, "l0.out": (addends[0], addends[1])})

    failure = of_scales(change, "verify_m5_c2").failure
    assert failure is not None and (failure.row, failure.tensor) == (0, "l1.k")
    assert failure.operation == "l0.out of verify_m5_c2"


@pytest.mark.parametrize("leaf", ["x", "layers.1.wv"])
def test_scales_that_make_up_for_each_other_are_refused(leaf: str) -> None:
    """The same multipliers, but another quantization by the host."""

    def change(scales: Scales) -> Scales:
        return replace(scales, scale={**scales.scale, leaf: scales.scale[leaf] * 2})

    failure = of_scales(change, "verify_m3_c2").failure
    assert failure is not None and failure.program == "verify_m3_c2"
    assert f"{leaf}[" in failure.reason or leaf in failure.operation


def test_the_last_row_of_a_block_counts() -> None:
    failure = of_graphs(sees("1,3,7,f,1f", "1,3,7,f,f"), "verify_m5_c2").failure
    assert failure is not None
    assert (failure.row, failure.operation) == (4, "l0.attn of verify_m5_c2")
    assert failure.reason == "a row range: 6 elements, expected 7"


def test_one_wrong_scale_is_named() -> None:
    def change(scales: Scales) -> Scales:
        old = scales.product["l1.o"]
        return replace(
            scales, product={**scales.product, "l1.o": Rescale(old.multiplier + 1, old.shift)}
        )

    failure = of_scales(change, "verify_m3_c2").failure
    assert failure is not None
    assert (failure.program, failure.row, failure.tensor) == ("verify_m3_c2", 0, "logits")
    assert failure.operation == "l1.o of verify_m3_c2"
    assert failure.reason.startswith("a scale or constant: ")


def test_one_wrong_softmax_index_is_named() -> None:
    def change(scales: Scales) -> Scales:
        name = "l0.attn.h1.probs"
        old = scales.softmax_index[name]
        other = Rescale(old.multiplier, old.shift + 1)
        return replace(scales, softmax_index={**scales.softmax_index, name: other})

    failure = of_scales(change, "verify_m3_c2").failure
    assert failure is not None
    assert (failure.row, failure.tensor) == (0, "l1.k")
    assert failure.operation == "l0.attn of verify_m3_c2"


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert text.count(old) == 1, text
        return text.replace(old, new)

    return change


def sees(old: str, new: str, *, prefix: int = 2, width: int = 0) -> Callable[[str], str]:
    """What the rows of layer 0 see behind the first `prefix` keys, and that of as many keys."""

    def change(text: str) -> str:
        head = f"heads=2 prefix=2 width={old.count(',') + 1}"
        (line,) = (line for line in text.splitlines() if line.startswith("l0.attn ="))
        assert f"{head} tails={old} " in line, line
        keys = f"heads=2 prefix={prefix} width={width or old.count(',') + 1} tails={new} "
        return text.replace(line, line.replace(f"{head} tails={old} ", keys))

    return change


def new_keys_first(text: str) -> str:
    """Of layer 0: every row sees the keys that it should, in another order."""
    for kv in "kv":
        text = replaced(
            f"concat_rows l0.{kv}.cache l0.{kv} t", f"concat_rows l0.{kv} l0.{kv}.cache t"
        )(text)
    return sees("1,3,7", "19,1b,1f", prefix=0, width=5)(text)


def of_attention(old: str, new: str) -> Callable[[str], str]:
    """A change of the line of layer 0's attention."""

    def change(text: str) -> str:
        (line,) = (line for line in text.splitlines() if line.startswith("l0.attn ="))
        return replaced(line, re.sub(old, new, line))(text)

    return change


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("change", "row", "tensor", "operation", "reason"),
    [
        (sees("1,3,7", "1,7,7"), 1, "l1.k", "l0.attn", "a row range: 5 elements, expected 4"),
        (sees("1,3,7", "1,1,7"), 1, "l1.k", "l0.attn", "a row range: 3 elements, expected 4"),
        (
            sees("1,3,7", "7,1e,1f", prefix=0, width=5),
            1, "l1.k", "l0.attn", "what it reads: l0.k[4, 0], expected l0.k[3, 0]",
        ),
        (
            sees("1,3,7", "1,5,7"),
            1, "l1.k", "l0.attn", "what it reads: l0.k[4, 0], expected l0.k[3, 0]",
        ),
        (
            of_attention("attention l0.q ", "attention l0.k "),
            0, "l1.k", "l0.attn",
            "what it reads: l0.k[2, 0], expected rescale (l0.q of step_c2)",
        ),
        (
            of_attention("l0.k.all l0.v.all", "l0.v.all l0.k.all"),
            0, "l1.k", "l0.attn", "what it reads: l0.v[0, 0], expected l0.k[0, 0]",
        ),
        (of_attention("scale=0.5 ", ""), 0, "l1.k", "l0.attn", "a scale or constant: "),
        (of_attention("heads=2", "heads=1"), 0, "l1.k", "l0.attn", ""),
        (new_keys_first, 0, "l1.k", "l0.attn", "an order: the same 3 elements in another one"),
        (
            replaced("concat_rows l0.k.cache l0.k tag", "concat_rows l0.k l0.k.cache tag"),
            0, "l1.k", "l0.attn", "what it reads: l0.k[3, 0], expected l0.k[1, 0]",
        ),
        (
            replaced("l1.mid = add l0.out l1.o", "l1.mid = add l1.o l0.out"),
            0, "logits", "l1.mid", "",
        ),
        (
            of_attention("= attention .*", "= relu l0.q"),
            0, "l1.k", "l0.attn", "its kind: relu (",
        ),
        (
            replaced("argmax logits", "argmax l1.out"),
            0, "token", "token", "",
        ),
    ],
)  # fmt: skip
def test_one_wrong_operation_is_named(
    change: Callable[[str], str], row: int, tensor: str, operation: str, reason: str
) -> None:
    failure = of_graphs(change, "verify_m3_c2").failure
    assert failure is not None
    assert (failure.program, failure.row, failure.tensor) == ("verify_m3_c2", row, tensor)
    assert failure.operation == f"{operation} of verify_m3_c2"
    assert failure.reason.startswith(reason)
    assert str(failure).startswith(f"verify_m3_c2: row {row} of {tensor} differs, first at ")


@pytest.mark.parametrize("output", ["token", "logits", "l1.v"])
def test_an_output_that_the_host_would_miss_is_a_failure(output: str) -> None:
    failure = of_graphs(replaced(f"output {output}\n", ""), "verify_m3_c2").failure
    assert failure is not None
    assert (failure.tensor, failure.reason) == (output, f"{output} is not among them")


@pytest.mark.parametrize("output", ["token", "logits", "l1.v"])
def test_an_output_that_a_plain_step_lacks_is_a_failure(output: str) -> None:
    failure = of_graphs(replaced(f"output {output}\n", ""), "step_c2").failure
    assert failure is not None
    assert (failure.program, failure.tensor) == ("step_c2", output)
    assert failure.reason == f"{output} is not among them"


def test_other_rows_than_the_host_feeds_or_takes_are_a_failure() -> None:
    def of_another(role: Role, rows: int, cache: int) -> Graph:
        shape = (rows + 1, cache) if (role, rows, cache) == ("verify", 2, 3) else (rows, cache)
        return honest.graph(role, *shape)

    honest = subject()
    failure = certify(replace(honest, graph=of_another), CACHE, ROWS).failure
    assert failure is not None
    assert (failure.program, failure.tensor) == ("verify_m3_c3", "x")
    assert failure.reason == "has 3 rows, expected 2"


@pytest.mark.parametrize("fault", ["allocator", "views"])
def test_what_the_compiler_refuses_itself_is_a_failure(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_one_place(ops: Sequence[Op], words: int, *, reuse: bool = True) -> dict[str, Buffer]:
        right = allocate_buffers(ops, words, reuse=reuse)
        return {name: replace(buffer, base=0) for name, buffer in right.items()}

    def at_the_start(graph: Graph) -> dict[str, Place]:
        right = place_tensors(graph)
        return {name: place._replace(offset=0) for name, place in right.items()}

    if fault == "allocator":
        monkeypatch.setattr("capra.compiler.pipeline.allocate_buffers", on_one_place)
    else:
        monkeypatch.setattr("capra.compiler.pipeline.place_tensors", at_the_start)
    failure = certify(subject(), 2, 2, instruction_caches=2).failure
    assert failure is not None and failure.tensor == "the program"


def test_a_prefill_that_keeps_other_values_is_found() -> None:
    change = replaced("l1.v = matmul l0.out layers.1.wv", "l1.v = matmul l0.out layers.1.wk")
    failure = of_graphs(change, "prefill_m4_c5").failure
    assert failure is not None
    assert (failure.program, failure.row, failure.tensor) == ("prefill_m4_c5", 0, "l1.v")
    assert failure.operation == "l1.v of prefill_m4_c5"


def test_a_program_that_is_not_its_graph_is_a_failure() -> None:
    honest = subject()

    def program(role: Role, rows: int, cache: int) -> Program:
        made = honest.program(role, rows, cache)
        if made.name != "verify_m3_c3":
            return made
        code = list(made.instructions)
        code.remove(next(inst for inst in code if inst.mnemonic == "MM"))
        return replace(made, instructions=tuple(code), tensors={}, origins=())

    certificate = certify(replace(honest, program=program), CACHE, ROWS, instruction_caches=3)
    assert certificate.failure is not None
    assert certificate.failure.program == "verify_m3_c3"
    assert certificate.failure.row is None
    assert certificate.graphs["verify"] == (CACHE + 1) * ROWS


@pytest.mark.parametrize(
    ("context", "rows", "message"),
    [
        (25, 1, "the largest context is 25, expected 0 .. 24, the context of sample"),
        (-1, 1, "the largest context is -1, expected 0 .. 24"),
        (3, 0, "the largest number of rows is 0, expected 1 .. 24"),
        (3, 25, "the largest number of rows is 25, expected 1 .. 24"),
    ],
)
def test_what_no_session_reaches_is_refused(context: int, rows: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        certify(subject(), context, rows)


def test_every_shape_is_announced() -> None:
    totals = list[int]()
    certificate = certify(subject(), 3, 2, instruction_caches=2, on_shape=totals.append)
    count = sum(certificate.graphs.values()) + sum(certificate.programs.values())
    assert totals == [count] * count
