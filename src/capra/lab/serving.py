"""Serving arithmetic, and what it leaves out: the formula beside runs on the chip.

    speedup = E / (1 + k c),  E = (1 - a^(k+1)) / (1 - a)

a is the acceptance of every guess, c the cost of a guess over that of a step. The formula lets a
pass over k + 1 rows cost one step; on the chip it costs more, and a text ends.
"""

from collections.abc import Sequence
from typing import Any

from capra.lab.planner import Workload, measure, synthetic_source
from capra.lab.predict import Rates
from capra.spec_decode.metrics import expected_tokens
from capra.spec_decode.recorded import SERVING_ACCEPTANCES as ACCEPTANCES
from capra.spec_decode.recorded import SERVING_COSTS as COSTS
from capra.spec_decode.recorded import SERVING_GUESSES as GUESSES

Record = dict[str, Any]


def formula_speedup(acceptance: float, k: int, c: float) -> float:
    """E / (1 + k c)."""
    return expected_tokens(acceptance, k) / (1 + k * c)


def serving(work: Workload, draft_cycles: float, seed: int, runs: int) -> Record:
    """The formula and the chip, for every acceptance, k and cost of a guess.

    A run's draft is synthetic, right at the rate of the row. Its target programs are executed, its
    guesses cost c mean steps of the plain run: `draft_cycles`, executed ones, or an assumed c.
    `error` is the formula's, against the runs. `pass_cost` is the mean cost of the passes in steps.
    """
    step = work.plain_cycles / work.new_tokens
    costs = [{"c": c, "assumed": True} for c in COSTS]
    costs.append({"c": draft_cycles / step, "assumed": False})
    rows = [
        _row(work, acceptance, k, costs, step, seed, runs)
        for acceptance in ACCEPTANCES
        for k in GUESSES
    ]
    return {
        "new_tokens": work.new_tokens,
        "runs": runs,
        "step_cycles": step,
        "draft_cycles": draft_cycles,
        "costs": costs,
        "rows": rows,
    }


def _row(
    work: Workload, acceptance: float, k: int, costs: Sequence[Record], step: float, seed: int,
    runs: int,
) -> Record:  # fmt: skip
    run = measure(work, synthetic_source(work, Rates((acceptance,)), 0.0, seed, runs), k)
    cells = list[Record]()
    for cost in costs:
        formula = formula_speedup(acceptance, k, cost["c"])
        cycles = run["executed_cycles"] + run["proposed"] * cost["c"] * step
        measured = run["runs"] * work.plain_cycles / cycles
        cells.append({"formula": formula, "measured": measured, "error": formula / measured - 1})
    return {
        "acceptance": acceptance,
        "k": k,
        "pass_cost": run["executed_cycles"] / run["blocks"] / step,
        "tokens_equal": run["tokens_equal"],
        "cells": cells,
    }
