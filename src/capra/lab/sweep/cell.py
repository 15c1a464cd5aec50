"""A cell: one speculative run against the plain run, by its parameters, and the row it gives."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from hashlib import blake2b
from types import NoneType
from typing import Any, Final, Generic, TypeVar, get_args, get_type_hints

from capra.compiler.optimization import parse_optimization
from capra.errors import CapraError, CheckpointError, SweepError
from capra.files import digests
from capra.isa.chip import Chip
from capra.lm.models import load_model, on_chip
from capra.lm.prompts import prompt_tokens
from capra.lm.target import ChipTarget
from capra.spec_decode.comparison import Comparison
from capra.spec_decode.decode import Decoded
from capra.spec_decode.drafts import draft_maker
from capra.spec_decode.proposers import Proposer

T = TypeVar("T")
Row = dict[str, str | int | float | bool | None]


@dataclass(frozen=True, slots=True)
class Cell:
    """What `capra decode` runs with these options; its defaults are those of the command.

    None is the model's own: its chip, and the prompt that it continues when none is given. Fields
    that make another target come first, so that neighbours in a grid share one.
    """

    model: str = "pydoc"
    model_seed: int = 1
    external_words: int | None = None
    scratchpad_words: int | None = None
    operand_depth: int | None = None
    program_entries: int | None = None
    optimize: str = "1"
    prompt: str | None = None
    start_token: int | None = None
    max_new_tokens: int = 64
    draft: str = "bigram"
    draft_noise: float = 0.0
    draft_seed: int = 1
    k: int = 3

    @property
    def sizes(self) -> dict[str, int | None]:
        """Sizes of the chip, by field of Chip."""
        return {field.name: getattr(self, field.name) for field in fields(Chip)}

    @property
    def target(self) -> tuple[Any, ...]:
        """Equal for cells that run on the same target."""
        return (self.model, self.model_seed, *self.sizes.values(), self.optimize)

    def key(self, files: Mapping[str, str | None]) -> str:
        """Names the cell wherever and whenever it runs: a digest of its parameters as JSON.

        `files` has the digests of checkpoint files by name: one with other content makes another
        cell.
        """
        digests = [files.get(self.model), files.get(self.draft)]
        text = json.dumps([asdict(self), digests], sort_keys=True)
        return blake2b(text.encode(), digest_size=16).hexdigest()


def _kind(hint: Any) -> type:
    """int of int and of int | None."""
    (kind,) = set(get_args(hint) or (hint,)) - {NoneType}
    assert isinstance(kind, type)
    return kind


PARAMETERS: Final = {name: _kind(hint) for name, hint in get_type_hints(Cell).items()}
"""Fields of a cell and their types, apart from None."""

RESULTS: Final[dict[str, type]] = {
    "refusal": str,
    "tokens_equal": bool,
    "new_tokens": int,
    "stop_reason": str,
    "plain_programs": int,
    "plain_cycles": int,
    "plain_matrix_cycles": int,
    "plain_dma_cycles": int,
    "plain_vector_cycles": int,
    "plain_control_cycles": int,
    "programs": int,
    "cycles": int,
    "matrix_cycles": int,
    "dma_cycles": int,
    "vector_cycles": int,
    "control_cycles": int,
    "prefill_cycles": int,
    "draft_cycles": int,
    "target_cycles": int,
    "blocks": int,
    "proposed": int,
    "accepted": int,
    "acceptance_rate": float,
    "mean_acceptance_length": float,
    "accepted_per_position": str,
    "speedup": float,
    "decode_speedup": float,
}
"""What a cell gives. Where `refusal` is a sentence, everything else is None, and the reverse.

But `tokens_equal` is None too in a run of no tokens.
"""

COLUMNS: Final = {"key": str, **PARAMETERS, **RESULTS}
"""The columns of a row, in order."""


class CellRunner:
    """Runs cells one after the other; neighbours share what they have in common.

    `files` has the digests of checkpoint files by name, as Cell.key takes them.
    """

    def __init__(self, files: Mapping[str, str | None]) -> None:
        self._files = files
        self._target = _Last[ChipTarget]()
        self._plain = _Last[Decoded]()
        self._draft = _Last[Callable[[tuple[int, ...]], Proposer]]()

    def run(self, cell: Cell) -> Row:
        """The results of a cell; what Capra refuses is a row with the sentence.

        Raises SweepError where the results may be those of another file than the key names: a
        refusal that is stored is one of the cell, for ever.
        """
        try:
            row = self._results(cell)
        except CheckpointError as error:  # all of them were loaded when the sweep began
            raise SweepError(f"{error}; the file was whole when the sweep began") from None
        except CapraError as error:
            row = {**dict.fromkeys(RESULTS), "refusal": str(error)}
        self._check_files(cell)
        return row

    def answer(self, cell: Cell) -> Row | SweepError:
        """What a worker sends: a row, or why there is none."""
        try:
            return self.run(cell)
        except SweepError as error:
            return error

    def _check_files(self, cell: Cell) -> None:
        """After the cell, so that what was read meanwhile is known to be the file of the key."""
        names = {cell.model, cell.draft} & self._files.keys()
        for name, digest in digests(sorted(names)).items():
            if digest != self._files[name]:
                found = "cannot be read" if digest is None else f"has the digest {digest}"
                raise SweepError(
                    f"the file {name} {found}, expected {self._files[name]} as when the sweep "
                    "began: put that one back"
                )

    def _results(self, cell: Cell) -> Row:
        passes = parse_optimization(cell.optimize)
        target = self._target.get(
            cell.target,
            lambda: ChipTarget(
                on_chip(load_model(cell.model, cell.model_seed), cell.sizes), optimize=passes
            ),
        )
        prompt = prompt_tokens(target.model, cell.prompt, cell.start_token)
        draft = (cell.draft, cell.draft_noise, cell.draft_seed)
        make_proposer = self._draft.get(
            (*cell.target, *draft),
            lambda: draft_maker(draft[0], target.model, *draft[1:], optimize=passes),
        )
        runs = Comparison(target, prompt, cell.max_new_tokens, cell.k, make_proposer)
        plain = self._plain.get((*cell.target, *prompt, cell.max_new_tokens), runs.plain)
        return _flat(runs.record(plain, runs.speculative(plain)))


class _Last(Generic[T]):
    """Remembers the value of one key, the last."""

    def __init__(self) -> None:
        self._kept: tuple[tuple[Any, ...], T] | None = None

    def get(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        if self._kept is None or self._kept[0] != key:
            self._kept = (key, make())
        return self._kept[1]


def _flat(record: dict[str, Any]) -> Row:
    """The record of a comparison as results."""
    plain, speculative = record["plain"], record["speculative"]
    found = {
        **speculative,
        **{f"{unit}_cycles": n for unit, n in speculative["cycles_by_unit"].items()},
        **{f"plain_{unit}_cycles": n for unit, n in plain["cycles_by_unit"].items()},
        "plain_programs": plain["programs"],
        "plain_cycles": plain["cycles"],
        "prefill_cycles": speculative["prefill"]["cycles"],
        "new_tokens": len(speculative["tokens"]),
        "accepted_per_position": json.dumps(speculative["accepted_per_position"]),
        "tokens_equal": record["tokens_equal"],
        "speedup": record["speedup"],
        "decode_speedup": record["decode_speedup"],
        "refusal": None,
    }
    return {name: found[name] for name in RESULTS}
