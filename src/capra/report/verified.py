"""Checks of what was verified: replays on the RTL, certificates, sweeps, and the cost of int8."""

from collections.abc import Mapping
from math import isclose
from typing import Any, Final

from capra.report.checks import (
    fail,
    flag,
    integer,
    list_of,
    mapping,
    nullable,
    number,
    object_with,
    one_of,
    positive,
    text,
    whole,
)

Record = Mapping[str, Any]


def _mismatches(where: str, value: Record) -> None:
    if value["mismatches"] > value["programs"]:
        raise fail(
            f"{where}.mismatches", value["mismatches"],
            f"at most {value['programs']}, the programs that were replayed",
        )  # fmt: skip


_REPLAYED: Final = object_with(
    _mismatches, programs=whole, mismatches=whole, cycles=whole, wall_seconds=number, version=text
)


def rtl(where: str, value: Any) -> None:
    """What each simulator found."""
    mapping(where, value)
    for name, found in value.items():
        text(f"a key of {where}", name)
        _REPLAYED(f"{where}.{name}", found)


def _equal_of_rows(where: str, value: Record) -> None:
    """Nothing is said of no rows, and a difference is one."""
    differs = value["first_difference"] is not None
    expected = None if value["rows"] == 0 else not differs
    if value["equal"] is not expected:
        raise fail(f"{where}.equal", value["equal"], f"{expected}, as rows and difference say")


_DIGEST: Final = object_with(digest=text, rows=list_of(text))
RUN_CERTIFICATE: Final = object_with(
    _equal_of_rows,
    rows=whole, uncompared_rows=whole, equal=nullable(flag), plain=_DIGEST, speculative=_DIGEST,
    first_difference=nullable(
        object_with(
            position=whole, part=text, element=whole, plain=nullable(integer),
            speculative=nullable(integer),
        )
    ),
)  # fmt: skip
"""The certificate of a decode record."""


def _counts(where: str, value: Any) -> None:
    mapping(where, value)
    for role, count in value.items():
        one_of(("step", "verify", "prefill"))(f"a key of {where}", role)
        whole(f"{where}.{role}", count)


def _certified(where: str, value: Record) -> None:
    """What is certified has no failure and at least one graph."""
    expected = value["failure"] is None
    if value["certified"] is not expected:
        raise fail(f"{where}.certified", value["certified"], f"{expected}, as failure says")
    if expected and not sum(value["graphs"].values()):
        raise fail(f"{where}.graphs", value["graphs"], "at least one, as certified says")


def _covered(where: str, value: Record) -> None:
    """Programs are covered where some were certified, at the caches that are named."""
    none = value["programs_covered"] == "none"
    for key in ("programs", "program_caches"):
        if value["certified"] and bool(value[key]) is none:
            raise fail(f"{where}.{key}", value[key], f"{'none' if none else 'some'}, as covered")


CERTIFY: Final = object_with(
    _certified, _covered,
    model=text, max_context=whole, max_rows=positive, optimize=list_of(text), certified=flag,
    graphs=_counts, programs=_counts, program_caches=list_of(whole), terms=whole, digest=text,
    programs_covered=one_of(("none", "some caches", "all caches")),
    failure=nullable(
        object_with(
            program=text, row=nullable(whole), tensor=text, operation=text, reason=text
        )
    ),
)  # fmt: skip


def _sweep_counts(where: str, value: Record) -> None:
    """Every cell was stored before or executed now; of refusals alone nothing is said."""
    done = value["stored_before"] + value["executed"]
    if value["cells"] != done:
        raise fail(f"{where}.cells", value["cells"], f"{done}, stored before and executed")
    if value["refused"] > value["cells"]:
        raise fail(f"{where}.refused", value["refused"], f"at most {value['cells']}, the cells")
    if value["refused"] == value["cells"] and value["tokens_equal"] is not None:
        raise fail(f"{where}.tokens_equal", value["tokens_equal"], "None: all cells are refusals")


SWEEP: Final = object_with(
    _sweep_counts,
    spec=text, database=text, engine=text, cells=positive, stored_before=whole, executed=whole,
    refused=whole, tokens_equal=nullable(flag), csv=nullable(text), parquet=nullable(text),
)  # fmt: skip


def _share(where: str, value: Any) -> None:
    number(where, value)
    if value > 1:
        raise fail(where, value, "a number of 0 .. 1")


def _tensors(where: str, value: Any) -> None:
    mapping(where, value)
    if not value:
        raise fail(where, value, "at least one tensor")
    for tag, error in value.items():
        text(f"a key of {where}", tag)
        object_with(relative_l2=number, largest_steps=number)(f"{where}.{tag}", error)


def _over_float(where: str, value: Record) -> None:
    chip, exact = value["chip_bits_per_character"], value["float_bits_per_character"]
    if not isclose(value["chip_over_float"] * exact, chip, rel_tol=1e-9):
        raise fail(f"{where}.chip_over_float", value["chip_over_float"], "chip bits over float's")


EVAL: Final = object_with(
    _over_float,
    model=text, windows=positive, characters=positive, skipped_characters=whole,
    chip_bits_per_character=number, float_bits_per_character=number, chip_over_float=number,
    greedy_agreement=_share,
    greedy_texts=object_with(characters=whole, common_prefixes=list_of(whole, 1)),
    tensor_errors=object_with(windows=positive, tensors=_tensors),
)  # fmt: skip
