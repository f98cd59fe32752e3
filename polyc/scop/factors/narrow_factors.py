"""Factors of integer products stay as narrow in memory as their values are.

    X: x_wide[i, k] = int32(x[i, k])                    x: bytes
    S: acc[i, j] add= mul(x_wide[i, k], W[k, j])        W: a constant of int32, all of it in a byte
    ->
    X: x_wide[i, k] = x[i, k]
    S: acc[i, j] add= mul(int32(x_wide[i, k]), int32(W[k, j]))

The iterator of which an instruction may take several terms becomes the last of the sum: integers
may be added in any order.

That is exact: a value that was converted from a byte, or is a literal that one holds, is the same
value when a byte is stored and converted at each use. It is done for sums of products of types that
an instruction of the target multiplies (`Vectors.products`): of bytes, or else of 16 bits, which
hold a byte less a zero point as well. The frame of zeros around an image is
narrowed with the image. Where each channel has a window of its own no instruction sums up several
terms; the image is narrowed alone, and widened in registers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

import islpy as isl
import numpy as np

from polyc.poly.affine import columns_of, unit_dimension
from polyc.scop.expr import Call, Cast, Const, Expr, Load, pull_back, rebuild
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, find_factors, find_uses
from polyc.types.element_types import INT8, UINT8

GROUP = 4
"""Terms that an instruction takes at least."""

OFTEN, LEAST_USES = 16, 8
"""Uses of an element from which on it may be copied, and below which there is as much to read as to
compute. Most that are used 16 times are not copied, as who writes them lays them out: layers of
MobileNetV2 with 16 and 24 channels, and the windows that they are fused with, take 0.75 to 0.81 of
the time with floats (Zen 3).
"""

LEAST_LANES = 8
"""Channels of which bytes are widened in vectors."""

Types = Collection[tuple[np.dtype, np.dtype]]


def narrow_factors(scop: Scop, types: Types) -> Scop:
    """The scop with factors of products in narrow types, where these are two of `types`."""
    if not types:
        return scop
    narrowing = _Narrowing(scop.arrays, find_uses(scop.statements))
    inner: dict[str, int] = {}
    for s in scop.statements:
        factors = find_factors(s)
        if factors is None:
            continue
        position = find_group(s, factors, scop.arrays)
        data = find_data(s, factors, scop.arrays) if position is None else None
        if data is not None:
            for dtype in narrowing.choices(data, {*types, (INT8, UINT8)})[:1]:
                narrowing.narrow(data.array, dtype)
        if position is None:
            continue
        wanted = product(*(narrowing.choices(factor, types) for factor in factors))
        pair = next((p for p in wanted if p in types), None)
        twice = factors[0].array == factors[1].array
        if pair is not None and (pair[0] == pair[1] or not twice):
            for factor, dtype in zip(factors, pair, strict=True):
                narrowing.narrow(factor.array, dtype)
            inner[s.name] = position
    if not narrowing.done:
        return scop
    arrays = {name: _retype(a, narrowing.done.get(name)) for name, a in scop.arrays.items()}
    moved = (move_innermost(s, inner[s.name]) if s.name in inner else s for s in scop.statements)
    statements = tuple(_rewrite(s, narrowing.done) for s in moved)
    return replace(scop, statements=statements, arrays=arrays)


def find_group(s: Statement, factors: tuple[Load, Load], arrays: Mapping[str, Array]) -> int | None:
    """The iterator of which an instruction may take several terms of the sum in each lane.

    None if there is none, or it does not pay. One factor is the same in all lanes, and the other
    moves with them. Along a loop of the sum both have neighbours in memory, or may be copied so:
    constants are, and what is read often.
    """
    sizes = s.estimated_extents
    written = s.columns[0]
    for same, moving in (factors, factors[::-1]):
        still, walks = columns_of(same.index), columns_of(moving.index)
        uses = [
            prod(n for n, column in zip(sizes, columns, strict=True) if not any(column))
            for columns in (still, walks)
        ]
        lies = [load.index.dim(isl.dim_type.out) - 1 for load in (same, moving)]
        constant = [arrays[load.array].kind == "constant" for load in (same, moving)]
        if not all(known or n >= LEAST_USES for n, known in zip(uses, constant, strict=True)):
            continue
        lanes = {
            d
            for n, *columns in zip(sizes, written, still, walks, strict=True)
            if n > 1 and any(columns[0]) and not any(columns[1])
            for d in [unit_dimension(columns[2])]
            if d is not None and (constant[1] or uses[1] >= OFTEN)
        }
        for p, (n, *columns) in enumerate(zip(sizes, written, still, walks, strict=True)):
            along, across = unit_dimension(columns[1]), unit_dimension(columns[2])
            if any(columns[0]) or along is None or across is None or not lanes - {across}:
                continue
            together = constant[0] or uses[0] >= OFTEN or along == lies[0]
            if together and n >= GROUP and (n % GROUP == 0 or n >= 2 * GROUP):
                return p
    return None


def multiplies_bytes(s: Statement, factors: tuple[Load, Load], arrays: Mapping[str, Array]) -> bool:
    """Whether factors of a sum, or one of them, are to be stored as bytes."""
    return find_group(s, factors, arrays) is not None or find_data(s, factors, arrays) is not None


def find_data(s: Statement, factors: tuple[Load, Load], arrays: Mapping[str, Array]) -> Load | None:
    """What a window is read from whose weights, which are constant, move with it.

    Of a depthwise convolution, the image: both have a channel of their own in each lane, so that no
    instruction takes several terms; but bytes are a quarter of what has to be read and written.
    """
    constant = [arrays[load.array].kind == "constant" for load in factors]
    if sum(constant) != 1:
        return None
    walks = [columns_of(load.index) for load in factors]
    together = any(
        n >= LEAST_LANES and any(columns[0]) and None not in map(unit_dimension, columns[1:])
        for n, *columns in zip(s.estimated_extents, s.columns[0], *walks, strict=True)
    )
    return factors[constant.index(False)] if together else None


def move_innermost(s: Statement, p: int) -> Statement:
    """The statement with an iterator of its sum as the last one.

    Terms are added in another order, which is the same sum of integers modulo 2^n.
    """
    order = [*(q for q in range(len(s.iterators)) if q != p), p]
    if order == sorted(order):
        return s
    old = ", ".join(f"i{k}" for k in range(len(order)))
    new = ", ".join(f"i{k}" for k in order)
    back = isl.PwMultiAff(f"{{ {s.name}[{new}] -> {s.name}[{old}] }}")  # S after -> S before
    domain = s.domain.preimage_pw_multi_aff(back)
    for k, q in enumerate(order):
        domain = domain.set_dim_name(isl.dim_type.set, k, s.iterators[q])
    return replace(
        s,
        domain=domain,
        iterators=tuple(s.iterators[q] for q in order),
        write=s.write.pullback_pw_multi_aff(back),
        value=pull_back(s.value, back),
    )


@dataclass(frozen=True)
class _Narrowing:
    """Arrays that are stored in narrower types from now on (`done`)."""

    arrays: Mapping[str, Array]
    uses: Uses
    done: dict[str, np.dtype] = field(default_factory=dict)

    def choices(self, factor: Load, types: Types) -> list[np.dtype]:
        """The types that a factor can have, short ones first, and of these the signed ones."""
        found = sorted({t for pair in types for t in pair}, key=lambda t: (t.itemsize, t.kind))
        return [t for t in found if self.fits(factor.array, t, factor.dtype)]

    def fits(self, array: str, dtype: np.dtype, wide: np.dtype) -> bool:
        """Whether all values of an array are values of a type, by what is written to it."""
        if array in self.done:
            return self.done[array] == dtype
        stored = self.arrays[array]
        if stored.dtype != wide or dtype.itemsize >= wide.itemsize:
            return False
        if stored.value is not None:
            return holds(dtype, stored.value)
        writers = self.uses.writes(array)
        if stored.kind != "temporary" or not writers:
            return False
        return all(self._writes(s, dtype, wide) for s in writers)

    def _writes(self, s: Statement, dtype: np.dtype, wide: np.dtype) -> bool:
        if s.reduction:
            return False
        match s.value:
            case Load(array) if array != s.array:
                return self.fits(array, dtype, wide)
        return is_within(find_range(s.value, self.arrays), dtype)

    def narrow(self, array: str, dtype: np.dtype) -> None:
        """Store an array, and those that it is a copy of, in a type that `fits`."""
        if array in self.done:
            return
        self.done[array] = dtype
        for s in self.uses.writes(array):
            if isinstance(s.value, Load):
                self.narrow(s.value.array, dtype)


Range = tuple[int, int]
"""The least and the largest value that there may be."""


def find_range(whole: Expr, arrays: Mapping[str, Array]) -> Range | None:
    """What a literal, or a byte less a zero point, may be as an integer; None for all else."""
    match whole:
        case Const(value):
            return int(value), int(value)
        case Cast(Const() | Load(dynamic=()) as inside) if inside.dtype.kind in "iu":
            return find_range(inside, arrays)
        case Load(array, dtype=dtype) if dtype.itemsize == 1:
            known = arrays[array].value
            if known is not None and known.size:
                return int(known.min()), int(known.max())
            return int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
        case Call("sub", (a, b)):
            first, second = find_range(a, arrays), find_range(b, arrays)
            if first and second:
                return first[0] - second[1], first[1] - second[0]
    return None


def is_within(found: Range | None, dtype: np.dtype) -> bool:
    """Whether a type has all values of a range."""
    limits = np.iinfo(dtype)
    return found is not None and limits.min <= found[0] and found[1] <= limits.max


def holds(dtype: np.dtype, values: np.ndarray) -> bool:
    """Whether a type has all of these values."""
    return values.size == 0 or is_within((int(values.min()), int(values.max())), dtype)


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
            case Cast(Load() as load) if load.dtype == dtype:
                value = load
            case Cast(inside):
                value = Cast(inside, dtype)
            case Call():
                value = Cast(value, dtype)
    return replace(s, value=value)
