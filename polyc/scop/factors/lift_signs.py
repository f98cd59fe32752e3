"""Signed bytes kept 128 higher, as unsigned ones, where they are multiplied by constants.

    Q: q[i, k] = v[i, k]                                q: signed bytes; v: what is quantised
    X: x_whole[i, k] = int32(q[i, k]) - 3
    S: acc[i, j] add= x_whole[i, k] * W[k, j]           W: a constant
    ->
    Q: q[i, k] = uint8(v[i, k]) + 128                   modulo 256
    X: x_whole[i, k] = int32(q[i, k]) - 131
    S: the same

Instructions multiply unsigned bytes by signed ones: if both were signed, each use of a byte would
have to be moved by 128. Who stores it moves it once, in place of that, and what this adds to the
sums is known when compiling (`zero_points.py`). An array is left as it is if its bytes leave the
model, or are read otherwise than to make integers of them, or to hand them on to such an array.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from polyc.scop.expr import Call, Cast, Const, Expr, Load, children, with_children
from polyc.scop.factors.narrow_factors import Types
from polyc.scop.factors.zero_points import sum_up
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, find_factors, find_uses
from polyc.types.element_types import INT8, INT32, UINT8

LIFT = 128
"""From the signed bytes to the unsigned ones."""


def lift_signs(scop: Scop, types: Types) -> Scop:
    """The scop whose signed bytes are unsigned ones where an instruction takes these better."""
    if (UINT8, INT8) not in types:
        return scop
    uses = find_uses(scop.statements)
    lifted = _find_lifted(scop, uses)
    if not lifted:
        return scop
    arrays = {n: replace(a, dtype=UINT8) if n in lifted else a for n, a in scop.arrays.items()}
    statements = tuple(_restate(s, lifted) for s in scop.statements)
    return replace(scop, statements=statements, arrays=arrays)


def _find_lifted(scop: Scop, uses: Uses) -> frozenset[str]:
    """The arrays of signed bytes to keep as unsigned ones."""
    wanted, refused = set[str](), set[str]()
    for s in scop.statements:
        factors = find_factors(s)
        for factor, other in (factors, factors[::-1]) if factors else ():
            weights = scop.arrays[other.array]
            moves = weights.value is not None and sum_up(s, other, weights, other.array) is not None
            for array, has_known_zero in _sources(factor.array, uses):
                (wanted if moves and has_known_zero else refused).add(array)
    able = {n for n in uses.writers if n not in refused and _is_able(n, scop.arrays, uses)}
    while True:
        # Who hands bytes on as they are is lifted together with whom they are handed to.
        alone = {n for n in able if not able.issuperset(_handed_to(n, uses))}
        if not alone:
            return frozenset(_reach(wanted & able, able, uses))
        able -= alone


def _reach(start: Collection[str], able: Collection[str], uses: Uses) -> set[str]:
    """Arrays, and all those able ones that bytes are handed to, or come from."""
    found, waiting = set(start), [*start]
    while waiting:
        name = waiting.pop()
        new = ({*_handed_to(name, uses), *_handed_from(name, uses)} & {*able}) - found
        found |= new
        waiting += new
    return found


def _sources(name: str, uses: Uses) -> Iterator[tuple[str, bool]]:
    """The arrays of signed bytes that integers are made of, and whether their zero is known."""
    for w in uses.writes(name):
        match w.value:
            case Load(array) if array != name and w.value.dtype == INT32:
                yield from _sources(array, uses)
            case Call("sub", (Cast(Load(array, dtype=dtype)), zero)) if dtype == INT8:
                yield array, _known(zero) is not None
            case Cast(Load(array, dtype=dtype)) if dtype == INT8:
                yield array, True


def _is_able(name: str, arrays: Mapping[str, Array], uses: Uses) -> bool:
    """Whether nobody else sees the bytes, and all who read them make integers of them."""
    array = arrays[name]
    if array.dtype != INT8 or array.kind != "temporary" or array.memory:
        return False
    if any(other.memory == name for other in arrays.values()):
        return False
    return all(
        s.time is None and (s.array != name or s.reduction in (None, "max", "min"))
        for s in (*uses.writes(name), *(reader for reader, _ in uses.reads(name)))
    ) and not any(
        use == "other" and load.array == name
        for s, _ in uses.reads(name)
        for load, use in _find_uses(s.value, s.value.dtype == INT8)
    )


def _find_uses(value: Expr, handed: bool) -> Iterator[tuple[Load, str]]:
    """What becomes of each element that a value loads: "handed" on as it is, an "integer" of 32
    bits, or something "other"."""
    match value:
        case Load():
            yield value, "handed" if handed and not value.dynamic else "other"
        case Cast(Load(dynamic=()) as load, dtype) if dtype == INT32:
            yield load, "integer"
            return
    moved = _moved(value) if handed else ()
    for k, part in enumerate(children(value)):
        yield from _find_uses(part, k in moved)


def _moved(value: Expr) -> Collection[int]:
    """The arguments of which a value is one, as it is."""
    match value:
        case Call("select"):
            return (1, 2)
        case Call("max" | "min"):
            return (0, 1)
    return ()


def _handed_to(name: str, uses: Uses) -> Iterator[str]:
    """The arrays that have bytes of an array as they are."""
    for s, load in uses.reads(name):
        if (load, "handed") in _find_uses(s.value, s.value.dtype == INT8):
            yield s.array


def _handed_from(name: str, uses: Uses) -> Iterator[str]:
    """The arrays whose bytes an array has as they are."""
    for w in uses.writes(name):
        found = _find_uses(w.value, w.value.dtype == INT8)
        yield from (load.array for load, use in found if use == "handed")


@dataclass(frozen=True)
class _Lifting:
    """Expressions over arrays of which some are lifted."""

    arrays: frozenset[str]

    def bytes(self, value: Expr) -> Expr:
        """What is written to an array that is lifted."""
        moved = _moved(value)
        match value:
            case Load(array) if array in self.arrays:
                return replace(value, dtype=UINT8)
            case Const(number):
                return Const(int(number) + LIFT, UINT8)
            case Call(function, parts) if moved:
                lifted = (
                    self.bytes(part) if k in moved else self.integers(part)
                    for k, part in enumerate(parts)
                )
                return Call(function, tuple(lifted), UINT8)
        whole = Cast(self.integers(value), UINT8)
        return Call("add", (whole, Const(LIFT, UINT8)), UINT8)

    def integers(self, value: Expr) -> Expr:
        """An expression that makes integers of bytes."""
        match value:
            case Call("sub", (Cast(Load(array) as load, dtype), zero)) if array in self.arrays:
                shift = _known(zero)
                if shift is not None:
                    return _less(load, shift + LIFT, dtype)
            case Cast(Load(array) as load, dtype) if array in self.arrays:
                return _less(load, LIFT, dtype)
        return with_children(value, tuple(map(self.integers, children(value))))


def _known(zero: Expr) -> int | None:
    match zero:
        case Const(value) | Cast(Const(value)):
            return int(value)
    return None


def _less(load: Load, zero: int, dtype: np.dtype) -> Expr:
    """A byte that is lifted, less what it is lifted by: nothing, if it was kept from -128 on."""
    byte = Cast(replace(load, dtype=UINT8), dtype)
    if zero == 0:
        return byte
    return Call("sub", (byte, Cast(Const(zero, UINT8), dtype)), dtype)


def _restate(s: Statement, arrays: frozenset[str]) -> Statement:
    lifting = _Lifting(arrays)
    if s.array in arrays:
        return replace(s, value=lifting.bytes(s.value))
    if not any(load.array in arrays for load in s.loads):
        return s
    return replace(s, value=lifting.integers(s.value))
