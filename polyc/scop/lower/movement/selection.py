"""Elements by their order: TopK.

    rank[i]  =  number of j that come before i: x[j] > x[i], or x[j] = x[i] and j < i
    pos[p]   =  max over i of (i where rank[i] = p, else nothing), for which i picks its p
    y[p]     =  x[pos[p]]

Ranks are a permutation, whatever the data: equal elements keep their order, and a NaN is larger
than all numbers. Counting is quadratic in the extent, but has no order of its own: it vectorises
and runs in parallel.
"""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.dims import normalize_axis
from polyc.scop.expr import INT64, Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    both,
    either,
    eq,
    function,
    is_float,
    isnan,
    maximum,
    select,
    wrap_index,
)
from polyc.scop.scop import identity

greater_equal, greater = function("ge"), function("gt")
less_equal, less = function("le"), function("lt")
logical_not = function("not")
INT32 = np.dtype(np.int32)


def precedes(other: Expr, mine: Expr, is_earlier: Expr, largest: bool) -> Expr:
    """Whether `other` comes before `mine`; of equal ones the earlier does, a NaN is the largest.

    Comparisons with a NaN are false, so that the opposite one, negated, is true.
    """
    at_least, above = (greater_equal, greater) if largest else (less_equal, less)
    if not is_float(mine):
        return select(is_earlier, at_least(other, mine), above(other, mine))
    most, rest = (other, mine) if largest else (mine, other)
    opposite = less_equal if largest else greater_equal
    not_behind = either(at_least(other, mine), isnan(most))
    ahead = both(logical_not(opposite(other, mine)), eq(rest, rest))
    return select(is_earlier, not_behind, ahead)


@lowers("TopK")
def lower_top_k(ctx: Lowering, node: Node) -> None:
    """Values and indices of the first K elements along the axis, by falling or rising order."""
    ref, result = ctx.ref(node.inputs[0]), ctx.type(node.outputs[0] or node.outputs[1])
    axis = normalize_axis(node.get("axis", -1), ref.rank)
    others = {f"i{k}": n for k, n in enumerate(ref.shape) if k != axis}
    extent = ref.shape[axis]

    def along(position: str) -> list[str]:
        return [position if k == axis else f"i{k}" for k in range(ref.rank)]

    count = ctx.space(node, **others, i=extent, j=extent)
    mine, other = count.load(ref, *along("i")), count.load(ref, *along("j"))
    is_earlier = less(count.index("j", INT32), count.index("i", INT32))
    before = precedes(other, mine, is_earlier, bool(node.get("largest", 1)))
    ranks = ctx.array(f"{result.name}_ranks", INT32, [*others.values(), extent])
    ctx.reduce(node, count, ranks, [*others, "i"], cast(before, INT32), "add")

    search = ctx.space(node, **others, p=result.extents[axis], i=extent)
    hit = eq(cast(search.load(ranks, *others, "i"), INT64), search.index("p"))
    found = ctx.array(f"{result.name}_found", INT32, [*others.values(), result.extents[axis]])
    place = select(hit, search.index("i", INT32), identity("max", INT32))
    ctx.reduce(node, search, found, [*others, "p"], place, "max")

    for output, name in enumerate(node.outputs):
        if not name:
            continue
        target = ctx.result(node, output)
        space = ctx.space(node, **others, p=result.extents[axis])
        position = cast(space.load(found, *others, "p"), INT64)
        if output == 0:
            source = ctx.whole(node, ref)
            at: list[str | Expr] = [*along("p")]
            at[axis] = wrap_index(maximum(position, 0), space.number(extent))
            ctx.assign(node, space, target, along("p"), space.gather(source, at))
        else:
            ctx.assign(node, space, target, along("p"), position)
