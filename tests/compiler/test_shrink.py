"""The shrinker: planted bugs of the compiler end as the few nodes that they need."""

from collections.abc import Callable, Mapping

import pytest
from tests.compiler.agreement import check_agreement
from tests.compiler.random_graphs import leaf_samples, random_graph
from tests.compiler.shrink import shrink

from capra.compiler import pipeline
from capra.compiler.passes.views import Place, place_tensors
from capra.ir.graph import SLICES, Graph, Kind
from capra.ir.text import parse_graph, print_graph


def disagrees(graph: Graph) -> bool:
    try:
        check_agreement(graph, leaf_samples(graph, 0))
    except AssertionError:
        return True
    return False


def shifted_column_views(graph: Graph) -> Mapping[str, Place]:
    """Column slices of column slices lose the outer offset."""
    places = dict(place_tensors(graph))
    for node in graph:
        if node.kind is Kind.SLICE_COLS and graph[node.inputs[0]].kind is Kind.SLICE_COLS:
            offset = places[node.name].offset - graph[node.inputs[0]].start
            places[node.name] = places[node.name]._replace(offset=offset)
    return places


def touching_rows(graph: Graph) -> Mapping[str, Place]:
    """Row slices of column slices forget that the rows of a wider buffer lie apart."""
    places = dict(place_tensors(graph))
    for node in graph:
        if node.kind is Kind.SLICE_ROWS and graph[node.inputs[0]].kind is Kind.SLICE_COLS:
            places[node.name] = places[node.name]._replace(stride=node.cols)
    return places


@pytest.mark.parametrize(
    ("bug", "slices"),
    [
        (shifted_column_views, [Kind.SLICE_COLS, Kind.SLICE_COLS]),
        (touching_rows, [Kind.SLICE_COLS, Kind.SLICE_ROWS]),
    ],
)
def test_planted_bug_shrinks_to_what_it_needs(
    bug: Callable[[Graph], Mapping[str, Place]],
    slices: list[Kind],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "place_tensors", bug)
    graph = next(g for g in (random_graph(seed).graph for seed in range(200)) if disagrees(g))
    smallest = shrink(graph, disagrees)
    print(print_graph(smallest))
    assert len(graph.nodes) > 10
    assert len(smallest.nodes) <= 5
    assert [node.kind for node in smallest if node.kind in SLICES] == slices
    assert max(max(node.shape) for node in smallest) <= 4
    monkeypatch.undo()
    assert not disagrees(smallest)


def test_every_part_that_matters_stays() -> None:
    graph = random_graph(3).graph
    wide = max(node.cols for node in graph)

    def fails(smaller: Graph) -> bool:
        return any(node.cols == wide for node in smaller)

    (node,) = shrink(graph, fails)
    assert node.shape == (1, wide)


def test_numbers_and_factors_become_small() -> None:
    graph = parse_graph("""graph g
x = input 9x9
w = weight 9x7
p = matmul x w scale=0.25
v = slice_rows p start=5 count=3
output v""")

    def fails(smaller: Graph) -> bool:
        stored = smaller[smaller.outputs[-1]]
        return stored.kind is Kind.SLICE_ROWS and stored.start > 1

    assert print_graph(shrink(graph, fails)) == (
        "graph g\nx = input 3x1\nv = slice_rows x start=2 count=1\noutput v\n"
    )


def test_a_graph_that_does_not_fail_is_refused() -> None:
    with pytest.raises(AssertionError, match="does not fail"):
        shrink(random_graph(0).graph, lambda _: False)
