"""Scales taken out of sums of products, so that restored bytes are multiplied as integers.

    X: x_float[i, k] = rounded(float(int32(x[i, k]) - z) * a) x: bytes; a: one number for each sum
    W: w_float[k, j] = rounded(float(int32(w[k, j])) * b[j])  w: constant; b: as a
    S: acc[i, j] add= x_float[i, k] * w_float[k, j]
    T: y[i, j] = f(acc[i, j])
    ->
    X: x_whole[i, k] = int32(x[i, k]) - z
    S: acc[i, j] add= x_whole[i, k] * w_whole[k, j]           w_whole: a constant of integers
    T: y[i, j] = f(rounded(float(acc[i, j]) * (a * b[j])))

Afterwards `zero_points` takes z out, `narrow_factors` stores bytes, and an instruction multiplies
them. It is done where that follows.

Why the result is the one that the graph defines. Over the reals the sum of (a q) (b[j] p) over k is
a b[j] times the sum of q p. That sum is an integer, and computed exactly: it is shown here that
what the largest magnitudes of q and p, and the number of terms, can make is less than 2^31. What is
left are three roundings: of the integer to a float, of a b[j], and of their product, each by one
part in 2^24 at most; a b[j] is shown to be a normal number, and neither it nor the product
overflows. The float sum rounds each q a, each p b[j], each product and each addition. So y is what
f makes of the exact sum times 1 + e with |e| < 4 / 2^24; the float sum of n terms is only known to
be within n / 2^24 of the sum of magnitudes. No order of addition is left to choose, and `rounded`
keeps a compiler from fusing the product with an addition in f: all machines get the same bits.

A constant that only products without integers read is restored when compiling instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod

import islpy as isl
import numpy as np

from polyc.names import fresh
from polyc.poly.affine import tuple_id
from polyc.poly.parameters import is_part
from polyc.scop.expr import Call, Cast, Const, Expr, Load, rebuild
from polyc.scop.factors.fill_groups import find_filled
from polyc.scop.factors.narrow_factors import Types, holds, is_within, multiplies_bytes
from polyc.scop.factors.restored import Factor, find_factor, restore_constants, without_zero
from polyc.scop.factors.zero_points import sum_up
from polyc.scop.known_values import evaluate, fills, reads_constants
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, drop_dead, find_uses
from polyc.types.element_types import FLOAT32, INT16, INT32

LIMIT = 1 << 31
"""No sum of 32-bit integers may get so far from zero."""

SMALLEST, LARGEST = 2.0**-126, 2.0**96
"""Normal floats, and those that a product with an integer of 32 bits leaves finite."""


@dataclass(frozen=True)
class IntegerSum:
    """What is said of a sum of restored bytes: why it stays one of floats; "" if it does not."""

    origin: str
    why_not: str = ""

    def __str__(self) -> str:
        if self.why_not:
            told = "multiplies restored bytes as floats"
            return f"float_sums: '{self.origin}' {told}: {self.why_not}"
        return f"integer_sums: '{self.origin}' multiplies bytes, and sums up integers"


@dataclass(frozen=True)
class Scaled:
    """A scop before and after its scales are taken out, with the same constants restored."""

    before: Scop
    after: Scop
    notes: tuple[IntegerSum, ...]


def take_out_scales(scop: Scop, types: Types) -> Scaled:
    """The scop with sums of integers, where factors can be of `types` then."""
    notes: dict[str, IntegerSum] = {}
    while True:
        after, uses = scop, None
        for s in scop.statements:
            if _is_product(s):
                # Asked once for each scop, not for each sum: most models have no restored bytes.
                uses = uses or find_uses(after.statements)
                changed, note = _take_out(after, s, uses, types)
                if changed is not after:
                    after, uses = changed, None
                if note is not None:
                    notes.setdefault(note.origin, note)
        after = drop_dead(after) if after is not scop else scop
        restored = restore_constants(scop, after)
        if restored is scop:
            return Scaled(scop, after, tuple(notes.values()))
        scop = restored


def _is_product(s: Statement) -> bool:
    match s.value:
        case Call("mul", (Load(dynamic=()), Load(dynamic=())), dtype):
            return s.reduction == "add" and s.time is None and dtype == FLOAT32
    return False


class _Refused(Exception):
    """Why the scales of a sum stay where they are; nothing if its factors are no restored bytes."""


def _take_out(scop: Scop, s: Statement, uses: Uses, types: Types) -> tuple[Scop, IntegerSum | None]:
    """The scop with one sum of integers, and what is said of the sum."""
    assert isinstance(s.value, Call)
    factors = []
    for load in s.value.arguments:
        assert isinstance(load, Load)
        instances = load.index.as_map().intersect_domain(s.domain)  # S -> A
        found = find_factor(load, instances, s, uses, scop.arrays)
        if found is None:
            return scop, None
        factors.append(found)
    origin = s.origin[-1] if s.origin else s.name
    try:
        return _rewrite(scop, s, factors[0], factors[1], uses, types), IntegerSum(origin)
    except _Refused as refused:
        return scop, IntegerSum(origin, str(refused))


def _rewrite(scop: Scop, s: Statement, a: Factor, b: Factor, uses: Uses, types: Types) -> Scop:
    """The scop with the sum of integers; _Refused if there is none, or it does not pay."""
    acc = scop.arrays[s.array]
    starts = [w for w in uses.writes(s.array) if w is not s and w.name != s.name]
    ends = [r for r, _ in uses.reads(s.array) if not r.reduction]
    if acc.kind != "temporary" or any(
        not isinstance(w.value, Const) or w.value.value for w in starts
    ):
        raise _Refused("the sum has other parts")
    new = _New(scop, s)
    loads = new.whole(a), new.whole(b)
    arrays = {**scop.arrays, **new.arrays}
    s = replace(s, value=Call("mul", loads, INT32))
    _require_instruction(s, loads, (a, b), arrays, types)
    _require_range(s, loads, (a, b), arrays)
    scales = _find_scale(a, s), _find_scale(b, s)
    _require_normal(scales, scop.arrays)
    new.arrays[s.array] = replace(acc, dtype=INT32)
    new.replaced[s.name] = s
    for start in starts:
        new.replaced[start.name] = replace(start, value=Const(0, INT32))
    for end in ends:
        new.replaced[end.name] = replace(end, value=_scaled(end, s.array, scales, scop.arrays))
    return new.scop()


@dataclass
class _New:
    """What takes the place of a sum of floats."""

    before: Scop
    s: Statement
    arrays: dict[str, Array] = field(default_factory=dict)
    replaced: dict[str, Statement] = field(default_factory=dict)
    added: dict[str, list[Statement]] = field(default_factory=dict)

    def whole(self, factor: Factor) -> Load:
        """The load of the integers that a factor is restored from."""
        renamed: dict[str, str] = {}
        for w in factor.writers:
            if w.array not in renamed:
                taken = {**self.before.arrays, **self.arrays}
                renamed[w.array] = name = fresh(f"{w.array}_whole", taken)
                self.arrays[name] = replace(self.before.arrays[w.array], name=name, dtype=INT32)
        titles = {each.name for each in self.before.statements}
        for w in factor.writers:
            title = fresh(f"{w.name}_whole", titles)
            self._restate(w, title, renamed)
            titles.add(title)
        name = renamed[factor.load.array]
        return Load(name, _retarget(factor.load.index, name), INT32)

    def _restate(self, w: Statement, name: str, renamed: Mapping[str, str]) -> None:
        """A statement that writes integers in place of floats; a constant where they are known."""
        target = self.arrays[renamed[w.array]]
        value: Expr
        match w.value:
            case Const():
                value = Const(0, INT32)
            case Load(source, index):
                value = Load(renamed[source], _retarget(index, renamed[source]), INT32)
            case Call("rounded", (Call("mul", (Cast(whole), _)),)):
                value = without_zero(whole)
            case _:
                raise AssertionError("a factor is restored, copied, or zero")
        if fills(w, self.before.arrays[w.array]) and reads_constants(value, self.before.arrays):
            known = evaluate(value, target.shape, self.before.arrays)
            if known is not None:
                self.arrays[target.name] = replace(target, kind="constant", value=known)
                return
        id_ = tuple_id(name)
        moved = replace(
            w,
            name=name,
            domain=w.domain.set_tuple_id(id_),
            array=target.name,
            write=_retarget(w.write.set_tuple_id(isl.dim_type.in_, id_), target.name),
            value=rebuild(value, lambda e: _rename_reader(e, id_)),
        )
        self.added.setdefault(w.name, []).append(moved)

    def scop(self) -> Scop:
        """The scop with all of it; what is not read any more is still there."""
        statements: list[Statement] = []
        for each in self.before.statements:
            statements += [self.replaced.get(each.name, each), *self.added.get(each.name, [])]
        arrays = {**self.before.arrays, **self.arrays}
        return replace(self.before, statements=tuple(statements), arrays=arrays)


def _retarget(index: isl.PwMultiAff, array: str) -> isl.PwMultiAff:
    """The same places in another array."""
    return index.set_tuple_id(isl.dim_type.out, tuple_id(array))


def _rename_reader(leaf: Expr, statement: isl.Id) -> Expr:
    """A leaf of a statement's value in one of another name."""
    if isinstance(leaf, Load):
        return replace(leaf, index=leaf.index.set_tuple_id(isl.dim_type.in_, statement))
    return leaf


