"""The kinds of record that reports are made from, and what one of each must have.

Keys that are not named here are ignored.
"""

from collections.abc import Mapping
from typing import Any, Final

from capra.compiler.optimization import OPTIMIZATIONS
from capra.isa.spec import BY_MNEMONIC, Phase, Unit
from capra.report.agreement import (
    acceptance_is_the_traces,
    bench_is_of_its_runs,
    block_is_checked,
    comparison_is_of_both_runs,
    plan_is_its_best,
    rate_is_of_the_counts,
    run_is_its_programs,
    table_has_its_plain_runs,
    units_are_their_phases,
)
from capra.report.checks import (
    Check,
    fail,
    flag,
    integer,
    list_of,
    mapping,
    nullable,
    number,
    object_with,
    one_of,
    optional,
    positive,
    same_length,
    signed,
    sums,
    text,
    whole,
)
from capra.report.complete import (
    anatomy_is_whole,
    causality_is_whole,
    grid_is_whole,
    plan_is_whole,
    serving_is_whole,
    table_is_whole,
)
from capra.report.verified import CERTIFY, EVAL, RUN_CERTIFICATE, SWEEP, rtl

_UNITS: Final = object_with(**{unit.value: whole for unit in Unit})
"""The cycles of every unit."""
_COST: Final = object_with(
    sums("cycles_by_unit", Unit), sums("cycles_by_phase", Phase), units_are_their_phases,
    cycles=whole, cycles_by_unit=_UNITS, cycles_by_phase=mapping,
)  # fmt: skip


def _in_vocabulary(where: str, value: Any) -> None:
    """Every token that is shown has a text; a guess may be any number, and has none."""
    size = len(value["settings"]["vocabulary"])
    texts = {"settings.prompt": value["settings"]["prompt"]}
    for run in ("plain", "speculative"):
        texts[f"{run}.tokens"] = value[run]["tokens"]
        for index, block in enumerate(value[run]["trace"]):
            texts[f"{run}.trace[{index}].choices"] = block["choices"]
    for place, tokens in texts.items():
        for token in tokens:
            if token >= size:
                raise fail(f"{where}: a token of {place}", token, f"0 .. {size - 1}")


_PROGRAM_RUN: Final = object_with(_COST, role=text, rows=whole, cache=whole, weight_words=whole)
_RUN: Final = object_with(
    _COST,
    run_is_its_programs,
    tokens=list_of(whole),
    programs=whole,
    prefill=object_with(trace=list_of(_PROGRAM_RUN)),
    trace=list_of(
        object_with(
            block_is_checked,
            proposed=list_of(integer), choices=list_of(whole, 1), accepted=whole,
            programs=list_of(_PROGRAM_RUN),
        )
    ),
)  # fmt: skip
_CELL: Final = object_with(
    _COST,
    rate_is_of_the_counts,
    optional(object_with(profile=number), "predicted"),
    cycles=positive,
    draft_noise=number, k=whole, accepted=whole, proposed=whole, blocks=positive,
    acceptance_rate=number, programs=whole, speedup=number, resident_speedup=number,
    tokens_equal=flag,
)  # fmt: skip
_PLAIN_RUN: Final = object_with(_COST, model=text, programs=whole, tokens_equal=flag)


def _table_run(where: str, value: Any) -> None:
    mapping(where, value)
    _PLAIN_RUN(where, value)
    if "decode" not in value:
        _CELL(where, value)


def _shares(where: str, inst: Any, origins: int) -> None:
    """Of a transfer of several tensors, the first of which is that of the instruction."""
    list_of(object_with(origin=whole, words=positive, cycles=positive), 2)(where, inst["shares"])
    for index, share in enumerate(inst["shares"]):
        if share["origin"] >= origins:
            raise fail(f"{where}[{index}].origin", share["origin"], f"less than {origins}")
    first = inst["shares"][0]["origin"]
    if first != inst["origin"]:
        raise fail(f"{where}[0].origin", first, f"{inst['origin']}, that of the instruction")
    total = sum(share["cycles"] for share in inst["shares"])
    if total != inst["cycles"]:
        raise fail(f"the sum of the cycles of {where}", total, f"{inst['cycles']}, the cycles")


