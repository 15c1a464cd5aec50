"""The integer interpreter: a graph evaluated tensor by tensor, with no instructions and no memory.

It must agree with the compiled program bit for bit on every tensor.
"""

from collections.abc import Mapping

import numpy as np

from capra.ir.graph import LEAVES, Graph, Kind, Node
from capra.ir.reference import leaf_value
from capra.ir.scales import Scales
from capra.numerics import (
    Int64Array,
    check_int8,
    first_argmax,
    requantize,
    saturating_add,
    softmax_row,
)


def evaluate_int(
    graph: Graph, scales: Scales, leaves: Mapping[str, Int64Array]
) -> dict[str, Int64Array]:
    """Every tensor of the graph as integers (int64, node shape), given its leaves as int8 integers.

    A product that is fused into a relu is included, as the int8 tensor that it would be.
    Raises GraphError for a leaf that is missing or has another shape, RangeError for one that holds
    anything but integers of -127 .. 127.
    """
    values: dict[str, Int64Array] = {}
    for node in graph:
        if node.kind in LEAVES:
            value = leaf_value(node, leaves)
            check_int8(f"{node.kind} {node.name}", value)
            values[node.name] = value.astype(np.int64)
        else:
            values[node.name] = _evaluate(node, scales, [values[name] for name in node.inputs])
    return values


def _evaluate(node: Node, scales: Scales, operands: list[Int64Array]) -> Int64Array:
    first = operands[0]
    match node.kind:
        case Kind.MATMUL | Kind.SCORES:
            right = operands[1].T if node.transpose_b else operands[1]
            out = scales.product[node.name]
            return requantize(first @ right, out.multiplier, out.shift)
        case Kind.SOFTMAX:
            index, out = scales.softmax_index[node.name], scales.product[node.name]
            fixed = np.zeros(node.shape, np.int64)
            for row, scores in enumerate(first):
                seen = node.seen(row)
                fixed[row, :seen] = softmax_row(scores[:seen], index.multiplier, index.shift)
            return requantize(fixed, out.multiplier, out.shift)
        case Kind.RELU:
            return np.maximum(first, 0)
        case Kind.ADD:
            to_out = scales.addends[node.name]
            a, b = (
                requantize(operand, rescale.multiplier, rescale.shift)
                for operand, rescale in zip(operands, to_out, strict=True)
            )
            return saturating_add(a, b)
        case Kind.CONCAT_ROWS:
            return np.vstack(operands)
        case Kind.CONCAT_COLS:
            return np.hstack(operands)
        case Kind.SLICE_ROWS:
            return first[node.start : node.start + node.rows]
        case Kind.SLICE_COLS:
            return first[:, node.start : node.start + node.cols]
        case Kind.ARGMAX:
            return np.array([[first_argmax(row)] for row in first], dtype=np.int64)
        case Kind.INPUT | Kind.WEIGHT:
            raise AssertionError(f"{node.name} is a leaf")
