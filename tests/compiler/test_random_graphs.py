"""Random graphs: the program, the interpreter and the float reference agree on all of them.

One graph is one test, named by its seed; a failure prints the graph. CAPRA_RANDOM_GRAPHS sets
their number, `-k graph17-` (or the name of the failed test) runs one of them again.
"""

import os
from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest
from tests.compiler.execution import run_and_read_back
from tests.compiler.random_graphs import RandomGraph, random_graph

from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.ir.graph import CONCATS, LEAVES, PRODUCTS, SLICES, Graph, Kind, Node
from capra.ir.interpreter import evaluate_int
from capra.ir.ranges import record_ranges
from capra.ir.reference import evaluate_float
from capra.ir.scales import Scales
from capra.ir.text import print_graph
from capra.isa.chip import Chip
from capra.numerics import Int64Array, quantize

DEFAULT_COUNT = 200
COUNT = int(os.environ.get("CAPRA_RANDOM_GRAPHS", DEFAULT_COUNT))
MAX_ERROR = 0.40
LARGE = Chip(scratchpad_words=1 << 15)

SMALL_VALUES = 0.1
"""A tensor whose root mean square is below this part of its range is not compared with float:
one integer step is then a large part of it. Most outputs are compared; a test counts them."""

NEAR_TIE = 0.25
"""Maxima closer than this part of the range may be told apart either way."""


@pytest.mark.parametrize("graph_seed", range(COUNT), ids=lambda seed: f"graph{seed}-")
def test_program_interpreter_and_float_agree(graph_seed: int) -> None:
    random = random_graph(graph_seed)
    graph = random.graph
    print(f"graph {graph_seed}\n{print_graph(graph)}")
    ranges = record_ranges(graph, random.leaves)
    scales = assign_scales(graph, ranges)
    leaves = {name: quantize(v, scales.scale[name]) for name, v in random.leaves[0].items()}
    expected = evaluate_int(graph, scales, leaves)

    for chip, reuse in ((Chip(), True), (LARGE, False)):
        found = run_and_read_back(compile_graph(graph, ranges, chip, reuse=reuse), leaves)
        named = {name for name in found.tensors if not name.startswith("%")}
        assert named == tensors_in_memory(graph)
        assert list(found.outputs) == list(graph.outputs)
        for name in named:
            np.testing.assert_array_equal(found.tensors[name], expected[name], name)
        for name in graph.outputs:
            np.testing.assert_array_equal(found.outputs[name], expected[name], name)

    check_float_reference(random)
    check_errors(random, scales, expected)


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


def check_float_reference(random: RandomGraph) -> None:
    for leaves, sample in ((random.leaves[0], 0), (random.leaves[-1], -1)):
        for name, value in evaluate_float(random.graph, leaves).items():
            if not random.graph[name].is_index:
                real = random.values[name][sample]
                np.testing.assert_allclose(value, real, rtol=1e-7, atol=1e-9, err_msg=name)


def is_small(random: RandomGraph, scales: Scales, name: str) -> bool:
    real = random.values[name][0]
    return float(np.sqrt(np.mean(real**2))) < SMALL_VALUES * 127 * scales.scale[name]


def check_errors(random: RandomGraph, scales: Scales, integers: dict[str, Int64Array]) -> None:
    """Every output is near its float value, every argmax is the float one but for near ties."""
    for name in random.graph.outputs:
        node, real = random.graph[name], random.values[name][0]
        if node.is_index:
            source = random.values[node.inputs[0]][0]
            margin = NEAR_TIE * 127 * scales.scale[node.inputs[0]]
            chosen = np.take_along_axis(source, integers[name], axis=1)
            assert (source.max(axis=1, keepdims=True) - chosen <= margin).all(), name
        elif not is_small(random, scales, name):
            error = np.linalg.norm(integers[name] * scales.scale[name] - real)
            assert error <= MAX_ERROR * np.linalg.norm(real), name


def test_seed_replays_its_graph() -> None:
    one, two, other = random_graph(7), random_graph(7), random_graph(8)
    assert print_graph(one.graph) == print_graph(two.graph) != print_graph(other.graph)
    for name, value in one.leaves[0].items():
        np.testing.assert_array_equal(value, two.leaves[0][name])


# That the generator really makes what the tests are about


