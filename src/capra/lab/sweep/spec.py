"""SPEC.toml: the grids of a sweep, checked before anything runs, as cells in a fixed order.

    [[grid]]
    model = ["structured", "random"]
    draft_noise = [0, 3]
    k = [1, 2, 3]

A grid is the cross product of its axes. An axis is a field of Cell with a list of values or one
value; a field that is not given keeps its default. Cells are ordered grid by grid, the last field
of Cell varying fastest. A cell that several grids have is one cell, at its first place.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, Final

from capra.compiler.optimization import parse_optimization, spelled
from capra.errors import CapacityError, InputError
from capra.files import digests
from capra.isa.chip import Chip
from capra.lab.sweep.cell import PARAMETERS, Cell
from capra.lm.models import MAX_NOISE, PYDOC, TINY_MODELS, load_model
from capra.spec_decode.drafts import DRAFTS, check_draft

MAX_CELLS: Final = 1_000_000
MAX_INTEGER: Final = (1 << 63) - 1
"""What the database and Parquet hold."""

COUNTS: Final = ("max_new_tokens", "k", "model_seed", "draft_seed")
KINDS: Final = {str: "a text", int: "a whole number", float: "a number"}

Axes = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Sweep:
    """The cells of a sweep by their keys, in order, and the files that they read."""

    cells: Mapping[str, Cell]
    files: Mapping[str, str | None]
    """Name of a checkpoint file: digest of its content."""


def load_sweep(path: Path) -> Sweep:
    """The sweep of a spec file.

    Raises InputError for a file that is no such spec, with the first mistake in it; what
    `load_model` raises for a model that cannot be loaded.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:  # of TOML or of UTF-8
        raise InputError(f"{path} is not a TOML file: {error}") from None
    except RecursionError:
        raise InputError(
            f"{path} is nested too deeply, expected [[grid]] tables of lists"
        ) from None
    grids = [_axes(grid, f"{path}: grid {n}") for n, grid in enumerate(_grids(document, path), 1)]
    size = sum(prod(len(values) for values in axes.values()) for axes in grids)
    if size > MAX_CELLS:
        raise InputError(f"{path} has {size:,} cells, expected at most {MAX_CELLS:,}")
    files = _checked_files(grids)
    return Sweep({cell.key(files): cell for axes in grids for cell in _cells(axes)}, files)


def _grids(document: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    unknown = sorted(set(document) - {"grid"})
    if unknown:
        raise InputError(f"{path} has a key {unknown[0]!r}, expected nothing but [[grid]] tables")
    grids = document.get("grid")
    if (
        not grids
        or not isinstance(grids, list)
        or not all(isinstance(grid, dict) for grid in grids)
    ):
        found = "no grid" if grids is None else f"grid = {grids!r}"
        raise InputError(f"{path} has {found}, expected at least one [[grid]] table")
    return grids


def _axes(grid: dict[str, Any], where: str) -> Axes:
    """The values of the axes of one grid, checked one by one."""
    for name in grid:
        if name not in PARAMETERS:
            raise InputError(
                f"{where} has a key {name!r}, expected some of {', '.join(PARAMETERS)}"
            )
    if "prompt" in grid and "start_token" in grid:
        raise InputError(f"{where} has both prompt and start_token, expected one of them")
    axes: dict[str, list[Any]] = {}
    for name, given in grid.items():
        values = given if isinstance(given, list) else [given]
        if not values:
            raise InputError(f"{where}: {name} is an empty list, expected at least one value")
        axes[name] = [_value(name, value, where) for value in values]
        twice = next((v for i, v in enumerate(axes[name]) if v in axes[name][:i]), None)
        if twice is not None:
            raise InputError(f"{where}: {name} has {twice!r} twice, expected different values")
    return axes


def _value(name: str, value: Any, where: str) -> Any:
    """A value as its field has it; values that mean the same run become equal in every byte."""
    kind, what = PARAMETERS[name], f"{where}: {name}"
    allowed = (int, float) if kind is float else (kind,)
    if type(value) not in allowed:
        raise InputError(f"{what} is {value!r}, expected {KINDS[kind]} or a list of such")
    if kind is float and not 0 <= value <= MAX_NOISE:
        raise InputError(f"{what} is {value}, expected a number of 0 .. {MAX_NOISE:g}")
    if kind is int:
        low = 0 if name in COUNTS else -MAX_INTEGER
        if not low <= value <= MAX_INTEGER:
            raise InputError(
                f"{what} is {value}, expected a whole number of {low} .. {MAX_INTEGER}"
            )
    if name == "optimize":
        try:
            return spelled(parse_optimization(value))
        except InputError as error:
            raise InputError(f"{what}: {error}") from None
    if name in Chip.__dataclass_fields__:
        try:
            Chip(**{name: value})
        except CapacityError as error:
            raise InputError(f"{what} is {value}: {error}") from None
    return value + 0.0 if kind is float else value  # -0.0 is 0.0


def _checked_files(grids: Sequence[Axes]) -> dict[str, str | None]:
    """Digests of the checkpoint files that are models or drafts, which must all load."""
    models = {str(name): None for axes in grids for name in axes.get("model", ())}
    drafts = {str(name): None for axes in grids for name in axes.get("draft", ())}
    for draft in drafts:
        check_draft(draft)
    names = [name for name in models if name not in (*TINY_MODELS, PYDOC)]
    names += [name for name in drafts if name not in DRAFTS and name not in names]
    for name in names:
        load_model(name)
    return digests(names)


def _cells(axes: Axes) -> Iterator[Cell]:
    names = [name for name in PARAMETERS if name in axes]
    for values in product(*(axes[name] for name in names)):
        yield Cell(**dict(zip(names, values, strict=True)))