def _instructions(where: str, value: Any) -> None:
    """One after the other, from cycle 0 to the last, each from an origin that is there."""
    start = 0
    for index, inst in enumerate(value["instructions"]):
        at = f"{where}.instructions[{index}]"
        if inst["start"] != start:
            raise fail(f"{at}.start", inst["start"], f"{start}, where the one before it ends")
        start += inst["cycles"]
        if inst["origin"] is not None:
            whole(f"{at}.origin", inst["origin"])
            if inst["origin"] >= len(value["origins"]):
                raise fail(f"{at}.origin", inst["origin"], f"less than {len(value['origins'])}")
        if "shares" in inst:
            _shares(f"{at}.shares", inst, len(value["origins"]))
    if start != value["cycles"]:
        raise fail(f"{where}.cycles", value["cycles"], f"{start}, those of the instructions")


def _measured(where: str, value: Any) -> None:
    """A number of guesses that was run has its speedup."""
    if value.get("measured") is not None:
        object_with(speedup=number)(f"{where}.measured", value["measured"])


_PROGRAM: Final = object_with(
    sums("histogram", BY_MNEMONIC, "instructions"), sums("cycles_by_unit", Unit),
    name=text, instructions=whole, histogram=mapping, words_loaded=whole, weight_words=whole,
    cycles=whole, cycles_by_unit=_UNITS,
)  # fmt: skip


def _anatomy(where: str, value: Any) -> None:
    """Programs of files, or a verifier and what it is compared with."""
    if "programs" in value:
        object_with(
            same_length("programs", "ratios"), anatomy_is_whole,
            programs=list_of(_PROGRAM, 1), ratios=list_of(number),
            settings=object_with(files=list_of(text, 1)),
        )(where, value)  # fmt: skip
    else:
        object_with(
            anatomy_is_whole,
            model=text, verifier=_PROGRAM, steps_together=_PROGRAM, draft=_PROGRAM, ratio=number,
            settings=object_with(rows=positive, cache=whole),
            steps=list_of(object_with(_PROGRAM, cache=whole), 1),
        )(where, value)  # fmt: skip


def _above_0(where: str, value: Any) -> None:
    number(where, value)
    if not value:
        raise fail(where, value, "a number above 0")


_STEADY: Final = object_with(
    speedup=number,
    plain_cycles_per_token=_above_0,
    cycles_per_token=_above_0,
    tokens_per_block=_above_0,
)
_PASSES: Final = list_of(one_of(OPTIMIZATIONS))
_BENCH_RUN: Final = object_with(
    prompt=whole, new_tokens=positive, k=positive, plain_cycles=positive, cycles=positive,
    speedup=number, resident_speedup=number, blocks=positive, proposed=whole, accepted=whole,
    accepted_per_position=list_of(whole), tokens_equal=flag,
)  # fmt: skip
_SPREAD: Final = object_with(
    k=positive, runs=positive, mean=number, low=nullable(number), high=nullable(number),
    median=number, min=number, max=number, losses=whole, acceptance_rate=number,
    mean_acceptance_length=number,
    resident_mean=number, resident_losses=whole,
)  # fmt: skip


_CAUSALITY_BLOCK: Final = object_with(
    same_length("tokens", "logits", "equal"),
    tokens=list_of(whole, 1), logits=list_of(list_of(integer, 1)), equal=list_of(flag),
)  # fmt: skip


def _serving_cells(where: str, value: Any) -> None:
    """A row has a cell for every cost."""
    for index, row in enumerate(value["rows"]):
        if len(row["cells"]) != len(value["costs"]):
            raise fail(
                f"the number of {where}.rows[{index}].cells", len(row["cells"]),
                f"{len(value['costs'])}, one for each of costs",
            )  # fmt: skip


