"""The key of the whole-model cache: a hash of all that decides what is compiled.

Hashing must not import onnx, for the sake of warm starts, so a model file is hashed as bytes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from polyc.build.cache import digest
from polyc.build.runtime_files import read_cuda_runtime
from polyc.errors import InvalidModel
from polyc.graph.ir import Graph, Node, Tensor
from polyc.options import Options
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target

_PACKAGE = Path(__file__).resolve().parent.parent

# A StringStringEntryProto of the key "location" as it is serialised, up to the length of its value.
_LOCATION = b"\x0a\x08location\x12"

# Choices that change what is shown or where it is kept, but not what is compiled. (What tuning
# finds does, but is not known before a model is read: see `Manifest.consulted`.)
_SILENT = {"cache", "cache_dir", "dump", "dump_dir", "progress", "tune"}


def fingerprint(model: Any, target: Target | CudaTarget, options: Options) -> str:
    """sha256 of the model, its external data, the target, the options and polyc itself.

    `model` is a path, an onnx.ModelProto, its bytes, or a polyc.Graph. Raises InvalidModel for
    anything else and for a file that cannot be read.
    """
    choices = {k: v for k, v in dataclasses.asdict(options).items() if k not in _SILENT}
    return digest([_hash_model(model), repr(target), repr(sorted(choices.items())), hash_package()])


@functools.cache
def hash_package() -> str:
    """sha256 of polyc's own source and of its C runtime: a change of either is a new compiler."""
    files = sorted(_PACKAGE.rglob("*.py"))
    parts = [str(f.relative_to(_PACKAGE)) for f in files] + [f.read_text("utf-8") for f in files]
    return digest([*parts, *(x for item in read_cuda_runtime().items() for x in item)])


def external_files(data: bytes | mmap.mmap, folder: Path) -> list[Path]:
    """Files that a serialised model may refer to: whatever stands behind a "location" key.

    Bytes of weights that look like such a key add a file that is not there, which does no harm.
    """
    found = set()
    start = data.find(_LOCATION)
    while start >= 0:
        name = _read_string(data, start + len(_LOCATION))
        if name and (folder / name).is_file():
            found.add(folder / name)
        start = data.find(_LOCATION, start + 1)
    return sorted(found)


def _hash_model(model: Any) -> str:
    if isinstance(model, Graph):
        return digest(_graph_parts(model))
    if isinstance(model, bytes):
        return digest(["proto", model])
    if hasattr(model, "SerializeToString"):
        return digest(["proto", model.SerializeToString(deterministic=True)])
    if not isinstance(model, str | Path):
        raise InvalidModel(
            f"a model of type {type(model).__name__} cannot be compiled; give a path, an "
            "onnx.ModelProto or a polyc.Graph"
        )
    path = Path(model)
    try:
        with _mapped(path) as data:
            others = external_files(data, path.resolve().parent)
            return digest(["proto", data, *(x for f in others for x in (f.name, _hash_file(f)))])
    except OSError as error:
        raise InvalidModel(
            f"model file {path} cannot be read: {error.strerror or error}; check the path"
        ) from error


@contextlib.contextmanager
def _mapped(path: Path) -> Iterator[bytes | mmap.mmap]:
    """The bytes of a file, without a copy; an empty file cannot be mapped."""
    with path.open("rb") as stream:
        if path.stat().st_size == 0:
            yield b""
            return
        with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as data:
            yield data


def _hash_file(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _read_string(data: bytes | mmap.mmap, start: int) -> str | None:
    """A protobuf string: its length as a varint of one or two bytes, then UTF-8."""
    head = data[start : start + 2]
    if len(head) < 2:
        return None
    size, begin = (
        (head[0], start + 1) if head[0] < 128 else (head[0] - 128 + (head[1] << 7), start + 2)
    )
    try:
        name = data[begin : begin + size].decode("utf-8")
    except UnicodeDecodeError:
        return None
    return None if "\0" in name else name


def _graph_parts(value: Any) -> Iterator[str | bytes]:
    """A graph as text and bytes, every collection with its length in front."""
    match value:
        case Graph():
            yield "graph"
            table = list(value.tensors.values())
            for part in (value.name, value.inputs, value.outputs, table, value.nodes):
                yield from _graph_parts(part)
        case Node():
            fields = (value.name, value.op, value.domain, value.inputs, value.outputs)
            yield from _graph_parts((*fields, dict(value.attributes)))
        case Tensor():
            yield from _graph_parts((value.name, str(value.dtype), value.shape, value.value))
        case np.ndarray():
            yield f"array {value.dtype.name} {value.dtype.byteorder} {value.shape}"
            yield repr(value.tolist()) if value.dtype.hasobject else value.tobytes()
        case Mapping():
            yield f"map {len(value)}"
            for key in sorted(value):
                yield from _graph_parts((key, value[key]))
        case list() | tuple():
            yield f"list {len(value)}"
            for item in value:
                yield from _graph_parts(item)
        case _:
            yield f"{type(value).__name__} {value!r}"
