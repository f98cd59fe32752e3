"""If whose condition a call decides: both branches are compiled, and one of them is executed.

    y = If(c; then, else)   ->   t = then();  e = else();  y = Choose(c, t, e)

No node lies inside of another. What is needed for one side of a Choose alone is executed only where
the condition says so (`graph/branches.py`). The results of both must be of the same types, which
turns out by typing them; else the branch is chosen when the condition is known
(`graph/expand/control/unroll.py`).
"""

from __future__ import annotations

import numpy as np

from polyc.graph.bodies import instantiate
from polyc.graph.compose import Composer
from polyc.graph.expand.control.repeat import Around, Operands
from polyc.graph.ir import INTERNAL, Body, Node


def keep_branches(node: Node, inputs: Operands, around: Around) -> Body | None:
    """Both branches and a Choose for each result; None where a call must not or cannot decide."""
    condition = inputs[0]
    if not around.decides or condition is None or condition.is_constant:
        return None
    if condition.dtype != np.bool_ or not condition.is_static or condition.size != 1:
        return None
    c = Composer(around.names)
    sides = []
    for name in ("then_branch", "else_branch"):
        body: Body = node.attributes[name]
        results = tuple(around.names.fresh(f"{output}.{name}") for output in body.outputs)
        c.nodes += instantiate(Node(name, node.op, (), results), body, around.names)
        sides.append(results)
    typed = around.attempt(c.nodes)
    pairs = list(zip(*sides, strict=False))
    if typed is None or len({len(results) for results in sides}) != 1:
        return None
    for pair in pairs:
        if any(name not in typed.tensors for name in pair):
            return None  # a sequence, or an optional
        one, other = (typed.tensors[name] for name in pair)
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return None
    chosen = [c("Choose", node.inputs[0], *pair, domain=INTERNAL) for pair in pairs]
    return c.body(node.inputs, chosen)
