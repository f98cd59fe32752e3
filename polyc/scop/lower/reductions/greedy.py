"""Greedy choice: one after the other is kept, unless it overlaps one that is kept already.

    s[j, i]  =  whether i overlaps one of the first j that are kept             (i >= j)
    s[j+1, i]  =  s[j, i] or (overlap[j, i] and valid[j] and not s[j, j])       (i > j)
    y[i]  =  valid[i] and not s[i, i]

Each step waits for the one before it; within a step all i > j are computed side by side.
"""

from __future__ import annotations

from dataclasses import replace

from polyc.graph.ir import Node
from polyc.scop.expr import BOOL, Const
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import both, either, function

invert = function("not")


@lowers("Greedy")
def lower_greedy(ctx: Lowering, node: Node) -> None:
    """valid[r, n], overlap[r, n, n] -> kept[r, n]"""
    valid, overlap = (ctx.ref(name) for name in node.inputs)
    rows, n = valid.shape
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