def _require_instruction(
    s: Statement,
    loads: tuple[Load, Load],
    factors: tuple[Factor, Factor],
    arrays: Mapping[str, Array],
    types: Types,
) -> None:
    """_Refused unless the factors will be bytes, and an instruction multiplies them."""
    known = [arrays[load.array].value for load in loads]
    pairs = [*zip(factors, known, known[::-1], strict=True)]
    if not any(p in types for p in product(*(_list_types(*pair, types) for pair in pairs))):
        shown = " and ".join(
            "/".join(sorted(map(str, factor.dtypes))) + ("" if value is None else " (a constant)")
            for factor, value in zip(factors, known, strict=True)
        )
        if all(value is None for value in known) and any(factor.has_zero for factor in factors):
            shown += ": a zero point would need sums that only a call knows"
        raise _Refused(f"no instruction multiplies {shown}")
    if not multiplies_bytes(s, loads, arrays) and find_filled(s, loads, arrays) is None:
        raise _Refused("no instruction takes several terms of its sums at a time")


def _list_types(
    factor: Factor, value: np.ndarray | None, other: np.ndarray | None, types: Types
) -> list[np.dtype]:
    """The types of memory that an instruction may read a factor in, `other` being multiplied."""
    listed = sorted({t for pair in types for t in pair}, key=str)
    if value is not None:
        return [t for t in listed if holds(t, value)]
    whole = is_within((-factor.most, factor.most), INT16)
    # A zero point goes where a constant is multiplied, or is taken off before.
    as_it_is = other is not None or not factor.has_zero
    return [t for t in listed if (whole if t == INT16 else as_it_is and factor.dtypes == {t})]


