"""Whole numbers of 64 bits in 32, where nobody can tell: a vector holds twice as many.

    uint8((int64(a[i]) * w + 128) >> 8)    ->    uint8((int32(a[i]) * int32(w) + 128) >> 8)
    int64(a[i]) - int64(b[i]) > 5          ->    int32(a[i]) - int32(b[i]) > 5        a, b: uint8
    uint8(int64(min(max(x, 0.0), 255.0)))  ->    uint8(int32(min(max(x, 0.0), 255.0)))

`int(a[i])` and literals have 64 bits, as Python's numbers have no end. Often few of them matter:
types and literals imply bounds that 32 bits hold, or a result is stored where its lowest bits are
kept alone, and those of sums and products follow from the lowest bits of what is added and
multiplied, since both wrap.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from polyc.poly.affine import coefficients
from polyc.scop.expr import (
    BOOL,
    INT64,
    ORDERED,
    Call,
    Cast,
    Const,
    Expr,
    Index,
    Load,
    call,
    cast,
    children,
    with_children,
)

INT32, BITS = np.dtype(np.int32), 32

Bounds = tuple[float, float]
"""The least and the largest that a value can be, unless it is NaN."""

ANY: Bounds = (-math.inf, math.inf)

Known = Mapping[str, Bounds]
"""What is known of the elements of arrays, by name, besides their types."""

NOTHING: Known = MappingProxyType({})

WRAPPING = frozenset({"add", "sub", "mul", "neg", "bitand", "bitor", "bitxor", "bitnot"})
"""Functions the lowest bits of whose results follow from as many bits of their arguments."""

EXACT = frozenset({"abs", "div", "mod", "fmod", "shl", "shr", "select"})
EXACT |= WRAPPING | {"larger", "smaller", "max", "min"}
"""Functions that give the same number in 32 bits if these hold the arguments and the result."""


def narrow(value: Expr, known: Known = NOTHING) -> Expr:
    """The value of a statement, by operations on fewer bits where they give the same."""
    return _narrow(value, known).value


def bounds_of(value: Expr, known: Known = NOTHING) -> Bounds:
    """Between which numbers a value lies."""
    return _narrow(value, known).bounds


def fits(bounds: Bounds) -> bool:
    """Whether 32 bits hold all whole numbers between some bounds."""
    return _inside(bounds, _bounds_of(INT32))


@dataclass(frozen=True)
class _Found:
    """An expression that is as narrow as can be, and what is known of its values.

    source: the float that a whole number is, but for the fraction, and 0 where that is NaN.
    """

    value: Expr
    bounds: Bounds
    may_be_nan: bool = False  # a float
    source: Expr | None = None

    @property
    def fits(self) -> bool:
        """Whether 32 bits hold all of its values."""
        return fits(self.bounds)

    @property
    def short(self) -> Expr:
        """The same number in 32 bits, which hold it."""
        match self.value:
            case Const(value=number):
                return Const(number, INT32)
            case Cast(argument, dtype) if dtype == INT64 and argument.dtype.kind in "iub":
                return cast(argument, INT32)
            case _:
                return cast(self.value, INT32)


def _inside(bounds: Bounds, others: Bounds) -> bool:
    return others[0] <= bounds[0] and bounds[1] <= others[1]


def _bounds_of(dtype: np.dtype) -> Bounds:
    """What a type holds."""
    if dtype == BOOL:
        return 0, 1
    return (np.iinfo(dtype).min, np.iinfo(dtype).max) if dtype.kind in "iu" else ANY


def _narrow(value: Expr, known: Known) -> _Found:
    match value:
        case Const(value=number, dtype=dtype) if dtype.kind in "iuf" and math.isfinite(number):
            return _Found(value, (number, number))
        case Cast():
            return _narrow_cast(value, known)
        case Call():
            return _narrow_call(value, known)
        case _:
            parts = tuple(_narrow(child, known).value for child in children(value))
            value, bounds = with_children(value, parts), _bounds_of(value.dtype)
            if isinstance(value, Load):
                bounds = known.get(value.array, bounds)
            return _Found(value, bounds, value.dtype.kind == "f")


def _narrow_cast(value: Cast[Expr], known: Known) -> _Found:
    inner, dtype = _narrow(value.argument, known), value.dtype
    plain, own = with_children(value, (inner.value,)), _bounds_of(dtype)
    match inner.value.dtype.kind, dtype.kind:
        case "f", "i" | "u":
            # Out of range it becomes the nearest whole number, and NaN becomes 0.
            ends = (*inner.bounds, 0) if inner.may_be_nan else inner.bounds
            least, most = (_clip(end, own) for end in (min(ends), max(ends)))
            source = inner.value if _inside(inner.bounds, own) else None
            if dtype == INT64 and fits((least, most)):
                plain = cast(cast(inner.value, INT32), INT64)
            return _Found(plain, (least, most), source=source)
        case "i" | "u", "i" | "u":
            bounds = inner.bounds if _inside(inner.bounds, own) else own
            if inner.source and bounds == inner.bounds:
                return _Found(cast(inner.source, dtype), bounds, source=inner.source)
            if inner.value.dtype == INT64:
                bits = 8 * dtype.itemsize
                low = _low(inner.value, bits) if bits <= BITS else None
                return _Found(cast(low, dtype) if low else _short_cast(plain, inner), bounds)
            return _Found(plain, bounds)
        case "i" | "u", "f":
            exact = max(map(abs, inner.bounds)) <= 2 ** np.finfo(dtype).nmant
            return _Found(_short_cast(plain, inner), inner.bounds if exact else ANY)
        case "f", "f":
            least, most = (float(dtype.type(end)) for end in inner.bounds)  # rounds as the value
            return _Found(plain, (least, most), inner.may_be_nan)
        case "b", _:
            return _Found(plain, (0, 1))
        case _:
            return _Found(plain, own)


def _short_cast(plain: Expr, inner: _Found) -> Expr:
    """A conversion without the way through 64 bits, if 32 hold what is converted."""
    made = isinstance(inner.value, Const | Cast) and inner.value.dtype == INT64
    return cast(inner.short, plain.dtype) if made and inner.fits else plain


def _clip(end: float, bounds: Bounds) -> float:
    return math.trunc(min(max(end, bounds[0]), bounds[1]))


def _narrow_call(value: Call[Expr], known: Known) -> _Found:
    found = [_narrow(argument, known) for argument in value.arguments]
    plain = with_children(value, tuple(f.value for f in found))
    tests, numbers = (found[:1], found[1:]) if value.function == "select" else ([], found)
    if value.function in ORDERED:
        numbers = _clamp_sizes(numbers)
    bounds = _result(value, numbers)
    certain = value.function in EXACT and not any(f.may_be_nan for f in numbers)
    may_be_nan = value.dtype.kind == "f" and not certain
    if not all(f.value.dtype == INT64 and f.fits for f in numbers):
        return _Found(plain, bounds, may_be_nan)
    short = (*(f.value for f in tests), *(f.short for f in numbers))
    if value.dtype == BOOL:
        return _Found(call(value.function, *short, dtype=BOOL), bounds)
    if value.function in EXACT and fits(bounds):
        return _Found(cast(call(value.function, *short), INT64), bounds)
    return _Found(plain, bounds)


def _clamp_sizes(numbers: Sequence[_Found]) -> list[_Found]:
    """What is compared, with sizes no further away than they need be.

    a[i] > t, where a[i] is 0 to 255   ->   a[i] > min(max(t, -1), 256)
    """
    one, other = numbers
    if one.fits == other.fits or INT64 not in (one.value.dtype, other.value.dtype):
        return [*numbers]
    (least, most) = (one if one.fits else other).bounds
    ends = least - 1, most + 1
    if not fits(ends):
        return [*numbers]
    return [_clamp(n, ends) if not n.fits and _is_size(n.value) else n for n in numbers]


def _is_size(value: Expr) -> bool:
    """Whether a value is the same in all iterations, which compute it once."""
    if not isinstance(value, Index) or value.dtype != INT64:
        return False
    return all(c == 0 for c in coefficients(value.value))


def _clamp(number: _Found, ends: Bounds) -> _Found:
    least, most = (Const(int(end), INT64) for end in ends)
    value = call("min", call("max", number.value, least), most)
    return _Found(cast(cast(value, INT32), INT64), ends)


def _result(value: Call[Expr], arguments: Sequence[_Found]) -> Bounds:
    """Between what the results of a function lie; whole numbers that wrap lie anywhere."""
    own, ends = _bounds_of(value.dtype), [f.bounds for f in arguments]
    found = _choose(value.function, ends, [f.may_be_nan for f in arguments])
    if found is None and value.dtype.kind in "iu":  # floats round
        found = _compute(value.function, ends)
    return found if found is not None and _inside(found, own) else own


def _choose(function: str, ends: Sequence[Bounds], may_be_nan: Sequence[bool]) -> Bounds | None:
    """The bounds of one of the arguments, or of its size."""
    (a, b), (c, d) = ends[0], ends[-1]
    match function:
        case "select":
            return min(a, c), max(b, d)
        case "larger" | "max":
            sure = [end for end, may in zip((a, c), may_be_nan, strict=True) if not may]
            return max(sure, default=min(a, c)), max(b, d)  # NaN gives way to the other
        case "smaller" | "min":
            sure = [end for end, may in zip((b, d), may_be_nan, strict=True) if not may]
            return min(a, c), min(sure, default=max(b, d))
        case "neg":
            return -b, -a
        case "abs":
            return max(a, -b, 0), max(-a, b)
        case _:
            return None


def _compute(function: str, ends: Sequence[Bounds]) -> Bounds | None:
    """The bounds of a function of whole numbers; d: the second argument, where that is known."""
    (a, b), (c, d) = ends[0], ends[-1]
    match function:
        case "add":
            return a + c, b + d
        case "sub":
            return a - d, b - c
        case "mul":
            products = (a * c, a * d, b * c, b * d)
            return min(products), max(products)
        case "div" if c == d > 0:
            return -(-a // d) if a < 0 else a // d, -(-b // d) if b < 0 else b // d
        case "mod" if c == d > 0:
            return 0, d - 1
        case "fmod" if c == d > 0:
            return max(a, 1 - d) if a < 0 else 0, min(b, d - 1) if b > 0 else 0
        case "shr" if c == d and 0 <= d < BITS:
            return a // 2 ** int(d), b // 2 ** int(d)
        case "shl" if c == d and 0 <= d < BITS:
            return a * 2 ** int(d), b * 2 ** int(d)
        case "bitand" if a >= 0 or c >= 0:
            return 0, min(end for start, end in ((a, b), (c, d)) if start >= 0)
        case _:
            return None


# -- lowest bits ----------------------------------------------------------------------------------


def _low(value: Expr, bits: int) -> Expr | None:
    """A number of 32 bits with the lowest ones of one of 64; None if no operation gets shorter."""
    match value:
        case Call(function, arguments) if function in WRAPPING:
            return call(function, *(_low_part(a, bits) for a in arguments))
        case Call("select", (test, one, other)):
            return call("select", test, _low_part(one, bits), _low_part(other, bits))
        case Call("shr", (number, Const(value=k))) if 0 <= k <= BITS - bits:
            return call("shr", _low_part(number, bits + int(k)), Const(int(k), INT32))
        case Call("shl", (number, Const(value=k))) if 0 <= k < BITS:
            return call("shl", _low_part(number, bits), Const(int(k), INT32))
        case _:
            return None


def _low_part(value: Expr, bits: int) -> Expr:
    """The same of what is not worth it by itself."""
    match value:
        case Const(value=number):
            half = 1 << BITS - 1
            return Const((int(number) + half) % (2 * half) - half, INT32)
        case Cast(argument) if argument.dtype.kind in "iub":
            return cast(argument, INT32)
        case _:
            return _low(value, bits) or cast(value, INT32)
