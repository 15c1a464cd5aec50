"""What a record says twice is the same both times, and what follows from its numbers does follow.

These checks come after those of the values themselves; ratios may differ by rounding.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import isclose
from statistics import fmean, median
from typing import Any, Final

from capra.errors import InputError
from capra.isa.spec import PHASES, Phase, Unit
from capra.report.checks import fail

Record = Mapping[str, Any]

TOLERANCE: Final = 1e-9
"""How far a ratio may be from that of the record's own counts, relative to it."""


def units_are_their_phases(where: str, cost: Record) -> None:
    """The cycles of a unit are those of its phases."""
    for unit in Unit:
        phases = [phase for phase in Phase if PHASES[phase][0] is unit]
        found = sum(cost["cycles_by_phase"].get(phase, 0) for phase in phases)
        if found != cost["cycles_by_unit"][unit]:
            raise InputError(
                f"{where}: the phases of {unit} sum to {found}, expected "
                f"{cost['cycles_by_unit'][unit]}, its cycles"
            )


def run_is_its_programs(where: str, run: Record) -> None:
    """The programs of a run are those of its trace, and so are its cycles, phase by phase."""
    programs = _programs(run)
    for phase in Phase:
        found = sum(program["cycles_by_phase"].get(phase, 0) for program in programs)
        whole = run["cycles_by_phase"].get(phase, 0)
        if found != whole:
            raise InputError(
                f"{where}: the cycles of {phase} of all programs sum to {found}, expected {whole}, "
                "those of the run"
            )
    _same(where, run, {"programs": len(programs)}, "those of the trace")


def block_is_checked(where: str, block: Record) -> None:
    """Guesses are accepted from the first on, and the target has one choice after each row."""
    accepted, most = block["accepted"], min(len(block["proposed"]), len(block["choices"]) - 1)
    if accepted > most:
        raise fail(f"{where}.accepted", accepted, f"at most {most}, the guesses that were checked")
    for index, program in enumerate(block["programs"]):
        if program["role"] != "draft" and program["rows"] != len(block["choices"]):
            raise fail(
                f"{where}.programs[{index}].rows", program["rows"],
                f"{len(block['choices'])}, one for each of choices",
            )  # fmt: skip


def acceptance_is_the_traces(where: str, run: Record) -> None:
    """The counts of guesses are those of the blocks, and the ratios follow from them."""
    trace = run["trace"]
    accepted = [block["accepted"] for block in trace]
    proposed = [len(block["proposed"]) for block in trace]
    per_position = [0] * max(proposed, default=0)
    for count in accepted:
        for position in range(count):
            per_position[position] += 1
    counts = {
        "blocks": len(trace),
        "proposed": sum(proposed),
        "accepted": sum(accepted),
        "accepted_per_position": per_position,
    }
    _same(where, run, counts, "that of the trace")
    rate_is_of_the_counts(where, run)
    length = 1 + sum(accepted) / len(trace) if trace else 0.0
    _close(where, run, "mean_acceptance_length", length, "1 + accepted / blocks")
    kept = len(run["tokens"])
    _same(where, run, {"kept": kept}, "the number of tokens")
    per_block = kept / len(trace) if trace else 0.0
    _close(where, run, "tokens_per_block", per_block, "kept / blocks")


def rate_is_of_the_counts(where: str, run: Record) -> None:
    """No more guesses are accepted than proposed, and the rate is that of the two."""
    rate_is_possible(where, run)
    accepted, proposed = run["accepted"], run["proposed"]
    rate = accepted / proposed if proposed else 0.0
    _close(where, run, "acceptance_rate", rate, "accepted / proposed")


def rate_is_possible(where: str, run: Record) -> None:
    """No more draft tokens are accepted than proposed."""
    if run["accepted"] > run["proposed"]:
        raise fail(f"{where}.accepted", run["accepted"], f"at most {run['proposed']}, proposed")


