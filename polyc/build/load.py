"""Opening a built model: the shared library by cffi, the weights into huge pages."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from polyc.build.bundle import WEIGHTS_FILE, Manifest, read_bundle
from polyc.build.pages import allocate_pages
from polyc.build.toolchain import LIBRARY_FILE
from polyc.errors import BuildError, InvalidModel
from polyc.target.machine import missing_features

DECLARATIONS = """
int polyc_run(void *const *io, const void *weights, void *arena, int threads);
int polyc_profile(void *const *io, const void *weights, void *arena, int threads,
                  double *seconds);
"""


@dataclass(frozen=True)
class Loaded:
    """A model in memory: its manifest, C functions (which release the GIL), and weights."""

    folder: Path
    manifest: Manifest
    ffi: Any
    library: Any
    weights: np.ndarray


def load_bundle(folder: Path, checked: bool = False) -> Loaded:
    """Open a bundle; its checksums are compared unless `checked`. No compiler is needed.

    A bundle is native code: open only what you trust. Raises InvalidModel for a damaged bundle,
    BuildError when this machine cannot run it.
    """
    manifest = read_bundle(folder, checked)
    missing = missing_features(manifest.features)
    if missing:
        raise BuildError(
            f"model {manifest.name!r} was compiled for a CPU with {', '.join(missing)}, which this "
            "one lacks; compile it again on this machine"
        )
    ffi, library = open_library(folder / LIBRARY_FILE, manifest.name)
    return Loaded(folder, manifest, ffi, library, _read_weights(folder, manifest))


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


def _read_weights(folder: Path, manifest: Manifest) -> np.ndarray:
    if manifest.weights_bytes == 0:
        return np.zeros(0, np.uint8)
    file = folder / WEIGHTS_FILE
    if file.stat().st_size != manifest.weights_bytes:
        raise InvalidModel(
            f"{file} holds {file.stat().st_size} bytes where the manifest says "
            f"{manifest.weights_bytes}; save the model again"
        )
    weights = allocate_pages(manifest.weights_bytes)
    with file.open("rb", buffering=0) as stream:
        rest = weights.data
        while rest and (count := stream.readinto(rest)):  # the system reads 2 GiB at a time
            rest = rest[count:]
    if rest:
        raise InvalidModel(f"{file} ended while it was read; save the model again")
    weights.flags.writeable = False
    return weights
