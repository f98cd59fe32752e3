"""Where the elements of two runs come from, when they are merged: a binary search for each.

Of a run of `half` elements and the one behind it, t and q - t are the first q of both together for
the largest t that has

    a[t - 1] >= b[q - t],    max(0, q - lengths of b) <= t <= min(q, length of a)

(the merge path: Odeh et al., 2012). The next one is then the first of what is left of a and b.
Every element is looked for by itself, so that nothing is left to the order of writes.
"""

from __future__ import annotations

import numpy as np

from polyc.graph.ir import Node
from polyc.scop.expr import INT64, Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    add,
    both,
    either,
    function,
    maximum,
    minimum,
    select,
    sub,
    wrap_index,
)
from polyc.scop.lower.space import Ref, Space
from polyc.types.sizes import bounds

INT32 = np.dtype(np.int32)

bitand, less, less_equal = function("bitand"), function("lt"), function("le")
greater_equal = function("ge")


class _Merge:
    """The merge that element p of a row is in, as data: all is counted from where it begins."""

    def __init__(self, space: Space, keys: Ref, half: Ref) -> None:
        self.space, self.keys = space, keys
        self.extent = space.number(keys.shape[1], INT32)
        self.half = space.load(half, "0")
        place = space.index("p", INT32)
        self.taken = bitand(place, sub(add(self.half, self.half), 1))  # q
        self.base = sub(place, self.taken)
        left = sub(self.extent, self.base)
        self.first = minimum(self.half, left)
        self.second = minimum(self.half, maximum(sub(left, self.half), 0))

    @property
    def least(self) -> Expr:
        return maximum(sub(self.taken, self.second), 0)

    @property
    def most(self) -> Expr:
        return minimum(self.taken, self.first)

    def of_first(self, place: Expr) -> Expr:
        """The place in the row of an element of the first run, and for the second one."""
        return add(self.base, place)

    def of_second(self, place: Expr) -> Expr:
        return add(add(self.base, self.half), place)

    def key(self, place: Expr) -> Expr:
        """The key at a place; where there is none that of another one, which decides nothing."""
        at = wrap_index(self.inside(place), self.space.number(self.keys.shape[1]))
        return self.space.gather(self.keys, ["r", at])

    def inside(self, place: Expr) -> Expr:
        """The place, or the nearest one of the row."""
        last = self.space.number(self.keys.shape[1] - 1, INT32)
        return cast(minimum(maximum(place, 0), last), INT64)


@lowers("Merged")
def lower_merged(ctx: Lowering, node: Node) -> None:
    """keys[r, n], runs of half[1] falling keys -> for each of the merged ones, where it was."""
    keys, half = ctx.whole(node, ctx.ref(node.inputs[0])), ctx.ref(node.inputs[1])
    rows, n = keys.shape
    bits = int(bounds(n)[1]).bit_length()
    sizes = np.array([1 << k for k in reversed(range(bits))], INT32)
    steps = ctx.constant(f"{node.outputs[0]}_steps", sizes)
    path = ctx.array(f"{node.outputs[0]}_path", INT32, (rows, n, len(sizes) + 1))
    start = ctx.space(node, r=rows, p=n)
    ctx.assign(node, start, path, ["r", "p", "0"], _Merge(start, keys, half).least)
    space = ctx.space(node, r=rows, p=n, k=len(sizes))
    merge, here = _Merge(space, keys, half), space.load(path, "r", "p", "k")
    there = add(here, space.load(steps, "k"))
    one = merge.key(merge.of_first(sub(there, 1)))
    other = merge.key(merge.of_second(sub(merge.taken, there)))
    ahead = both(less_equal(there, merge.most), greater_equal(one, other))
    ctx.assign(node, space, path, ["r", "p", "k + 1"], select(ahead, there, here))
    end = ctx.space(node, r=rows, p=n)
    merge, found = _Merge(end, keys, half), end.load(path, "r", "p", str(len(sizes)))
    rest = sub(merge.taken, found)
    mine, others = merge.of_first(found), merge.of_second(rest)
    first = greater_equal(merge.key(mine), merge.key(others))
    only = less_equal(merge.second, rest)
    chosen = select(both(less(found, merge.first), either(only, first)), mine, others)
    ctx.assign(node, end, ctx.result(node), ["r", "p"], merge.inside(chosen))
