"""The scales pass: one scale a tensor, and the integer rescales between them.

relu, concatenations and slices share their source's scale: tensors tied that way form a group
(union-find), whose range is the largest range of its materialized members.
"""

from collections.abc import Mapping
from typing import Final

from capra.errors import RangeError
from capra.ir.graph import CONCATS, PRODUCTS, SLICES, Graph, Kind
from capra.ir.ranges import Ranges
from capra.ir.scales import Scales
from capra.numerics import EXP_STEPS_PER_UNIT, INT8_MAX, SOFTMAX_ONE, Rescale, rescale_for

MIN_RANGE: Final = 1e-30
"""Smaller ranges are rounding errors of a tensor that is 0."""

_SHARES_SCALE = SLICES | CONCATS | {Kind.RELU}
_PROBABILITIES = frozenset({Kind.SOFTMAX})


def assign_scales(graph: Graph, ranges: Ranges) -> Scales:
    """The scales of a graph under these ranges.

    Raises RangeError when a group has no range at all, or when two ranges are so far apart that no
    multiplier expresses their ratio.
    """
    scale = _group_scales(graph, ranges)
    product: dict[str, Rescale] = {}
    softmax_index: dict[str, Rescale] = {}
    addends: dict[str, tuple[Rescale, Rescale]] = {}
    for node in graph:
        if node.kind in _SHARES_SCALE:
            continue
        try:
            operand = [scale[name] for name in node.inputs]
            if node.kind in PRODUCTS:
                real = operand[0] * operand[1] * node.scale
                product[node.name] = rescale_for(real / scale[node.name])
            elif node.kind is Kind.SOFTMAX:
                softmax_index[node.name] = rescale_for(operand[0] * EXP_STEPS_PER_UNIT)
                product[node.name] = rescale_for(1 / SOFTMAX_ONE / scale[node.name])
            elif node.kind is Kind.ADD:
                a, b = (rescale_for(s / scale[node.name]) for s in operand)
                addends[node.name] = (a, b)
        except RangeError as error:
            raise RangeError(f"{graph.name}, {node.name}: {error}") from None
    return Scales(scale, product, softmax_index, addends)


def missing_ranges(graph: Graph, ranges: Ranges) -> tuple[str, ...]:
    """The tags whose ranges the scales need and do not have, in the order of the graph.

    Of tensors that share a scale one range is enough, so only the first of them is named.
    """
    group = _groups(graph)
    real = [n for n in graph if not n.is_index and graph.is_materialized(n.name)]
    known = {group[node.name] for node in real if node.tag in ranges.values}
    missing: dict[str, str] = {}
    for node in real:
        if group[node.name] not in known:
            missing.setdefault(group[node.name], node.tag)
    return tuple(dict.fromkeys(missing.values()))


def _group_scales(graph: Graph, ranges: Ranges) -> Mapping[str, float]:
    group = _groups(graph)
    group_range: dict[str, float] = {}
    for node in graph:
        recorded = ranges.values.get(node.tag)
        if recorded is not None and graph.is_materialized(node.name):
            root = group[node.name]
            limit = min(recorded, 1.0) if node.kind in _PROBABILITIES else recorded
            group_range[root] = max(limit, group_range.get(root, 0.0))
    # A group that is 0 throughout, or next to it, may have any scale: take that of range 1.
    group_scale = {
        root: (limit if limit > MIN_RANGE else 1.0) / INT8_MAX
        for root, limit in group_range.items()
    }

    scale: dict[str, float] = {}
    for node in graph:
        if node.is_index:
            continue
        if group[node.name] not in group_scale:
            raise RangeError(
                f"{graph.name}: no range for {node.name} (tag {node.tag}), expected one from "
                "calibration for it or for a tensor that shares its scale"
            )
        scale[node.name] = group_scale[group[node.name]]
    return scale


def _groups(graph: Graph) -> Mapping[str, str]:
    """The group of every tensor, named by one of its members."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for node in graph:
        if node.kind in _SHARES_SCALE:
            group = parent[node.name] = root(node.inputs[0])
            for source in node.inputs[1:]:
                parent[root(source)] = group
        else:
            parent[node.name] = node.name
    return {name: root(name) for name in parent}
