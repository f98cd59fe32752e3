"""Opening the library of a built model, by cffi.

The loader of the system knows a library by its path, and by the number of its file: of two models
that were saved to one place, it would give the older one again. So a library is loaded from memory,
from the very bytes that were compared with their checksum, and is known here by what is in it.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import weakref
from collections.abc import MutableMapping
from dataclasses import dataclass
from typing import Any

from polyc.errors import BuildError
from polyc.target.machine import missing_features

DECLARATIONS = """
int polyc_run(void *const *io, const void *weights, void *arena, const int64_t *sizes,
              int threads);
int polyc_profile(void *const *io, const void *weights, void *arena, const int64_t *sizes,
                  int threads, double *seconds);
int64_t polyc_arena_bytes(const int64_t *sizes);
void polyc_watch(int (*watcher)(void));
"""
DECLARED_METHOD = """
void *polyc_call(void *, void *const *, intptr_t);
"""
"""Of libraries that Python can call by itself (`runtime/polyc_call.c`)."""

DECLARED_CHECK = """
int polyc_check(const int64_t *sizes);
int polyc_team(const int64_t *sizes, int most);
"""
"""Of libraries that ask something of sizes: 0, or what polyc_run returns with these; and how many
threads a call is worth, of so many at most."""

STOPPED = -(2**31)
"""What polyc_run returns when a watcher has ended it."""


@dataclass(frozen=True)
class Library:
    """A library in memory: its C functions, which release the GIL. It stays while this is held.

    raised: what a signal's handler raised, for which a call was ended; watcher: what calls ask.
    """

    ffi: Any
    functions: Any
    raised: list[BaseException]
    watcher: Any


_opened: MutableMapping[tuple[str, str], Library] = weakref.WeakValueDictionary()
"""Libraries that are loaded, by the sha256 of their bytes, and their declarations."""

_resident: list[Library] = []
"""Libraries that are never unloaded."""

_loads = itertools.count(1)


def check_features(model: str, features: tuple[str, ...]) -> None:
    """BuildError if this machine cannot run a model that was compiled for these."""
    missing = missing_features(features)
    if missing:
        raise BuildError(
            f"model {model!r} was compiled for a CPU with {', '.join(missing)}, which this "
            "one lacks; compile it again on this machine"
        )


def open_library(
    content: bytes, model: str, declarations: str = DECLARATIONS, stays: bool = False
) -> Library:
    """The library of a model; BuildError if it is refused.

    stays: never unload it, because others may hold what its functions give back.
    """
    key = hashlib.sha256(content).hexdigest(), declarations
    library = _opened.get(key)
    if library is None:
        library = _opened[key] = _load(content, model, declarations, stays)
        if stays:
            _resident.append(library)
    return library


def _load(content: bytes, model: str, declarations: str, stays: bool) -> Library:
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(declarations)
    flags = os.RTLD_NOW | (os.RTLD_NODELETE if stays else 0)
    try:
        descriptor = os.memfd_create("model.so", os.MFD_CLOEXEC)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            functions = ffi.dlopen(_unique_path(descriptor), flags)
    except OSError as error:
        raise BuildError(
            f"library of model {model!r} cannot be loaded: {error}; compile it again on this "
            "machine"
        ) from error
    raised: list[BaseException] = []
    # Calls on a GPU return before they have ended.
    return Library(ffi, functions, raised, None if stays else _watch(ffi, functions, raised))


def _watch(ffi: Any, functions: Any, raised: list[BaseException]) -> Any:
    """Let long calls hear signals; what they ask, which must live as long as the library.

    Python runs the handlers of signals between its own instructions: to be asked whether a call is
    to go on is to run some.
    """

    def keep(_: object, error: BaseException, __: object) -> None:
        raised.append(error)

    try:
        watcher = ffi.callback("int(void)", lambda: 0, error=1, onerror=keep)
    except MemoryError:  # a system on which no code may be made at run time
        return None
    functions.polyc_watch(watcher)
    return watcher


def _unique_path(descriptor: int) -> str:
    """A path to an open file that was never used before, though numbers of descriptors recur.

    The loader remembers paths as they are spelled: 5 = 0b101 is spelled /proc/self/fd/.//./NUMBER.
    """
    steps = (("/", "/.")[bit == "1"] for bit in f"{next(_loads):b}")
    return f"/proc/self/fd{''.join(steps)}/{descriptor}"
