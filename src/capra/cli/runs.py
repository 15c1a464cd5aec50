"""What the options of a model mean, and how a record tells them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from capra.errors import InputError

if TYPE_CHECKING:
    from capra.lm.model import LanguageModel

OUTPUT_ONLY: Final = frozenset({"json", "csv", "parquet", "wave"})
"""Options that say where results go, and change none: the only ones that settings lack."""


def chosen_model(
    name: str, seed: int, external_words: int | None = None, scratchpad_words: int | None = None
) -> "LanguageModel":
    """The model of a name, on a chip with other memories where these are given."""
    from capra.lm.models import load_model, on_chip

    sizes = {"external_words": external_words, "scratchpad_words": scratchpad_words}
    return on_chip(load_model(name, seed), sizes)


def read_text(path: Path, what: str) -> str:
    """The text of a file of the user's, without a byte order mark. InputError if it has none."""
    try:
        return path.read_bytes().decode("utf-8-sig")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{what} {path} cannot be read: {reason}") from None


def text_steps(model: "LanguageModel", prompt: Sequence[int], max_new_tokens: int) -> int:
    """How many tokens a plain run makes at most: as many as are asked for and have room."""
    return max(0, min(max_new_tokens, model.config.context - len(prompt) + 1))


def record_head(
    kind: str, files: Mapping[str, str | None] | None = None, **settings: object
) -> dict[str, Any]:
    """What every record begins with: its kind, and what made it.

    `settings` are all options of the command that runs, but for OUTPUT_ONLY; what is given here
    stands for the option of the same name, or beside them. `files` has the digests of the files
    that were used.
    """
    from capra import __version__
    from capra.cli.invocation import invocation

    made = invocation()
    options = {name: value for name, value in made.options.items() if name not in OUTPUT_ONLY}
    return {
        "kind": kind,
        "capra": __version__,
        "command": list(made.command),
        "date": made.date,
        "settings": {**options, **settings},
        "files": dict(files or {}),
    }


def run_settings(model: "LanguageModel", prompt: Sequence[int]) -> dict[str, Any]:
    """Settings of a run that its options do not tell: the prompt, the chip and the vocabulary."""
    from capra.lm.prompts import detokenizer

    detokenize = detokenizer(model)
    return {
        "prompt": list(prompt),
        "chip": asdict(model.config.chip),
        "vocabulary": [detokenize([token]) for token in range(model.config.vocab_size)],
    }


def checkpoint_digests(model: str, draft: str | None = None) -> dict[str, str | None]:
    """Digests of the checkpoints of a model and a draft by name; of the packaged model's too."""
    from capra.files import digest, digests
    from capra.lm.models import PYDOC, TINY_MODELS, packaged_checkpoint
    from capra.spec_decode.drafts import DRAFTS

    found = dict[str, str | None]()
    if model == PYDOC:
        with packaged_checkpoint() as path:
            found[model] = digest(path)
    elif model not in TINY_MODELS:
        found |= digests([model])
    if draft is not None and draft not in DRAFTS:
        found |= digests([draft])
    return found


def file_digests(paths: Iterable[Path]) -> dict[str, str | None]:
    """Digests of files by path."""
    from capra.files import digests

    return digests(map(str, paths))
