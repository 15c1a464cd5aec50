"""The float reference: what a graph means, in numpy float64, with no quantization anywhere."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from capra.errors import GraphError
from capra.ir.graph import Graph, Kind, Node
from capra.numerics import FloatArray


def evaluate_float(graph: Graph, leaves: Mapping[str, FloatArray]) -> dict[str, FloatArray]:
    """Every tensor of the graph, by name, given its inputs and weights (float64, node shape).

    The tensors inside an attention are among them, under the names of `Node.inner`.

    Indices (argmax) come out as float64 whole numbers. Raises GraphError for a leaf that is
    missing or has another shape.
    """
    values: dict[str, FloatArray] = {}
    for node in graph:
        if node.kind in (Kind.INPUT, Kind.WEIGHT):
            values[node.name] = leaf_value(node, leaves).astype(np.float64)
        else:
            operands = [values[name] for name in node.inputs]
            if node.kind is Kind.ATTENTION:
                values.update(_attention(node, *operands))
            else:
                values[node.name] = _evaluate(node, operands)
    return values


_Value = TypeVar("_Value", bound=npt.NDArray[Any])


def leaf_value(node: Node, leaves: Mapping[str, _Value]) -> _Value:
    """The value given for an input or weight, checked against the node's shape."""
    if node.name not in leaves:
        raise GraphError(f"{node.kind} {node.name} has no value, expected one of {node.shape}")
    value = leaves[node.name]
    if value.shape != node.shape:
        raise GraphError(f"{node.kind} {node.name} has shape {value.shape}, expected {node.shape}")
    return value


def softmax_rows(x: FloatArray) -> FloatArray:
    """Softmax of each row; a row's largest element is subtracted first."""
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return cast(FloatArray, exponentials / exponentials.sum(axis=-1, keepdims=True))


def _attention(
    node: Node, q: FloatArray, k: FloatArray, v: FloatArray
) -> Iterator[tuple[str, FloatArray]]:
    """The tensors inside an attention, and then its own."""
    assert node.visible is not None
    seen = np.zeros((node.rows, node.visible.keys), dtype=np.bool_)
    for row in range(node.rows):
        seen[row, node.visible.columns(row)] = True
    heads = list[FloatArray]()
    for number, head in enumerate(node.inner):
        columns = node.columns(number)
        scores = q[:, columns] @ k[:, columns].T * node.scale
        probs = softmax_rows(np.where(seen, scores, -np.inf))
        heads.append(probs @ v[:, columns])
        yield head.scores.name, np.where(seen, scores, 0.0)
        yield head.probs.name, probs
        yield head.mixed.name, heads[-1]
    yield node.name, np.hstack(heads)


def _evaluate(node: Node, operands: list[FloatArray]) -> FloatArray:
    first = operands[0]
    match node.kind:
        case Kind.MATMUL | Kind.SCORES:
            right = operands[1].T if node.transpose_b else operands[1]
            return first @ right * node.scale
        case Kind.SOFTMAX:
            return softmax_rows(first)
        case Kind.RELU:
            return np.maximum(first, 0.0)
        case Kind.ADD:
            return first + operands[1]
        case Kind.ARGMAX:
            return cast(FloatArray, first.argmax(axis=1)[:, None].astype(np.float64))
        case Kind.CONCAT_ROWS:
            return np.vstack(operands)
        case Kind.CONCAT_COLS:
            return np.hstack(operands)
        case Kind.SLICE_ROWS:
            return first[node.start : node.start + node.rows]
        case Kind.SLICE_COLS:
            return first[:, node.start : node.start + node.cols]
        case Kind.INPUT | Kind.WEIGHT | Kind.ATTENTION:
            raise AssertionError(f"{node.name} is not computed here")
