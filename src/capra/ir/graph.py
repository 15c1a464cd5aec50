"""The graph IR: tensors of rows x cols, built by operations that check their shapes at once.

    graph   ::= node* output+
    input   (rows, cols)                    given by the host at every run
    weight  (rows, cols)                    given once, part of the model
    matmul  a b  [transpose_b] [scale]      (M, K) x (K, N) -> (M, N), times scale
    scores  q k  [scale]                    (M, K) x (N, K)^T -> (M, N), times scale
    softmax x                               row by row
    attention q k v heads visible [scale]   per head softmax(q k^T) v, row i over the keys it sees
    relu    x
    add     a b
    concat_rows xs | concat_cols xs         a view: the parts are written into one buffer
    slice_rows x start count                a view: an offset into the source's buffer
    slice_cols x start count                a view: an offset and the source's row stride
    argmax  x                               row by row, (M, N) -> (M, 1), an index, not an int8

Views move no data, so what would need a copy is refused when the node is built: a slice that feeds
a concatenation or a relu, and a tensor that is part of two concatenations. Every refusal is a
GraphError naming the node, the range or shape found, and what was expected.

A node's `tag` names its range; tensors with one tag share one range, in every graph of a model.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from capra.errors import GraphError
from capra.ir.visible import Visible


class Kind(StrEnum):
    """The operation that makes a node."""

    INPUT = "input"
    WEIGHT = "weight"
    MATMUL = "matmul"
    SCORES = "scores"
    SOFTMAX = "softmax"
    ATTENTION = "attention"
    RELU = "relu"
    ADD = "add"
    CONCAT_ROWS = "concat_rows"
    CONCAT_COLS = "concat_cols"
    SLICE_ROWS = "slice_rows"
    SLICE_COLS = "slice_cols"
    ARGMAX = "argmax"

    __hash__ = str.__hash__  # Enum's own is many times slower, and kinds are looked up everywhere


SLICES: Final = frozenset({Kind.SLICE_ROWS, Kind.SLICE_COLS})
CONCATS: Final = frozenset({Kind.CONCAT_ROWS, Kind.CONCAT_COLS})
VIEWS: Final = SLICES | CONCATS
LEAVES: Final = frozenset({Kind.INPUT, Kind.WEIGHT})
BY_ROWS: Final = frozenset({Kind.SLICE_ROWS, Kind.CONCAT_ROWS})
"""Views along the rows; the other views are along the columns."""
PRODUCTS: Final = frozenset({Kind.MATMUL, Kind.SCORES})
_SIZED: Final = LEAVES | CONCATS
"""What may be larger than its operands."""
_INDICES: Final = frozenset({Kind.ARGMAX})

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
MAX_DIMENSION: Final = (1 << 16) - 1


class Node(NamedTuple):
    """One tensor and the operation that makes it."""

    name: str
    kind: Kind
    inputs: tuple[str, ...]
    rows: int
    cols: int
    tag: str
    """Key of its range; the node's own name unless given."""
    scale: float = 1.0
    """Factor of a product."""
    transpose_b: bool = False
    start: int = 0
    """First row or column of a slice."""
    heads: int = 1
    """Heads of an attention."""
    visible: Visible | None = None
    """Which keys the rows of an attention see."""
    inner_tag: str = ""
    """Of an attention: what the tags of the tensors inside it begin with."""

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, cols)."""
        return self.rows, self.cols

    @property
    def is_index(self) -> bool:
        """True when the elements are indices rather than quantized numbers."""
        return self.kind in _INDICES

    @property
    def inner(self) -> "tuple[Head, ...]":
        """The tensors inside an attention, head by head; empty for any other operation."""
        if self.visible is None:
            return ()
        (q, k, v), shape = self.inputs, (self.rows, self.visible.keys)
        found = list[Head]()
        for head in range(self.heads):
            at, tag = f"{self.name}.h{head}", f"{self.inner_tag}.h{head}"
            scores, probs, mixed = (f"{at}.{what}" for what in Head._fields)
            width = self.cols // self.heads
            found.append(Head(
                Node(scores, Kind.SCORES, (q, k), *shape, f"{tag}.scores", self.scale),
                Node(probs, Kind.SOFTMAX, (scores,), *shape, f"{tag}.probs"),
                Node(mixed, Kind.MATMUL, (probs, v), self.rows, width, self.tag),
            ))  # fmt: skip
        return tuple(found)

    def columns(self, head: int) -> slice:
        """The columns of q, k, v and the result that are a head's."""
        width = self.cols // self.heads
        return slice(head * width, (head + 1) * width)