KINDS: Final[Mapping[str, Check]] = {
    "decode": object_with(
        _in_vocabulary,
        comparison_is_of_both_runs,
        optional(RUN_CERTIFICATE, "certificate"),
        optional(rtl, "rtl"),
        settings=object_with(
            model=text, draft=text, draft_noise=number, num_speculative_tokens=whole,
            prompt=list_of(whole, 1), vocabulary=list_of(text, 1),
        ),
        plain=_RUN,
        speculative=object_with(
            _RUN,
            acceptance_is_the_traces,
            blocks=whole, proposed=whole, accepted=whole, acceptance_rate=number,
            mean_acceptance_length=number, accepted_per_position=list_of(whole),
            kept=whole, tokens_per_block=number,
        ),
        tokens_equal=nullable(flag), speedup=number, decode_speedup=number, optimize=_PASSES,
        resident_weights=object_with(
            weight_words=whole, plain_cycles=whole, speculative_cycles=whole, speedup=number
        ),
    ),
    "table": object_with(
        table_has_its_plain_runs, table_is_whole, optional(rtl, "rtl"),
        runs=list_of(_table_run, 1), optimize=_PASSES,
    ),
    "grid": object_with(grid_is_whole, cells=list_of(_CELL, 1), optimize=_PASSES),
    "plan": object_with(
        plan_is_whole,
        plan_is_its_best,
        optimize=_PASSES,
        settings=object_with(max_k=positive),
        cost_curve=object_with(
            cache=whole,
            points=list_of(
                object_with(rows=positive, cycles=positive, relative=number, is_cliff=flag), 1
            ),
        ),
        ks=list_of(
            object_with(_measured, k=whole, speedup=number, steady=_STEADY), 1
        ),
        pays=flag, best=object_with(_STEADY, k=positive),
    ),
    "bench": object_with(
        bench_is_of_its_runs,
        settings=object_with(model=text, draft=text, draft_noise=number),
        prompts=list_of(
            object_with(origin=text, tokens=list_of(whole, 1), repeated_8grams=number), 1
        ),
        confidence=number,
        new_tokens=list_of(positive, 1), ks=list_of(positive, 1), repeated_8grams=number,
        runs=list_of(_BENCH_RUN, 1), cells=list_of(_SPREAD, 1), by_k=list_of(_SPREAD, 1),
        best=_SPREAD, resident_best=_SPREAD, tokens_equal=flag, optimize=_PASSES,
    ),
    "anatomy": _anatomy,
    "causality": object_with(
        causality_is_whole,
        model=text, cache=list_of(whole), holds=flag, blocks=list_of(_CAUSALITY_BLOCK, 1),
    ),
    "serving": object_with(
        _serving_cells, serving_is_whole,
        model=text, runs=positive, new_tokens=whole, step_cycles=number, draft_cycles=number,
        costs=list_of(object_with(c=number, assumed=flag), 1),
        rows=list_of(
            object_with(
                acceptance=number, k=whole, pass_cost=number, tokens_equal=flag,
                cells=list_of(object_with(formula=number, measured=number, error=signed)),
            ),
            1,
        ),
    ),
    "profile": object_with(
        _COST, _instructions,
        program=text,
        origins=list_of(object_with(tensor=text, text=text)),
        instructions=list_of(
            object_with(
                sums("phases", Phase),
                text=text, unit=one_of(Unit), start=whole, cycles=whole, phases=mapping,
                origin=lambda _where, _value: None,
            ),
            1,
        ),
    ),
    "sweep": SWEEP,
    "certify": CERTIFY,
    "eval": EVAL,
    "replay": object_with(_COST, program=text, seed=whole, rtl=rtl),
}  # fmt: skip
"""The kinds of record, each with what one must have for a report."""
