"""The integer interpreter: a graph evaluated tensor by tensor, with no instructions and no memory.

It must agree with the compiled program bit for bit on every tensor.
"""

from collections.abc import Iterator, Mapping

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

    A product that is fused into a relu is included, as the int8 tensor that it would be, and so are
    the tensors inside an attention, under the names of `Node.inner`.
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
            operands = [values[name] for name in node.inputs]
            if node.kind is Kind.ATTENTION:
                values.update(_attention(node, scales, *operands))
            else:
                values[node.name] = _evaluate(node, scales, operands)
    return values


def _attention(
    node: Node, scales: Scales, q: Int64Array, k: Int64Array, v: Int64Array
) -> Iterator[tuple[str, Int64Array]]:
    """The tensors inside an attention, and then its own. A row reads the keys that it sees only."""
    assert node.visible is not None
    heads = list[Int64Array]()
    for number, head in enumerate(node.inner):
        columns = node.columns(number)
        to_score, to_prob, to_out = (scales.product[tensor.name] for tensor in head)
        index = scales.softmax_index[head.probs.name]
        scores, probs, mixed = (np.zeros(tensor.shape, np.int64) for tensor in head)
        for row in range(node.rows):
            seen = node.visible.columns(row)
            sums = k[seen, columns] @ q[row, columns]
            scores[row, seen] = requantize(sums, to_score.multiplier, to_score.shift)
            fixed = softmax_row(scores[row, seen], index.multiplier, index.shift)
            probs[row, seen] = requantize(fixed, to_prob.multiplier, to_prob.shift)
            sums = probs[row, seen] @ v[seen, columns]
            mixed[row] = requantize(sums, to_out.multiplier, to_out.shift)
        values = zip(head, (scores, probs, mixed), strict=True)
        yield from ((tensor.name, value) for tensor, value in values)
        heads.append(mixed)
    yield node.name, np.hstack(heads)


def _evaluate(node: Node, scales: Scales, operands: list[Int64Array]) -> Int64Array:
    first = operands[0]
    match node.kind:
        case Kind.MATMUL | Kind.SCORES:
            right = operands[1].T if node.transpose_b else operands[1]
            out = scales.product[node.name]
            return requantize(first @ right, out.multiplier, out.shift)
        case Kind.SOFTMAX:
            index, out = scales.softmax_index[node.name], scales.product[node.name]
            fixed = [softmax_row(scores, index.multiplier, index.shift) for scores in first]
            return requantize(np.array(fixed), out.multiplier, out.shift)
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
        case Kind.INPUT | Kind.WEIGHT | Kind.ATTENTION:
            raise AssertionError(f"{node.name} is not computed here")
