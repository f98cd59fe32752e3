"""Loops that data end: a step is compiled once, and run until its condition ends it.

    while going:  going, s, row = body(step, going, s)

How often that is turns out when the last step has run, so that there is no loop around kernels to
compile (`graph/expand/control/loop.py`), and to write the steps out would compile each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from polyc.errors import UnsupportedOp
from polyc.graph.bodies import reads_around
from polyc.graph.ir import Body, Node
from polyc.run.staged_call import Call

if TYPE_CHECKING:
    from polyc.run.plan import Plan


def run_loop(node: Node, call: Call, plan: Plan, begin: Callable[[], Call]) -> None:
    """Run a Loop, or what is left of one, with what is there in a call; its results are put there.

    plan: of the body; begin: what each step has besides what is passed to it.
    """
    body: Body = node.attributes["body"]
    count = len(body.inputs) - 2
    kinds = len(body.outputs) - 1 - count
    step = int(node.get("first", 0))
    limit, going, *states = (call.get(name) for name in node.inputs[: 2 + count])
    earlier = [call.get(name) for name in node.inputs[2 + count :]]
    rows = [earlier[k::kinds] for k in range(kinds)]
    around = {name: call.get(name) for name in reads_around(node) if call.has(name)}
    seen: set[int] = set()
    while (going is None or bool(np.asarray(going).item())) and (
        limit is None or step < int(np.asarray(limit).item())
    ):
        inner = begin()
        for name, value in around.items():
            inner.put(name, value)
        for name, value in zip(body.inputs, (np.int64(step), np.bool_(True), *states), strict=True):
            inner.put(name, np.asarray(value) if np.isscalar(value) else value)
        _run(plan, inner)
        going, *results = (inner.get(name) for name in body.outputs)
        states = results[:count]
        for listed, row in zip(rows, results[count:], strict=True):
            listed.append(np.array(row))
        call.note(inner, seen)
        step += 1
    if kinds and not rows[0]:
        raise UnsupportedOp(
            f"{node.op} {node.name!r} makes no step, so that its outputs have no type; remove it"
        )
    stacked: list[Any] = [np.stack(listed) for listed in rows]
    for name, value in zip(node.outputs, (*states, *stacked), strict=False):
        if name:
            call.put(name, value)


def _run(plan: Plan | None, call: Call) -> None:
    while plan is not None:
        plan = plan.run(call)
