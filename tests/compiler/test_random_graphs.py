"""Random graphs: the program, the interpreter and the float reference agree on all of them.

One graph is one test, named by its seed. CAPRA_RANDOM_GRAPHS sets their number and CAPRA_SEED the
first, `-k graph17-` (or the name of the failed test) runs one of them again. A failure is shrunk,
and prints the graph that is left; CAPRA_GRAPH=FILE runs the graph of a text file instead.
"""

import os
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from tests.compiler.agreement import check_agreement, check_integers, is_comparable
from tests.compiler.random_graphs import RandomGraph, leaf_samples, random_graph
from tests.compiler.shrink import shrink
from tests.ir.visible_sets import mask_of
from tests.isa.accounts import check_accounts, phases_in

from capra.compiler.optimization import LEVELS
from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.errors import RangeError
from capra.ir.graph import CONCATS, PRODUCTS, SLICES, Graph, Kind, Node
from capra.ir.ranges import record_ranges
from capra.ir.reference import evaluate_float
from capra.ir.text import parse_graph, print_graph
from capra.isa.chip import Chip
from capra.isa.profile import profile_record
from capra.isa.spec import ARRAY_SIZE
from capra.sim.machine import Machine

DEFAULT_COUNT = 200
GRAPH_FILE = os.environ.get("CAPRA_GRAPH")
COUNT = 1 if GRAPH_FILE else int(os.environ.get("CAPRA_RANDOM_GRAPHS", DEFAULT_COUNT))
FIRST = int(os.environ.get("CAPRA_SEED", "0"))


@pytest.mark.sample(40 if COUNT == DEFAULT_COUNT else COUNT)
@pytest.mark.parametrize("graph_seed", range(FIRST, FIRST + COUNT), ids=lambda s: f"graph{s}-")
def test_program_interpreter_and_float_agree(
    graph_seed: int, record_property: Callable[[str, object], None]
) -> None:
    if GRAPH_FILE:
        graph = parse_graph(Path(GRAPH_FILE).read_text())
    else:
        random = random_graph(graph_seed)
        graph = random.graph
        record_property("random graphs", [graph_seed, 1])
        check_float_reference(random)
    try:
        check_agreement(graph, leaf_samples(graph, graph_seed))
    except Exception as error:
        raise AssertionError(report(graph, graph_seed, error)) from error


@pytest.mark.parametrize("graph_seed", range(FIRST, FIRST + 60))
def test_leaves_of_all_magnitudes_agree_or_are_refused(graph_seed: int) -> None:
    """Program = interpreter on them too; most of them int8 cannot hold next to each other."""
    graph, draw = random_graph(graph_seed).graph, Random(graph_seed)
    samples = leaf_samples(graph, graph_seed)
    spread = draw.choice((3, 6, 15, 25))
    factors = {name: 10 ** draw.uniform(-spread, spread) for name in samples[0]}
    scaled = [{name: value * factors[name] for name, value in each.items()} for each in samples]
    try:
        check_integers(graph, scaled)
    except RangeError as error:
        assert re.search(r"rescale factor is .* below 2\^15|reaches .* in float", str(error))


@pytest.mark.parametrize("graph_seed", range(FIRST, FIRST + 40))
@pytest.mark.parametrize("level", LEVELS)
def test_every_cycle_is_of_a_phase_of_an_instruction(graph_seed: int, level: str) -> None:
    """In the program, in its profile, and as the simulator counts them."""
    random = random_graph(graph_seed)
    ranges = record_ranges(random.graph, random.leaves)
    program = compile_graph(random.graph, ranges, Chip(), optimize=LEVELS[level])
    check_accounts(program.instructions, program.counters, program.phases)
    profile = profile_record(program)
    for inst, entry in zip(program.instructions, profile["instructions"], strict=True):
        assert set(entry["phases"]) == phases_in([inst])
        shares = entry.get("shares", [])
        assert sum(share["cycles"] for share in shares) == (entry["cycles"] if shares else 0)
        assert all(share["cycles"] >= share["words"] > 0 for share in shares)
    check_accounts(program.instructions, program.counters, profile["cycles_by_phase"])
    kinds = {node.kind for node in random.graph}
    assert ("softmax" in program.phases) == bool(kinds & {Kind.SOFTMAX, Kind.ATTENTION})
    assert ("add" in program.phases) == (Kind.ADD in kinds)
    assert Machine(program.chip).run(program) == program.counters


