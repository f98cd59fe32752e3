"""Arrays of a call: given ones are checked against their specs, missing ones are allocated."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from polyc.errors import ShapeError
from polyc.spec import TensorSpec

ALIGNMENT = 64
"""Bytes: arrays that polyc allocates start at a cache line."""


def bind_inputs(
    model: str, specs: Sequence[TensorSpec], arrays: Sequence[Any], named: Mapping[str, Any]
) -> tuple[np.ndarray, ...]:
    """Arguments by position and by name -> one checked, C-contiguous array an input.

    Only arrays that are not C-contiguous, or not aligned to their type, are copied.
    """
    if named or len(arrays) != len(specs):
        arrays = _by_position(model, specs, arrays, named)
    return tuple(_fit_input(model, s, a) for s, a in zip(specs, arrays, strict=True))


def check_outputs(
    model: str,
    specs: Sequence[TensorSpec],
    given: Sequence[np.ndarray],
    inputs: Sequence[np.ndarray],
) -> tuple[np.ndarray, ...]:
    """The caller's arrays to write into, if results can be written straight into each."""
    if len(given) != len(specs):
        raise ShapeError(
            f"model {model!r} has {len(specs)} outputs, `out` holds {len(given)}; give one array "
            "for each output"
        )
    for position, (spec, array) in enumerate(zip(specs, given, strict=True)):
        where = f"model {model!r}, `out` for output {spec.name!r}"
        _check(where, spec, array)
        if not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
            raise ShapeError(
                f"{where} must be C-contiguous, aligned and writable; use np.empty(shape, dtype)"
            )
        # Contiguous arrays share memory exactly when their bounds overlap.
        if any(np.may_share_memory(array, o) for o in (*inputs, *given[:position])):
            raise ShapeError(
                f"{where} overlaps an input or another output; give it memory of its own"
            )
    return tuple(given)


def allocate(spec: TensorSpec) -> np.ndarray:
    """An uninitialised array that starts at a multiple of ALIGNMENT bytes."""
    shape = cast(tuple[int, ...], spec.shape)
    size = math.prod(shape) * spec.dtype.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return np.ndarray(shape, spec.dtype, memory, start)


def _by_position(
    model: str, specs: Sequence[TensorSpec], arrays: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    """Arguments in the order of the inputs, each of them given exactly once."""
    if len(arrays) > len(specs):
        raise ShapeError(
            f"model {model!r} takes {len(specs)} inputs, {len(arrays)} were given; it takes "
            + (", ".join(map(str, specs)) or "none")
        )
    given = dict(zip((s.name for s in specs), arrays, strict=False))
    _check_names(model, specs, given, named)
    given |= named
    missing = [str(s) for s in specs if s.name not in given]
    if missing:
        raise ShapeError(f"model {model!r} is not given its inputs {', '.join(missing)}; add them")
    return [given[s.name] for s in specs]


def _check_names(
    model: str, specs: Sequence[TensorSpec], given: Mapping[str, Any], named: Mapping[str, Any]
) -> None:
    known = {s.name for s in specs}
    for name in named:
        if name not in known:
            raise ShapeError(
                f"model {model!r} has no input {name!r}; it takes "
                + (", ".join(map(str, specs)) or "none")
            )
        if name in given:
            raise ShapeError(f"model {model!r}: input {name!r} is given twice; give it once")


def _fit_input(model: str, spec: TensorSpec, value: Any) -> np.ndarray:
    if type(value) is np.ndarray and value.dtype == spec.dtype and value.shape == spec.shape:
        flags = value.flags
        return value if flags.c_contiguous and flags.aligned else value.copy(order="C")
    where = f"model {model!r}, input {spec.name!r}"
    if isinstance(value, bool | int | float | list | tuple):
        try:
            value = np.asarray(value, spec.dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise ShapeError(f"{where} cannot be made a {spec.dtype} array: {error}") from error
    array = np.asarray(value)
    _check(where, spec, array)
    return np.require(array, requirements=["C", "A"])


def _check(where: str, spec: TensorSpec, array: np.ndarray) -> None:
    if not isinstance(array, np.ndarray):
        raise ShapeError(f"{where} must be a NumPy array, not {type(array).__name__}")
    if array.dtype != spec.dtype:
        raise ShapeError(
            f"{where} has type {array.dtype}, expected {spec.dtype}; convert it with "
            f".astype(np.{spec.dtype})"
        )
    if array.shape != spec.shape:
        raise ShapeError(f"{where} has shape {array.shape}, expected {spec.shape}; reshape it")
