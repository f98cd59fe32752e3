"""The C functions of a model compiled for a GPU, and what their errors mean."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from polyc.build.load import open_library
from polyc.errors import RuntimeFailure
from polyc.target.machine import available_cores

DECLARATIONS = """
int polyc_run(void *const *buffers, void *workspace, void *stream);
int polyc_profile(void *const *buffers, void *workspace, void *stream, double *seconds);
const char *polyc_describe_error(int error);
void polyc_emulator_set(uint64_t seed, int processors);

int polyc_current_device(void);
int polyc_use_device(int device);
int polyc_copy(void *target, const void *source, size_t bytes, void *stream);
int polyc_fill(void *target, int byte, size_t bytes, void *stream);
int polyc_synchronise(void *stream);
int polyc_follow(void *stream, void *other);

int polyc_capture(void *const *buffers, void *workspace, void **graph);
int polyc_replay(void *graph, void *stream);
void polyc_forget(void *graph);

struct pc_buffer;
int polyc_new_buffer(size_t bytes, void *stream, struct pc_buffer **buffer);
uintptr_t polyc_buffer_address(const struct pc_buffer *buffer);
void polyc_drop_buffer(struct pc_buffer *buffer);
int polyc_read_buffer(struct pc_buffer *buffer, void *reader);
int polyc_write_buffer(struct pc_buffer *buffer, void *writer);
void *polyc_export_buffer(struct pc_buffer *buffer, int device_type, int code, int bits,
                          int dimensions, const int64_t *shape);
"""

_EMULATOR_SEED = 1
"""Threads take turns in an order that is random, which shows missing barriers, and repeatable."""

_LAUNCH = 65536
"""polyc_run adds this times k + 1 to an error that launch k met."""

_DRIVER = (
    "no GPU can be used here; install NVIDIA's driver (see `polyc doctor`), or compile with "
    "target='cpu'"
)
_REMEDIES = {
    2: "the GPU's memory is full; free arrays, or use a smaller batch",
    3: _DRIVER,
    35: _DRIVER,
    46: "the GPU is in use by another process; see nvidia-smi",
    100: _DRIVER,
    209: "the model was compiled for another architecture; compile it on this machine",
    222: "the driver is too old for this toolkit's PTX; update it, or compile for this GPU",
    803: _DRIVER,
}
"""By cudaError_t (driver_types.h)."""


@dataclass(frozen=True)
class CudaLibrary:
    """The functions of DECLARATIONS for one model.

    emulated: the device is this process; nodes: the graph nodes of each launch.
    """

    ffi: Any
    functions: Any
    model: str
    emulated: bool
    nodes: Sequence[str]

    def check(self, error: int) -> None:
        """RuntimeFailure unless the error is 0; it says which launch met it, and what to do."""
        if error == 0:
            return
        position, code = divmod(error, _LAUNCH)
        told = self.ffi.string(self.functions.polyc_describe_error(code)).decode()
        where = f" at {self.nodes[position - 1]}" if position else ""
        unknown = "run it under compute-sanitizer to see where it comes from"
        remedy = "please report this" if self.emulated else _REMEDIES.get(code, unknown)
        raise RuntimeFailure(f"model {self.model!r}{where}: CUDA error {code} ({told}); {remedy}")

    def pointer(self, address: int) -> Any:
        """An address, or a stream's handle, as C takes it."""
        return self.ffi.cast("void *", address)

    def current_device(self) -> int:
        """The number of this thread's current device."""
        device: int = self.functions.polyc_current_device()
        if device < 0:
            self.check(-device)
        return device

    @contextlib.contextmanager
    def on_device(self, device: int) -> Iterator[None]:
        """Make a device this thread's current one for a while."""
        before = self.current_device()
        if before == device:
            yield
            return
        self.check(self.functions.polyc_use_device(device))
        try:
            yield
        finally:
            self.check(self.functions.polyc_use_device(before))

    def upload(self, address: int, array: np.ndarray, stream: int) -> None:
        """Copy from the host; the array may change as soon as this returns."""
        source, target = self.ffi.from_buffer(array), self.pointer(address)
        size, handle = array.nbytes, self.pointer(stream)
        self.check(self.functions.polyc_copy(target, source, size, handle))

    def download(self, array: np.ndarray, address: int, stream: int) -> None:
        """Copy to the host; the array is complete when the stream is."""
        target, source = self.ffi.from_buffer(array), self.pointer(address)
        size, handle = array.nbytes, self.pointer(stream)
        self.check(self.functions.polyc_copy(target, source, size, handle))

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy bytes within the device."""
        pointers = self.pointer(target), self.pointer(source)
        self.check(self.functions.polyc_copy(*pointers, size, self.pointer(stream)))

    def clear(self, address: int, size: int, stream: int) -> None:
        """Set bytes to zero."""
        target, handle = self.pointer(address), self.pointer(stream)
        self.check(self.functions.polyc_fill(target, 0, size, handle))

    def synchronise(self, stream: int) -> None:
        """Wait until everything in a stream is done."""
        self.check(self.functions.polyc_synchronise(self.pointer(stream)))

    def follow(self, stream: int, other: int) -> None:
        """Let a stream wait for what is in another one by now."""
        self.check(self.functions.polyc_follow(self.pointer(stream), self.pointer(other)))


def open_cuda_library(
    content: bytes, model: str, emulated: bool, nodes: Sequence[str], declarations: str = ""
) -> CudaLibrary:
    """Open a built model; no driver is needed for that. BuildError if it is refused.

    declarations: of functions in it that are not every model's.
    """
    # It stays: arrays that other libraries hold are given back by its functions.
    library = open_library(content, model, DECLARATIONS + declarations, stays=True)
    if emulated:
        library.functions.polyc_emulator_set(_EMULATOR_SEED, available_cores())
    return CudaLibrary(library.ffi, library.functions, model, emulated, nodes)
