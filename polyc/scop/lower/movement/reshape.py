"""Reshape, Flatten, Squeeze, Unsqueeze: the same elements, in the same order, counted differently.

[2, 3, 4] -> [6, 4]     { [i0, i1] -> [floor(i0/3), i0 mod 3, i1] }
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import islpy as isl

from polyc.errors import NotFixed
from polyc.graph.ir import Node
from polyc.poly.affine import is_simple
from polyc.poly.parameters import read
from polyc.scop.lower.context import Lowering, lowers
from polyc.types.follows import names_of
from polyc.types.parameters import settled
from polyc.types.sizes import Extent, Size


@lowers("Reshape", "Flatten", "Squeeze", "Unsqueeze")
def lower_reshape(ctx: Lowering, node: Node) -> None:
    """A view; the output's shape says all that matters. Of a view in many pieces it is a copy.

    What would multiply sizes known only at run time is the same memory under another shape.
    """
    ref = ctx.ref(node.inputs[0])
    shape = ctx.type(node.outputs[0]).extents
    if shape != ref.shape:
        old, new = (tuple(map(settled, extents)) for extents in (ref.shape, shape))
        try:
            view = read(isl.PwMultiAff, reshape_view(cast(Ints, old), cast(Ints, new)))
        except NotFixed:
            ref = ctx.regrouped(node, ref, shape)
        else:
            ref = ref if is_simple(ref.map, view) else ctx.whole(node, ref)
            ref = ref.through(view, shape)
    ctx.bind(node.outputs[0], ref)


Ints = tuple[int, ...]


@dataclass(frozen=True)
class Dimension:
    """One dimension in row-major order: a step along it moves by `stride`, all of it by `span`."""

    name: str
    stride: int
    span: int


def reshape_view(old: Sequence[int], new: Sequence[int]) -> str:
    """{ [new indices] -> [old indices] } of equal row-major positions; as few divisions as can be.

        [4, 6] -> [2, 2, 6]     { [i0, i1, i2] -> [2*i0 + i1, i2] }
        [4, 6] -> [6, 4]        { [i0, i1] -> [floor((4*i0 + i1)/6), (4*i0 + i1) mod 6] }

    The spans at which a dimension ends cut the position into digits. Where each cut divides the
    next, a new index is a few whole digits, and so is an old index. Between two cuts that both
    shapes share but whose inner cuts do not divide each other, the position itself is needed.
    """
    names = [f"i{k}" for k in range(len(new))]
    formulas = ["0"] * len(old)  # of an empty tensor nothing is read
    if 0 not in old:
        formulas = _regroup(old, new, names)
    return f"{{ [{', '.join(names)}] -> [{', '.join(formulas)}] }}"


def _regroup(old: Sequence[int], new: Sequence[int], names: Sequence[str]) -> list[str]:
    """For each old dimension its index; groups of dimensions of equal size stand for themselves.

    [n, 12, 64] -> [n, 768]     n by itself, and [12, 64] -> [768]
    """
    if not any(isinstance(extent, Size) for extent in (*old, *new)):
        return _old_indices(old, _dimensions(names, new))
    formulas: list[str] = []
    i, j = len(old), len(new)
    while i or j:
        here, there = _group_end(old[:i], new[:j])
        groups = [_without_sizes(old[here:i], new[there:j], value) for value in _STAND_INS]
        if any(math.prod(one) != math.prod(other) for one, other in groups):
            raise _regroups(old, new)  # equal for the sizes that a call may have, and no others
        found, other = (_old_indices(o, _dimensions(names[there:j], n)) for o, n in groups)
        if found != other:
            raise _regroups(old, new)
        formulas = [*found, *formulas]
        i, j = here, there
    return formulas


def _group_end(old: Sequence[int], new: Sequence[int]) -> tuple[int, int]:
    """Where the shortest group of last dimensions begins that has one size, in both shapes."""
    spans = {math.prod(old[k:]): k for k in range(len(old)) if old[k] != 1}
    for k in reversed(range(len(new))):
        if new[k] != 1 and (span := math.prod(new[k:])) in spans:
            return spans[span], k
    return 0, 0


_STAND_INS = (1 << 61) - 1, (1 << 89) - 1
"""Primes that divide no extent: what a size is to the arithmetic of digits.

