"""Where the p-th true element of a row is, from how many there are up to each: a binary search.

q[0]  =  0                                                      rows are left out
q[k]  =  q[k-1] + s where total[q[k-1] + s - 1] <= p, else q[k-1]          s = …, 4, 2, 1
"""

from __future__ import annotations

import math

import numpy as np

from polyc.graph.ir import Node
from polyc.scop.expr import INT64, Const, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import add, both, function, minimum, select, sub, wrap_index
from polyc.types.sizes import bounds

INT32 = np.dtype(np.int32)

LONGEST = 40
"""Bits of the longest row: more elements no tensor has (`graph/shapes`)."""

less_equal = function("le")


@lowers("Places")
def lower_places(ctx: Lowering, node: Node) -> None:
    """totals[r, n] -> the least i with totals[r, i] > p, for each p; n - 1 where there is none."""
    totals = ctx.whole(node, ctx.ref(node.inputs[0]))
    rows, n = totals.shape
    result = ctx.result(node)
    wanted = result.shape[1]
    most = bounds(n)[1]
    bits = LONGEST if math.isinf(most) else min(int(most).bit_length(), LONGEST)
    kind = INT32 if bits <= 30 else INT64
    sizes = np.array([1 << k for k in reversed(range(bits))], kind)
    steps = ctx.constant(f"{node.outputs[0]}_steps", sizes)
    place = ctx.array(f"{node.outputs[0]}_behind", kind, (rows, wanted, len(sizes) + 1))
    start = ctx.space(node, r=rows, p=wanted)
    ctx.assign(node, start, place, ["r", "p", "0"], Const(0, kind))
    space = ctx.space(node, r=rows, p=wanted, k=len(sizes))
    here, step = space.load(place, "r", "p", "k"), space.load(steps, "k")
    # All up to this one are too few if its total is: then the place is behind it.
    there, last = sub(add(here, step), 1), space.number(n - 1, kind)
    at = wrap_index(cast(minimum(there, last), INT64), space.number(n))
    seen = space.gather(totals, ["r", at])
    few = both(less_equal(seen, space.index("p", seen.dtype)), less_equal(there, last))
    value = select(few, add(here, step), here)
    ctx.assign(node, space, place, ["r", "p", "k + 1"], value)
    end = ctx.space(node, r=rows, p=wanted)
    found = minimum(end.load(place, "r", "p", str(len(sizes))), end.number(n - 1, kind))
    ctx.assign(node, end, result, ["r", "p"], cast(found, INT64))