@cache
def graphs() -> tuple[RandomGraph, ...]:
    return tuple(random_graph(seed) for seed in range(DEFAULT_COUNT))


def source_of(graph: Graph, view: Node) -> str:
    kind = graph[view.inputs[0]].kind
    groups = {"product": PRODUCTS, "concat": CONCATS, "slice": SLICES, "elementwise": ELEMENTWISE}
    return next((name for name, kinds in groups.items() if kind in kinds), kind.value)


def role_of(node: Node, index: int) -> str:
    """What an operand is to its reader, such as "matmul 1 transposed"."""
    sides = len(node.inputs) > 1 and node.kind is not Kind.ADD
    return f"{node.kind}{f' {index}' if sides else ''}{' transposed' * node.transpose_b}"


ELEMENTWISE = {Kind.SOFTMAX, Kind.RELU, Kind.ADD}
ROLES = (
    "matmul 0", "matmul 1", "matmul 0 transposed", "matmul 1 transposed", "scores 0 transposed",
    "scores 1 transposed", "softmax", "add", "argmax",
)  # fmt: skip


def test_every_kind_of_slice_feeds_every_kind_of_reader() -> None:
    found = Counter(
        (source_of(graph, graph[operand]), graph[operand].kind, role_of(node, index))
        for graph in (random.graph for random in graphs())
        for node in graph
        for index, operand in enumerate(node.inputs)
        if graph[operand].kind in SLICES
    )
    sources = ("input", "weight", "product", "concat", "slice", "elementwise")
    missing = [combination for combination in product(sources, SLICES, ROLES)
               if combination not in found]  # fmt: skip
    assert not missing


def test_concatenations_hold_every_kind_and_are_read_by_every_kind() -> None:
    parts, readers, nested = set(), set(), set()
    for random in graphs():
        for node in random.graph:
            for index, operand in enumerate(node.inputs):
                source = random.graph[operand]
                if node.kind in CONCATS:
                    parts.add(source.kind)
                    nested.add((source.kind, node.kind))
                elif source.kind in CONCATS:
                    readers.add(role_of(node, index))
    assert parts == set(Kind) - SLICES - {Kind.ARGMAX}
    assert nested >= set(product(CONCATS, CONCATS))
    assert readers >= {*ROLES, "relu", *SLICES}


def test_every_kind_is_an_output_and_a_dead_end_somewhere() -> None:
    outputs, unread = set(), set()
    for random in graphs():
        outputs |= {random.graph[name].kind for name in random.graph.outputs}
        used = {name for node in random.graph for name in node.inputs} | {*random.graph.outputs}
        unread |= {random.graph[name].kind for name in random.graph.nodes.keys() - used}
    assert outputs == set(Kind)
    assert unread >= set(Kind) - {Kind.WEIGHT}


def test_relus_are_fused_and_unfused_and_operands_are_shared() -> None:
    fused, unfused, twice = Counter[Kind](), Counter[Kind](), set()
    for random in graphs():
        for node in random.graph:
            if node.kind is Kind.RELU:
                source = node.inputs[0]
                (unfused if random.graph.is_materialized(source) else fused)[
                    random.graph[source].kind
                ] += 1
            if len(node.inputs) == 2 and len(set(node.inputs)) == 1:
                twice.add(node.kind)
    assert set(fused) == PRODUCTS
    assert set(unfused) == set(Kind) - SLICES - {Kind.ARGMAX}
    assert twice == {Kind.MATMUL, Kind.SCORES, Kind.ADD}


def test_sources_are_read_again_after_their_views_or_never() -> None:
    alive = dead = 0
    for random in graphs():
        order = list(random.graph.nodes)
        for view in (node for node in random.graph if node.kind in SLICES):
            readers = random.graph.users(view.name)
            later = [user for user in random.graph.users(view.inputs[0])
                     if readers and order.index(user) > order.index(readers[-1])]  # fmt: skip
            alive += bool(later)
            dead += bool(readers) and not later
    assert alive > 100
    assert dead > 100


def test_most_outputs_are_compared_with_float() -> None:
    small = compared = 0
    for random in graphs():
        scales = assign_scales(random.graph, record_ranges(random.graph, random.leaves))
        for name in random.graph.outputs:
            if not random.graph[name].is_index:
                small += is_small(random, scales, name)
                compared += 1
    assert small < 0.15 * compared
