"""Factors of sums of products of floats are bfloat16 in memory, where an instruction multiplies it.

    X: x[i, k] = e(i, k)                                W: a constant
    S: acc[i, j] add= mul(x[i, k], W[k, j])
    T: y[i, k] = f(x[i, k])
    ->
    X: x[i, k] = e(i, k)                                W_rounded: the nearest bfloat16
    R: x_rounded[i, k] = bfloat16(x[i, k])
    S: acc[i, j] add= mul(float32(x_rounded[i, k]), float32(W_rounded[k, j]))
    T: y[i, k] = f(x[i, k])

Without T x itself is stored so, and what is only copied to such arrays, as an image into its frame.
Sums are float32 as before, in an order in which the instruction finds its terms.

In a model of bfloat16 (`graph/widen.py`) factors are what such numbers were converted to: that is
exact, and done for every sum that gains. Other factors are rounded if the user asks for it. What
Winograd's transforms write is not: they cancel, so that the error would grow with the tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from polyc.names import fresh
from polyc.poly.affine import tuple_id
from polyc.poly.boxes import box
from polyc.scop.delinearise import split_divided
from polyc.scop.expr import Cast, Const, Expr, Load, rebuild
from polyc.scop.factors.narrow_factors import Types, find_group, move_innermost
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, drop_dead, find_factors, find_uses
from polyc.types.element_types import BFLOAT16, FLOAT32


@dataclass(frozen=True)
class Rounded:
    """A scop with rounded constants, and the same with all factors stored as they are rounded.

    origins: the nodes whose sums multiply bfloat16.
    """

    before: Scop
    after: Scop
    origins: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What is said of them."""
        told = "multiplies bfloat16, and sums up float32"
        return tuple(f"bf16_sums: '{origin}' {told}" for origin in self.origins)


def round_factors(before: Scop, after: Scop, types: Types, asked: bool) -> Rounded:
    """Two forms of a scop with factors that are bfloat16, if an instruction multiplies these.

    asked: whether factors may be rounded, or have to be such numbers already.
    """
    if (BFLOAT16, BFLOAT16) not in types:
        return Rounded(before, after)
    uses = find_uses(after.statements)
    found = (_find_sum(s, after, uses, asked) for s in after.statements)
    sums = {s.name: s for s in found if s is not None}
    if not sums:
        return Rounded(before, after)
    storing = _Storing(after, uses, sums)
    named = ((s.origin or (s.name,))[-1] for s in after.statements if s.name in sums)
    return Rounded(storing.with_constants(before), storing.rewrite(), tuple(dict.fromkeys(named)))


def _find_sum(s: Statement, scop: Scop, uses: Uses, asked: bool) -> Statement | None:
    """The sum with the iterator last of which an instruction takes two terms.

    None if its factors stay float32. One that goes through a reshape, as of the heads of attention,
    is split as it will be (`delinearise.py`).
    """
    factors = find_factors(s, "f")
    if factors is None or s.value.dtype != FLOAT32 or s.step or s.branches:
        return None
    for factor in factors:
        transformed = any(w.group for w in uses.writes(factor.array))
        if not ((asked and not transformed) or _is_exact(factor.array, scop.arrays, uses)):
            return None
    s = split_divided(s)
    factors = find_factors(s, "f")
    if factors is None:
        return None
    known = {f.array: _as_constant(scop.arrays[f.array], scop.arrays, uses) for f in factors}
    position = find_group(s, factors, known)
    return None if position is None else move_innermost(s, position)


def _as_constant(array: Array, arrays: Mapping[str, Array], uses: Uses) -> Array:
    """An array as a constant, if it is one that is converted."""
    match [w.value for w in uses.writes(array.name)]:
        case [Cast(Load(source, dynamic=()))] if arrays[source].value is not None:
            return replace(array, kind="constant")
    return array


def _is_exact(name: str, arrays: Mapping[str, Array], uses: Uses) -> bool:
    """Whether all that an array holds are bfloat16, by what is written to it."""
    array, writers = arrays[name], uses.writes(name)
    if array.value is not None:
        return bool(np.array_equal(_nearest(array.value), array.value, equal_nan=True))
    return bool(writers) and all(
        w.reduction is None and w.array != _source(w.value) and _writes_exact(w.value, arrays, uses)
        for w in writers
    )


def _writes_exact(value: Expr, arrays: Mapping[str, Array], uses: Uses) -> bool:
    match value:
        case Cast(inside):
            return inside.dtype == BFLOAT16
        case Const(number):
            return bool(_nearest(np.float32(number)) == np.float32(number))
        case Load(array, dynamic=()):
            return _is_exact(array, arrays, uses)
    return False


def _source(value: Expr) -> str:
    """The array that a value is copied from, or ""."""
    return value.array if isinstance(value, Load) else ""


def _nearest(value: np.ndarray | np.float32) -> np.ndarray:
    """float32 as rounded to bfloat16, ties to even."""
    return np.asarray(value.astype(BFLOAT16)).astype(FLOAT32)


