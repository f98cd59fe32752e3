"""Arithmetic on dimensions, axes and broadcasting: pure, shared with the lowering to statements.

A dimension is a number or a size known only at run time. Equal sizes match and a size broadcasts
with 1; whatever would need its value raises `NotFixed`.
"""

from __future__ import annotations

from collections.abc import Iterable

from polyc.errors import NotFixed
from polyc.graph.ir import Dim, Shape
from polyc.graph.shapes.checks import FIX_SIZES, RuleBroken, are_equal, require
from polyc.types.sizes import Size, bounds


def fixed(dim: Dim, what: str) -> int:
    """The dimension as a number; `NotFixed` if it is a symbol."""
    if isinstance(dim, Size):
        raise NotFixed(f"{what} is the symbolic size {str(dim)!r}, but must be known", FIX_SIZES)
    return int(dim)


def fixed_all(dims: Iterable[Dim], what: str) -> tuple[int, ...]:
    """All dimensions as numbers; `NotFixed` if one is a symbol."""
    return tuple(fixed(d, what) for d in dims)


def require_same(a: Dim, b: Dim, rule: str, way_out: str) -> None:
    """Two dimensions that must be equal; `NotFixed` where only running could tell."""
    require(are_equal(a, b), rule, a, b, way_out)


def normalize_axis(axis: int, rank: int, what: str = "axis") -> int:
    """An axis counted from the front: -1, rank 4 -> 3."""
    way_out = "axes count from 0, or backwards from -1"
    require(-rank <= axis < rank, what, f"{-rank} to {rank - 1}", axis, way_out)
    return axis % rank


def normalize_axes(axes: Iterable[int], rank: int, what: str = "axes") -> tuple[int, ...]:
    """Distinct axes counted from the front, in the order given: (-1, 0), rank 4 -> (3, 0)."""
    result = tuple(normalize_axis(a, rank, what) for a in axes)
    distinct = len(set(result)) == len(result)
    require(distinct, what, "each axis once", result, "remove the repeated axis")
    return result


def broadcast_dims(a: Dim, b: Dim) -> Dim:
    """The dimension that two broadcast to: (1, n) -> n, (n, n) -> n."""
    if a == b or b == 1:
        return a
    if a == 1:
        return b
    if isinstance(a, Size) or isinstance(b, Size):
        if are_equal(a, b):
            return a
        low, high = bounds(a - b)
        if low <= 0 <= high:  # where one of them is 1, the other one is not: that is refused
            statement = f"whether {a} and {b} broadcast is known only at run time"
            raise NotFixed(statement, FIX_SIZES, needs=(a - b, b - a))
    way_out = "make them equal, or one of them 1"
    raise RuleBroken("broadcast dimensions must be equal or 1", f"{a} or 1", b, way_out)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """NumPy's broadcasting: (5, 1, 4), (3, 1) -> (5, 3, 4)."""
    rank = max(map(len, shapes), default=0)
    result: list[Dim] = [1] * rank
    for shape in shapes:
        for i, dim in enumerate(shape, start=rank - len(shape)):
            result[i] = broadcast_dims(result[i], dim)
    return tuple(result)


def require_broadcast_to(shape: Shape, target: Shape, role: str) -> None:
    """Unidirectional broadcasting: `shape` must stretch to `target`, which must not change."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    unequal = [(d, t) for d, t in pairs if d != 1 and not are_equal(d, t)]
    if any(isinstance(d, Size) or isinstance(t, Size) for d, t in unequal):
        what = f"whether {_text(shape)} broadcasts to {_text(target)} is known only at run time"
        needs = [need for d, t in unequal for need in (d - t, t - d)]
        possible = all(bounds(need)[1] >= 0 for need in needs)
        raise NotFixed(f"{role}: {what}", FIX_SIZES, needs=(*needs,) if possible else ())
    fits = not unequal and len(shape) <= len(target)
    way_out = "make each of its last dimensions equal to the target's, or 1"
    require(fits, f"shape of {role}", f"one that broadcasts to {_text(target)}", shape, way_out)


def _text(shape: Shape) -> str:
    return f"({', '.join(map(str, shape))})"
