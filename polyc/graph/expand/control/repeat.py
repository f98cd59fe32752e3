"""Loop and Scan as loops over steps, where all steps are alike.

    s, y = Scan(s0, x; body)   ->   t = Step(n);  s = Carried(t, s0)
                                    new, row = body(s, Gather(x, t))
                                    s, y = Repeat(t, n, new, row)

Their number must be known, or be once sizes are; the condition of a Loop must stay true; and states
must keep their types. Whether that is so turns out by typing one step. What is not alike, such as
states that grow, is written out step by step (`graph/expand/control/unroll.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from polyc.errors import InvalidModel
from polyc.graph.bodies import Names, instantiate
from polyc.graph.compose import Composer
from polyc.graph.ir import INTERNAL, Body, Node, Tensor
from polyc.graph.shapes.checks import given
from polyc.graph.shapes.dims import normalize_axis
from polyc.graph.steps import Loop, steps_in
from polyc.types.ranges import STEP
from polyc.types.sizes import Size, bounds, names_in

Operands = Sequence[Tensor | None]


@dataclass(frozen=True)
class Typed:
    """Nodes that were typed for a trial: what they became, all types, what they need of sizes.

    rest: nodes behind them, which are not typed yet.
    """

    nodes: Sequence[Node]
    tensors: Mapping[str, Tensor]
    needs: Sequence[Size] = ()
    rest: Sequence[Node] = ()


@dataclass(frozen=True)
class Around:
    """Where a node stands: names that are in use, and what types nodes that would stand there.

    attempt: (nodes, whether they may need more of sizes than is known, whether a call may find
    some) -> what they are; None if they cannot be typed, or not before a call. decides: whether a
    call may decide which nodes are executed; finds: whether it may find sizes; cases: by the names
    of conditions that sizes decide, what is needed of these where one holds, and where not.
    """

    names: Names
    attempt: Callable[[Sequence[Node], bool, bool], Typed | None]
    decides: bool = False
    finds: bool = False
    cases: Mapping[str, tuple[tuple[Size, ...], tuple[Size, ...]]] = field(default_factory=dict)


def repeat_scan(node: Node, inputs: Operands, around: Around) -> Body | None:
    """A Scan as a loop; slices are views, and results are stacked along axis 0, then moved."""
    body: Body = node.attributes["body"]
    scanned = int(node.attributes["num_scan_inputs"])
    count = len(node.inputs) - scanned
    data, types = node.inputs[count:], inputs[count:]
    if any(t is None for t in inputs):
        return None  # a sequence, or an optional
    wanted = node.get("scan_input_axes") or (0,) * scanned
    axes = [normalize_axis(a, given(t).rank) for a, t in zip(wanted, types, strict=True)]
    if len({given(t).shape[axis] for t, axis in zip(types, axes, strict=True)}) != 1:
        return None
    c = Composer(around.names)
    steps = c("Shape", data[0], start=axes[0], end=axes[0] + 1)
    loop = Loop(c, c("Squeeze", steps, c.integers(0)), node.inputs[:count])
    backwards = node.get("scan_input_directions") or (0,) * scanned
    slices = [
        c("Gather", name, loop.position(bool(back)), axis=axis)
        for name, axis, back in zip(data, axes, backwards, strict=True)
    ]
    results = _insert(c, node, (*loop.states, *slices), body, around.names)
    typed = around.attempt(c.nodes, False, False)
    if typed is None or not _are_alike(typed, results, loop.states):
        return None
    kinds = len(results) - count
    order = node.get("scan_output_directions") or (0,) * kinds
    last, stacked = loop.finish(results[:count], results[count:], [bool(b) for b in order])
    outputs = []
    for stack, row, axis in zip(
        stacked, results[count:], node.get("scan_output_axes") or (0,) * kinds, strict=True
    ):
        rank = typed.tensors[row].rank + 1
        place = normalize_axis(axis, rank)
        moved = [*range(1, place + 1), 0, *range(place + 1, rank)]
        outputs.append(c("Transpose", stack, perm=tuple(moved)) if place else stack)
    return c.body(node.inputs, (*last, *outputs))


def repeat_loop(node: Node, inputs: Operands, around: Around) -> Body | None:
    """A Loop whose condition stays true, so many times as it says."""
    body: Body = node.attributes["body"]
    limit, going = inputs[0], inputs[1]
    if "first" in node.attributes or any(t is None for t in inputs[2:]):
        return None
    if limit is None or not limit.is_known or limit.size != 1:
        return None
    if going is not None and going.size != 1:
        raise InvalidModel(
            f"Loop {node.name!r}: its condition has shape {list(going.shape)}; give it one element"
        )
    if going is not None and (going.value is None or not going.value.item()):
        return None
    count = limit.value if limit.entries is None else limit.entries
    assert count is not None
    if steps_in(limit) or bounds(count.item())[0] < 1:
        return None
    c = Composer(around.names)
    states = node.inputs[2:]
    steps = c("Reshape", node.inputs[0], c.constant(np.array([], np.int64)))
    loop = Loop(c, steps, states)
    always = c.constant(np.array(True))
    results = _insert(c, node, (loop.step, always, *loop.states), body, around.names)
    typed = around.attempt(c.nodes, False, False)
    if typed is None or not _are_alike(typed, results[1:], loop.states):
        return None
    goes_on = typed.tensors[results[0]]
    if goes_on.value is None or not goes_on.value.item():
        return None
    kinds = len(results) - 1 - len(states)
    last, stacked = loop.finish(
        results[1 : 1 + len(states)], results[1 + len(states) :], (False,) * kinds
    )
    return c.body(node.inputs, (*last, *stacked))


def _insert(
    c: Composer, node: Node, inputs: Sequence[str], body: Body, names: Names
) -> tuple[str, ...]:
    """Write down the body for these inputs; the names of what it gives."""
    results = tuple(names.fresh(f"{output}.step") for output in body.outputs)
    c.nodes += instantiate(Node("step", node.op, tuple(inputs), results), body, names)
    return results


def _are_alike(typed: Typed, results: Sequence[str], states: Sequence[str]) -> bool:
    """Whether each step does the same to tensors of the same types."""
    tensors = typed.tensors
    if any(name not in tensors for name in (*results, *states)):
        return False  # a sequence, or an optional
    for new, old in zip(results, states, strict=False):
        if (tensors[new].dtype, tensors[new].shape) != (tensors[old].dtype, tensors[old].shape):
            return False
    for node in typed.nodes:
        if node.domain == INTERNAL and node.op == "RandomBits":
            return False  # new ones in each step
        if node.domain == INTERNAL and node.op == "Repeat" and steps_in(tensors[node.inputs[1]]):
            return False
    written = [tensors[name] for node in typed.nodes for name in node.outputs if name]
    written += [tensors[name] for name in results]
    return not any(s.startswith(STEP) for tensor in written for s in names_in(tensor.shape))
