"""Arrays in a GPU's memory: own ones, and those of other libraries."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from polyc.errors import ShapeError
from polyc.run import dlpack
from polyc.run.cuda.library import CudaLibrary
from polyc.run.cuda.stream import DEFAULT, from_protocol, to_dlpack
from polyc.run.dlpack import Borrowed


class DeviceArray:
    """A row-major array in the memory of a GPU, as a model returns it.

    It is complete once what was in its stream when it was returned is done. `numpy()` waits for
    that; a library that takes it over by DLPack or `__cuda_array_interface__` has its own stream
    wait, and the host goes on.
    """

    def __init__(
        self, library: CudaLibrary, shape: tuple[int, ...], dtype: np.dtype, stream: int = DEFAULT
    ) -> None:
        """Uninitialised. Raises RuntimeFailure without a GPU, or if its memory is full."""
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.stream = stream
        self._library = library
        self._is_read = False
        self.device = library.current_device()
        made = library.ffi.new("struct pc_buffer **")
        handle = library.pointer(stream)
        library.check(library.functions.polyc_new_buffer(self.nbytes, handle, made))
        self._buffer = made[0]
        self.address: int = library.functions.polyc_buffer_address(self._buffer)

    def __del__(self) -> None:
        if hasattr(self, "_buffer") and not sys.is_finalizing():  # else the process gives it back
            self._library.functions.polyc_drop_buffer(self._buffer)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def numpy(self) -> np.ndarray:
        """A copy on the host; waits until the array is complete."""
        result = np.empty(self.shape, self.dtype)
        self._library.download(result, self.address, self.stream)
        self._library.synchronise(self.stream)
        return result

    def copy_from(self, other: DeviceArray) -> None:
        """Copy another array's bytes here, in this one's stream. ShapeError if they do not fit."""
        if other.nbytes != self.nbytes:
            raise ShapeError(f"{other!r} does not fit {self!r}; copy arrays of the same size")
        self.write_in(self.stream)
        other.read_in(self.stream)
        self._library.copy(self.address, other.address, self.nbytes, self.stream)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array in a GPU's memory cannot be seen without a copy")
        result = self.numpy()
        return result if dtype is None else result.astype(dtype, copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (dlpack.CPU if self._library.emulated else dlpack.CUDA), self.device

    def __dlpack__(self, *, stream: int | None = None, **ignored: Any) -> Any:
        """A capsule that `from_dlpack` of other libraries takes; nothing is copied."""
        if not self._library.emulated:
            reader = from_protocol(1 if stream is None else stream)
            if reader is not None:
                self.read_in(reader)
        kind, bits = dlpack.element_code(self.dtype)
        functions, shape = self._library.functions, self._library.ffi.new("int64_t[]", self.shape)
        device_type, _ = self.__dlpack_device__()
        exported = functions.polyc_export_buffer(
            self._buffer, device_type, kind, bits, self.ndim, shape
        )
        if exported == self._library.ffi.NULL:
            raise MemoryError
        return dlpack.make_capsule(int(self._library.ffi.cast("uintptr_t", exported)))

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "stream": self.stream or 1,
        }

    def __repr__(self) -> str:
        place = "the emulator" if self._library.emulated else f"GPU {self.device}"
        return f"DeviceArray({self.dtype}{list(self.shape)} on {place})"

    def read_in(self, stream: int) -> None:
        """Let a stream read the array: it waits for what writes it, and who writes next for it."""
        if stream == self.stream:
            return
        self._is_read = True
        handle = self._library.pointer(stream)
        self._library.check(self._library.functions.polyc_read_buffer(self._buffer, handle))

    def write_in(self, stream: int) -> None:
        """Let a stream write the array, behind all who read it; it is complete with that stream."""
        if stream == self.stream and not self._is_read:
            return
        handle = self._library.pointer(stream)
        self._library.check(self._library.functions.polyc_write_buffer(self._buffer, handle))
        self.stream, self._is_read = stream, False


def is_on_device(value: Any, emulated: bool) -> bool:
    """Whether an argument lies where a model's kernels can read it.

    That is a GPU's memory; for the emulator whatever speaks DLPack, but not NumPy's arrays.
    """
    if isinstance(value, DeviceArray):
        return True
    if isinstance(value, np.ndarray | np.generic | bool | int | float | list | tuple):
        return False
    if hasattr(value, "__dlpack_device__"):
        kind = int(value.__dlpack_device__()[0])
        return kind in (dlpack.CUDA, dlpack.MANAGED) or (emulated and kind == dlpack.CPU)
    return hasattr(value, "__cuda_array_interface__")


def borrow(value: Any, library: CudaLibrary, stream: int) -> Borrowed:
    """The memory of a device array, in which `stream` finds what has been written by now.

    Raises ShapeError for an array that does not say what is needed.
    """
    if isinstance(value, DeviceArray):
        return Borrowed(value.address, value.dtype, value.shape, value.device, True, False, value)
    if hasattr(value, "__dlpack__"):
        on_host = value.__dlpack_device__()[0] == dlpack.CPU  # which has no streams
        asked = {} if on_host else {"stream": to_dlpack(stream)}
        try:
            return dlpack.read_capsule(value.__dlpack__(**asked))
        except (BufferError, RuntimeError) as error:
            raise ShapeError(f"a {type(value).__name__} cannot be read: {error}") from error
    return _borrow_by_interface(value, library, stream)


def _borrow_by_interface(value: Any, library: CudaLibrary, stream: int) -> Borrowed:
    """https://nvidia.github.io/numba-cuda/user/cuda_array_interface.html, version 3."""
    told = value.__cuda_array_interface__
    if told.get("mask") is not None:
        raise ShapeError("an array with a mask cannot be read; fill it first")
    writer = from_protocol(told.get("stream"))
    if writer is not None and writer != stream:
        library.follow(stream, writer)
    dtype, shape = np.dtype(told["typestr"]), tuple(told["shape"])
    strides = told.get("strides")
    steps = tuple(s // dtype.itemsize for s in strides) if strides else None
    address, read_only = told["data"]
    return Borrowed(
        address or 0,
        dtype,
        shape,
        library.current_device(),
        dlpack.is_contiguous(shape, steps),
        bool(read_only),
        value,
    )
