"""The text form of a graph: one node a line, which prints and parses to the same graph.

    graph NAME
    NAME = KIND OPERAND ... [ROWSxCOLS] [key=value ...]
    output NAME

`#` starts a comment. Keys: start, count (slices), scale, transpose_b (products), tag; of an
attention: heads, scale, prefix (keys that all rows see), width (keys after them), tails (one
hexadecimal mask per row: bit j is key prefix + j), inner_tag.
"""

import re
from collections.abc import Iterable

from capra.errors import GraphError
from capra.ir.graph import CONCATS, LEAVES, PRODUCTS, SLICES, Graph, Kind, Node
from capra.ir.visible import Visible
from capra.numerals import parse_real


def print_graph(graph: Graph) -> str:
    """The graph as text; `parse_graph` gives it back."""
    lines = [f"graph {graph.name}", *map(print_node, graph)]
    lines += [f"output {name}" for name in graph.outputs]
    return "\n".join(lines) + "\n"


def parse_graph(text: str) -> Graph:
    """The graph that a text describes. Raises GraphError naming the line."""
    graph: Graph | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if not words:
            continue
        try:
            if graph is None:
                graph = _parse_header(words)
            elif words[0] == "output" and len(words) == 2:
                graph.output(words[1])
            else:
                _parse_node(graph, words)
        except GraphError as error:
            raise GraphError(f"line {number}: {error}") from None
    if graph is None:
        raise GraphError("the text is empty, expected 'graph NAME'")
    return graph


def print_node(node: Node) -> str:
    """The line of one node."""
    words = [node.name, "=", node.kind.value, *node.inputs]
    if node.kind in LEAVES:
        words.append(f"{node.rows}x{node.cols}")
    if node.kind in SLICES:
        count = node.rows if node.kind is Kind.SLICE_ROWS else node.cols
        words += [f"start={node.start}", f"count={count}"]
    if node.scale != 1.0:
        words.append(f"scale={node.scale!r}")
    if node.kind is Kind.MATMUL and node.transpose_b:
        words.append("transpose_b=1")
    if node.visible is not None:
        tails = ",".join(f"{tail:x}" for tail in node.visible.tails)
        words += [f"heads={node.heads}", f"prefix={node.visible.prefix}",
                  f"width={node.visible.width}", f"tails={tails}"]  # fmt: skip
        if node.inner_tag != node.name:
            words.append(f"inner_tag={node.inner_tag}")
    if node.tag != node.name:
        words.append(f"tag={node.tag}")
    return " ".join(words)


def _parse_header(words: list[str]) -> Graph:
    if len(words) != 2 or words[0] != "graph":
        raise GraphError(f"found {' '.join(words)!r}, expected 'graph NAME'")
    return Graph(words[1])


def _parse_node(graph: Graph, words: list[str]) -> None:
    if len(words) < 3 or words[1] != "=" or words[2] not in list(Kind):
        raise GraphError(
            f"found {' '.join(words)!r}, expected 'NAME = KIND ...' or 'output NAME', with KIND "
            f"one of {', '.join(Kind)}"
        )
    name, kind, rest = words[0], Kind(words[2]), words[3:]
    operands = [word for word in rest if "=" not in word]
    keys = _Keys(word for word in rest if "=" in word)
    tag = None if kind is Kind.ARGMAX else keys.take("tag")  # indices have no range
    if kind in LEAVES:
        rows, cols = _parse_shape(operands)
        (graph.input if kind is Kind.INPUT else graph.weight)(name, rows, cols, tag=tag)
    elif kind in CONCATS:
        concat = graph.concat_rows if kind is Kind.CONCAT_ROWS else graph.concat_cols
        concat(name, operands, tag=tag)
    elif kind in PRODUCTS:
        a, b = _exactly(operands, 2)
        scale = keys.real("scale", 1.0)
        if kind is Kind.SCORES:
            graph.scores(name, a, b, scale=scale, tag=tag)
        else:
            graph.matmul(name, a, b, transpose_b=keys.flag("transpose_b"), scale=scale, tag=tag)
    elif kind in SLICES:
        (x,) = _exactly(operands, 1)
        cut = graph.slice_rows if kind is Kind.SLICE_ROWS else graph.slice_cols
        cut(name, x, keys.whole("start"), keys.whole("count"), tag=tag)
    elif kind is Kind.ADD:
        a, b = _exactly(operands, 2)
        graph.add(name, a, b, tag=tag)
    elif kind is Kind.ARGMAX:
        (x,) = _exactly(operands, 1)
        graph.argmax(name, x)
    elif kind is Kind.ATTENTION:
        q, k, v = _exactly(operands, 3)
        visible = Visible(keys.whole("prefix"), keys.whole("width"), keys.masks("tails"))
        graph.attention(
            name, q, k, v, visible=visible, heads=keys.whole("heads", 1),
            scale=keys.real("scale", 1.0), inner_tag=keys.take("inner_tag"), tag=tag,
        )  # fmt: skip
    elif kind is Kind.SOFTMAX:
        (x,) = _exactly(operands, 1)
        graph.softmax(name, x, tag=tag)
    else:
        (x,) = _exactly(operands, 1)
        graph.relu(name, x, tag=tag)
    keys.check_empty()


def _exactly(operands: list[str], count: int) -> list[str]:
    if len(operands) != count:
        raise GraphError(f"{len(operands)} operands ({' '.join(operands)}), expected {count}")
    return operands


def _parse_shape(operands: list[str]) -> tuple[int, int]:
    (text,) = _exactly(operands, 1)
    match = re.fullmatch(r"([0-9]{1,9})x([0-9]{1,9})", text)
    if not match:
        raise GraphError(f"shape is {text!r}, expected ROWSxCOLS")
    return int(match[1]), int(match[2])


class _Keys:
    """The key=value words of a line; each may be taken once, and none may be left."""

    def __init__(self, words: Iterable[str]) -> None:
        self._values: dict[str, str] = {}
        for word in words:
            key, _, value = word.partition("=")
            if key in self._values:
                raise GraphError(f"key {key} is given twice, expected once")
            self._values[key] = value

    def take(self, key: str) -> str | None:
        return self._values.pop(key, None)

    def whole(self, key: str, default: int | None = None) -> int:
        text = self.take(key)
        if text is None and default is not None:
            return default
        if text is None or not re.fullmatch(r"-?[0-9]{1,9}", text):
            raise GraphError(f"{key} is {text!r}, expected a whole number")
        return int(text)

    def masks(self, key: str) -> tuple[int, ...]:
        """Hexadecimal masks with commas between them."""
        text = self.take(key)
        if text is None or not re.fullmatch(r"[0-9a-f]{1,16384}(,[0-9a-f]{1,16384})*", text):
            raise GraphError(f"{key} is {text!r}, expected hexadecimal masks with commas")
        return tuple(int(mask, 16) for mask in text.split(","))

    def flag(self, key: str) -> bool:
        value = self.whole(key, 0)
        if value not in (0, 1):
            raise GraphError(f"{key} is {value}, expected 0 or 1")
        return bool(value)

    def real(self, key: str, default: float) -> float:
        text = self.take(key)
        try:
            return default if text is None else parse_real(text)
        except ValueError:
            raise GraphError(f"{key} is {text!r}, expected a number") from None

    def check_empty(self) -> None:
        if self._values:
            raise GraphError(f"unknown key {sorted(self._values)[0]!r} for this kind")
