"""Element types: those that are computed with, and those that are only stored.

A *narrow* type is a format of memory. Its elements become their *wide* type when they are loaded
and are rounded when they are stored, so that all arithmetic is done in the wide type, which holds
every value of the narrow one. NumPy has these types from the package ml_dtypes.
"""

from __future__ import annotations

from collections.abc import Mapping

import ml_dtypes
import numpy as np

FLOAT16 = np.dtype(np.float16)
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)

_PLAIN: Mapping[np.dtype, str] = {
    np.dtype(np.bool_): "b8",
    **{np.dtype(f"{kind}{n}"): f"{kind}{8 * n}" for kind in "iu" for n in (1, 2, 4, 8)},
    FLOAT32: "f32",
    FLOAT64: "f64",
}
_NARROW: Mapping[np.dtype, str] = {FLOAT16: "f16", BFLOAT16: "bf16"}
_NAMES = {**_PLAIN, **_NARROW}

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
    return FLOAT32 if dtype in _NARROW else dtype


def is_float(dtype: np.dtype) -> bool:
    """Whether a type, narrow or not, is a floating-point type."""
    return dtype.kind == "f" or dtype == BFLOAT16


def named(name: str) -> np.dtype:
    """The element type of a name, as `dtype.name` says it: "bfloat16"."""
    return np.dtype(name)


def spelled(dtype: np.dtype) -> str:
    """The type in Python: np.float32, ml_dtypes.bfloat16."""
    return f"{'np' if hasattr(np, dtype.name) else 'ml_dtypes'}.{dtype.name}"
