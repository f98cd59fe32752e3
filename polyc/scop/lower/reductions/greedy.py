"""Greedy choice of boxes: one after the other is kept, unless it overlaps one that is kept already.

    s[j, i]  =  whether i overlaps one of the first j that are kept             (i >= j)
    s[j+1, i]  =  s[j, i] or (overlap(j, i) and valid[j] and not s[j, j])       (i > j)
    y[i]  =  valid[i] and not s[i, i]

Each step waits for the one before it; within a step all i > j are computed side by side. Two boxes
overlap if what they share is more than a part of what they cover; those without an area, or that
only touch, share nothing.
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
    overlap = ctx.array(f"{node.outputs[0]}_overlap", BOOL, (rows, n, n))
    pairs = ctx.space(node, r=rows, j=n, i=n)  # more than is read, but in whole vectors
    ctx.assign(node, pairs, overlap, ["r", "j", "i"], _overlap(pairs, boxes, threshold))
    state = ctx.array(f"{node.outputs[0]}_covered", BOOL, (rows, n, n))
    start = ctx.space(node, r=rows, i=n)
    ctx.assign(node, start, state, ["r", "0", "i"], Const(False, BOOL))
    step = replace(ctx.space(node, r=rows, j=n - 1, i=n), where="j < i")
    is_kept = both(step.load(valid, "r", "j"), invert(step.load(state, "r", "j", "j")))
    covers = both(step.load(overlap, "r", "j", "i"), is_kept)
    value = either(step.load(state, "r", "j", "i"), covers)
    ctx.assign(node, step, state, ["r", "j + 1", "i"], value)
    end = ctx.space(node, r=rows, i=n)
    left = both(end.load(valid, "r", "i"), invert(end.load(state, "r", "i", "i")))
    ctx.assign(node, end, ctx.result(node), ["r", "i"], left)


def _overlap(pairs: Space, boxes: Sequence[Ref], threshold: Ref) -> Expr:
    """Whether boxes j and i share more than a part of what they cover."""
    one, other = ([pairs.load(side, "r", at) for side in boxes] for at in ("j", "i"))
    sides = [sub(minimum(one[k + 2], other[k + 2]), maximum(one[k], other[k])) for k in (0, 1)]
    shared, areas = mul(*sides), (one[4], other[4])
    covered = sub(add(*areas), shared)
    positive = [gt(size, 0.0) for size in (*sides, shared, *areas, covered)]
    indices = ["0"] * threshold.rank
    return reduce(both, positive, gt(div(shared, covered), pairs.load(threshold, *indices)))
