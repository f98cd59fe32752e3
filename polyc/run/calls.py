"""Arrays of a call: given ones are checked against their specs, missing ones are allocated.

A call of a tiny model must cost little, so what calls have in common is prepared once, and the
checks that every array passes are a few comparisons; the rest runs only to convert, or to say what
is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from ctypes import addressof, c_char
from typing import Any, cast

import numpy as np
from numpy import empty, ndarray, uint8

from polyc.arguments import arrange, list_outputs
from polyc.errors import ShapeError, TooLarge
from polyc.types.element_types import spelled
from polyc.types.spec import TensorSpec

ALIGNMENT = 64
"""Bytes: arrays that polyc allocates start at a cache line."""

SMALL = 1 << 15
"""Bytes: a smaller result starts where NumPy has it; to find a line takes longer than it gains."""

Shape = tuple[int, ...]


class Binder:
    """The arguments and results of a model, prepared."""

    def __init__(
        self, model: str, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
    ) -> None:
        self._model = model
        self.specs = (*inputs, *outputs)
        self._names = [s.name for s in inputs]
        self._inputs = [(s, s.dtype, s.shape) for s in inputs]
        self._says_sizes = any(s.values for s in inputs)
        self._outputs = [(s, s.dtype, cast(Shape, s.shape), count_bytes(s)) for s in outputs]

    def bind_inputs(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[ndarray]:
        """Arguments by position and by name -> one checked, C-contiguous array an input.

        Only arrays that are not C-contiguous, aligned and native are copied.
        """
        arrays = self.arrange(arrays, named)
        bound = []
        for position, (spec, dtype, shape) in enumerate(self._inputs):
            array = arrays[position]
            if (
                type(array) is ndarray
                and (array.dtype is dtype or array.dtype == dtype)
                and array.shape == shape
                and array.flags.carray  # C-contiguous, aligned, writable
            ):
                bound.append(array)
            else:
                bound.append(self.convert(spec, array))
        return bound

    def check_outputs(self, out: Any) -> list[ndarray]:
        """The caller's array or arrays to write into, if results can be written straight there.

        That they overlap nothing is left to the C function, which sees it at no cost.
        """
        is_one = type(out) is ndarray and len(self._outputs) == 1
        given = (out,) if is_one else list_outputs(out, self._model, len(self._outputs))
        bound = []
        for position, (spec, dtype, shape, _) in enumerate(self._outputs):
            array = given[position]
            if not (
                type(array) is ndarray
                and (array.dtype is dtype or array.dtype == dtype)
                and array.shape == shape
                and array.flags.carray
            ):
                self.check_output(spec, array)
            bound.append(array)
        return bound

    def allocate_outputs(self) -> list[ndarray]:
        """Uninitialised arrays; but for small ones they start at multiples of ALIGNMENT bytes."""
        arrays = []
        for spec, dtype, shape, size in self._outputs:
            if size < SMALL:
                arrays.append(empty(shape, dtype))
                continue
            try:
                memory: Any = empty(size + ALIGNMENT, uint8)
            except MemoryError as error:
                raise TooLarge(
                    f"model {self._model!r}: there is no memory for the {size} bytes of output "
                    f"{spec.name!r}; use smaller sizes"
                ) from error
            start = -addressof(c_char.from_buffer(memory)) % ALIGNMENT
            arrays.append(ndarray(shape, dtype, memory, start))
        return arrays

    def overlap(self, position: int) -> ShapeError:
        """The error for an output in memory that an input or an earlier output has."""
        return ShapeError(
            f"{self._out(self._outputs[position][0])} overlaps an input or another output; give "
            "it memory of its own"
        )

    def shapes(self, arrays: Sequence[Any]) -> tuple[Shape, ...]:
        """The shapes of arguments, one an input; ShapeError for what is no array."""
        found = []
        for (spec, *_), value in zip(self._inputs, arrays, strict=True):
            try:
                found.append(value.shape if type(value) is ndarray else tuple(np.shape(value)))
            except (ValueError, TypeError) as error:
                raise ShapeError(f"{self._input(spec)} is no array: {error}") from error
        return tuple(found)

    def values(self, arrays: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
        """The elements of those arguments that say sizes; of others nothing.

        ShapeError for what is no array of an input's type and shape.
        """
        if not self._says_sizes:
            return ()
        return tuple(
            tuple(self.convert(spec, value).reshape(-1).tolist()) if spec.values else ()
            for (spec, *_), value in zip(self._inputs, arrays, strict=True)
        )

    def arrange(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
        """Arguments in the order of the inputs, each of them given exactly once."""
        if not named and len(arrays) == len(self._inputs):
            return arrays
        if not arrays:
            found = [named[name] for name in self._names if name in named]
            if len(found) == len(self._names) == len(named):
                return found
        takes = {spec.name: str(spec) for spec, *_ in self._inputs}
        return list(arrange(self._model, takes, arrays, named).values())

    def convert(self, spec: TensorSpec, value: Any) -> ndarray:
        """A list, a scalar, or an array that is not in order, as the array of an input."""
        where = self._input(spec)
        if isinstance(value, bool | int | float | list | tuple):
            value = as_array(where, spec, value)
        array = _as_numpy(value)
        check_array(where, spec, array)
        return np.require(array, requirements=["C", "A"])

    def check_output(self, spec: TensorSpec, array: ndarray) -> None:
        """Raises ShapeError for an array that cannot be written into."""
        check_array(self._out(spec), spec, array)
        if not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
            raise ShapeError(
                f"{self._out(spec)} must be C-contiguous, aligned and writable; use "
                "np.empty(shape, dtype)"
            )

    def _input(self, spec: TensorSpec) -> str:
        return f"model {self._model!r}, input {spec.name!r}"

    def _out(self, spec: TensorSpec) -> str:
        return f"model {self._model!r}, `out` for output {spec.name!r}"


def as_array(where: str, spec: TensorSpec, value: Any) -> ndarray:
    """A number, or a list of numbers, as an array of an input's type."""
    if not isinstance(value, bool | int | float | list | tuple):
        raise ShapeError(f"{where} is a {type(value).__name__}; give an array of {spec.dtype}")
    try:
        return np.asarray(value, spec.dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise ShapeError(f"{where} cannot be made a {spec.dtype} array: {error}") from error


def _as_numpy(value: Any) -> ndarray:
    """NumPy's view of an array; by DLPack where its library cannot name the type to NumPy."""
    try:
        return np.asarray(value)
    except TypeError:
        if not hasattr(value, "__dlpack__"):
            raise
        from polyc.run.dlpack import host_array  # needed by few, and not free to import

        return host_array(value)


def count_bytes(spec: TensorSpec) -> int:
    """Bytes of an array."""
    return math.prod(cast(Shape, spec.shape)) * spec.dtype.itemsize


def check_array(where: str, spec: TensorSpec, array: ndarray) -> None:
    """Raises ShapeError for an array of another type or shape."""
    if not isinstance(array, ndarray):
        raise ShapeError(f"{where} must be a NumPy array, not {type(array).__name__}")
    if array.dtype.hasobject:
        raise ShapeError(f"{where} is made of Python objects; give an array of {spec.dtype}")
    if array.dtype != spec.dtype:
        raise ShapeError(
            f"{where} has type {array.dtype}, expected {spec.dtype}; convert it with "
            f".astype({spelled(spec.dtype)})"
        )
    if array.shape != spec.shape:
        raise ShapeError(f"{where} has shape {array.shape}, expected {spec.shape}; reshape it")