def comparison_is_of_both_runs(where: str, record: Record) -> None:
    """Speedups are plain over speculative cycles, with the prompt's programs and without them."""
    plain, speculative = record["plain"], record["speculative"]
    both = plain["tokens"] or speculative["tokens"]
    equal = plain["tokens"] == speculative["tokens"] if both else None
    _same(where, record, {"tokens_equal": equal}, "as the tokens of both runs say")
    _close(where, record, "speedup", _ratio(plain["cycles"], speculative["cycles"]),
           "plain cycles over speculative ones")  # fmt: skip
    before, after = (
        run["cycles"] - sum(program["cycles"] for program in run["prefill"]["trace"])
        for run in (plain, speculative)
    )
    _close(where, record, "decode_speedup", _ratio(before, after),
           "plain cycles over speculative ones, both without the prompt's")  # fmt: skip
    resident, before, after = record["resident_weights"], *map(_resident, (plain, speculative))
    at = f"{where}.resident_weights"
    counts = {"plain_cycles": before, "speculative_cycles": after}
    counts["weight_words"] = sum(_weight_words(_programs(speculative)))
    _same(at, resident, counts, "by the weight words of the programs")
    _close(at, resident, "speedup", _ratio(before, after), "plain cycles over speculative ones")


def table_has_its_plain_runs(where: str, table: Record) -> None:
    """Every run has a plain run of its model, and its speedup is over that one's cycles."""
    plain = {run["model"]: run["cycles"] for run in table["runs"] if "decode" in run}
    for index, run in enumerate(table["runs"]):
        at = f"{where}.runs[{index}]"
        if run["model"] not in plain:
            raise fail(f"{at}.model", run["model"], "one that has a plain run")
        if "decode" not in run:
            ratio = _ratio(plain[run["model"]], run["cycles"])
            _close(at, run, "speedup", ratio, "the cycles of its model's plain run over its own")


def plan_is_its_best(where: str, record: Record) -> None:
    """What is best, and whether it pays, is what the steady states say."""
    best = max(record["ks"], key=lambda entry: float(entry["steady"]["speedup"]))
    _same(where, record, {"best": {"k": best["k"], **best["steady"]}}, "the best steady state")
    pays = best["steady"]["speedup"] > 1
    _same(where, record, {"pays": pays}, "as the best steady state says")
    for index, entry in enumerate(record["ks"]):
        steady = entry["steady"]
        ratio = steady["plain_cycles_per_token"] / steady["cycles_per_token"]
        _close(f"{where}.ks[{index}].steady", steady, "speedup", ratio, "plain over speculative")


def bench_is_of_its_runs(where: str, record: Record) -> None:
    """Every prompt, length and k has one run, and the statistics are those of the runs."""
    expected = [
        (prompt, length, k)
        for k in record["ks"]
        for length in record["new_tokens"]
        for prompt in range(len(record["prompts"]))
    ]
    found = [(run["prompt"], run["new_tokens"], run["k"]) for run in record["runs"]]
    for index, run in enumerate(record["runs"]):
        ratio = _ratio(run["plain_cycles"], run["cycles"])
        _close(f"{where}.runs[{index}]", run, "speedup", ratio, "plain over speculative cycles")
        rate_is_possible(f"{where}.runs[{index}]", run)
    counts = Counter(found)
    for key in expected:
        if counts[key] != 1:
            raise InputError(
                f"{where}.runs has {counts[key]} runs of prompt {key[0]}, {key[1]} tokens, "
                f"k = {key[2]}, expected 1"
            )
    if len(found) > len(expected):
        raise fail(f"the number of {where}.runs", len(found), f"{len(expected)}")
    equal = all(run["tokens_equal"] for run in record["runs"])
    _same(where, record, {"tokens_equal": equal}, "as the runs say")
    for place, entry, runs in _spreads(where, record):
        _spread_is_of(place, entry, runs)
    for name, mean in (("best", "mean"), ("resident_best", "resident_mean")):
        means = [entry[mean] for entry in record["by_k"]]
        if record["by_k"][means.index(max(means))] != record[name]:
            raise fail(f"{where}.{name}", record[name], f"the entry of by_k of the largest {mean}")


