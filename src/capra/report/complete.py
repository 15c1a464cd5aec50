"""A record has what its experiment has: no run is missing, none is there twice.

These checks come after those of the values themselves.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import product
from math import isclose
from reprlib import repr as short
from typing import Any, Final, TypeVar

from capra.errors import InputError
from capra.report.checks import fail
from capra.spec_decode.recorded import (
    CAUSALITY_BLOCKS,
    CAUSALITY_CACHE,
    GRID_KS,
    GRID_NOISES,
    SERVING_ACCEPTANCES,
    SERVING_COSTS,
    SERVING_GUESSES,
    TABLE,
)

Record = Mapping[str, Any]
T = TypeVar("T", bound=Hashable)

_SUMS: Final = ("instructions", "words_loaded", "weight_words", "cycles")
"""What the steps of an anatomy together have the sums of."""


def table_is_whole(where: str, table: Record) -> None:
    """The seven recorded runs."""
    expected: list[tuple[str, float | None, int | None]] = []
    for model, cells in TABLE:
        expected += [(model, None, None), *((model, *cell) for cell in cells)]
    found = [(run["model"], run.get("draft_noise"), run.get("k")) for run in table["runs"]]
    _exactly(f"{where}.runs", found, expected, _run_name)


def _run_name(run: tuple[str, float | None, int | None]) -> str:
    model, noise, k = run
    model = model if len(model) < 40 else short(model)
    return f"the plain run of {model}" if k is None else f"{model} with noise {noise:g}, k = {k}"


def grid_is_whole(where: str, grid: Record) -> None:
    """The 25 recorded cells."""
    _exactly(
        f"{where}.cells", [(cell["draft_noise"], cell["k"]) for cell in grid["cells"]],
        [*product(GRID_NOISES, GRID_KS)], lambda cell: f"noise {cell[0]:g}, k = {cell[1]}",
    )  # fmt: skip


def plan_is_whole(where: str, plan: Record) -> None:
    """Every K up to the largest, and every number of rows up to the last."""
    largest = plan["settings"]["max_k"]
    _exactly(
        f"{where}.ks", [entry["k"] for entry in plan["ks"]], _counted(plan["ks"], largest),
        lambda k: f"k = {k}",
    )  # fmt: skip
    points = plan["cost_curve"]["points"]
    last = max(point["rows"] for point in points)
    _exactly(
        f"{where}.cost_curve.points", [point["rows"] for point in points],
        _counted(points, last), lambda rows: f"rows = {rows}",
    )  # fmt: skip


def _counted(entries: Sequence[Any], last: int) -> Iterable[int]:
    """1 .. last, or as many as show that one is missing: a damaged record may ask for any."""
    return range(1, min(last, len(entries) + 1) + 1)


def serving_is_whole(where: str, serving: Record) -> None:
    """A row for every acceptance and k, and all costs."""
    _exactly(
        f"{where}.rows", [(row["acceptance"], row["k"]) for row in serving["rows"]],
        [*product(SERVING_ACCEPTANCES, SERVING_GUESSES)],
        lambda row: f"acceptance {row[0]:g}, k = {row[1]}",
    )  # fmt: skip
    _exactly(
        f"{where}.costs", [cost["c"] if cost["assumed"] else None for cost in serving["costs"]],
        [*SERVING_COSTS, None],
        lambda c: "the executed cost" if c is None else f"the assumed cost {c:g}",
    )  # fmt: skip


def causality_is_whole(where: str, causality: Record) -> None:
    """The four recorded blocks, in their order, after the recorded cache."""
    if causality["cache"] != [*CAUSALITY_CACHE]:
        raise fail(f"{where}.cache", causality["cache"], f"{[*CAUSALITY_CACHE]}")
    found = [tuple(block["tokens"]) for block in causality["blocks"]]
    _exactly(f"{where}.blocks", found, CAUSALITY_BLOCKS, lambda block: f"the block {[*block]}")
    for place, block in enumerate(CAUSALITY_BLOCKS):
        if found[place] != block:
            raise fail(f"{where}.blocks[{place}].tokens", [*found[place]], f"{[*block]}")


def anatomy_is_whole(where: str, anatomy: Record) -> None:
    """A program for each file; or a step for each row of the verifier, and their sums."""
    settings = anatomy["settings"]
    if "programs" in anatomy:
        count, files = len(anatomy["programs"]), len(settings["files"])
        if count != files:
            raise fail(f"the number of {where}.programs", count, f"{files}, one for each file")
        return
    steps, together = anatomy["steps"], anatomy["steps_together"]
    first, rows = settings["cache"], settings["rows"]
    _exactly(
        f"{where}.steps", [step["cache"] for step in steps],
        range(first, first + min(rows, len(steps) + 1)), lambda cache: f"the step at cache {cache}",
    )  # fmt: skip
    for key in _SUMS:
        total = sum(step[key] for step in steps)
        if together[key] != total:
            raise fail(f"{where}.steps_together.{key}", together[key], f"{total}, those of steps")
    cycles = anatomy["verifier"]["cycles"]
    if not isclose(anatomy["ratio"] * together["cycles"], cycles, rel_tol=1e-9):
        raise fail(f"{where}.ratio", anatomy["ratio"], "the verifier's cycles over the steps'")


def _exactly(
    where: str, found: Iterable[T], expected: Iterable[T], name: Callable[[T], str]
) -> None:
    """Raise InputError for the first that is missing, there twice, or not of the experiment."""
    counts, known = Counter(found), dict.fromkeys(expected)
    for each in known:
        if each not in counts:
            raise InputError(f"{where} lacks {name(each)}, expected all of the experiment")
    for each, count in counts.items():
        if each not in known:
            raise InputError(f"{where} has {name(each)}, expected only those of the experiment")
        if count > 1:
            raise InputError(f"{where} has {name(each)} {count} times, expected it once")
