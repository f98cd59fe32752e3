"""Element types: those that are computed with, and those that are only stored.

A *narrow* type is a format of memory: an element takes a byte at least, as it does in the arrays
of ml_dtypes that are NumPy's names for these types; four bits are not packed. Its elements become
their *wide* type when they are loaded and are rounded when they are stored, so that all arithmetic
is done in the wide type, which holds every value of the narrow one.
"""

from __future__ import annotations

from collections.abc import Mapping

import ml_dtypes
import numpy as np

FLOAT16 = np.dtype(np.float16)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
INT8 = np.dtype(np.int8)
UINT8 = np.dtype(np.uint8)
INT16 = np.dtype(np.int16)
UINT16 = np.dtype(np.uint16)
INT32 = np.dtype(np.int32)
UINT32 = np.dtype(np.uint32)
POWERS = np.dtype(ml_dtypes.float8_e8m0fnu)
"""Powers of two without sign, the scales of blocks."""

_PLAIN: Mapping[np.dtype, str] = {
    np.dtype(np.bool_): "b8",
    **{np.dtype(f"{kind}{n}"): f"{kind}{8 * n}" for kind in "iu" for n in (1, 2, 4, 8)},
    FLOAT32: "f32",
    FLOAT64: "f64",
}
_NARROW_FLOATS: Mapping[np.dtype, str] = {
    FLOAT16: "f16",
    BFLOAT16: "bf16",
    np.dtype(ml_dtypes.float8_e4m3fn): "f8e4m3fn",
    np.dtype(ml_dtypes.float8_e4m3fnuz): "f8e4m3fnuz",
    np.dtype(ml_dtypes.float8_e5m2): "f8e5m2",
    np.dtype(ml_dtypes.float8_e5m2fnuz): "f8e5m2fnuz",
    POWERS: "f8e8m0",
    np.dtype(ml_dtypes.float6_e3m2fn): "f6e3m2",
    np.dtype(ml_dtypes.float6_e2m3fn): "f6e2m3",
    np.dtype(ml_dtypes.float4_e2m1fn): "f4e2m1",
}
_NARROW_INTEGERS: Mapping[np.dtype, tuple[str, np.dtype]] = {
    np.dtype(ml_dtypes.int4): ("i4", INT8),
    np.dtype(ml_dtypes.uint4): ("u4", UINT8),
    np.dtype(ml_dtypes.int2): ("i2", INT8),
    np.dtype(ml_dtypes.uint2): ("u2", UINT8),
}
_NARROW = {**_NARROW_FLOATS, **{dtype: name for dtype, (name, _) in _NARROW_INTEGERS.items()}}
_WIDE = {
    **dict.fromkeys(_NARROW_FLOATS, FLOAT32),
    **{d: w for d, (_, w) in _NARROW_INTEGERS.items()},
}
_NAMES = {**_PLAIN, **_NARROW}

NARROW = {name: _NAMES[_WIDE[dtype]] for dtype, name in _NARROW.items()}
"""The runtime's name of each narrow type -> that of its wide type."""

COMPILED = frozenset(_NAMES)
"""The element types that arrays of a compiled program may have."""


def scalar_type(dtype: np.dtype) -> str:
    """The runtime's name of an element type: float32 -> f32, bool -> b8, bfloat16 -> bf16."""
    return _NAMES[dtype]


def is_narrow(dtype: np.dtype) -> bool:
    """Whether elements of the type are only stored."""
    return dtype in _NARROW


def wide(dtype: np.dtype) -> np.dtype:
    """The type that elements of a type are computed in: bfloat16 -> float32, int32 -> int32."""
    return _WIDE.get(dtype, dtype)


def is_float(dtype: np.dtype) -> bool:
    """Whether a type, narrow or not, is a floating-point type."""
    return dtype.kind == "f" or dtype in _NARROW_FLOATS


def named(name: str) -> np.dtype:
    """The element type of a name, as `dtype.name` says it: "bfloat16"."""
    return np.dtype(name)


def spelled(dtype: np.dtype) -> str:
    """The type in Python: np.float32, ml_dtypes.bfloat16."""
    return f"{'np' if hasattr(np, dtype.name) else 'ml_dtypes'}.{dtype.name}"


def limits(dtype: np.dtype) -> tuple[float, float]:
    """The least and the largest finite number of a type; of integers, as integers."""
    if is_float(dtype):
        info = ml_dtypes.finfo(dtype)
        return float(info.min), float(info.max)
    whole = np.iinfo(dtype) if dtype.kind in "iu" else ml_dtypes.iinfo(dtype)
    return int(whole.min), int(whole.max)


def bit_width(dtype: np.dtype) -> int:
    """The bits of an element that say something: 4 of uint4, though it takes a byte."""
    small = {"float6_e3m2fn": 6, "float6_e2m3fn": 6, "float4_e2m1fn": 4}
    small |= {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2}
    return small.get(dtype.name, 8 * dtype.itemsize)
