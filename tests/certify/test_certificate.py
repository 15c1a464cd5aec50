"""The certificate: given to what is exact, refused to what is not, with the reason."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.lm.samples import MODELS, text_model

from capra.certify.certificate import Certificate, Subject, certify
from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.errors import InputError
from capra.ir.graph import Graph
from capra.ir.ranges import Ranges
from capra.ir.scales import Scales
from capra.ir.text import parse_graph, print_graph
from capra.isa.program import Program
from capra.lm.target import Role
from capra.numerics import Rescale

CACHE, ROWS = 6, 5


def subject() -> Subject:
    return Subject.of(text_model())


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


@pytest.mark.parametrize("name", MODELS)
def test_an_exact_model_is_certified(name: str) -> None:
    certificate = certify(Subject.of(MODELS[name]()), CACHE, ROWS, instruction_caches=3)
    assert certificate.failure is None
    shapes = (CACHE + 1) * ROWS
    assert certificate.graphs == {"step": CACHE + ROWS, "verify": shapes, "prefill": shapes}
    assert certificate.programs == {"step": 11, "verify": 3 * ROWS, "prefill": 3 * ROWS}


def test_every_cache_is_every_cache() -> None:
    caches = set[int]()
    honest = subject()

    def program(graph: Graph) -> Program:
        caches.add(int(graph.name.split("_c")[1]))
        return honest.program(graph)

    certificate = certify(replace(honest, program=program), 4, 2, instruction_caches=99)
    assert caches == set(range(6)) and certificate.programs["verify"] == 10


def test_shapes_beyond_the_context_have_no_program() -> None:
    context = text_model().config.context
    certificate = certify(subject(), context, 2, instruction_caches=2)
    assert certificate.failure is None
    assert certificate.graphs["verify"] == 2 * (context + 1)
    assert certificate.programs == {"step": 2, "verify": 2, "prefill": 2}


def test_the_digest_is_of_the_functions() -> None:
    one = certify(subject(), 3, 2)
    assert certify(subject(), 3, 2, instruction_caches=2).digest == one.digest
    assert certify(subject(), 3, 3).digest != one.digest
    assert certify(Subject.of(MODELS["random"]()), 3, 2).digest != one.digest


def test_ranges_of_its_own_for_every_program_are_refused() -> None:
    """As if each program were calibrated on its own, by what its own rows reach."""
    model = text_model()

    def ranges(graph: Graph) -> Ranges:
        rows = graph["x"].rows
        return Ranges({tag: value * (1 + rows / 64) for tag, value in model.ranges.values.items()})

    own = replace(
        subject(),
        scales=lambda graph: assign_scales(graph, ranges(graph)),
        program=lambda graph: compile_graph(graph, ranges(graph), model.config.chip),
    )
    certificate = certify(own, CACHE, ROWS)
    assert certificate.failure is not None
    assert certificate.failure.program == "verify_m2_c0"
    assert certificate.graphs["verify"] == 1  # a block of one row has the step's own ranges
    assert "in steps of" in certificate.failure.reason or "scale" in certificate.failure.reason


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
        name = "l0.h1.probs.r2"
        old = scales.softmax_index[name]
        other = Rescale(old.multiplier, old.shift + 1)
        return replace(scales, softmax_index={**scales.softmax_index, name: other})

    failure = of_scales(change, "verify_m3_c2").failure
    assert failure is not None
    assert (failure.row, failure.tensor) == (2, "l1.k")
    assert failure.operation == "l0.h1.probs.r2 of verify_m3_c2"


def replaced(old: str, new: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        assert text.count(old) == 1, text
        return text.replace(old, new)

    return change


def both(row: int, seen: int, wrong: int) -> Callable[[str], str]:
    """Keys and values of a row of layer 0 cut to another number of rows."""

    def change(text: str) -> str:
        for kv in "kv":
            old = f"l0.{kv}.r{row} = slice_rows l0.{kv}.all start=0 count={seen} "
            assert text.count(old) == 1, text
            text = text.replace(old, old.replace(f"count={seen}", f"count={wrong}"))
        return text

    return change


_SHIFTED_KEYS = "l0.k.r1 = slice_rows l0.k.all start=1"


@pytest.mark.parametrize(
    ("change", "row", "tensor", "operation", "reason"),
    [
        (both(1, 4, 5), 1, "l1.k", "l0.h0.probs.r1", "a row range: 5 elements, expected 4"),
        (both(1, 4, 3), 1, "l1.k", "l0.h0.probs.r1", "a row range: 3 elements, expected 4"),
        (
            replaced("l0.k.r1 = slice_rows l0.k.all start=0", _SHIFTED_KEYS),
            1, "l1.k", "l0.h0.scores.r1", "what it reads: l0.k[4, 0], expected l0.k[3, 0]",
        ),
        (
            replaced("l0.q.r1 = slice_rows l0.q start=1", "l0.q.r1 = slice_rows l0.q start=0"),
            1, "l1.k", "l0.h0.scores.r1",
            "what it reads: rescale (l0.q of step_c2), expected rescale (l0.q of step_c3)",
        ),
        (
            replaced("concat_rows l0.attn.r0 l0.attn.r1", "concat_rows l0.attn.r1 l0.attn.r0"),
            0, "l1.k", "l0.mid",
            "what it reads: rescale (l0.mid of step_c3), expected rescale (l0.mid of step_c2)",
        ),
        (
            replaced("l1.h0.attn.r0 l1.h1.attn.r0", "l1.h1.attn.r0 l1.h0.attn.r0"),
            0, "logits", "l1.o", "an order: the same 8 elements in another one",
        ),
        (
            replaced("concat_rows l0.k.cache l0.k tag", "concat_rows l0.k l0.k.cache tag"),
            0, "l1.k", "l0.h0.scores.r0", "what it reads: l0.k[3, 0], expected l0.k[1, 0]",
        ),
        (
            replaced("l1.mid = add l0.out l1.o", "l1.mid = add l1.o l0.out"),
            0, "logits", "l1.mid", "",
        ),
        (
            replaced("l0.h1.probs.r0 = softmax", "l0.h1.probs.r0 = relu"),
            0, "l1.k", "l0.h1.probs.r0", "its kind: relu (",
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
    assert (failure.tensor, failure.reason) == (output, "has no such output")


def test_a_prefill_that_keeps_other_values_is_found() -> None:
    change = replaced("l1.v = matmul l0.out layers.1.wv", "l1.v = matmul l0.out layers.1.wk")
    failure = of_graphs(change, "prefill_m4_c5").failure
    assert failure is not None
    assert (failure.program, failure.row, failure.tensor) == ("prefill_m4_c5", 0, "l1.v")
    assert failure.operation == "l1.v of prefill_m4_c5"


def test_a_program_that_is_not_its_graph_is_a_failure() -> None:
    honest = subject()

    def program(graph: Graph) -> Program:
        made = honest.program(graph)
        if graph.name != "verify_m3_c3":
            return made
        code = list(made.instructions)
        code.remove(next(inst for inst in code if inst.mnemonic == "MM"))
        return replace(made, instructions=tuple(code), tensors={})

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