def _require_range(
    s: Statement,
    loads: tuple[Load, Load],
    factors: tuple[Factor, Factor],
    arrays: Mapping[str, Array],
) -> None:
    """_Refused unless no sum of products leaves 32 bits."""
    written = s.write.as_map()
    most = []
    for load, factor in zip(loads, factors, strict=True):
        value = arrays[load.array].value
        known = None if value is None else int(np.abs(value.astype(np.int64)).max(initial=0))
        most.append(factor.most if known is None else known)
    terms: list[int | None] = [
        extent
        for p, extent in enumerate(s.exact_extents)
        if not written.involves_dims(isl.dim_type.in_, p, 1)
    ]
    count = None if None in terms else prod(n for n in terms if n is not None)
    if count is not None and count * most[0] * most[1] < LIMIT:
        return
    for load, other in zip(loads, most[::-1], strict=True):
        value = arrays[load.array].value
        if value is not None:
            magnitudes = replace(arrays[load.array], value=np.abs(value.astype(np.int64)))
            summed = sum_up(s, load, magnitudes, load.array)
            total = summed[0].value if summed else None
            if total is not None and int(total.max(initial=0)) * other < LIMIT:
                return
    raise _Refused("its sums might leave 32 bits")


Scale = Const | tuple[str, isl.Map]
"""A literal, or an array with the map from the sums to its elements."""


