"""What the tile pass produces: the machine's operations, on places instead of addresses.

    Load, Store        a tensor between external memory and its place
    TileProduct        one tile of a product, int32 sums into a place
    Requantize         a whole place to int8
    AddRows            a saturating sum of two places
    SoftmaxRow         one row of scores to Q0.15
    ArgmaxRow          one row to an index

Buffers are symbolic here; the buffers pass gives them addresses and the emission pass turns every
operation into one or more instructions.
"""

from dataclasses import dataclass

from capra.compiler.passes.views import Place
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


@dataclass(frozen=True, slots=True)
class TileProduct:
    """dst (at most 4 x 4) := or += a . b, with b stored transposed if asked."""

    tensor: str
    a: Place
    b: Place
    dst: Place
    transpose_b: bool
    accumulate: bool


@dataclass(frozen=True, slots=True)
class Requantize:
    """dst := clamp(src * rescale)."""

    tensor: str
    src: Place
    dst: Place
    rescale: Rescale
    relu: bool = False


@dataclass(frozen=True, slots=True)
class AddRows:
    """dst := a + b, saturated."""

    tensor: str
    a: Place
    b: Place
    dst: Place


@dataclass(frozen=True, slots=True)
class SoftmaxRow:
    """dst (Q0.15) := softmax of src, one row."""

    tensor: str
    src: Place
    dst: Place
    rescale: Rescale


@dataclass(frozen=True, slots=True)
class ArgmaxRow:
    """dst (one word) := index of the first maximum of src, one row."""

    tensor: str
    src: Place
    dst: Place


Op = Load | Store | TileProduct | Requantize | AddRows | SoftmaxRow | ArgmaxRow


def reads(op: Op) -> tuple[Place, ...]:
    """The places whose words an operation reads."""
    match op:
        case Load():
            return ()
        case TileProduct():
            return (op.a, op.b, op.dst) if op.accumulate else (op.a, op.b)
        case AddRows():
            return (op.a, op.b)
        case Store() | Requantize() | SoftmaxRow() | ArgmaxRow():
            return (op.src,)


def writes(op: Op) -> tuple[Place, ...]:
    """The places whose words an operation writes."""
    return () if isinstance(op, Store) else (op.dst,)
