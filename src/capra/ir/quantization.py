"""What int8 costs: the tensors of a graph in integers against the same tensors in float.

The integers are the interpreter's, hence those of the compiled program.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from capra.ir.graph import VIEWS, Graph
from capra.ir.interpreter import evaluate_int
from capra.ir.reference import evaluate_float
from capra.ir.scales import Scales
from capra.numerics import FloatArray, dequantize, quantize


@dataclass(frozen=True, slots=True)
class TensorError:
    """How far the tensors of a tag are from float, over all samples."""

    relative: float
    """L2 norm of the error over that of the float tensor; 0 where that is 0 throughout."""
    steps: float
    """Largest error of an element, in steps of the tensor's scale; rounding alone costs 0.5."""


def tensor_errors(
    graph: Graph, scales: Scales, samples: Iterable[Mapping[str, FloatArray]]
) -> dict[str, TensorError]:
    """The error of every tag, in the order of the graph, over samples of leaf values.

    Left out are indices, products that are fused into a relu and so never exist as int8, and
    views, whose elements are counted where they were made.
    """
    measured = [
        node for node in graph.tensors()
        if node.kind not in VIEWS
        and not node.is_index and graph.is_materialized(node.name)
    ]  # fmt: skip
    squares: dict[str, float] = defaultdict(float)
    squared_errors: dict[str, float] = defaultdict(float)
    steps: dict[str, float] = defaultdict(float)
    for leaves in samples:
        exact = evaluate_float(graph, leaves)
        quantized = {name: quantize(value, scales.scale[name]) for name, value in leaves.items()}
        integers = evaluate_int(graph, scales, quantized)
        for node in measured:
            value, scale = exact[node.name], scales.scale[node.name]
            error = dequantize(integers[node.name], scale) - value
            squares[node.tag] += float(np.square(value).sum())
            squared_errors[node.tag] += float(np.square(error).sum())
            steps[node.tag] = max(steps[node.tag], float(np.abs(error).max()) / scale)
    return {
        tag: TensorError(
            (squared_errors[tag] / squares[tag]) ** 0.5 if squares[tag] else 0.0, steps[tag]
        )
        for tag in squares
    }
