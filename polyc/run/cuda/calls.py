"""The arrays of a call on a GPU: where each of them lies, and what must be copied."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from polyc.arguments import list_outputs
from polyc.errors import ShapeError
from polyc.run.calls import Binder
from polyc.run.cuda.array import DeviceArray, borrow, is_on_device
from polyc.run.cuda.library import CudaLibrary
from polyc.run.dlpack import Borrowed, host_array
from polyc.types.element_types import is_narrow
from polyc.types.spec import TensorSpec

VECTOR = 16
"""Bytes of the widest load of a thread, to which an array's first element must be aligned."""


@dataclass(slots=True)
class Argument:
    """An input or output of a call: in the device's memory, or on the host to be copied.

    given: what the caller gave, or what is returned; copied: why the device needs memory for it
    besides: it lies on the host, or a thread could not load four elements of it at once.
    """

    spec: TensorSpec
    given: Any
    on_host: np.ndarray | None = None
    on_device: Borrowed | None = None

    @property
    def bytes(self) -> int:
        return size_of(self.spec)

    @property
    def address(self) -> int | None:
        """Where kernels find it, unless it must be copied first."""
        place = self.on_device
        return place.address if place and place.address % VECTOR == 0 else None


def bind_inputs(
    binder: Binder,
    specs: Sequence[TensorSpec],
    values: Sequence[Any],
    library: CudaLibrary,
    stream: int,
) -> list[Argument]:
    """Inputs, checked; ShapeError for one that does not fit."""
    bound = []
    for spec, value in zip(specs, values, strict=True):
        where = f"model {library.model!r}, input {spec.name!r}"
        if is_on_device(value, library.emulated):
            place = borrow(value, library, stream)
            check_place(where, spec, place)
            bound.append(Argument(spec, value, on_device=place))
        else:
            host = value if isinstance(value, np.ndarray) else to_host(value)
            bound.append(Argument(spec, value, on_host=binder.convert(spec, host)))
    return bound


def bind_outputs(
    binder: Binder,
    specs: Sequence[TensorSpec],
    out: Any,
    library: CudaLibrary,
    stream: int,
) -> list[Argument]:
    """The caller's array or arrays to write into; ShapeError for one that does not fit."""
    given = list_outputs(out, library.model, len(specs))
    bound = []
    for spec, value in zip(specs, given, strict=True):
        where = f"model {library.model!r}, `out` for output {spec.name!r}"
        if not is_on_device(value, library.emulated):
            binder.check_output(spec, value)
            bound.append(Argument(spec, value, on_host=value))
            continue
        place = borrow(value, library, stream)
        check_place(where, spec, place)
        if place.read_only or place.address % VECTOR:
            raise ShapeError(f"{where} must be writable and aligned to {VECTOR} bytes")
        if isinstance(value, DeviceArray):
            value.write_in(stream)
        bound.append(Argument(spec, value, on_device=place))
    return bound


def to_host(value: Any) -> Any:
    """An array of another library that is not on the device, as NumPy's; else the value itself."""
    if not hasattr(value, "__dlpack__"):
        return value
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError):  # an element type that NumPy's own DLPack has not
        return host_array(value)


def allocate(
    specs: Iterable[TensorSpec], library: CudaLibrary, stream: int, on_host: bool
) -> list[Argument]:
    """Uninitialised outputs, on the host or on the device."""
    made = []
    for spec in specs:
        shape = cast(tuple[int, ...], spec.shape)
        if on_host:
            array = np.empty(shape, spec.dtype)
            made.append(Argument(spec, array, on_host=array))
        else:
            there = DeviceArray(library, shape, spec.dtype, stream)
            made.append(Argument(spec, there, on_device=borrow(there, library, stream)))
    return made


def find_device(arguments: Iterable[Argument], library: CudaLibrary) -> int:
    """The device on which the arrays of a call lie, or the current one.

    Raises ShapeError if they lie on several.
    """
    devices = {a.on_device.device for a in arguments if a.on_device}
    if len(devices) > 1:
        raise ShapeError(
            f"model {library.model!r} is given arrays on devices {sorted(devices)}; move them to "
            "one"
        )
    return devices.pop() if devices else library.current_device()


def check_place(where: str, spec: TensorSpec, place: Borrowed) -> None:
    """Raises ShapeError for a device array that is not what the spec says."""
    raw = np.dtype((np.void, spec.dtype.itemsize))  # so `__cuda_array_interface__` says bfloat16
    if place.dtype != spec.dtype and not (is_narrow(spec.dtype) and place.dtype == raw):
        found = place.dtype or "that NumPy has no name for"
        raise ShapeError(f"{where} has type {found}, expected {spec.dtype}; convert it")
    if place.shape != spec.shape:
        raise ShapeError(f"{where} has shape {place.shape}, expected {spec.shape}; reshape it")
    if not place.contiguous:
        raise ShapeError(f"{where} must be row-major without gaps; make it contiguous")


def size_of(spec: TensorSpec) -> int:
    """Bytes of an array."""
    return math.prod(cast(tuple[int, ...], spec.shape)) * spec.dtype.itemsize
