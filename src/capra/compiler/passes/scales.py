"""The scales pass: one scale a tensor, and the integer rescales between them.

relu, concatenations and slices share their source's scale, and an attention that of its heads'
results: tensors tied that way form a group (union-find), whose range is the largest range of its
materialized members.
"""

import sys
from collections.abc import Mapping
from typing import Final

from capra.errors import RangeError
from capra.ir.graph import CONCATS, PRODUCTS, SLICES, Graph, Kind
from capra.ir.ranges import Ranges
from capra.ir.scales import Scales
from capra.numerics import (
    EXP_STEPS_PER_UNIT,
    INT8_MAX,
    SOFTMAX_ONE,
    Rescale,
    rescale_for,
    saturating_rescale_for,
)

MIN_RANGE: Final = 1e-30
"""Smaller ranges are rounding errors of a tensor that is 0."""

_SMALLEST: Final = sys.float_info.min
"""What a factor becomes that float64 rounds to 0: it multiplies by 0 all the same."""

_SHARES_SCALE = SLICES | CONCATS | {Kind.RELU, Kind.ATTENTION}
_PROBABILITIES = frozenset({Kind.SOFTMAX})


def assign_scales(graph: Graph, ranges: Ranges) -> Scales:
    """The scales of a graph under these ranges.

    Raises RangeError when a group has no range at all, or when two ranges are so far apart that no
    multiplier expresses their ratio. Where a tensor is 0 throughout, and in the index of a softmax,
    a ratio that is too large saturates instead, which is the same integers.
    """
    limits = _limits(graph, ranges)
    # A tensor that is 0 throughout, or next to it, may have any scale: it takes that of range 1.
    zeros = {name for name, limit in limits.items() if limit <= MIN_RANGE}
    scale = {n: (1.0 if n in zeros else limit) / INT8_MAX for n, limit in limits.items()}

    def rescale(factor: float, *tensors: str) -> Rescale:
        return (rescale_for if zeros.isdisjoint(tensors) else saturating_rescale_for)(factor)

    product: dict[str, Rescale] = {}
    softmax_index: dict[str, Rescale] = {}
    addends: dict[str, tuple[Rescale, Rescale]] = {}
    for node in graph.tensors():
        if node.kind in _SHARES_SCALE:
            continue
        try:
            operand = [scale[name] for name in node.inputs]
            if node.kind in PRODUCTS:
                real = operand[0] * operand[1] * node.scale / scale[node.name]
                product[node.name] = rescale(max(real, _SMALLEST), *node.inputs, node.name)
            elif node.kind is Kind.SOFTMAX:
                index = operand[0] * EXP_STEPS_PER_UNIT
                softmax_index[node.name] = saturating_rescale_for(index)
                product[node.name] = rescale_for(1 / SOFTMAX_ONE / scale[node.name])
            elif node.kind is Kind.ADD:
                a, b = (rescale(scale[n] / scale[node.name], n, node.name) for n in node.inputs)
                addends[node.name] = (a, b)
        except RangeError as error:
            raise RangeError(f"{graph.name}, {node.name}: {error}") from None
    return Scales(scale, product, softmax_index, addends)


def missing_ranges(graph: Graph, ranges: Ranges) -> tuple[str, ...]:
    """The tags whose ranges the scales need and do not have, in the order of the graph.

    Of tensors that share a scale one range is enough, so only the first of them is named.
    """
    group = _groups(graph)
    real = [n for n in graph.tensors() if not n.is_index and graph.is_materialized(n.name)]
    known = {group[node.name] for node in real if node.tag in ranges.values}
    missing: dict[str, str] = {}
    for node in real:
        if group[node.name] not in known:
            missing.setdefault(group[node.name], node.tag)
    return tuple(dict.fromkeys(missing.values()))


def _limits(graph: Graph, ranges: Ranges) -> Mapping[str, float]:
    """The range of every int8 tensor: that of its group."""
    group = _groups(graph)
    group_range: dict[str, float] = {}
    for node in graph.tensors():
        recorded = ranges.values.get(node.tag)
        if recorded is not None and graph.is_materialized(node.name):
            root = group[node.name]
            limit = min(recorded, 1.0) if node.kind in _PROBABILITIES else recorded
            group_range[root] = max(limit, group_range.get(root, 0.0))
    limits: dict[str, float] = {}
    for node in graph.tensors():
        if node.is_index:
            continue
        if group[node.name] not in group_range:
            raise RangeError(
                f"{graph.name}: no range for {node.name} (tag {node.tag}), expected one from "
                "calibration for it or for a tensor that shares its scale"
            )
        limits[node.name] = group_range[group[node.name]]
    return limits


def _groups(graph: Graph) -> Mapping[str, str]:
    """The group of every tensor, named by one of its members."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for node in graph.tensors():
        if node.kind in _SHARES_SCALE:
            sources = [head.mixed.name for head in node.inner] or node.inputs
            group = parent[node.name] = root(sources[0])
            for source in sources[1:]:
                parent[root(source)] = group
        else:
            parent[node.name] = node.name
    return {name: root(name) for name in parent}
