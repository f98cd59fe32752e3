"""Zero points taken out of sums of products of bytes, so that bytes are what is multiplied.

    X: x_centred[i, k] = int32(x[i, k]) - z           x: bytes; z: one number
    S: acc[i, j] add= x_centred[i, k] * W[k, j]       W: a constant
    T: y[i, j] = f(acc[i, j])
    ->
    X: x_centred[i, k] = int32(x[i, k])
    S: acc[i, j] add= x_centred[i, k] * W[k, j]
    T: y[i, j] = f(acc[i, j] - z * W_sums[j])         W_sums[j] = sum of W[k, j] over k

The sums are integers modulo 2^32, in which that is exact. Around an image, where there were zeros,
there is z. Done where `narrow_factors` can store the factors as bytes afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from polyc.names import fresh
from polyc.poly.affine import outputs, plain_iterator
from polyc.poly.parameters import is_part
from polyc.scop.expr import Call, Cast, Const, Expr, Load, rebuild
from polyc.scop.factors.narrow_factors import Types, holds, multiplies_bytes
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, find_factors, find_uses


def move_zero_points(scop: Scop, types: Types) -> Scop:
    """The scop whose sums of products, of `types` then, are of factors without zero points."""
    for s in scop.statements if types else ():
        factors = find_factors(s)
        if factors is None or not multiplies_bytes(s, factors, scop.arrays):
            continue
        for factor, other in (factors, factors[::-1]):
            moved = _move(scop, s, factor, other, types)
            if moved is not None:
                scop = moved
                break
    return scop


@dataclass(frozen=True)
class _Centred:
    """Arrays whose elements are bytes less a zero point: all statements that write them."""

    zero: Cast[Expr]
    dtype: np.dtype
    writers: tuple[Statement, ...]


def _move(scop: Scop, s: Statement, factor: Load, other: Load, types: Types) -> Scop | None:
    uses, weights = find_uses(scop.statements), scop.arrays[other.array]
    found = _find_centred(factor.array, s.name, uses, scop.arrays)
    if found is None or weights.value is None:
        return None
    fits = [t for a, t in types if a == found.dtype and holds(t, weights.value)]
    ends = [r for r, _ in uses.reads(s.array) if not r.reduction]
    if not fits or not ends or scop.arrays[s.array].kind != "temporary":
        return None
    sums = sum_up(s, other, weights, fresh(f"{other.array}_sums", scop.arrays))
    if sums is None:
        return None
    array, index = sums
    new = {w.name: _uncentred(w, found.zero) for w in found.writers}
    for end in ends:
        value = _corrected(end, s.array, found.zero, array, index)
        if value is None:
            return None
        new[end.name] = replace(end, value=value)
    statements = tuple(new.get(each.name, each) for each in scop.statements)
    return replace(scop, statements=statements, arrays={**scop.arrays, array.name: array})


def _find_centred(
    name: str, reader: str, uses: Uses, arrays: Mapping[str, Array]
) -> _Centred | None:
    """What an array, that one statement reads, is centred by; None if it is not, or not known."""
    array, writers = arrays[name], uses.writes(name)
    if array.kind != "temporary" or {s.name for s, _ in uses.reads(name)} != {reader}:
        return None
    found: _Centred | None = None
    around: list[Statement] = []
    for s in writers:
        if s.reduction or s.time is not None:
            return None
        match s.value:
            case Call("sub", (Cast(Load() as load), Cast(zero) as shift)):
                if found or load.dtype.itemsize > 1 or load.dynamic or load.dtype != zero.dtype:
                    return None
                if not _is_one_number(zero):
                    return None
                found = _Centred(shift, load.dtype, (s,))
            case Const(0):
                around.append(s)
            case Load(source) if source != name:
                inner = _find_centred(source, s.name, uses, arrays)
                if found or inner is None:
                    return None
                found = inner
            case _:
                return None
    return found and replace(found, writers=(*found.writers, *around))


def _is_one_number(zero: Expr) -> bool:
    """Whether a zero point is the same everywhere."""
    match zero:
        case Const():
            return True
        case Load(dynamic=()):
            return all(pw.is_cst() for pw in outputs(zero.index))
    return False


def _uncentred(s: Statement, zero: Cast[Expr]) -> Statement:
    """A statement that writes what was centred as it was; where there was 0 there is z."""
    match s.value:
        case Call("sub", (value, _)):
            return replace(s, value=value)
    return replace(s, value=_placed(zero, s))


def _placed(zero: Cast[Expr], s: Statement) -> Expr:
    """The zero point in another statement."""
    match zero.argument:
        case Const(value):
            return Const(value, zero.dtype)
        case Load(array, index, dtype):
            at = ", ".join(str(pw.max_val()) for pw in outputs(index))
            place = isl.MultiAff(f"{{ {s.name}[{', '.join(s.iterators)}] -> {array}[{at}] }}")
            return Cast(Load(array, place.to_pw_multi_aff(), dtype), zero.dtype)
    raise AssertionError("a zero point is a literal or an element")


def sum_up(s: Statement, factor: Load, weights: Array, name: str) -> tuple[Array, isl.Map] | None:
    """(a constant summed over what a statement sums over, its element for each sum: acc -> W_sums).

    None unless the last iterators are those of the sum, and walk whole dimensions of the constant.
    """
    written = s.write.as_map()
    count = len(s.iterators)
    summed = [p for p in range(count) if not written.involves_dims(isl.dim_type.in_, p, 1)]
    if summed != [*range(count - len(summed), count)] or not _is_product(s.domain, len(summed)):
        return None
    assert weights.value is not None
    plain = [plain_iterator(pw) for pw in outputs(factor.index)]
    walked = {d: found[0] for d, found in enumerate(plain) if found and found[0] in summed}
    over = [*walked]
    if sorted(walked.values()) != summed:
        return None
    index = factor.index.as_map().intersect_domain(s.domain)  # S -> W
    touched = index.range()
    for d in over:
        if not (touched.dim_min_val(d).is_zero() and _last(touched, d) == weights.shape[d] - 1):
            return None
    for d in reversed(over):
        index = index.project_out(isl.dim_type.out, d, 1)
    place = written.reverse().apply_range(index.set_tuple_name(isl.dim_type.out, name))
    if not place.is_single_valued():
        return None
    total = weights.value.astype(np.int64).sum(axis=tuple(over)).astype(s.value.dtype)
    array = replace(weights, name=name, dtype=s.value.dtype, shape=total.shape, value=total)
    return array, place


def _last(points: isl.Set, d: int) -> int:
    return int(points.dim_max_val(d).to_python())


def _is_product(domain: isl.Set, count: int) -> bool:
    """Whether the last iterators take the same values wherever the others are."""
    kind, size = isl.dim_type.set, domain.dim(isl.dim_type.set)
    inner = domain.project_out(kind, 0, size - count).insert_dims(kind, 0, size - count)
    outer = domain.project_out(kind, size - count, count).insert_dims(kind, size - count, count)
    whole = inner.intersect(outer).set_tuple_name(domain.get_tuple_name())
    return bool(whole.is_subset(domain))


def _corrected(
    s: Statement, sums: str, zero: Cast[Expr], array: Array, place: isl.Map
) -> Expr | None:
    """The value of a statement that reads sums, less z times the sums of the constant."""
    failed: list[bool] = []

    def leaf(expr: Expr) -> Expr:
        if not (isinstance(expr, Load) and expr.array == sums):
            return expr
        at = expr.index.as_map().intersect_domain(s.domain).apply_range(place)
        if expr.dynamic or not is_part(s.domain, at.domain()):
            failed.append(True)
            return expr
        index = isl.PwMultiAff.from_map(at).gist(s.domain)
        moved = Call("mul", (_placed(zero, s), Load(array.name, index, array.dtype)), expr.dtype)
        return Call("sub", (expr, moved), expr.dtype)

    value = rebuild(s.value, leaf)
    return None if failed else value
