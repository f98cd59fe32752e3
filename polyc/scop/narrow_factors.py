"""Factors of integer products stay as narrow in memory as their values are.

    X: x_wide[i, k] = int32(x[i, k])                    x: bytes
    S: acc[i, j] add= mul(x_wide[i, k], W[k, j])        W: a constant of int32, all of it in a byte
    ->
    X: x_wide[i, k] = x[i, k]
    S: acc[i, j] add= mul(int32(x_wide[i, k]), int32(W[k, j]))

That is exact: a value that was converted from a byte, or is a literal that one holds, is the same
value when a byte is stored and converted at each use. It is done for sums of products of types that
an instruction of the target multiplies (`Vectors.products`). The frame of zeros around an image is
narrowed with the image.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from polyc.scop.expr import Call, Cast, Const, Expr, Load, rebuild
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, find_uses

Types = Collection[tuple[np.dtype, np.dtype]]


def narrow_factors(scop: Scop, types: Types) -> Scop:
    """The scop with factors of products in narrow types, where these are two of `types`."""
    if not types:
        return scop
    narrowing = _Narrowing(scop.arrays, find_uses(scop.statements))
    for s in scop.statements:
        factors = _factors(s)
        if factors is None:
            continue
        wanted = product(*(narrowing.choices(factor, types) for factor in factors))
        pair = next((p for p in wanted if p in types), None)
        if pair is not None and (factors[0].array != factors[1].array or pair[0] == pair[1]):
            for factor, dtype in zip(factors, pair, strict=True):
                narrowing.narrow(factor.array, dtype)
    if not narrowing.done:
        return scop
    arrays = {name: _retype(a, narrowing.done.get(name)) for name, a in scop.arrays.items()}
    statements = tuple(_rewrite(s, narrowing.done) for s in scop.statements)
    return replace(scop, statements=statements, arrays=arrays)


def _factors(s: Statement) -> tuple[Load, Load] | None:
    """The two arrays whose products a statement sums up."""
    match s.value:
        case Call("mul", (Load() as a, Load() as b)) if s.reduction == "add":
            return (a, b) if s.value.dtype.kind in "iu" and not (a.dynamic or b.dynamic) else None
    return None


@dataclass(frozen=True)
class _Narrowing:
    """Arrays that are stored in narrower types from now on (`done`)."""

    arrays: Mapping[str, Array]
    uses: Uses
    done: dict[str, np.dtype] = field(default_factory=dict)

    def choices(self, factor: Load, types: Types) -> list[np.dtype]:
        """The types that a factor can have, signed ones first."""
        found = sorted({t for pair in types for t in pair}, key=lambda t: t.kind)
        return [t for t in found if self.fits(factor.array, t, factor.dtype)]

    def fits(self, array: str, dtype: np.dtype, wide: np.dtype) -> bool:
        """Whether all values of an array are values of a type, by what is written to it."""
        if array in self.done:
            return self.done[array] == dtype
        stored = self.arrays[array]
        if stored.dtype != wide or dtype.itemsize >= wide.itemsize:
            return False
        if stored.value is not None:
            return _holds(dtype, stored.value)
        writers = self.uses.writes(array)
        if stored.kind != "temporary" or not writers:
            return False
        return all(self._writes(s, dtype, wide) for s in writers)

    def _writes(self, s: Statement, dtype: np.dtype, wide: np.dtype) -> bool:
        if s.reduction:
            return False
        match s.value:
            case Const(value):
                return _holds(dtype, np.asarray(value))
            case Cast(Load() as load):
                return load.dtype == dtype
            case Load(array) if array != s.array:
                return self.fits(array, dtype, wide)
        return False

    def narrow(self, array: str, dtype: np.dtype) -> None:
        """Store an array, and those that it is a copy of, in a type that `fits`."""
        if array in self.done:
            return
        self.done[array] = dtype
        for s in self.uses.writes(array):
            if isinstance(s.value, Load):
                self.narrow(s.value.array, dtype)


def _holds(dtype: np.dtype, values: np.ndarray) -> bool:
    limits = np.iinfo(dtype)
    return bool(values.size == 0 or (values.min() >= limits.min and values.max() <= limits.max))


def _retype(array: Array, dtype: np.dtype | None) -> Array:
    if dtype is None:
        return array
    value = None if array.value is None else array.value.astype(dtype)
    return replace(array, dtype=dtype, value=value)


def _rewrite(s: Statement, types: Mapping[str, np.dtype]) -> Statement:
    """A statement that reads and writes arrays in their new types."""

    def leaf(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.array in types:
            return Cast(replace(expr, dtype=types[expr.array]), expr.dtype)
        return expr

    value = rebuild(s.value, leaf)
    dtype = types.get(s.array)
    if dtype is not None:
        match value:
            case Const(number):
                value = Const(number, dtype)
            case Cast(Load() as load):
                value = load
    return replace(s, value=value)
