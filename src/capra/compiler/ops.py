"""What the tile pass produces: the machine's operations, on places instead of addresses.

    Load, Store        a tensor between external memory and its place
    Product            a product, int32 sums into a place, a tile at a time
    Requantize         a whole place to int8
    AddRows            a saturating sum of two places
    SoftmaxRow         one row of scores to Q0.15
    ArgmaxRow          one row to an index

Buffers are symbolic here; the buffers pass gives them addresses and the emission pass turns every
operation into one or more instructions. Most are tuples, which are made several times faster; two
transfers of the same fields are no tuples, so that a load is not equal to a store.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from capra.compiler.passes.views import Place
from capra.isa.spec import ARRAY_SIZE
from capra.numerics import Rescale


@dataclass(frozen=True, slots=True)
class Load:
    """place := the external tensor of the same name, and those that follow it in both memories."""

    tensor: str
    dst: Place
    followers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Store:
    """the external tensor of the same name, and those that follow it in both memories := place."""

    tensor: str
    src: Place
    followers: tuple[str, ...] = ()


class Product(NamedTuple):
    """dst := a . b, with b stored transposed if asked, by tiles whose K is at most `depth`."""

    tensor: str
    a: Place
    b: Place
    dst: Place
    transpose_b: bool
    depth: int

    def tiles(self) -> Iterator["Tile"]:
        """The tiles from left to right, row of tiles by row of tiles; the parts of K innermost."""
        a, b, dst, size = self.a, self.b, self.dst, ARRAY_SIZE
        for row in range(0, dst.rows, size):
            rows = min(size, dst.rows - row)
            for col in range(0, dst.cols, size):
                cols = min(size, dst.cols - col)
                for inner in range(0, a.cols, self.depth):
                    depth = min(self.depth, a.cols - inner)
                    yield Tile(
                        a.part(row, inner, rows, depth),
                        b.part(col, inner, cols, depth)
                        if self.transpose_b
                        else b.part(inner, col, depth, cols),
                        dst.part(row, col, rows, cols),
                        accumulate=inner > 0,
                    )


class Tile(NamedTuple):
    """dst (at most 4 x 4) := or += a . b, of parts of a product's places."""

    a: Place
    b: Place
    dst: Place
    accumulate: bool


class Requantize(NamedTuple):
    """dst := clamp(src * rescale)."""

    tensor: str
    src: Place
    dst: Place
    rescale: Rescale
    relu: bool = False


class AddRows(NamedTuple):
    """dst := a + b, saturated."""

    tensor: str
    a: Place
    b: Place
    dst: Place


class SoftmaxRow(NamedTuple):
    """dst (Q0.15) := softmax of src, one row."""

    tensor: str
    src: Place
    dst: Place
    rescale: Rescale


class ArgmaxRow(NamedTuple):
    """dst (one word) := index of the first maximum of src, one row."""

    tensor: str
    src: Place
    dst: Place


Op = Load | Store | Product | Requantize | AddRows | SoftmaxRow | ArgmaxRow


def reads(op: Op) -> tuple[Place, ...]:
    """The places whose words an operation reads."""
    match op:
        case Load():
            return ()
        case Product() | AddRows():
            return (op.a, op.b)
        case Store() | Requantize() | SoftmaxRow() | ArgmaxRow():
            return (op.src,)


def writes(op: Op) -> tuple[Place, ...]:
    """The places whose words an operation writes."""
    return () if isinstance(op, Store) else (op.dst,)
