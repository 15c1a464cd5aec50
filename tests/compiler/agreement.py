"""One graph, evaluated every way there is: what must agree, and how nearly."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from tests.certify.symbolic import check
from tests.compiler.execution import run_and_read_back
from tests.ir.visible_sets import mask_of

from capra.compiler.optimization import O0, O1
from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import CONCATS, LEAVES, SLICES, Graph, Kind
from capra.ir.interpreter import evaluate_int
from capra.ir.ranges import record_ranges
from capra.ir.reference import evaluate_float
from capra.ir.scales import Scales
from capra.isa.chip import Chip
from capra.numerics import FloatArray, Int64Array, quantize

Leaves = Mapping[str, FloatArray]

LARGE: Final = Chip(external_words=1 << 15, scratchpad_words=1 << 15)
"""A chip that holds every tensor of a test at once, and so needs no reuse of buffers."""

MAX_ERROR: Final = 0.40
"""Of a tensor against float, as a part of its norm."""

SMALL_VALUES: Final = 0.1
"""A tensor whose root mean square is below this part of its range is not compared with float:
one integer step is then a large part of it."""

NEAR_TIE: Final = 0.25
"""Maxima closer than this part of the range may be told apart either way."""


def check_agreement(graph: Graph, samples: Sequence[Leaves], chip: Chip | None = None) -> None:
    """Assert program = interpreter on every tensor, with and without reuse; float is near.

    So is every tensor of the optimized program, which may hold others too. The ranges are of all
    samples; programs run the first. The programs are also executed on terms, which finds what
    these leaves happen to hide.
    """
    scales, expected = check_integers(graph, samples, chip)
    check_errors(graph, samples[0], scales, expected)


def check_integers(
    graph: Graph, samples: Sequence[Leaves], chip: Chip | None = None
) -> tuple[Scales, Mapping[str, Int64Array]]:
    """The part of `check_agreement` without float: the scales, and every tensor as integers."""
    ranges = record_ranges(graph, samples)
    scales = assign_scales(graph, ranges)
    leaves = {name: quantize(v, scales.scale[name]) for name, v in samples[0].items()}
    expected = evaluate_int(graph, scales, leaves)
    ways = ((chip or Chip(), True, O0), (LARGE, False, O0), (chip or Chip(), True, O1))
    for size, reuse, optimize in ways:
        program = compile_graph(graph, ranges, size, reuse=reuse, optimize=optimize)
        found = run_and_read_back(program, leaves)
        named = {name for name in found.tensors if not name.startswith("%")}
        assert named & graph.nodes.keys() == tensors_in_memory(graph)
        assert optimize or named <= graph.nodes.keys()
        named &= graph.nodes.keys()
        assert list(found.outputs) == list(graph.outputs)
        for name in named:
            np.testing.assert_array_equal(found.tensors[name], expected[name], name)
        check_inner(graph, found.tensors, expected)
        for name in graph.outputs:
            np.testing.assert_array_equal(found.outputs[name], expected[name], name)
        assert check(graph, ranges, program) is None
    return scales, expected


def check_inner(
    graph: Graph, found: Mapping[str, Int64Array], expected: Mapping[str, Int64Array]
) -> None:
    """The scores and probabilities of every row of every attention, tile by tile.

    A score of a key that a row does not see may be anything; its probability is 0.
    """
    for node in (node for node in graph if node.visible is not None):
        assert node.visible is not None
        mask = mask_of(node.visible)
        for scores, probs, _ in node.inner:
            for tensor in (scores, probs):
                tiles = {
                    int(name.rpartition(".r")[2]): words
                    for name, words in found.items()
                    if re.fullmatch(rf"%{re.escape(tensor.name)}\.r\d+", name)
                }
                assert min(tiles) == 0
                for start, end in pairwise([*sorted(tiles), node.rows]):
                    rows, tile = slice(start, end), tiles[start].reshape(end - start, -1)
                    keys = tile.shape[1]
                    seen = mask[rows, :keys] | (tensor is probs)
                    assert not mask[rows, keys:].any()
                    right = expected[tensor.name][rows, :keys]
                    np.testing.assert_array_equal(tile[seen], right[seen], tensor.name)


def tensors_in_memory(graph: Graph) -> set[str]:
    """What a program must hold: everything computed, and what is read, through views or not."""
    held: set[str] = set()

    def hold(name: str) -> None:
        held.add(name)
        if graph[name].kind in SLICES | CONCATS:
            for source in graph[name].inputs:
                hold(source)

    for node in graph:
        computed = node.kind not in LEAVES | SLICES | CONCATS
        if computed and graph.is_materialized(node.name):
            held.add(node.name)
        if computed:
            for operand in node.inputs:
                if graph.is_materialized(operand):
                    hold(operand)
    for name in graph.outputs:
        hold(name)
    for node in graph:  # a view that nobody reads is there all the same if its sources are
        if node.kind in SLICES | CONCATS and held.issuperset(node.inputs):
            held.add(node.name)
    return held


def is_comparable(graph: Graph, name: str, scales: Scales, reals: Leaves) -> bool:
    """False where int8 cannot be near float; most outputs are compared, and a test counts them.

    That is a small tensor, and a sum with an addend which is outside the range of the sum: it
    saturates when it is requantized, before the other addend could bring it back.
    """
    node, limit = graph[name], 127 * scales.scale[name]
    if node.kind is Kind.ADD and any(np.abs(reals[a]).max() > limit for a in node.inputs):
        return False
    return float(np.sqrt(np.mean(reals[name] ** 2))) >= SMALL_VALUES * limit


def check_errors(
    graph: Graph, leaves: Leaves, scales: Scales, integers: Mapping[str, Int64Array]
) -> None:
    """Every output is near its float value, every argmax is the float one but for near ties."""
    reals = evaluate_float(graph, leaves)
    for name in graph.outputs:
        node, real = graph[name], reals[name]
        if node.is_index:
            source = reals[node.inputs[0]]
            margin = NEAR_TIE * 127 * scales.scale[node.inputs[0]]
            chosen = np.take_along_axis(source, integers[name], axis=1)
            assert (source.max(axis=1, keepdims=True) - chosen <= margin).all(), name
        elif is_comparable(graph, name, scales, reals):
            error = np.linalg.norm(integers[name] * scales.scale[name] - real)
            assert error <= MAX_ERROR * np.linalg.norm(real), name