def _find_scale(factor: Factor, s: Statement) -> Scale:
    """What all terms of a sum are scaled by; _Refused if that is not one number."""
    first = factor.scales[0]
    if isinstance(first, Const):
        if all(isinstance(x, Const) and x.value == first.value for x in factor.scales):
            return first
        raise _Refused("terms of one sum have different scales")
    name, instances = first
    for other in factor.scales[1:]:
        if isinstance(other, Const) or other[0] != name:
            raise _Refused("terms of one sum have different scales")
        instances = instances.union(other[1])
    sums = s.write.as_map().intersect_domain(s.domain)  # S -> acc
    place = sums.reverse().apply_range(instances).coalesce()  # acc -> scales
    if place.range().is_singleton():
        place = isl.Map.from_domain_and_range(sums.range(), place.range())
    if not place.is_single_valued():
        raise _Refused("terms of one sum have different scales")
    if not is_part(sums.range(), place.domain()):
        raise _Refused("some sums have no scale")
    return name, place


def _require_normal(scales: tuple[Scale, Scale], arrays: Mapping[str, Array]) -> None:
    """_Refused unless what is multiplied first, of the scales that are known, stays normal."""
    values = []
    for scale in scales:
        value = np.asarray(scale.value) if isinstance(scale, Const) else arrays[scale[0]].value
        if value is not None:
            values.append(np.abs(value.astype(np.float64)))
    if not values:
        raise _Refused("both scales are known in a call only")
    least = prod(float(v.min(initial=np.inf)) for v in values)
    largest = prod(float(v.max(initial=0.0)) for v in values)
    if not (least >= SMALLEST and largest <= LARGEST):
        raise _Refused("a scale is too small or too large for a float to hold what it makes")


def _scaled(
    s: Statement, sums: str, scales: tuple[Scale, Scale], arrays: Mapping[str, Array]
) -> Expr:
    """The value of a statement that reads sums, which are integers now."""

    def scale_at(scale: Scale, load: Load) -> Expr:
        if isinstance(scale, Const):
            return scale
        name, place = scale
        at = load.index.as_map().intersect_domain(s.domain).apply_range(place)
        index = isl.PwMultiAff.from_map(at).gist(s.domain)
        return Load(name, index, arrays[name].dtype)

    def leaf(expr: Expr) -> Expr:
        if not (isinstance(expr, Load) and expr.array == sums):
            return expr
        whole: Expr = Cast(replace(expr, dtype=INT32), FLOAT32)
        first, second = (scale_at(scale, expr) for scale in scales)
        if _is_known(scales[0], arrays) and _is_known(scales[1], arrays):
            product_ = Call("mul", (whole, Call("mul", (first, second), FLOAT32)), FLOAT32)
        else:
            if not _is_known(scales[0], arrays):
                first, second = second, first
            product_ = Call("mul", (Call("mul", (whole, first), FLOAT32), second), FLOAT32)
        return Call("rounded", (product_,), FLOAT32)

    return rebuild(s.value, leaf)


def _is_known(scale: Scale, arrays: Mapping[str, Array]) -> bool:
    return isinstance(scale, Const) or arrays[scale[0]].value is not None
