"""If whose condition a call decides: both branches are compiled, and one of them is executed.

    y = If(c; then, else)   ->   t = then();  e = else();  y = Choose(c, t, e)

No node lies inside of another. What is needed for one side of a Choose alone is executed only where
the condition says so (`graph/branches.py`). The results of both must be of the same types, which
turns out by typing them; else the branch is chosen when the condition is known
(`graph/expand/control/unroll.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

import numpy as np

from polyc.errors import NotFixed
from polyc.graph.bodies import instantiate
from polyc.graph.compose import Composer
from polyc.graph.expand.control.repeat import Around, Operands, Typed
from polyc.graph.ir import INTERNAL, Body, Node

SIDES = ("then_branch", "else_branch")


def keep_branches(node: Node, inputs: Operands, around: Around) -> Body | None:
    """Both branches and a Choose for each result; None where a call must not decide.

    What both need of sizes every call must keep to. Raises NotFixed for that, for what one branch
    alone needs, and for branches that do not give the same, or are not known before a call.
    """
    condition = inputs[0]
    if not around.decides or condition is None or condition.is_constant:
        return None
    if condition.dtype != np.bool_ or not condition.is_static or condition.size != 1:
        return None
    c = Composer(around.names)
    results: list[tuple[str, ...]] = []
    typed: list[Typed] = []
    for side in SIDES:
        body: Body = node.attributes[side]
        names = tuple(around.names.fresh(f"{output}.{side}") for output in body.outputs)
        nodes = instantiate(Node(side, node.op, (), names), body, around.names)
        found = around.attempt(nodes, True)
        if found is None or any(name not in found.tensors for name in names):
            _refuse(node, f"its {side} is not known before a call")
        c.nodes += nodes
        results.append(names)
        typed.append(found)
    _check_needs(node, typed)
    for pair in zip(*results, strict=True):
        one, other = (found.tensors[name] for found, name in zip(typed, pair, strict=True))
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            _refuse(node, f"its branches give {one} and {other}")
    pairs = zip(*results, strict=True)
    chosen = [c("Choose", node.inputs[0], *pair, domain=INTERNAL) for pair in pairs]
    return c.body(node.inputs, chosen)


def _check_needs(node: Node, typed: Sequence[Typed]) -> None:
    """What both branches need of sizes is assumed from now on; there must be nothing else."""
    one, other = (found.needs for found in typed)
    both = tuple(need for need in one if need in other)
    for side, found in zip(SIDES, typed, strict=True):
        for need in found.needs:
            if need not in both:
                _refuse(node, f"its {side} alone needs that {need} is not negative")
    if both:
        raise NotFixed(f"both branches need that {both[0]} is not negative", "say so", needs=both)


def _refuse(node: Node, why: str) -> NoReturn:
    raise NotFixed(
        f"its condition is computed at run time, and {why}",
        "export the model so that the condition becomes a constant",
        node.inputs[0],
    )