def _spreads(where: str, record: Record) -> Iterator[tuple[str, Record, list[Record]]]:
    """The statistics of a bench with the runs that they are of."""
    runs = record["runs"]
    cells = [(length, k) for length in record["new_tokens"] for k in record["ks"]]
    for name, keys in (("by_k", [(None, k) for k in record["ks"]]), ("cells", cells)):
        if len(record[name]) != len(keys):
            raise fail(f"the number of {where}.{name}", len(record[name]), f"{len(keys)}")
        for index, ((length, k), entry) in enumerate(zip(keys, record[name], strict=True)):
            place = f"{where}.{name}[{index}]"
            _same(place, entry, {"k": k}, "in the order of ks")
            if length is not None:
                _same(place, entry, {"new_tokens": length}, "in the order of new_tokens")
            chosen = [run for run in runs if run["k"] == k]
            yield place, entry, [run for run in chosen if length in (None, run["new_tokens"])]


def _spread_is_of(where: str, entry: Record, runs: Sequence[Record]) -> None:
    speedups = [run["speedup"] for run in runs]
    blocks, accepted, proposed = (sum(r[key] for r in runs) for key in _COUNTS)
    resident = [run["resident_speedup"] for run in runs]
    _same(where, entry, {
        "runs": len(runs),
        "losses": sum(speedup < 1 for speedup in speedups),
        "resident_losses": sum(speedup < 1 for speedup in resident),
    }, "that of the runs")  # fmt: skip
    for key, value in (
        ("mean", fmean(speedups)), ("min", min(speedups)), ("max", max(speedups)),
        ("median", median(speedups)), ("resident_mean", fmean(resident)),
        ("acceptance_rate", accepted / proposed if proposed else 0.0),
        ("mean_acceptance_length", 1 + accepted / blocks),
    ):  # fmt: skip
        _close(where, entry, key, value, "that of the runs")
    if entry["low"] is None or entry["high"] is None:
        _same(where, entry, {"low": None, "high": None}, "both or none")
    elif not entry["low"] <= entry["mean"] <= entry["high"]:
        raise fail(f"{where}.mean", entry["mean"], f"one of {entry['low']} .. {entry['high']}")


_COUNTS: Final = ("blocks", "accepted", "proposed")


def _resident(run: Record) -> int:
    """Cycles of a run whose weights are loaded once per model."""
    programs = _programs(run)
    loaded = sum(program["weight_words"] for program in programs)
    cycles: int = run["cycles"] - loaded + sum(_weight_words(programs))
    return cycles


def _weight_words(programs: Sequence[Record]) -> list[int]:
    """Words of weights of the draft and of the target."""
    return [
        max((p["weight_words"] for p in programs if (p["role"] == "draft") is draft), default=0)
        for draft in (True, False)
    ]


def _programs(run: Record) -> list[Record]:
    """Every program of a run."""
    blocks = [program for block in run["trace"] for program in block["programs"]]
    return [*run["prefill"]["trace"], *blocks]


def _ratio(before: int, after: int) -> float:
    """A speedup; two runs of no cycles are equally fast."""
    return before / after if after else 1.0


def _same(where: str, record: Record, values: Mapping[str, Any], meaning: str) -> None:
    for key, expected in values.items():
        if record[key] != expected:
            raise fail(f"{where}.{key}", record[key], f"{expected}, {meaning}")


def _close(where: str, record: Record, key: str, expected: float, meaning: str) -> None:
    if not isclose(record[key], expected, rel_tol=TOLERANCE):
        raise fail(f"{where}.{key}", record[key], f"{expected}, {meaning}")
