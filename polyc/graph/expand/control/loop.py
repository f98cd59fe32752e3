"""Loop as a loop around kernels, where the number of steps is known before the first one.

Either its condition stays true and it has a limit; or what it counts says when it ends
(`graph/expand/control/count.py`).
"""

from __future__ import annotations

import numpy as np

from polyc.errors import InvalidModel, PolycError
from polyc.graph.compose import Composer
from polyc.graph.expand.control.count import Count, compose_states, count_steps
from polyc.graph.expand.control.repeat import Around, Operands, are_alike, insert_step
from polyc.graph.ir import Body, Node
from polyc.graph.steps import Loop, steps_in
from polyc.types.sizes import bounds


def repeat_loop(node: Node, inputs: Operands, around: Around) -> Body | None:
    """A Loop as a loop over steps; None if it has none, or may have any number of them."""
    limit, going = inputs[0], inputs[1]
    if "first" in node.attributes or any(t is None for t in inputs[2:]):
        return None
    if limit is not None and (not limit.is_known or limit.size != 1 or steps_in(limit)):
        return None
    if going is not None and going.size != 1:
        raise InvalidModel(
            f"Loop {node.name!r}: its condition has shape {list(going.shape)}; give it one element"
        )
    if going is not None and (going.value is None or not going.value.item()):
        return None
    if limit is not None:
        count = limit.value if limit.entries is None else limit.entries
        assert count is not None
        if bounds(count.item())[0] < 1:
            return None
        forever = _repeat(
            node, inputs, around, Count(count.item(), {}, frozenset()), node.inputs[0]
        )
        if forever is not None:
            return forever
    counted = count_steps(node, inputs, around)
    if counted is None or bounds(counted.steps)[0] < 1:
        return None
    return _repeat(node, inputs, around, counted, around.number(counted.steps))


def _repeat(node: Node, inputs: Operands, around: Around, count: Count, steps: str) -> Body | None:
    """The loop of so many steps, if each does the same; states that are known are not carried."""
    body: Body = node.attributes["body"]
    c, states = Composer(around.names), node.inputs[2:]
    number = c("Reshape", steps, c.constant(np.array([], np.int64)))
    carried = [k for k in range(len(states)) if k not in count.strides and k not in count.kept]
    loop = Loop(c, number, [states[k] for k in carried])
    known = compose_states(c, states, inputs[2:], loop.step, count)
    current = known | dict(zip(carried, loop.states, strict=True))
    ordered = [current[k] for k in range(len(states))]
    always = c.constant(np.array(True))
    going, *results = insert_step(c, node, (loop.step, always, *ordered), body, around.names)
    typed = around.attempt(c.nodes, False, False)
    after = [results[k] for k in carried]
    stacks = results[len(states) :]
    if isinstance(typed, PolycError) or not are_alike(typed, (*after, *stacks), loop.states):
        return None
    if not known:
        goes_on = typed.tensors[going]
        if goes_on.value is None or not goes_on.value.item():
            return None
    last, stacked = loop.finish(after, stacks, (False,) * len(stacks))
    final = compose_states(c, states, inputs[2:], number, count) | dict(
        zip(carried, last, strict=True)
    )
    return c.body(node.inputs, (*(final[k] for k in range(len(states))), *stacked))
