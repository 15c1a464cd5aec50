"""Models that other programs made are refused with one sentence that says what they are."""

import io
import json
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save
from tests.command import Cli

from capra.errors import CheckpointError
from capra.lm.checkpoint import load_checkpoint
from capra.lm.foreign import foreign_kind

OWN = "of Capra's own, as capra train makes them (docs/reference/checkpoint.md)"


class Bomb:
    """Unpickling it would leave a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), data)
    return buffer.getvalue()


def npz() -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, embed=np.zeros(3))
    return buffer.getvalue()


def npy() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    return buffer.getvalue()


SHARDED = json.dumps({"metadata": {"total_size": 1}, "weight_map": {"a": "model-1.safetensors"}})
TENSORS = {"model.embed_tokens.weight": np.zeros((4, 2), np.float16)}
FILES = {
    "model.gguf": (b"GGUF\x03\x00\x00\x00" + bytes(16), "a GGUF file"),
    "model.onnx": (b"\x08\x08\x12\x07pytorch\x1a\x051.0.0", "an ONNX model"),
    "pytorch_model.bin": (zipped(archive__data_pkl=b"", archive__0=b""), "a PyTorch checkpoint"),
    "old.pt": (pickle.dumps({"a": 1}, protocol=2), "a Python pickle"),
    "new.pkl": (pickle.dumps({"a": 1}), "a Python pickle"),
    "weights.npz": (npz(), "a NumPy archive (.npz)"),
    "weights.npy": (npy(), "a NumPy array"),
    "keras.h5": (b"\x89HDF\r\n\x1a\n" + bytes(64), "an HDF5 file"),
    "model.tar.gz": (b"\x1f\x8b\x08" + bytes(32), "a gzip archive"),
    "model.zip": (zipped(readme_txt=b"x"), "a zip archive"),
    "half.zip": (zipped(readme_txt=b"x")[:40], "a damaged zip archive"),
    "model.safetensors.index.json": (SHARDED.encode(), "the index of a sharded safetensors"),
    "config.json": (b'{"architectures": ["GPT2LMHeadModel"]}', "the configuration of a tra"),
    "model.safetensors": (save(TENSORS, {"format": "pt"}), "a safetensors checkpoint of another"),
}  # fmt: skip


@pytest.mark.parametrize("option", ["--model", "--draft"])
@pytest.mark.parametrize("name", FILES)
def test_a_file_of_another_program_is_refused(
    name: str, option: str, cli: Cli, tmp_path: Path
) -> None:
    data, kind = FILES[name]
    path = tmp_path / name
    path.write_bytes(data)
    result = cli("decode", option, path)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {path} is ") and result.err.count("\n") == 1
    assert kind in result.err and OWN in result.err


@pytest.mark.parametrize("option", ["--model", "--draft"])
def test_a_folder_of_transformers_is_refused(option: str, cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "Llama"
    folder.mkdir()
    assert "expected" in cli("decode", option, folder).err  # empty: the name of no model
    (folder / "model.safetensors").write_bytes(save(TENSORS, {"format": "pt"}))
    result = cli("decode", option, folder)
    assert f"{folder} is a folder with the files of a model, expected" in result.err
    (folder / "config.json").write_text('{"architectures": ["LlamaForCausalLM"]}')
    result = cli("decode", option, folder)
    assert result.code == 2 and OWN in result.err
    assert f"{folder} is a folder with a transformers model of LlamaForCausalLM" in result.err
    result = cli("decode", option, folder / "model.safetensors")
    assert "checkpoint of another program of LlamaForCausalLM: it has the metadata" in result.err
    assert "['format'], expected the key 'capra'" in result.err


def test_a_type_that_numpy_lacks_is_not_what_is_said(tmp_path: Path) -> None:
    """Most checkpoints are bfloat16; what they are comes before what their tensors are."""
    header = {"__metadata__": {"format": "pt"},
              "w": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}  # fmt: skip
    text = json.dumps(header).encode()
    path = tmp_path / "model.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(2))
    with pytest.raises(CheckpointError, match="is a safetensors checkpoint of another program: it"):
        load_checkpoint(path)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_nothing_is_unpickled(protocol: int, tmp_path: Path) -> None:
    left = tmp_path / "left"
    bomb = pickle.dumps(Bomb(left), protocol=protocol)
    for data in (bomb, zipped(archive__data_pkl=bomb)):
        path = tmp_path / "model.pt"
        path.write_bytes(data)
        with pytest.raises(CheckpointError, match="which is never loaded"):
            load_checkpoint(path)
    assert not left.exists()


@pytest.mark.parametrize("length", [0x280, 0x580, 0x8B1F, 0x120708, 0x3A0108])
def test_a_header_of_any_length_is_not_taken_for_another_format(
    length: int, tmp_path: Path
) -> None:
    """The length of a safetensors header comes first: as a pickle, a gzip archive, ONNX begin."""
    text = json.dumps({"__metadata__": {"capra": "{}"}}).encode()
    path = tmp_path / "model"
    path.write_bytes(length.to_bytes(8, "little") + text.ljust(length))
    assert foreign_kind(path) is None
    with pytest.raises(CheckpointError, match="has the format None, expected 1"):
        load_checkpoint(path)


@pytest.mark.parametrize("text", ["{", "{}", "[1]", '{"architectures": 1', '{"a": 1}', ""])
def test_other_files_are_not_taken_for_a_model(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    assert foreign_kind(path) is None
    with pytest.raises(
        CheckpointError, match=r"cannot be read .*expected a safetensors checkpoint"
    ):
        load_checkpoint(path)


@pytest.mark.parametrize("config", ["[", "[]", '{"architectures": []}', '{"architectures": [3]}'])
def test_a_configuration_that_says_nothing_is_not_quoted(config: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(config)
    assert foreign_kind(tmp_path) == "a folder with a transformers model"
