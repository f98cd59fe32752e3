"""DLPack capsules: memory that one library owns and another one reads.

Layout and protocol: https://dmlc.github.io/dlpack/latest/. A capsule's destructor gives the memory
back unless somebody has taken it over, which renames the capsule. Reading one here never does:
it is held while the memory is read, and let go.
"""

from __future__ import annotations

import ctypes
import functools
import math
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from polyc.errors import ShapeError
from polyc.types.element_types import BFLOAT16

CPU, CUDA, PINNED, MANAGED = 1, 2, 3, 13
"""DLDeviceType"""

_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
"""numpy.dtype.kind -> DLDataTypeCode"""

_NAMED = {
    BFLOAT16: 4,
    np.dtype(ml_dtypes.float8_e4m3fn): 10,
    np.dtype(ml_dtypes.float8_e4m3fnuz): 11,
    np.dtype(ml_dtypes.float8_e5m2): 12,
    np.dtype(ml_dtypes.float8_e5m2fnuz): 13,
    np.dtype(ml_dtypes.float8_e8m0fnu): 14,
}
"""Element types -> DLDataTypeCode, where the code stands for one type.

Those of fewer than eight bits have none here: DLPack packs them.
"""

_LAYOUT = """
typedef struct { int32_t type; int32_t id; } device;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } element;
typedef struct {
    void *data; device place; int32_t dimensions; element dtype;
    int64_t *shape; int64_t *strides; uint64_t byte_offset;
} tensor;
typedef struct managed {
    tensor value; void *context; void (*deleter)(struct managed *);
} managed;
typedef struct {
    uint32_t major; uint32_t minor; void *context; void *deleter; uint64_t flags; tensor value;
} versioned;
"""

_PLAIN, _VERSIONED = b"dltensor", b"dltensor_versioned"
_READ_ONLY = 1

# Capsules by their address, so that one that is being destroyed can be asked.
_new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_IsValid", ctypes.pythonapi)
)
_get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


@dataclass(slots=True)
class Borrowed:
    """Memory of somebody else's, while `owner` lives.

    dtype: None if NumPy has none for it; contiguous: row-major without gaps.
    """

    address: int
    dtype: np.dtype | None
    shape: tuple[int, ...]
    device: int
    contiguous: bool
    read_only: bool
    owner: Any


def read_capsule(capsule: Any) -> Borrowed:
    """What a capsule points to. Raises ShapeError for something that is no DLPack capsule."""
    ffi = _ffi()
    name = next((n for n in (_PLAIN, _VERSIONED) if _is_valid(id(capsule), n)), None)
    if name is None:
        raise ShapeError("`__dlpack__` returned no DLPack capsule that can be read")
    address = _get(id(capsule), name)
    if name == _PLAIN:
        value, flags = ffi.cast("managed *", address).value, 0
    else:
        whole = ffi.cast("versioned *", address)
        if whole.major != 1:
            raise ShapeError(f"DLPack {whole.major} is not known; versions 0 and 1 are read")
        value, flags = whole.value, whole.flags
    shape = tuple(value.shape[k] for k in range(value.dimensions))
    strides = None
    if value.strides != ffi.NULL:
        strides = tuple(value.strides[k] for k in range(value.dimensions))
    return Borrowed(
        int(ffi.cast("uintptr_t", value.data)) + value.byte_offset,
        _dtype(value.dtype.code, value.dtype.bits * value.dtype.lanes),
        shape,
        value.place.id,
        is_contiguous(shape, strides),
        bool(flags & _READ_ONLY),
        capsule,
    )


def host_array(value: Any) -> np.ndarray:
    """An array of another library in the host's memory as NumPy's, of whatever element type.

    Nothing is copied. Raises ShapeError for one that cannot be seen so.
    """
    try:
        borrowed = read_capsule(value.__dlpack__())
    except (BufferError, RuntimeError) as error:
        raise ShapeError(f"a {type(value).__name__} cannot be read: {error}") from error
    if borrowed.dtype is None or not borrowed.contiguous or value.__dlpack_device__()[0] != CPU:
        raise ShapeError(f"a {type(value).__name__} must be on the host, row-major without gaps")
    size = borrowed.dtype.itemsize * math.prod(borrowed.shape)
    memory: Any = (ctypes.c_char * size).from_address(borrowed.address)
    memory.owner = borrowed.owner  # the array holds the memory, and that its owner
    return np.ndarray(borrowed.shape, borrowed.dtype, memory)


def is_contiguous(shape: tuple[int, ...], strides: tuple[int, ...] | None) -> bool:
    """Whether these strides, in elements, are those of a row-major array without gaps."""
    if strides is None or 0 in shape:
        return True
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


def element_code(dtype: np.dtype) -> tuple[int, int]:
    """(DLDataTypeCode, bits) of an element type; BufferError for one that DLPack has not so."""
    code = _NAMED.get(dtype, _CODES.get(dtype.kind))
    if code is None:
        raise BufferError(f"DLPack packs elements of {dtype}; here each takes a byte")
    return code, 8 * dtype.itemsize


def make_capsule(address: int) -> Any:
    """A capsule of the DLManagedTensor at this address; its deleter is called in the end."""
    return _new(address, _PLAIN, ctypes.cast(_destroy, ctypes.c_void_p))


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule: int) -> None:
    """Called for every capsule; what has been taken over is another's to delete."""
    if _is_valid(capsule, _PLAIN):
        tensor = _ffi().cast("managed *", _get(capsule, _PLAIN))
        tensor.deleter(tensor)


def _dtype(code: int, bits: int) -> np.dtype | None:
    kinds = {number: kind for kind, number in _CODES.items()}
    if code == _CODES["b"]:
        return np.dtype(bool)
    for dtype, number in _NAMED.items():
        if (code, bits) == (number, 8 * dtype.itemsize):
            return dtype
    try:
        return np.dtype(f"{kinds[code]}{bits // 8}")
    except (KeyError, TypeError):
        return None


@functools.cache
def _ffi() -> Any:
    import cffi

    ffi = cffi.FFI()
    ffi.cdef(_LAYOUT)
    return ffi