def report(graph: Graph, graph_seed: int, error: Exception) -> str:
    """What went wrong with a graph, the smallest graph with which it does, and how to repeat it."""

    def fails(smaller: Graph) -> bool:
        try:
            check_agreement(smaller, leaf_samples(smaller, graph_seed))
        except type(error):
            return True
        except Exception:  # another fault, or a graph that may not be compiled
            return False
        return False

    return (
        f"{error}\n\nThe smallest graph found with {type(error).__name__}:\n"
        f"{print_graph(shrink(graph, fails))}\n"
        f"Replay the whole graph with -k graph{graph_seed}-, this one, from FILE, with "
        f"CAPRA_SEED={graph_seed} CAPRA_GRAPH=FILE."
    )


def check_float_reference(random: RandomGraph) -> None:
    indices = {node.name for node in random.graph if node.is_index}
    for leaves, sample in ((random.leaves[0], 0), (random.leaves[-1], -1)):
        for name, value in evaluate_float(random.graph, leaves).items():
            if name not in indices:
                real = random.values[name][sample]
                np.testing.assert_allclose(value, real, rtol=1e-7, atol=1e-9, err_msg=name)


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
    "scores 1 transposed", "softmax", "attention 0", "attention 1", "attention 2", "add", "argmax",
)  # fmt: skip


def test_every_kind_of_slice_feeds_every_kind_of_reader() -> None:
    found = Counter(
        (source_of(graph, graph[operand]), graph[operand].kind, role_of(node, index))
        for graph in (random.graph for random in graphs())
        for node in graph
        for index, operand in enumerate(node.inputs)
        if graph[operand].kind in SLICES
    )
    sources = ("input", "weight", "product", "concat", "slice", "attention", "elementwise")
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
            if len(set(node.inputs)) < len(node.inputs):
                twice.add(node.kind)
    assert set(fused) == PRODUCTS
    assert set(unfused) == set(Kind) - SLICES - {Kind.ARGMAX}
    assert twice == {Kind.MATMUL, Kind.SCORES, Kind.ATTENTION, Kind.ADD}


def test_attentions_have_every_kind_of_visible_set() -> None:
    """Tiles whose rows see all, the first keys, or keys with gaps; of one row and of several."""
    shapes, tiles = set(), set()
    for random in graphs():
        for node in (node for node in random.graph if node.visible is not None):
            visible = node.visible
            assert visible is not None
            shapes.add((node.heads > 1, visible.prefix > 0, node.rows > ARRAY_SIZE))
            for start in range(0, node.rows, ARRAY_SIZE):
                mask = mask_of(visible)[start : start + ARRAY_SIZE]
                gaps = bool((np.diff(mask.astype(int), axis=1) > 0).any() or not mask[:, 0].all())
                tiles.add((len(mask) > 1, gaps, bool(mask.all())))
    assert shapes == set(product((False, True), repeat=3))
    assert tiles == {*product((False, True), (False, True), (False,)),
                     *product((False, True), (False,), (True,))}  # fmt: skip


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
    compared = Counter[bool]()
    for random in graphs():
        scales = assign_scales(random.graph, record_ranges(random.graph, random.leaves))
        reals = {name: value[0] for name, value in random.values.items()}
        compared.update(
            is_comparable(random.graph, name, scales, reals)
            for name in random.graph.outputs
            if not random.graph[name].is_index
        )
    assert compared[False] < 0.15 * compared.total()
