"""Checkpoints: a model in one safetensors file, with its configuration in the file's metadata.

Tensors are float32: embed, positions, layers.N.wq wk wv wo w1 w2, unembed, and optionally bigram,
the logits of a draft fitted to the model's own text. The metadata key "capra" holds a JSON object:
format, name, vocab (one character a token), width, heads, layers, hidden, context, ranges, digest,
header_digest.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from capra.errors import CapacityError, CheckpointError, RangeError
from capra.files import write_atomically
from capra.ir.ranges import Ranges
from capra.isa.chip import (
    MAX_EXTERNAL_WORDS,
    MAX_PROGRAM_ENTRIES,
    MAX_SCRATCHPAD_WORDS,
    MIN_OPERAND_DEPTH,
    Chip,
)
from capra.isa.spec import ARRAY_SIZE
from capra.lm.foreign import config_beside, foreign_kind
from capra.lm.model import LanguageModel, ModelConfig
from capra.lm.target import PREFILL_ROWS

METADATA_KEY: Final = "capra"
FORMAT: Final = 1
BIGRAM: Final = "bigram"
DIGEST: Final = "digest"
HEADER_DIGEST: Final = "header_digest"
OWN: Final = (
    "a character model of Capra's own, as capra train makes them (docs/reference/checkpoint.md)"
)
"""What can be loaded, and where to read about it."""

BLOCK_ROWS: Final = PREFILL_ROWS
"""Rows of the largest block that a model's own chip is sized for: those of a prefill program."""

MIN_WORDS: Final = 1 << 13
"""Least words of each memory of a model's own chip."""


