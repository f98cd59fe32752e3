"""Opening a built model: the shared library by cffi, the weights into huge pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyc.build.bundle import WEIGHTS_FILE, Manifest
from polyc.build.pages import allocate_pages
from polyc.build.toolchain import LIBRARY_FILE
from polyc.errors import BuildError, InvalidModel
from polyc.target.machine import missing_features

DECLARATIONS = """
int polyc_run(void *const *io, const void *weights, void *arena, const int64_t *sizes,
              int threads);
int polyc_profile(void *const *io, const void *weights, void *arena, const int64_t *sizes,
                  int threads, double *seconds);
int64_t polyc_arena_bytes(const int64_t *sizes);
"""


@dataclass(frozen=True)
class Loaded:
    """A CPU's model in memory: C functions, which release the GIL, and weights."""

    ffi: Any
    library: Any
    weights: np.ndarray


def load_library(folder: Path, manifest: Manifest) -> Loaded:
    """Open the library of a bundle, and read its weights.

    Raises InvalidModel for a damaged bundle, BuildError when this machine cannot run it.
    """
    missing = missing_features(manifest.features)
    if missing:
        raise BuildError(
            f"model {manifest.name!r} was compiled for a CPU with {', '.join(missing)}, which this "
            "one lacks; compile it again on this machine"
        )
    ffi, library = open_library(folder / LIBRARY_FILE, manifest.name)
    weights = read_weights(folder, manifest, allocate_pages(manifest.weights_bytes))
    weights.flags.writeable = False
    return Loaded(ffi, library, weights)


def open_library(file: Path, model: str) -> tuple[Any, Any]:
    """(cffi's FFI, the functions of DECLARATIONS) of a built model; BuildError if it is refused."""
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS)
    try:
        library = ffi.dlopen(str(file.resolve()))
    except OSError as error:
        raise BuildError(
            f"library of model {model!r} cannot be loaded: {error}; compile it again on this "
            "machine"
        ) from error
    return ffi, library


def read_weights(folder: Path, manifest: Manifest, into: np.ndarray) -> np.ndarray:
    """Fill an array of `weights_bytes` bytes with a bundle's constants, and return it.

    Raises InvalidModel if the file is not as long as the manifest says.
    """
    if not manifest.weights_bytes:
        return into
    file = folder / WEIGHTS_FILE
    if file.stat().st_size != manifest.weights_bytes:
        raise InvalidModel(
            f"{file} holds {file.stat().st_size} bytes where the manifest says "
            f"{manifest.weights_bytes}; save the model again"
        )
    with file.open("rb", buffering=0) as stream:
        rest = into.data
        while rest and (count := stream.readinto(rest)):  # the system reads 2 GiB at a time
            rest = rest[count:]
    if rest:
        raise InvalidModel(f"{file} ended while it was read; save the model again")
    return into
