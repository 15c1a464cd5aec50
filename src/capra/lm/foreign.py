"""Model files that other programs made: recognized by their first bytes, and never opened further.

A pickle runs code when it is loaded, so none is: of a zip only the names of its members are read.
"""

import json
import zipfile
from pathlib import Path
from typing import Any, Final

MAGICS: Final = (
    (b"GGUF", "a GGUF file, as llama.cpp uses them"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file, as Keras writes them"),
    (b"\x1f\x8b", "a gzip archive"),
)
"""First bytes, and what begins with them."""

PICKLE_PROTOCOLS: Final = range(2, 6)
ONNX_VERSIONS: Final = range(1, 33)
HEAD: Final = 64
MAX_JSON: Final = 1 << 26
"""The index of a model of thousands of tensors is far smaller."""

CONFIG: Final = "config.json"
PARTS: Final = ("*.safetensors", "*.safetensors.index.json", "*.bin", "*.gguf", "*.onnx")


def foreign_kind(path: Path) -> str | None:
    """What a file or a folder is, where it is a model that another program made; None otherwise."""
    try:
        if path.is_dir():
            return _folder_kind(path)
        with path.open("rb") as file:
            head = file.read(HEAD)
        return _kind_of_bytes(path, head)
    except OSError:
        return None


def config_beside(path: Path) -> str:
    """What the config.json beside a file says it is, as ` of LlamaForCausalLM`; else nothing."""
    config = _json_object(path.with_name(CONFIG))
    names = config.get("architectures")
    name = names[0] if isinstance(names, list) and names else config.get("model_type")
    return f" of {name}" if isinstance(name, str) and name.isidentifier() else ""


def _folder_kind(path: Path) -> str | None:
    config = path / CONFIG
    if config.is_file():
        return f"a folder with a transformers model{config_beside(config)}"
    if any(part for pattern in PARTS for part in path.glob(pattern)):
        return "a folder with the files of a model"
    return None


def _kind_of_bytes(path: Path, head: bytes) -> str | None:
    if head[5:9] == b"\0\0\0{":  # a safetensors header, whose length may look like anything
        return None
    for magic, kind in MAGICS:
        if head.startswith(magic):
            return kind
    if head.startswith(b"PK\x03\x04"):
        return _zip_kind(path)
    if head[:1] == b"\x80" and head[1:2] and head[1] in PICKLE_PROTOCOLS:
        return "a Python pickle, as PyTorch writes them, which is never loaded"
    if head[:1] == b"\x08" and head[2:3] in (b"\x12", b":") and head[1] in ONNX_VERSIONS:
        return "an ONNX model"
    if head.lstrip().startswith(b"{"):
        return _json_kind(path)
    return None


def _zip_kind(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return "a damaged zip archive"
    if any(name.endswith("data.pkl") for name in names):
        return "a PyTorch checkpoint, a zip with a pickle, which is never loaded"
    if names and all(name.endswith(".npy") for name in names):
        return "a NumPy archive (.npz)"
    return "a zip archive"


def _json_kind(path: Path) -> str | None:
    found = _json_object(path)
    if "weight_map" in found:
        return f"the index of a sharded safetensors checkpoint{config_beside(path)}"
    if "architectures" in found or "model_type" in found:
        return "the configuration of a transformers model"
    return None


def _json_object(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file() or path.stat().st_size > MAX_JSON:
            return {}
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
