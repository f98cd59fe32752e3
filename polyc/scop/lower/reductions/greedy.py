"""Greedy choice of boxes: one after the other is kept, unless it overlaps one that is kept already.

    c[i]  =  false
    c[i]  =  c[i] or (valid[j] and not c[j] and overlap(j, i))       for j = 0, 1, …; i > j
    y[i]  =  valid[i] and not c[i]

c[i] is whether i overlaps one that is kept, of those before j. Each j waits for the one before it;
for each all i > j are computed side by side, and nothing is where j is not kept, which the loop
over i asks once (`codegen/bound_by_data.py`). Two boxes overlap if what they share is more than a
part of what they cover; those without an area, or that only touch, share nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from polyc.graph.ir import Node
from polyc.scop.expr import BOOL, Const, Expr
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import (
    add,
    both,
    div,
    either,
    function,
    gt,
    maximum,
    minimum,
    mul,
    sub,
)
from polyc.scop.lower.space import Ref, Space

invert = function("not")


@lowers("Greedy")
def lower_greedy(ctx: Lowering, node: Node) -> None:
    """valid[r, n], low y, low x, high y, high x, area: [r, n], threshold -> kept[r, n]"""
    valid, *boxes, threshold = (ctx.ref(name) for name in node.inputs)
    rows, n = valid.shape
    covered = ctx.array(f"{node.outputs[0]}_covered", BOOL, (rows, n))
    step = replace(ctx.space(node, r=rows, j=n, i=n), where="j < i")
    is_kept = both(step.load(valid, "r", "j"), invert(step.load(covered, "r", "j")))
    covers = both(is_kept, _overlap(step, boxes, threshold))
    start = ctx.space(node, r=rows, i=n)
    ctx.assign(node, start, covered, ["r", "i"], Const(False, BOOL))
    ctx.assign(node, step, covered, ["r", "i"], either(step.load(covered, "r", "i"), covers))
    end = ctx.space(node, r=rows, i=n)
    left = both(end.load(valid, "r", "i"), invert(end.load(covered, "r", "i")))
    ctx.assign(node, end, ctx.result(node), ["r", "i"], left)


def _overlap(pairs: Space, boxes: Sequence[Ref], threshold: Ref) -> Expr:
    """Whether boxes j and i share more than a part of what they cover."""
    one, other = ([pairs.load(side, "r", at) for side in boxes] for at in ("j", "i"))
    sides = [sub(minimum(one[k + 2], other[k + 2]), maximum(one[k], other[k])) for k in (0, 1)]
    shared, areas = mul(*sides), (one[4], other[4])
    covered = sub(add(*areas), shared)
    least = reduce(minimum, (*sides, shared, areas[1], covered))  # a NaN, if there is one
    large = gt(div(shared, covered), pairs.load(threshold, *["0"] * threshold.rank))
    return both(gt(areas[0], 0.0), both(gt(least, 0.0), large))
