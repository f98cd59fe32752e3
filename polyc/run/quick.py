"""Calls of a model without the way through Python: `runtime/polyc_call.c`, made a function.

    quick = make_quick(...)     # None where that cannot be
    quick(threads, a, b, c)     # inputs, then outputs; 0, or what polyc_run returns, or DECLINED

It reads the headers of NumPy's arrays as code that is compiled against NumPy does, but without
NumPy's headers, which few machines have. That they lie so is looked at first, on arrays of several
kinds; where they do not (a Python without its lock, or one that is not CPython), calls take the
longer way.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from polyc.toolchain.pages import allocate_pages

DECLINED = 0x7FFFFFFF
"""What a quick call returns that has done nothing."""

MOST_ARRAYS = 32
MOST_BYTES = 4 << 20
"""Of an arena that quick calls have to themselves; what works in more takes long anyway."""

_FIELDS = 11
"""Of `model` in C, all as wide as a pointer, but for what is wanted."""
_METHOD_FIELDS = 4

_FASTCALL = 0x80
"""How Python calls it (methodobject.h): with an array of its arguments."""
_NAME = b"polyc_run"

_LINE = 64
_WORD = np.dtype(np.int64)
_LARGEST = np.iinfo(np.int64).max
_TYPE = 8
"""Bytes from the beginning of an object to its type."""
_DATA, _RANK, _SHAPE, _DTYPE, _FLAGS = 16, 24, 32, 56, 64
"""The same of an array's header."""
_ELEMENT, _ORDER, _NUMBER = 16, 26, 28
"""The same of a dtype."""

Quick = Callable[..., int]


def make_quick(
    functions: Any,
    ffi: Any,
    weights: Any,
    sizes: Any,
    arena_bytes: int,
    arrays: Sequence[tuple[np.dtype, Sequence[int | str]]],
) -> Quick | None:
    """polyc_run of a library on arrays of these types and shapes; None where that cannot be.

    weights, sizes: what polyc_run is told, in memory that outlives the function, as types do.
    """
    wanted = [n for dtype, shape in arrays for n in (id(dtype), len(shape), *map(int, shape))]
    is_small = len(arrays) <= MOST_ARRAYS and arena_bytes <= MOST_BYTES
    if not is_small or max(map(abs, wanted), default=0) > _LARGEST or not is_readable():
        return None
    try:
        function = ffi.addressof(functions, "polyc_call")
    except AttributeError:  # a library that was built without
        return None
    python = ctypes.pythonapi
    # Python's description of the function (PyMethodDef) lies in the function's own memory: while
    # Python collects garbage it reads that of functions whose library is closed already.
    method = _FIELDS + len(wanted)
    name = method + _METHOD_FIELDS
    before = -(-(name * _WORD.itemsize + len(_NAME) + 1) // _LINE) * _LINE
    memory = allocate_pages(before + max(arena_bytes, 1))
    start = _read(memory, _DATA, ctypes.c_int64)
    memory[name * _WORD.itemsize :][: len(_NAME)] = np.frombuffer(_NAME, np.uint8)
    memory[: name * _WORD.itemsize].view(_WORD)[:] = [
        *map(_address, (python.PyEval_SaveThread, python.PyEval_RestoreThread)),
        *map(_address, (python.PyLong_FromLong, python.PyLong_AsLong)),
        *(int(ffi.cast("intptr_t", x)) for x in (functions.polyc_run, weights)),
        start + before,
        int(ffi.cast("intptr_t", sizes)),
        id(np.ndarray),
        0,  # nobody is busy
        len(arrays),
        *wanted,
        start + name * _WORD.itemsize,
        int(ffi.cast("intptr_t", function)),
        _FASTCALL,
        0,  # it has no docstring
    ]
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    new = make(("PyCFunction_NewEx", python))
    quick: Quick = new(start + method * _WORD.itemsize, memory, None)
    return quick


@functools.cache
def is_readable() -> bool:
    """Whether headers of arrays lie as `polyc_call.c` reads them."""
    if sys.implementation.name != "cpython" or struct.calcsize("P") != 8:
        return False
    square = np.zeros((3, 5), np.float32)
    read_only = np.arange(4.0)
    read_only.flags.writeable = False
    swapped = np.zeros(2, ">i2")
    arrays = (square, square[1:, ::2], square.T, read_only, swapped, np.array(7), square[:, :0])
    return all(map(_lies_as_read, arrays))


def _lies_as_read(array: np.ndarray) -> bool:
    rank, dtype = _read(array, _RANK, ctypes.c_int), array.dtype
    if _read(array, _TYPE, ctypes.c_int64) != id(np.ndarray) or rank != array.ndim:
        return False
    place = _read(array, _SHAPE, ctypes.c_int64)
    shape = tuple(ctypes.c_int64.from_address(place + 8 * d).value for d in range(rank))
    return (
        shape == array.shape
        and _read(array, _DATA, ctypes.c_int64) == array.__array_interface__["data"][0]
        and _read(array, _DTYPE, ctypes.c_int64) == id(dtype)
        and _read(array, _FLAGS, ctypes.c_int) == array.flags.num
        and _read(dtype, _ELEMENT, ctypes.c_int64) == id(dtype.type)
        and _read(dtype, _ORDER, ctypes.c_char) == dtype.byteorder.encode()
        and _read(dtype, _NUMBER, ctypes.c_int) == dtype.num
    )


def _read(thing: object, offset: int, kind: Any) -> Any:
    """What stands so many bytes behind the beginning of an object."""
    return kind.from_address(id(thing) + offset).value


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0
