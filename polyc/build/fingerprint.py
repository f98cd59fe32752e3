"""The key of the whole-model cache: a hash of all that decides what is compiled.

Hashing must not import onnx, for the sake of warm starts, so a model file is hashed as bytes
(`files/model_file.py`), together with the other files that it names.
"""

from __future__ import annotations

import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from polyc.errors import InvalidModel
from polyc.files.digest import digest
from polyc.files.model_file import ModelFile
from polyc.graph.ir import Body, Graph, Node, Tensor
from polyc.names import show
from polyc.options import Options
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target
from polyc.toolchain.runtime_files import read_cuda_runtime, read_method, read_team
from polyc.types.sizes import Size

_PACKAGE = Path(__file__).resolve().parent.parent

# Choices that change what is shown or where it is kept, but not what is compiled. (What tuning
# finds does, but is not known before a model is read: see `Manifest.consulted`.)
_SILENT = {"cache", "cache_dir", "dump", "dump_dir", "progress", "tune", "patience"} | {
    "cache_limit",
    "processes",
    "glance",
    "max_seconds",
    "max_nodes",
}


def fingerprint(model: Any, target: Target | CudaTarget, options: Options) -> str:
    """sha256 of the model, its external data, the target, the options and polyc itself.

    `model` is a file, an onnx.ModelProto, its bytes, or a polyc.Graph. Raises InvalidModel for
    anything else.
    """
    return digest([_hash_model(model), *_ways(target, options)])


def fingerprint_text(parts: Iterable[str], target: Target | CudaTarget, options: Options) -> str:
    """The same of what is said by text, such as the loops of a kernel."""
    return digest(["text", *parts, *_ways(target, options)])


def fingerprint_kernels(target: Target | CudaTarget, options: Options) -> str:
    """The same of what decides about kernels besides what they compute.

    What options say of a model by its names is in what is made of the model.
    """
    return digest(_ways(target, replace(options, sizes=(), values=(), states=(), schedules=())))


def _ways(target: Target | CudaTarget, options: Options) -> tuple[str, ...]:
    """What decides besides the model."""
    choices = {k: v for k, v in dataclasses.asdict(options).items() if k not in _SILENT}
    return repr(target), repr(sorted(choices.items())), hash_package()


@functools.cache
def hash_package() -> str:
    """sha256 of polyc's own source and of its C runtime: a change of either is a new compiler."""
    # Paths as text: hundreds of objects for them take longer than the files.
    files = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(_PACKAGE)
        for name in names
        if name.endswith(".py")
    )
    parts: list[str | bytes] = [file[len(str(_PACKAGE)) :] for file in files]
    for file in files:
        with open(file, "rb", buffering=0) as stream:
            parts.append(stream.read())
    headers = (x for item in read_cuda_runtime().items() for x in item)
    return digest([*parts, read_team(), read_method(), *headers])


def _hash_model(model: Any) -> str:
    if isinstance(model, Graph):
        return digest(_graph_parts(model))
    if isinstance(model, bytes):
        return digest(["proto", model])
    if hasattr(model, "SerializeToString"):
        return digest(["proto", model.SerializeToString(deterministic=True)])
    if isinstance(model, ModelFile):
        return digest(["file", *model.parts])
    raise InvalidModel(
        f"a model of type {type(model).__name__} cannot be compiled; give a path, an "
        "onnx.ModelProto or a polyc.Graph"
    )


def _graph_parts(value: Any) -> Iterator[str | bytes]:
    """A graph as text and bytes, every collection with its length in front.

    Whatever may hold arrays is taken apart, as the text of an array leaves most of it out.
    """
    match value:
        case Graph() | Node() | Body() | Tensor():
            yield type(value).__name__
            for field in dataclasses.fields(value):
                yield from _graph_parts(getattr(value, field.name))
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
        case None | bool() | int() | float() | str() | bytes() | np.dtype() | np.generic() | Size():
            yield f"{type(value).__name__} {value!r}"
        case _ if hasattr(value, "SerializeToString"):  # a type of onnx
            yield from (type(value).__name__, value.SerializeToString(deterministic=True))
        case _:
            raise InvalidModel(
                f"a graph holds {show(repr(value))}, a {type(value).__name__}, which is no value "
                "of an attribute; give numbers, text, arrays or graphs"
            )