class _Storing:
    """How the factors of sums are stored from now on.

    sums: by name, with the terms that an instruction takes last. retyped: arrays that change their
    type; renamed: those of which there are copies, and constants, by what is read then.
    """

    def __init__(self, scop: Scop, uses: Uses, sums: Mapping[str, Statement]) -> None:
        self.scop, self.uses, self.sums = scop, uses, sums
        self.retyped = self._find_retyped()
        self.renamed: dict[str, str] = {}
        taken = set(scop.arrays)
        for s in scop.statements:
            for load in s.loads if s.name in sums else ():
                if load.array not in self.retyped and load.array not in self.renamed:
                    name = self.renamed[load.array] = fresh(f"{load.array}_rounded", taken)
                    taken.add(name)

    def _find_retyped(self) -> frozenset[str]:
        """Arrays of which nobody needs more than bfloat16."""
        memory = {array.memory for array in self.scop.arrays.values()}
        found = {
            name
            for name, array in self.scop.arrays.items()
            if array.kind == "temporary" and array.dtype == FLOAT32 and self.uses.reads(name)
            if not (array.memory or name in memory or self.uses.is_accumulator(name))
        }
        while True:
            left = {
                name
                for name in found
                if all(
                    s.name in self.sums or (s.value == load and s.array in found)
                    for s, load in self.uses.reads(name)
                )
            }
            if left == found:
                return frozenset(found)
            found = left

    def with_constants(self, scop: Scop) -> Scop:
        """A scop, as it was before, of the same sums with the same rounded constants."""
        known = {n: new for n, new in self.renamed.items() if self.scop.arrays[n].value is not None}
        known = {n: new for n, new in known.items() if n in scop.arrays}
        arrays = {new: _constant(scop.arrays[n], new, FLOAT32) for n, new in known.items()}
        statements = tuple(
            _read(s, known, frozenset(), FLOAT32) if s.name in self.sums else s
            for s in scop.statements
        )
        return drop_dead(replace(scop, statements=statements, arrays={**scop.arrays, **arrays}))

    def rewrite(self) -> Scop:
        """The scop with bfloat16 in memory."""
        arrays = dict(self.scop.arrays)
        for name in self.retyped:
            arrays[name] = replace(arrays[name], dtype=BFLOAT16)
        for old, new in self.renamed.items():
            if arrays[old].value is not None:
                arrays[new] = _constant(arrays[old], new, BFLOAT16)
            else:
                arrays[new] = Array(new, BFLOAT16, arrays[old].shape, "temporary")
        statements: list[Statement] = []
        names = {s.name for s in self.scop.statements}
        waiting = {n for n in self.renamed if arrays[n].value is None}
        for s in self.scop.statements:
            if s.name in self.sums:
                # A sum stays next to its beginning.
                begins = bool(statements) and statements[-1].array == s.array
                start = [statements.pop()] if begins else []
                for old in dict.fromkeys(x.array for x in s.loads if x.array in waiting):
                    title = fresh(f"S_{self.renamed[old]}", names)
                    statements.append(self._copy(old, self.renamed[old], title, s.origin))
                    waiting.remove(old)
                    names.add(title)
                statements += start
                s = _read(self.sums[s.name], self.renamed, self.retyped, BFLOAT16)
            elif s.array in self.retyped:
                s = replace(s, value=self._rounded(s.value))
            statements.append(s)
        return drop_dead(replace(self.scop, statements=tuple(statements), arrays=arrays))

    def _rounded(self, value: Expr) -> Expr:
        """What is written to an array of bfloat16."""
        match value:
            case Const(number):
                return Const(float(_nearest(np.float32(number))), BFLOAT16)
            case Load(array) if array in self.retyped:
                return replace(value, dtype=BFLOAT16)
            case Cast(inside) if inside.dtype == BFLOAT16:
                return inside
        return Cast(value, BFLOAT16)

    def _copy(self, old: str, new: str, title: str, origin: tuple[str, ...]) -> Statement:
        """The statement that rounds what there is in an array."""
        array = self.scop.arrays[old]
        written = box(old, array.shape)
        if not array.memory and array.kind != "input":
            parts = [w.write.as_map().intersect_domain(w.domain) for w in self.uses.writes(old)]
            ranges = [part.range() for part in parts]
            written = ranges[0]
            for part in ranges[1:]:
                written = written.union(part)
        domain = written.coalesce().set_tuple_id(tuple_id(title))
        place = isl.MultiAff.identity_on_domain_space(domain.get_space()).to_pw_multi_aff()
        return Statement(
            title,
            domain,
            tuple(f"i{k}" for k in range(len(array.shape))),
            new,
            place.set_tuple_id(isl.dim_type.out, tuple_id(new)),
            Cast(Load(old, place.set_tuple_id(isl.dim_type.out, tuple_id(old)), FLOAT32), BFLOAT16),
            origin=origin,
        )


def _constant(array: Array, name: str, dtype: np.dtype) -> Array:
    """A constant of the nearest bfloat16."""
    assert array.value is not None
    return replace(array, name=name, dtype=dtype, value=_nearest(array.value).astype(dtype))


def _read(
    s: Statement, renamed: Mapping[str, str], retyped: frozenset[str], dtype: np.dtype
) -> Statement:
    """A sum of products that reads other arrays, or these in another type."""

    def leaf(expr: Expr) -> Expr:
        if not isinstance(expr, Load) or not (expr.array in renamed or expr.array in retyped):
            return expr
        name = renamed.get(expr.array, expr.array)
        index = expr.index.set_tuple_id(isl.dim_type.out, tuple_id(name))
        load = Load(name, index, dtype)
        return load if dtype == expr.dtype else Cast(load, expr.dtype)

    return replace(s, value=rebuild(s.value, leaf))