def load_checkpoint(path: Path) -> LanguageModel:
    """The model of a checkpoint file, with its ranges, vocabulary and bigram.

    Raises CheckpointError when the file is missing, damaged, made by another program, or when a
    tensor has a wrong name, shape or type or holds a number that is not finite.
    """
    kind = foreign_kind(path)
    if kind is not None:
        raise CheckpointError(f"{path} is {kind}, expected {OWN}")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if METADATA_KEY not in metadata:
                raise CheckpointError(
                    f"{path} is a safetensors checkpoint of another program{config_beside(path)}: "
                    f"it has the metadata {sorted(metadata)}, expected the key {METADATA_KEY!r} of "
                    f"{OWN}"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise CheckpointError(
            f"{path} cannot be read ({error}), expected a safetensors checkpoint"
        ) from None
    header = _header(path, metadata[METADATA_KEY])
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32:
            raise CheckpointError(f"{path}: tensor {name} is {tensor.dtype}, expected float32")
    model = model_from(header, tensors)
    for what, key, digest in (
        ("tensors have", DIGEST, tensor_digest(tensors)),
        ("header has", HEADER_DIGEST, header_digest(header)),
    ):
        if header.get(key, digest) != digest:
            raise CheckpointError(
                f"{path} is damaged: its {what} the digest {digest}, expected {header[key]}"
            )
    return model


def model_from(
    header: Mapping[str, Any], tensors: Mapping[str, npt.NDArray[np.float32]]
) -> LanguageModel:
    """The model of a header and its tensors. Raises CheckpointError for what does not fit."""
    name = str(header.get("name", "model"))
    if header.get("format") != FORMAT:
        raise CheckpointError(
            f"model {name} has the format {header.get('format')!r}, expected {FORMAT}"
        )
    characters = _characters(name, header.get("vocab"))
    sizes = {}
    for key in ("width", "heads", "layers", "hidden", "context"):
        if key not in header:
            raise CheckpointError(f"model {name} has no {key}, expected a whole number")
        sizes[key] = header[key]
    if type(sizes["layers"]) is int and sizes["layers"] > len(tensors):
        raise CheckpointError(
            f"model {name} has {sizes['layers']} layers and {len(tensors)} tensors, expected more "
            "tensors than layers"
        )
    config = ModelConfig(
        name=name, vocab_size=len(characters), has_positions="positions" in tensors, **sizes
    )
    config = replace(config, chip=chip_for(config))
    with np.errstate(invalid="ignore"):  # a signaling NaN, which the model refuses with its name
        weights = {name: tensor.astype(np.float64) for name, tensor in tensors.items()}
    bigram = weights.pop(BIGRAM, None)
    model = LanguageModel(config, weights, characters=characters, bigram=bigram)
    return model.with_ranges(_ranges(name, header.get("ranges")))


def tensor_digest(tensors: Mapping[str, npt.NDArray[Any]]) -> str:
    """SHA-256 of all tensors' names and bytes, in the order of their names."""
    state = hashlib.sha256()
    for name in sorted(tensors):
        state.update(name.encode() + b"\0" + tensors[name].tobytes())
    return state.hexdigest()


def header_digest(header: Mapping[str, Any]) -> str:
    """SHA-256 of the header's JSON with sorted keys, without this digest itself."""
    rest = {key: value for key, value in header.items() if key != HEADER_DIGEST}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def save_checkpoint(model: LanguageModel, path: Path, notes: Mapping[str, Any]) -> None:
    """Write a character model to a file; `notes` are further keys of its header.

    Weights are stored as float32, ranges of activations only: those of weights are their own.
    """
    config = model.config
    if model.characters is None:
        raise CheckpointError(f"model {config.name} has no characters, expected a character model")
    shapes = config.weight_shapes()
    header = {
        **notes,
        "format": FORMAT,
        "name": config.name,
        "vocab": list(model.characters),
        "width": config.width,
        "heads": config.heads,
        "layers": config.layers,
        "hidden": config.hidden,
        "context": config.context,
        "ranges": {tag: value for tag, value in model.ranges.values.items() if tag not in shapes},
    }
    tensors = {name: value.astype(np.float32) for name, value in model.weights.items()}
    if model.bigram is not None:
        tensors[BIGRAM] = model.bigram.astype(np.float32)
    header[DIGEST] = tensor_digest(tensors)
    header[HEADER_DIGEST] = header_digest(header)
    write_atomically(path, save(tensors, {METADATA_KEY: json.dumps(header)}))


def chip_for(config: ModelConfig) -> Chip:
    """A chip that runs a model within its context, in blocks of at most BLOCK_ROWS rows.

    The scratchpad holds one layer's largest working set and no more: it is no place to keep all
    weights of a model, which every program loads again. External memory fits a verifier of the
    whole context, the longest map; program memory fits that verifier too. Raises CapacityError for
    a model that is too large for any chip of the family.
    """
    weights = [rows * cols for rows, cols in config.weight_shapes().values()]
    row = config.width * (1 + 3 * config.layers) + config.vocab_size + 1
    external = sum(weights) + config.context * max(row, 2 * config.layers * config.width)
    for what, words, limit in (
        ("external memory", external, MAX_EXTERNAL_WORDS),
        ("the scratchpad", _working_set(config), MAX_SCRATCHPAD_WORDS),
    ):
        if words > limit:
            raise CapacityError(
                f"model {config.name} needs {words} words of {what}, expected at most {limit}"
            )
    return Chip(
        external_words=_power_of_two(external),
        scratchpad_words=_power_of_two(_working_set(config)),
        operand_depth=MIN_OPERAND_DEPTH,
        program_entries=min(_power_of_two(_instructions(config)), MAX_PROGRAM_ENTRIES),
    )


def _working_set(config: ModelConfig) -> int:
    """No fewer words than the largest buffers that a block needs at the same time.

    That is a product's weight, operand, sums and result beside the residual stream, or the keys
    and values of a layer beside its queries and one head's tile of scores; and an eighth more for
    the gaps between buffers.
    """
    rows, width = min(BLOCK_ROWS, config.context), config.width
    residual = 2 * rows * width
    product = max(
        inner * cols + 2 * rows * (inner + cols) for inner, cols in config.weight_shapes().values()
    )
    scores = 4 * min(rows, ARRAY_SIZE) * config.context
    attention = 2 * config.context * width + 4 * rows * width + scores
    return (residual + max(product, attention)) * 9 // 8


def _instructions(config: ModelConfig) -> int:
    """No fewer instructions than a verifier of the whole context has, its longest program."""

    def tiles(rows: int, inner: int, cols: int) -> int:
        return -(-rows // ARRAY_SIZE) * -(-cols // ARRAY_SIZE) * -(-inner // MIN_OPERAND_DEPTH)

    rows = config.context
    products = sum(tiles(rows, *shape) for shape in config.weight_shapes().values())
    head = tiles(1, config.head_width, rows) + tiles(1, rows, config.head_width) + 4
    per_layer = rows * config.heads * head + 20 + 3 * rows
    return products + config.layers * per_layer + rows * (1 + config.heads) + 20


def _power_of_two(words: int) -> int:
    return max(1 << (words - 1).bit_length(), MIN_WORDS)


def _header(path: Path, text: str) -> dict[str, Any]:
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: its header is not JSON: {error}") from None
    if not isinstance(header, dict):
        raise CheckpointError(f"{path}: its header is {type(header).__name__}, expected an object")
    return header


def _characters(name: str, vocab: object) -> str:
    characters = vocab if isinstance(vocab, list) else []
    if (
        not characters
        or not all(isinstance(c, str) and len(c) == 1 and _encodable(c) for c in characters)
        or len(set(characters)) != len(characters)
    ):
        raise CheckpointError(
            f"model {name} has the vocabulary {str(vocab)[:40]!r}, expected a list of distinct "
            "single characters"
        )
    return "".join(characters)


def _encodable(character: str) -> bool:
    """False for half of a surrogate pair, which JSON can spell and nothing can print."""
    return not "\ud800" <= character <= "\udfff"


def _ranges(name: str, values: object) -> Ranges:
    if not isinstance(values, dict) or not all(
        isinstance(v, int | float) and not isinstance(v, bool) for v in values.values()
    ):
        raise CheckpointError(
            f"model {name} has the ranges {str(values)[:40]!r}, expected an object of numbers"
        )
    try:
        return Ranges({str(tag): float(value) for tag, value in values.items()})
    except (RangeError, OverflowError) as error:
        raise CheckpointError(f"model {name}: {error}") from None
