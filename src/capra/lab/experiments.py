"""The experiments of the reference: the table of seven runs and the grid of 25 cells."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from capra.compiler.optimization import O0, SHORT_LAST_BLOCK, Optimization
from capra.isa.chip import Chip
from capra.lab.planner import Workload, measured_source
from capra.lab.planner import predict as predict_guesses
from capra.lm.bigram import ChipBigram
from capra.lm.models import load_bigram, load_model
from capra.lm.target import ChipTarget, InterpretedTarget
from capra.sim.device import Device, SimulatedDevice
from capra.spec_decode.decode import Decoded, decode
from capra.spec_decode.metrics import acceptance, cost_record, resident_cycles, total_counters
from capra.spec_decode.proposers import ChainProposer
from capra.spec_decode.recorded import GRID_KS, GRID_NOISES, TABLE

NEW_TOKENS: Final = 32
START_TOKEN: Final = 0
MODEL_SEED: Final = 1
DRAFT_SEED: Final = 1
RUNS: Final = sum(1 + len(cells) for _, cells in TABLE)
CELLS: Final = len(GRID_NOISES) * len(GRID_KS)

Record = dict[str, Any]
OnRecord = Callable[[Record], None]
MakeDevice = Callable[[Chip], Device]


def table_runs(
    on_run: OnRecord = lambda _record: None,
    make_device: MakeDevice = SimulatedDevice,
    optimize: Optimization = O0,
) -> list[Record]:
    """The seven runs: 32 tokens from token 0, plain and speculative, on the chip.

    Without optimization they are the recorded ones, to the cycle.

    tokens_equal compares a speculative run with the plain run, and a plain run with the integer
    interpreter, which evaluates the same graphs without any program.
    """
    runs: list[Record] = []

    def add(record: Record) -> None:
        runs.append(record)
        on_run(record)

    for name, cells in TABLE:
        lab = _Lab(name, make_device, optimize)
        plain = lab.plain()
        reference = decode(InterpretedTarget(lab.target.model), [START_TOKEN], NEW_TOKENS)
        add(
            {
                "model": name,
                "decode": "plain",
                "programs": len(plain.runs),
                **cost_record(plain.runs),
                "tokens_equal": plain.tokens == reference.tokens,
            }
        )
        for noise, k in cells:
            add({"model": name, **lab.cell(plain, noise, k)})
    return runs


def grid_cells(
    on_cell: OnRecord = lambda _record: None,
    optimize: Optimization = O0,
    *,
    predict: bool = False,
) -> list[Record]:
    """The structured model over draft noise and k, each cell against the plain run.

    With `predict`, each cell also has what the planner predicts of its speedup without having run
    it (`predicted`) and how far off that is (`errors`, relative to the measured speedup).
    """
    lab = _Lab("structured", SimulatedDevice, optimize)
    plain, cells = lab.plain(), list[Record]()
    work = Workload(lab.target, (START_TOKEN,), NEW_TOKENS, max(GRID_KS))
    for noise in GRID_NOISES:
        source = measured_source(work, partial(lab.draft, noise)) if predict else None
        for k in GRID_KS:
            cell = lab.cell(plain, noise, k)
            if source is not None:
                cell["predicted"] = predict_guesses(work, source, k)["predicted"]
                cell["errors"] = {
                    name: speedup / cell["speedup"] - 1
                    for name, speedup in cell["predicted"].items()
                }
            cells.append(cell)
            on_cell(cell)
    return cells


class _Lab:
    """One model and its drafts on one chip, all programs compiled once for all runs."""

    def __init__(self, model_name: str, make_device: MakeDevice, optimize: Optimization) -> None:
        model = load_model(model_name, MODEL_SEED)
        self.device = make_device(model.config.chip)
        self.target = ChipTarget(model, self.device, optimize=optimize)
        self._drafts: dict[float, ChipBigram] = {}

    def plain(self) -> Decoded:
        return decode(self.target, [START_TOKEN], NEW_TOKENS)

    def draft(self, noise: float, _text: Sequence[int] = ()) -> ChainProposer:
        model, optimize = self.target.model, self.target.optimize
        if noise not in self._drafts:
            bigram = load_bigram(model, noise, DRAFT_SEED)
            self._drafts[noise] = ChipBigram(
                bigram, model.config.chip, self.device, optimize=optimize
            )
        return ChainProposer(self._drafts[noise])

    def cell(self, plain: Decoded, noise: float, k: int) -> Record:
        run = decode(
            self.target, [START_TOKEN], NEW_TOKENS,
            proposer=self.draft(noise), num_speculative_tokens=k,
            shorten_last_block=SHORT_LAST_BLOCK in self.target.optimize,
        )  # fmt: skip
        cost = cost_record(run.runs)
        counts = acceptance(run)
        return {
            "draft_noise": int(noise) if noise.is_integer() else noise,
            "k": k,
            "accepted": counts["accepted"],
            "proposed": counts["proposed"],
            "blocks": counts["blocks"],
            "acceptance_rate": counts["acceptance_rate"],
            "programs": len(run.runs),
            **cost,
            "speedup": total_counters(plain.runs).total / cost["cycles"],
            "resident_speedup": resident_cycles(plain.runs) / resident_cycles(run.runs),
            "tokens_equal": run.tokens == plain.tokens,
        }