class Head(NamedTuple):
    """The tensors of one head of an attention, with the tags of their ranges.

    Scores and probabilities are (rows, keys). An invisible key has neither: both are 0.
    """

    scores: Node
    probs: Node
    mixed: Node
    """The values, weighted: the head's columns of the attention's result."""


class Graph:
    """A graph under construction; nodes are only ever added, so every prefix is valid."""

    def __init__(self, name: str = "graph") -> None:
        _check_name("graph", name)
        self.name = name
        self._nodes: dict[str, Node] = {}
        self._outputs: dict[str, None] = {}  # in order
        self._uses: dict[str, list[str]] = {}
        self._concat_of: dict[str, str] = {}
        self._tags: set[str] = set()  # whose names were checked
        self._inner: set[str] = set()  # names of the tensors inside attentions

    # Reading

    @property
    def nodes(self) -> Mapping[str, Node]:
        """Nodes by name, each after its inputs."""
        return MappingProxyType(self._nodes)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the output tensors, in the order they were declared."""
        return tuple(self._outputs)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __getitem__(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            raise GraphError(f"{self.name}: no node named {name!r}, expected one that was built")
        return node

    def tensors(self) -> Iterator[Node]:
        """Every tensor that has elements of its own: nodes, each after those inside it."""
        for node in self:
            for head in node.inner:
                yield from head
            yield node

    def users(self, name: str) -> tuple[str, ...]:
        """Nodes that read a tensor, one entry a use."""
        return tuple(self._uses.get(name, ()))

    def concat_of(self, name: str) -> str | None:
        """The concatenation that a tensor is a part of, if any."""
        return self._concat_of.get(name)

    def is_output(self, name: str) -> bool:
        """True when the tensor was declared as an output."""
        return name in self._outputs

    def fused_relu(self, name: str) -> str | None:
        """The relu into which this product's requantization is fused: its only reader.

        The product itself then never exists as an int8 tensor.
        """
        if name in self._inner:
            return None
        node, users = self[name], self._uses[name]
        if node.kind not in PRODUCTS or len(users) != 1 or name in self._outputs:
            return None
        return users[0] if self._nodes[users[0]].kind is Kind.RELU else None

    def is_materialized(self, name: str) -> bool:
        """True when the tensor exists in memory (a fused product does not)."""
        return self.fused_relu(name) is None

    def check_complete(self) -> None:
        """Raise GraphError unless the graph has an output."""
        if not self._outputs:
            raise GraphError(f"{self.name}: the graph has no output, expected at least one")

    # Building: each method returns the name of the node it adds

    def input(self, name: str, rows: int, cols: int, *, tag: str | None = None) -> str:
        """A tensor that the host writes before every run."""
        return self._leaf(Kind.INPUT, name, rows, cols, tag)

    def weight(self, name: str, rows: int, cols: int, *, tag: str | None = None) -> str:
        """A tensor of the model."""
        return self._leaf(Kind.WEIGHT, name, rows, cols, tag)

    def matmul(
        self, name: str, a: str, b: str, *, transpose_b: bool = False, scale: float = 1.0,
        tag: str | None = None,
    ) -> str:  # fmt: skip
        """scale * (a . b), or scale * (a . b^T) with transpose_b."""
        return self._product(Kind.MATMUL, name, a, b, transpose_b, scale, tag)

    def scores(
        self, name: str, q: str, k: str, *, scale: float = 1.0, tag: str | None = None
    ) -> str:
        """scale * (q . k^T): attention scores of two activations."""
        return self._product(Kind.SCORES, name, q, k, True, scale, tag)

    def softmax(self, name: str, x: str, *, tag: str | None = None) -> str:
        """Softmax of each row."""
        return self._elementwise(Kind.SOFTMAX, name, x, tag)

    def attention(
        self, name: str, q: str, k: str, v: str, *, visible: Visible, heads: int = 1,
        scale: float = 1.0, inner_tag: str | None = None, tag: str | None = None,
    ) -> str:  # fmt: skip
        """softmax(scale * q . k^T) . v for every head, row i over the keys that it sees.

        A head is as many neighbouring columns of q, k and v as the others; heads of the result
        stand beside each other. The scores and probabilities of head H have the tags
        `inner_tag`.hH.scores and .probs; `inner_tag` is the node's own name unless given.
        """
        nodes = [self._operand(name, operand) for operand in (q, k, v)]
        rows, keys = (visible.rows, nodes[0].cols), (visible.keys, nodes[0].cols)
        for what, node, shape in zip("qkv", nodes, (rows, keys, keys), strict=True):
            if node.shape != shape:
                raise GraphError(
                    f"{name}: {what} is {self._describe(node)}, expected {shape[0]}x{shape[1]}: "
                    f"{visible.rows} rows that see {visible.keys} keys"
                )
        if type(heads) is not int or heads < 1 or nodes[0].cols % heads:
            raise GraphError(
                f"{name}: heads is {heads}, expected a number that divides the {nodes[0].cols} "
                f"columns of {self._describe(nodes[0])}"
            )
        self._check_scale(name, scale)
        return self._build(
            name, Kind.ATTENTION, (q, k, v), *nodes[0].shape, tag, scale=float(scale),
            heads=heads, visible=visible, inner_tag=name if inner_tag is None else inner_tag,
        )  # fmt: skip

    def relu(self, name: str, x: str, *, tag: str | None = None) -> str:
        """max(x, 0). Refused on a slice."""
        node = self._operand(name, x)
        if node.kind in SLICES:
            raise GraphError(
                f"{name}: relu of the slice {self._describe(node)} would need a copy, expected a "
                "tensor that is not a slice"
            )
        return self._elementwise(Kind.RELU, name, x, tag)

    def add(self, name: str, a: str, b: str, *, tag: str | None = None) -> str:
        """a + b, of equal shapes."""
        left, right = self._operand(name, a), self._operand(name, b)
        if left.shape != right.shape:
            raise GraphError(
                f"{name}: add of {self._describe(left)} and {self._describe(right)}, expected "
                "equal shapes"
            )
        return self._build(name, Kind.ADD, (a, b), left.rows, left.cols, tag)

    def concat_rows(self, name: str, parts: Sequence[str], *, tag: str | None = None) -> str:
        """The parts below each other; a view."""
        return self._concat(Kind.CONCAT_ROWS, name, parts, tag)

    def concat_cols(self, name: str, parts: Sequence[str], *, tag: str | None = None) -> str:
        """The parts beside each other; a view."""
        return self._concat(Kind.CONCAT_COLS, name, parts, tag)

    def slice_rows(
        self, name: str, x: str, start: int, count: int, *, tag: str | None = None
    ) -> str:
        """Rows start .. start + count - 1 of x; a view."""
        node = self._operand(name, x)
        self._check_range(name, node, "rows", node.rows, start, count)
        return self._build(name, Kind.SLICE_ROWS, (x,), count, node.cols, tag, start=start)

    def slice_cols(
        self, name: str, x: str, start: int, count: int, *, tag: str | None = None
    ) -> str:
        """Columns start .. start + count - 1 of x; a view."""
        node = self._operand(name, x)
        self._check_range(name, node, "columns", node.cols, start, count)
        return self._build(name, Kind.SLICE_COLS, (x,), node.rows, count, tag, start=start)

    def argmax(self, name: str, x: str) -> str:
        """Index of the first maximum of each row, (rows, 1)."""
        node = self._operand(name, x)
        return self._build(name, Kind.ARGMAX, (x,), node.rows, 1, None)

    def output(self, name: str) -> str:
        """Declare a tensor as an output: the program stores it in external memory."""
        self[name]
        if name in self._outputs:
            raise GraphError(f"{self.name}: {name} is an output already, expected it once")
        self._outputs[name] = None
        return name

    # Checks and construction

    def _operand(self, user: str, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            raise GraphError(f"{user}: no node named {name!r}, expected one built before it")
        if node.kind in _INDICES:
            raise GraphError(
                f"{user}: operand {name} holds indices (argmax), expected an int8 tensor"
            )
        return node

    def _describe(self, node: Node) -> str:
        return f"{node.name} ({node.rows}x{node.cols})"

    def _build(
        self, name: str, kind: Kind, inputs: tuple[str, ...], rows: int, cols: int,
        tag: str | None, *, scale: float = 1.0, transpose_b: bool = False, start: int = 0,
        heads: int = 1, visible: Visible | None = None, inner_tag: str = "",
    ) -> str:  # fmt: skip
        _check_name("node", name)
        self._check_new(name)
        if kind in _SIZED:
            for axis, size in (("rows", rows), ("columns", cols)):
                if not (isinstance(size, int) and 1 <= size <= MAX_DIMENSION):
                    raise GraphError(f"{name}: {size} {axis}, expected 1 .. {MAX_DIMENSION}")
        tag = name if tag is None else tag
        for each in (tag,) if visible is None else (tag, inner_tag):
            if each not in self._tags:
                _check_name("tag", each)
                self._tags.add(each)
        node = Node(
            name, kind, inputs, rows, cols, tag, scale, transpose_b, start, heads, visible,
            inner_tag,
        )  # fmt: skip
        inner = [tensor.name for head in node.inner for tensor in head]
        for each in inner:
            self._check_new(each)
        self._inner.update(inner)
        self._nodes[name] = node
        self._uses[name] = []
        for operand in inputs:
            self._uses[operand].append(name)
        if kind in CONCATS:
            self._concat_of.update(dict.fromkeys(inputs, name))
        return name

    def _check_new(self, name: str) -> None:
        if name in self._nodes or name in self._inner:
            raise GraphError(f"{self.name}: a node named {name!r} exists, expected a new name")

    def _leaf(self, kind: Kind, name: str, rows: int, cols: int, tag: str | None) -> str:
        return self._build(name, kind, (), rows, cols, tag)

    def _elementwise(self, kind: Kind, name: str, x: str, tag: str | None) -> str:
        node = self._operand(name, x)
        return self._build(name, kind, (x,), node.rows, node.cols, tag)

    def _product(
        self, kind: Kind, name: str, a: str, b: str, transpose_b: bool, scale: float,
        tag: str | None,
    ) -> str:  # fmt: skip
        left, right = self._operand(name, a), self._operand(name, b)
        inner, cols = (right.cols, right.rows) if transpose_b else (right.rows, right.cols)
        if left.cols != inner:
            raise GraphError(
                f"{name}: {kind} of {self._describe(left)} and {self._describe(right)}"
                f"{' transposed' if transpose_b else ''}, expected inner sizes to be equal: "
                f"{left.cols} and {inner}"
            )
        self._check_scale(name, scale)
        return self._build(
            name, kind, (a, b), left.rows, cols, tag, scale=float(scale), transpose_b=transpose_b
        )

    def _check_scale(self, name: str, scale: float) -> None:
        if not (math.isfinite(scale) and scale > 0):
            raise GraphError(f"{name}: scale is {scale}, expected a finite number above 0")

    def _check_range(
        self, name: str, node: Node, axis: str, size: int, start: int, count: int
    ) -> None:
        whole = isinstance(start, int) and isinstance(count, int)
        if not whole or start < 0 or count < 1 or start + count > size:
            raise GraphError(
                f"{name}: {axis} {start} .. {start + count - 1} ({count} of them) of "
                f"{self._describe(node)}, expected a start of at least 0, at least one, and an "
                f"end within 0 .. {size - 1}"
            )

    def _concat(self, kind: Kind, name: str, parts: Sequence[str], tag: str | None) -> str:
        if not parts:
            raise GraphError(f"{name}: {kind} of nothing, expected at least one part")
        nodes = [self._operand(name, part) for part in parts]
        by_rows = kind in BY_ROWS
        for node in nodes:
            first = nodes[0]
            if (node.cols != first.cols) if by_rows else (node.rows != first.rows):
                raise GraphError(
                    f"{name}: {kind} of {self._describe(first)} and {self._describe(node)}, "
                    f"expected equal {'columns' if by_rows else 'rows'}"
                )
            if node.kind in SLICES:
                raise GraphError(
                    f"{name}: {kind} of the slice {self._describe(node)} would need a copy, "
                    "expected parts that are not slices"
                )
        uses = Counter(parts)
        for part in parts:
            owner = self._concat_of.get(part) or (name if uses[part] > 1 else None)
            if owner is not None:
                raise GraphError(
                    f"{name}: part {self._describe(self[part])} is written into {owner} already; "
                    "a second place would need a copy, expected a tensor of its own"
                )
        rows = sum(n.rows for n in nodes) if by_rows else nodes[0].rows
        cols = nodes[0].cols if by_rows else sum(n.cols for n in nodes)
        return self._build(name, kind, tuple(parts), rows, cols, tag)


def _check_name(what: str, name: str) -> None:
    if not _NAME.fullmatch(name):
        raise GraphError(
            f"{what} name is {name!r}, expected letters, digits, dots and underscores, not "
            "starting with a digit or a dot"
        )
