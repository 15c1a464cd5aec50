"""Checkpoints: what was saved comes back, and what is damaged is refused."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from safetensors import safe_open
from safetensors.numpy import save
from tests.lm.samples import CHARACTERS, pydoc_model, random_tokens, text_model, tiny

from capra.compiler.optimization import O0, O1, Optimization
from capra.errors import CapacityError, CapraError, CheckpointError, InputError
from capra.lm import checkpoint as checkpoint_module
from capra.lm.calibrate import calibrate
from capra.lm.checkpoint import BLOCK_ROWS, chip_for, load_checkpoint, save_checkpoint
from capra.lm.model import LanguageModel, ModelConfig
from capra.lm.target import ChipTarget

Tensors = dict[str, npt.NDArray[Any]]


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("checkpoint") / "sample.safetensors"
    save_checkpoint(text_model(), path, {"note": "a test"})
    return path


def _parts(path: Path) -> tuple[dict[str, Any], Tensors]:
    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = json.loads(file.metadata()["capra"])
    del header["digest"], header["header_digest"]  # tests of changes are about something else
    return header, tensors


def _write(path: Path, header: object, tensors: Tensors, key: str = "capra") -> Path:
    text = header if isinstance(header, str) else json.dumps(header)
    path.write_bytes(save(tensors, {key: text}))
    return path


def test_a_loaded_model_is_the_saved_one_bit_for_bit(saved: Path) -> None:
    model, loaded = text_model(), load_checkpoint(saved)
    assert loaded.config == model.config
    assert loaded.characters == CHARACTERS
    assert dict(loaded.ranges.values) == dict(model.ranges.values)
    assert loaded.weights.keys() == model.weights.keys()
    for name, weight in model.weights.items():
        assert weight.tobytes() == loaded.weights[name].tobytes(), name
    assert model.bigram is not None and loaded.bigram is not None
    assert loaded.bigram.tobytes() == model.bigram.tobytes()


def test_a_loaded_model_has_the_programs_and_logits_of_the_saved_one(saved: Path) -> None:
    one, other = ChipTarget(text_model()), ChipTarget(load_checkpoint(saved))
    assert one.program("verify", 3, 2) == other.program("verify", 3, 2)
    tokens = random_tokens(1, 12, 10)
    expected = one.session().forward(tokens).logits
    assert np.array_equal(other.session().forward(tokens).logits, expected)


def test_saving_again_gives_the_same_file(saved: Path, tmp_path: Path) -> None:
    save_checkpoint(load_checkpoint(saved), tmp_path / "again", {"note": "a test"})
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_notes_are_kept_and_cannot_change_the_model(tmp_path: Path) -> None:
    save_checkpoint(text_model(), tmp_path / "file", {"corpus": "x", "width": 3, "format": 9})
    header, _ = _parts(tmp_path / "file")
    assert (header["corpus"], header["width"], header["format"]) == ("x", 8, 1)


def test_a_model_without_bigram_and_positions_comes_back(saved: Path, tmp_path: Path) -> None:
    header, tensors = _parts(saved)
    del tensors["bigram"], tensors["positions"]
    model = load_checkpoint(_write(tmp_path / "file", header, tensors))
    assert model.bigram is None and not model.config.has_positions


def test_a_model_without_characters_cannot_be_saved(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="model random has no characters"):
        save_checkpoint(tiny("random", 1), tmp_path / "file", {})
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot write .*/missing/file"):
        save_checkpoint(text_model(), tmp_path / "missing" / "file", {})


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"none cannot be read .*expected a safetensors"):
        load_checkpoint(tmp_path / "none")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_checkpoint(tmp_path)


def test_a_truncated_file_is_refused_wherever_it_was_cut(saved: Path, tmp_path: Path) -> None:
    whole = saved.read_bytes()
    ends = {*range(20), *range(20, len(whole), len(whole) // 50), len(whole) - 1}
    for end in sorted(ends):
        (tmp_path / "cut").write_bytes(whole[:end])
        with pytest.raises(CheckpointError, match="cut cannot be read"):
            load_checkpoint(tmp_path / "cut")


def test_a_file_with_more_behind_it_is_refused(saved: Path, tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(saved.read_bytes() + b"\0")
    with pytest.raises(CheckpointError, match="long cannot be read"):
        load_checkpoint(tmp_path / "long")


def test_a_flipped_bit_of_the_header_is_refused_or_harmless(
    saved: Path, tmp_path: Path, seed: int
) -> None:
    whole, draw = saved.read_bytes(), random.Random(seed)
    header_end = 8 + int.from_bytes(whole[:8], "little")
    refused = 0
    for position in [*range(8), *(draw.randrange(8, header_end) for _ in range(100))]:
        damaged = bytearray(whole)
        damaged[position] ^= 1 << draw.randrange(8)
        (tmp_path / "flipped").write_bytes(damaged)
        try:
            load_checkpoint(tmp_path / "flipped")
        except CapraError:
            refused += 1
    assert refused > 50


def _with(header: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**header, **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format 2, expected 1"),
        ({"format": None}, "format None, expected 1"),
        ({"vocab": None}, "vocabulary 'None', expected a list of distinct single characters"),
        ({"vocab": CHARACTERS}, "vocabulary .*expected a list of distinct single characters"),
        ({"vocab": []}, "expected a list of distinct single characters"),
        ({"vocab": [*"abcdefghijk", "kl"]}, "expected a list of distinct single characters"),
        ({"vocab": [*"abcdefghijk", ""]}, "expected a list of distinct single characters"),
        ({"vocab": [*"abcdefghijk", 7]}, "expected a list of distinct single characters"),
        ({"vocab": [*"abcdefghijkk"]}, "expected a list of distinct single characters"),
        ({"vocab": [*"abcdefghijk", "\ud800"]}, "expected a list of distinct single characters"),
        ({"vocab": [*"abcdefghijk"]}, r"tensor embed has shape \(12, 8\), expected \(11, 8\)"),
        ({"width": 16}, r"tensor embed has shape \(12, 8\), expected \(12, 16\)"),
        ({"width": "8"}, "width is '8', expected a whole number"),
        ({"width": 8.0}, "width is 8.0, expected a whole number"),
        ({"heads": 3}, "width 8 is not a multiple of its 3 heads"),
        ({"heads": 0}, "heads is 0, expected a whole number"),
        ({"layers": -1}, "layers is -1, expected a whole number"),
        ({"layers": True}, "layers is True, expected a whole number"),
        ({"layers": 1}, "tensor layers.1.w1 is unknown"),
        ({"layers": 3}, "tensor layers.2.w1 is missing"),
        ({"layers": 20000}, "20000 layers and 16 tensors, expected more tensors than layers"),
        ({"hidden": None}, "hidden is None, expected a whole number"),
        ({"context": 1 << 16}, "context is 65536, expected a whole number"),
        ({"context": 25}, r"tensor positions has shape \(24, 8\), expected \(25, 8\)"),
        ({"ranges": None}, "ranges 'None', expected an object of numbers"),
        ({"ranges": [1.0]}, "expected an object of numbers"),
        ({"ranges": {"x": "1"}}, "expected an object of numbers"),
        ({"ranges": {"x": True}}, "expected an object of numbers"),
        ({"ranges": {"x": float("nan")}}, "range of x is nan, expected 0 .. 1e\\+30"),
        ({"ranges": {"x": float("inf")}}, "range of x is inf, expected 0 .. 1e\\+30"),
        ({"ranges": {"x": -1}}, "range of x is -1.0, expected 0 .. 1e\\+30"),
        ({"ranges": {"x": 10**400}}, "model sample: .*too large"),
    ],
)
def test_a_bad_header_is_refused(
    changes: dict[str, Any], message: str, saved: Path, tmp_path: Path
) -> None:
    header, tensors = _parts(saved)
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(_write(tmp_path / "bad", _with(header, **changes), tensors))


@pytest.mark.parametrize(
    "key", ["format", "vocab", "width", "heads", "layers", "hidden", "context", "ranges"]
)
def test_every_key_is_needed(key: str, saved: Path, tmp_path: Path) -> None:
    header, tensors = _parts(saved)
    del header[key]
    with pytest.raises(CheckpointError, match=r"model sample has .*expected"):
        load_checkpoint(_write(tmp_path / "bad", header, tensors))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "its header is not JSON"),
        ("{", "its header is not JSON"),
        ("[" * 100_000, "its header is not JSON"),
        ("[]", "its header is list, expected an object"),
        ("null", "its header is NoneType, expected an object"),
        ("{}", "model model has the format None, expected 1"),
    ],
)
def test_metadata_that_is_no_header_is_refused(
    text: str, message: str, saved: Path, tmp_path: Path
) -> None:
    with pytest.raises(CheckpointError, match=message):
        load_checkpoint(_write(tmp_path / "bad", text, _parts(saved)[1]))


def test_a_safetensors_file_of_another_program_is_refused(saved: Path, tmp_path: Path) -> None:
    header, tensors = _parts(saved)
    with pytest.raises(CheckpointError, match=r"metadata \['other'\], expected the key 'capra'"):
        load_checkpoint(_write(tmp_path / "bad", header, tensors, key="other"))
    (tmp_path / "bare").write_bytes(save(tensors))
    with pytest.raises(CheckpointError, match=r"metadata \[\], expected the key 'capra'"):
        load_checkpoint(tmp_path / "bare")


@pytest.mark.parametrize("dtype", ["float16", "float64", "int32", "int8", "bool"])
def test_only_float32_is_accepted(dtype: str, saved: Path, tmp_path: Path) -> None:
    header, tensors = _parts(saved)
    tensors["layers.1.wo"] = tensors["layers.1.wo"].astype(dtype)
    with pytest.raises(CheckpointError, match=f"layers.1.wo is {dtype}, expected float32"):
        load_checkpoint(_write(tmp_path / "bad", header, tensors))


@pytest.mark.parametrize("name", ["embed", "positions", "layers.1.w2", "unembed", "bigram"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(
    name: str, value: float, saved: Path, tmp_path: Path
) -> None:
    header, tensors = _parts(saved)
    tensors[name] = tensors[name].copy()
    tensors[name][-1, -1] = value
    with pytest.raises(CheckpointError, match=f"{name} holds {value}, expected finite numbers"):
        load_checkpoint(_write(tmp_path / "bad", header, tensors))


def test_wrong_tensor_names_and_shapes_are_refused(saved: Path, tmp_path: Path) -> None:
    header, tensors = _parts(saved)
    renamed = {name.replace("wq", "q"): tensor for name, tensor in tensors.items()}
    with pytest.raises(
        CheckpointError, match=r"tensor layers.0.q is unknown, expected the 15 tensors"
    ):
        load_checkpoint(_write(tmp_path / "bad", header, renamed))
    for name in tensors:
        for wrong in (tensors[name][:-1], tensors[name][None], tensors[name].ravel()):
            with pytest.raises(CheckpointError, match=f"{name} has shape .*expected"):
                load_checkpoint(_write(tmp_path / "bad", header, {**tensors, name: wrong}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 65528}, "words of external memory, expected at most 16777216"),
        ({"context": 65535}, "words of the scratchpad, expected at most 1048576"),
    ],
)
def test_huge_sizes_are_refused_before_anything_is_made_of_them(
    changes: dict[str, int], message: str, saved: Path, tmp_path: Path
) -> None:
    header, tensors = _parts(saved)
    with pytest.raises(CapacityError, match=f"model sample needs [0-9]+ {message}"):
        load_checkpoint(_write(tmp_path / "bad", _with(header, **changes), tensors))


def _random_model(seed: int) -> LanguageModel:
    """A model of a random shape on its own chip, with as little scratchpad as `chip_for` thinks."""
    draw, bits = random.Random(seed), np.random.default_rng(seed)
    heads = draw.choice((1, 2, 3, 4))
    config = ModelConfig(
        name=f"random shape {seed}", vocab_size=draw.randint(2, 90),
        width=heads * draw.randint(1, 10), heads=heads, layers=1, hidden=draw.randint(1, 120),
        context=draw.randint(24, 80),
    )  # fmt: skip
    config = replace(config, chip=chip_for(config))
    shapes = {**config.host_shapes(), **config.weight_shapes()}
    weights = {name: bits.normal(0, rows**-0.5, (rows, cols))
               for name, (rows, cols) in shapes.items()}  # fmt: skip
    texts = bits.integers(0, config.vocab_size, (2, 24)).tolist()
    return calibrate(LanguageModel(config, weights), texts)


@pytest.mark.parametrize("optimize", [O0, O1], ids=["O0", "O1"])
def test_a_models_chip_holds_its_blocks_at_every_corner_of_the_context(
    optimize: Optimization, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_module, "MIN_WORDS", 1)
    for number in range(seed, 12, 3):
        model = _random_model(number)
        target, context = ChipTarget(model, optimize=optimize), model.config.context
        for rows in (1, 5, BLOCK_ROWS):
            for cache in (0, context - rows):
                for role in ("verify", "prefill"):
                    program = target.program(role, rows, cache)
                    assert program.chip == model.config.chip


def test_the_packaged_models_weights_do_not_fit_its_scratchpad() -> None:
    config = pydoc_model().config
    weights = sum(rows * cols for rows, cols in config.weight_shapes().values())
    assert weights > 4 * config.chip.scratchpad_words, "every program has to load them again"
    target = ChipTarget(pydoc_model(), optimize=O1)
    for rows in (1, BLOCK_ROWS):
        target.program("verify", rows, config.context - rows)


def test_the_packaged_model_is_what_was_promised() -> None:
    config = pydoc_model().config
    assert config.layers >= 2 and config.heads == 4 and config.context >= 128
    assert config.has_positions and pydoc_model().bigram is not None
    parameters = sum(weight.size for weight in pydoc_model().weights.values())
    assert 100_000 <= parameters <= 600_000


@pytest.mark.parametrize("back", [1, 1000])
def test_a_changed_byte_in_a_tensor_is_found(saved: Path, tmp_path: Path, back: int) -> None:
    raw = bytearray(saved.read_bytes())
    raw[-back] ^= 1
    path = tmp_path / "flipped"
    path.write_bytes(raw)
    with pytest.raises(
        CheckpointError, match=r"is damaged: its tensors have the digest .*, expected "
    ):
        load_checkpoint(path)


@pytest.mark.parametrize("change", [{"name": "other"}, {"vocab": [*CHARACTERS[::-1]]}, {"note": 1}])
def test_a_changed_header_is_found(saved: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    with safe_open(saved, framework="numpy") as file:
        header = json.loads(file.metadata()["capra"])
    _, tensors = _parts(saved)
    path = _write(tmp_path / "changed", {**header, **change}, tensors)
    with pytest.raises(
        CheckpointError, match=r"is damaged: its header has the digest .*, expected "
    ):
        load_checkpoint(path)
    assert load_checkpoint(_write(tmp_path / "same", header, tensors)).config.name == "sample"


@pytest.mark.parametrize("dtype", ["BF16", "F8_E4M3", "F8_E5M2", "F8_E8M0"])
def test_types_that_numpy_lacks_are_refused(dtype: str, tmp_path: Path) -> None:
    size = 2 if dtype == "BF16" else 1
    tensor = {"dtype": dtype, "shape": [4], "data_offsets": [0, 4 * size]}
    text = json.dumps({"__metadata__": {"capra": "{}"}, "embed": tensor})
    path = tmp_path / "narrow"
    path.write_bytes(len(text).to_bytes(8, "little") + text.encode() + bytes(4 * size))
    with pytest.raises(CheckpointError, match="narrow cannot be read"):
        load_checkpoint(path)


@pytest.mark.parametrize("name", ["embed", "bigram"])
def test_a_signaling_nan_is_refused_like_any_other(name: str, saved: Path, tmp_path: Path) -> None:
    header, tensors = _parts(saved)
    tensors[name] = tensors[name].copy()
    tensors[name].view(np.uint32)[0, 0] = 0x7FA00000
    with pytest.raises(CheckpointError, match=f"{name} holds nan, expected finite numbers"):
        load_checkpoint(_write(tmp_path / "bad", header, tensors))
