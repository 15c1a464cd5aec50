"""What the passes refuse, on random graphs: exactly what does not fit or has no usable range."""

import random
from collections.abc import Callable

import pytest
from tests.compiler.random_graphs import random_graph

from capra.compiler.passes.scales import assign_scales
from capra.compiler.pipeline import compile_graph
from capra.errors import CapacityError, RangeError
from capra.ir.graph import CONCATS, LEAVES, PRODUCTS, SLICES, Graph, Kind
from capra.ir.ranges import Ranges, record_ranges
from capra.isa.chip import Chip

GRAPHS = pytest.mark.parametrize("graph_seed", range(40))
LARGE = Chip(scratchpad_words=1 << 15)


def refuses(compile_it: Callable[[], object], *fragments: str) -> None:
    with pytest.raises(CapacityError) as caught:
        compile_it()
    for fragment in fragments:
        assert fragment in str(caught.value)


@GRAPHS
def test_a_program_fits_a_chip_or_is_refused(graph_seed: int) -> None:
    """One word or one entry less than it needs is too little, what it needs is enough."""
    random_ = random_graph(graph_seed)
    graph, ranges = random_.graph, record_ranges(random_.graph, random_.leaves)
    program = compile_graph(graph, ranges, LARGE, reuse=False)

    entries = len(program.instructions)
    compile_graph(graph, ranges, Chip(program_entries=entries))
    refuses(
        lambda: compile_graph(graph, ranges, Chip(program_entries=entries - 1)),
        f"{graph.name} has {entries} instructions, expected at most {entries - 1}",
    )

    stored = [node.rows * node.cols for node in graph if node.kind in LEAVES]
    stored += [graph[name].rows * graph[name].cols for name in graph.outputs]
    words = sum(stored)
    compile_graph(graph, ranges, Chip(external_words=max(words, 16)))
    if words > 16:
        refuses(
            lambda: compile_graph(graph, ranges, Chip(external_words=words - 1)),
            f"needs {words} words for {graph.outputs[-1]}, expected at most {words - 1}",
        )

    used = max(home.region.end for home in program.tensors.values())
    power = 1 << (used - 1).bit_length()
    compile_graph(graph, ranges, Chip(scratchpad_words=max(power, 16)), reuse=False)
    if power > 16:
        refuses(
            lambda: compile_graph(graph, ranges, Chip(scratchpad_words=power // 2), reuse=False),
            "the scratchpad needs",
            f"expected at most {power // 2}",
        )


def group_ranges(graph: Graph, ranges: Ranges) -> dict[str, float]:
    """The largest range among the tensors that share a scale, by tensor; none where all lack one.

    An oracle that floods along the edges of views and relus until nothing changes.
    """
    known: dict[str, float] = {}
    for node in graph.tensors():
        if node.is_index or not graph.is_materialized(node.name):
            continue
        if node.tag in ranges.values:
            value = ranges.values[node.tag]
            known[node.name] = min(value, 1.0) if node.kind is Kind.SOFTMAX else value
    shared = [
        (n.name, x) for n in graph if n.kind in {*SLICES, *CONCATS, Kind.RELU} for x in n.inputs
    ]
    shared += [(node.name, head.mixed.name) for node in graph for head in node.inner]
    changed = True
    while changed:
        changed = False
        for pair in shared:
            values = [known[name] for name in pair if name in known]
            for name in pair if values else ():
                changed |= known.get(name) != max(values)
                known[name] = max(values)
    return known


def factors(graph: Graph, ranges: dict[str, float]) -> list[float]:
    """What every rescale multiplies by, but for those of zeros and of scores: these saturate."""
    step = {name: value / 127 for name, value in ranges.items()}
    found: list[float] = []
    for node in (node for node in graph.tensors() if node.kind is not Kind.ATTENTION):
        if node.kind is not Kind.SOFTMAX and any(
            step.get(n) == 0 for n in (node.name, *node.inputs)
        ):
            continue
        operands = [step[name] for name in node.inputs] if node.name in step else []
        if node.kind in PRODUCTS:
            found.append(operands[0] * operands[1] * node.scale / step[node.name])
        elif node.kind is Kind.SOFTMAX:
            found.append(1 / 32768 / (step[node.name] or 1 / 127))
        elif node.kind is Kind.ADD:
            found += [operand / step[node.name] for operand in operands]
    return found


def random_range(draw: random.Random, spread: int) -> float:
    """10 to a power of -spread .. spread, or 0."""
    return 10 ** draw.uniform(-spread, spread) if draw.random() < 0.9 else 0.0


@GRAPHS
def test_ranges_are_usable_or_refused(graph_seed: int) -> None:
    graph, draw = random_graph(graph_seed).graph, random.Random(graph_seed)
    verdicts = set()
    for spread in (1, 1, 2, 3, 4, 8):
        for missing in (0.0, 0.2):
            tags = {tensor.tag for tensor in graph.tensors() if draw.random() >= missing}
            ranges = Ranges({tag: random_range(draw, spread) for tag in sorted(tags)})
            known = group_ranges(graph, ranges)
            lacking = [n.name for n in graph.tensors() if not n.is_index and n.name not in known]
            if lacking:
                with pytest.raises(RangeError, match=rf"no range for {lacking[0]} \(tag "):
                    assign_scales(graph, ranges)
            elif max(factors(graph, known), default=0.0) >= 2**15 - 0.25:
                with pytest.raises(RangeError, match=r"rescale factor is .* below 2\^15"):
                    assign_scales(graph, ranges)
            else:
                scales = assign_scales(graph, ranges)
                assert scales.scale == {name: (value or 1.0) / 127 for name, value in known.items()}
            verdicts.add(bool(lacking))
    assert False in verdicts