A formula that is the same with both does not depend on the size.
"""


def _without_sizes(
    old: Sequence[int], new: Sequence[int], value: int
) -> tuple[list[int], list[int]]:
    """The dimensions of a group, with a number for the one size in it."""
    sizes = {n for n in (*old, *new) if isinstance(n, Size)}
    if len(sizes) == 1:  # of however many names: nothing looks inside
        return [value if n in sizes else n for n in old], [value if n in sizes else n for n in new]
    values = dict.fromkeys(names_of((*old, *new)), value)
    if len(values) > 1:
        raise _regroups(old, new)
    return [int(_at(n, values)) for n in old], [int(_at(n, values)) for n in new]


def _at(extent: Extent, values: Mapping[str, int]) -> Extent:
    return extent.at(values) if isinstance(extent, Size) else extent


def _regroups(old: Sequence[int], new: Sequence[int]) -> NotFixed:
    return NotFixed(
        f"the reshape of {tuple(old)} to {tuple(new)} divides by a size known only at run time",
        "give the model's inputs fixed sizes",
    )


def _old_indices(old: Sequence[int], new: Sequence[Dimension]) -> list[str]:
    """For each old dimension its index, as a formula over the new ones."""
    dimensions = _dimensions([str(k) for k in range(len(old))], old)
    shared = _cuts(dimensions) & _cuts(new)
    formulas = []
    for dimension in dimensions:
        low = max((c for c in shared if c <= dimension.stride), default=1)
        high = min((c for c in shared if c >= dimension.span), default=1)
        group = [d for d in new if d.stride >= low and d.span <= high and d.span > d.stride]
        inner = [d for d in dimensions if d.stride >= low and d.span <= high]
        cuts = sorted(_cuts(group) | _cuts(inner) | {low, high})
        if all(b % a == 0 for a, b in pairwise(cuts)):
            formulas.append(_join_digits(dimension, group, cuts))
        else:
            formulas.append(_divide_position(dimension, group, low, high))
    return formulas


def _join_digits(dimension: Dimension, group: Sequence[Dimension], cuts: Sequence[int]) -> str:
    """The old index as a sum of digits of new indices."""
    terms = []
    for low, high in pairwise(cuts):
        if dimension.stride <= low and high <= dimension.span:
            (source,) = (d for d in group if d.stride <= low and high <= d.span)
            digit = _digit(source.name, low // source.stride, high // source.stride, source)
            terms.append(_times(low // dimension.stride, digit))
    return " + ".join(reversed(terms)) or "0"


def _divide_position(dimension: Dimension, group: Sequence[Dimension], low: int, high: int) -> str:
    """The old index out of the position within the group."""
    terms = [_times(d.stride // low, d.name) for d in group]
    whole = Dimension(f"({' + '.join(terms)})", low, high)
    return _digit(whole.name, dimension.stride // low, dimension.span // low, whole)


def _digit(index: str, low: int, high: int, source: Dimension) -> str:
    """floor((index mod high) / low), without what cannot change it."""
    part = index if source.stride * high == source.span else f"({index} mod {high})"
    return part if low == 1 else f"floor({part}/{low})"


def _times(factor: int, term: str) -> str:
    return term if factor == 1 else f"{factor}*{term}"


def _cuts(dimensions: Sequence[Dimension]) -> set[int]:
    return {1, *(d.stride for d in dimensions), *(d.span for d in dimensions)}


def _dimensions(names: Sequence[str], shape: Sequence[int]) -> list[Dimension]:
    spans = [math.prod(shape[k:]) for k in range(len(shape) + 1)]
    return [Dimension(n, spans[k + 1], spans[k]) for k, n in enumerate(names)]
