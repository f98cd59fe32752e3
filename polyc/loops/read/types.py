"""What the arguments of a kernel are: polyc.f64["n", "m"], polyc.i64; and how types meet.

The type of an expression is a dtype, or one of Python's own types: int, float, bool. Those are
*weak*: a Python number takes the type of what it meets (NumPy's rule, NEP 50).

    float32 * 0.5 -> float32        int32 + 1 -> int32        int32 / 2 -> float64
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from polyc.errors import ShapeError
from polyc.scop.expr import BOOL, INT64

FLOAT64 = np.dtype(np.float64)
SUPPORTED = tuple(
    map(
        np.dtype,
        (
            *("float16", "float32", "float64"),
            *("int8", "int16", "int32", "int64"),
            *("uint8", "uint16", "uint32", "uint64"),
            "bool",
        ),
    )
)

Type: TypeAlias = "np.dtype | type"
"""A dtype, or int, float or bool."""

Dim: TypeAlias = "int | str | None"
"""A number, the name of a size, or None: a size of its own."""


@dataclass(frozen=True)
class Argument:
    """An argument of a kernel: an array of some dimensions; `dims` is None for a number.

    polyc.f64["n", 3] is an array of float64, n x 3; polyc.f64 alone is a number. Equal names mean
    equal sizes, also between arrays, and between arrays and whole numbers.
    """

    dtype: np.dtype
    dims: tuple[Dim, ...] | None = None

    def __getitem__(self, dims: Any) -> Argument:
        given = dims if isinstance(dims, tuple) else (dims,)
        for dim in given:
            whole = isinstance(dim, int) and not isinstance(dim, bool) and dim >= 0
            if not (whole or dim is None or (isinstance(dim, str) and dim)):
                raise ShapeError(
                    f"dimension {dim!r} of {self} is neither a number, nor a name, nor None; "
                    'write polyc.f64["n", 3]'
                )
        return Argument(self.dtype, given)

    def __str__(self) -> str:
        if self.dims is None:
            return str(self.dtype)
        return f"{self.dtype}[{', '.join('?' if d is None else str(d) for d in self.dims)}]"


f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, b8 = map(Argument, SUPPORTED)


def argument_of(name: str, value: Any) -> Argument:
    """The type of what a call gives; ShapeError for what no kernel takes."""
    if isinstance(value, bool | np.bool_):
        return Argument(BOOL)
    if isinstance(value, int | np.integer):
        return Argument(INT64)
    if isinstance(value, np.floating):
        return check_dtype(name, value.dtype)
    if isinstance(value, float):
        return Argument(FLOAT64)
    if isinstance(value, np.ndarray):
        return Argument(check_dtype(name, value.dtype).dtype, (None,) * value.ndim)
    raise ShapeError(
        f"argument {name!r} is a {type(value).__name__}; give a NumPy array or a number"
    )


def check_dtype(name: str, dtype: np.dtype) -> Argument:
    if dtype not in SUPPORTED or not dtype.isnative:
        known = ", ".join(map(str, SUPPORTED))
        raise ShapeError(f"argument {name!r} is of type {dtype}; kernels compute with {known}")
    return Argument(dtype)


def join(a: Type, b: Type) -> Type:
    """The type in which two values meet."""
    if isinstance(a, np.dtype) and isinstance(b, np.dtype):
        return np.result_type(a, b)
    if isinstance(a, np.dtype):
        return _with_weak(a, b)
    if isinstance(b, np.dtype):
        return _with_weak(b, a)
    return max(a, b, key=[bool, int, float].index)


def _with_weak(strong: np.dtype, weak: Type) -> np.dtype:
    """A NumPy number and a Python one: the kind of the larger, the width of the first."""
    if weak is bool or (weak is int and strong.kind in "iuf") or strong.kind == "f":
        return strong
    return INT64 if weak is int else FLOAT64


def settle(type_: Type) -> np.dtype:
    """The dtype in which a value is kept: that of a Python number is its widest."""
    if isinstance(type_, np.dtype):
        return type_
    return {bool: BOOL, int: INT64, float: FLOAT64}[type_]


def is_float(type_: Type) -> bool:
    return settle(type_).kind == "f"


def is_bool(type_: Type) -> bool:
    return settle(type_) == BOOL


def is_whole(dtype: np.dtype) -> bool:
    """Whether it is a type of integers, with a sign or without."""
    return dtype.kind in "iu"


def compared(a: Type, b: Type) -> np.dtype:
    """The type in which two values are compared.

    A Python integer keeps its value there: no uint8 is less than -1, and each is less than 300.
    """
    met = settle(join(a, b))
    weak = a is int or b is int
    return INT64 if weak and is_whole(met) and met.itemsize < INT64.itemsize else met


def floating(met: Type) -> np.dtype:
    """The float that NumPy's functions compute integers in: no wider than it has to be."""
    if not isinstance(met, np.dtype):
        return FLOAT64
    if met.kind == "f":
        return met
    return np.dtype({1: np.float16, 2: np.float32}.get(met.itemsize, np.float64))


def quotient(a: Type, b: Type) -> Type:
    """The type of a / b, which of integers is a float of 64 bits."""
    met = join(a, b)
    if is_float(met):
        return met
    return FLOAT64 if isinstance(met, np.dtype) else float
