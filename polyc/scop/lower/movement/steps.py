"""Loops over steps: states in an array with a row for each step, results stacked.

    H[0, i] = h0[i]                     before the loop
    h = H[step]                         a view
    H[step + 1, i] = new[i]             at the end of each step
    Y[step, i] = result[i]

Each element is written once: if something has written what a step reads, it was the right one.
"""

from __future__ import annotations

from polyc.graph.ir import Node, Tensor
from polyc.graph.steps import read_extent, step_of
from polyc.poly.conditions import spell
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.movement.views import view
from polyc.scop.lower.space import Ref
from polyc.types.sizes import Extent


@lowers("Carried")
def lower_carried(ctx: Lowering, node: Node) -> None:
    """h = H[step]"""
    step = ctx.step
    assert step is not None
    tensor = ctx.type(node.outputs[0])
    with ctx.before_steps():
        states = _rows(ctx, tensor.name, ctx.ref(node.inputs[1]), step.steps + 1)
        ctx.copy(node, ctx.ref(node.inputs[1]), _row(states, "0"))
    ctx.carried[step.name, node.attributes["state"]] = states
    ctx.bind(tensor.name, _row(states, step.name))


@lowers("Repeat")
def lower_repeat(ctx: Lowering, node: Node) -> None:
    """The ends of a step, and views of what is there after the last one."""
    step = step_of(ctx.type(node.inputs[0]))
    steps = read_extent(ctx.type(node.inputs[1]))
    count = int(node.attributes["states"])
    for k, name in enumerate(node.inputs[2:]):
        output, value = node.outputs[k], ctx.ref(name)
        if k < count:
            states = ctx.carried.get((step, k))
            if states is None:  # no step reads it, and only the last one counts
                states = _rows(ctx, output, value, steps + 1)
            ctx.copy(node, value, _row(states, f"{step} + 1"))
            ctx.bind(output, _row(states, spell(steps)))
        elif ctx.is_used(output):
            stacked = _rows(ctx, output, value, steps)
            ctx.copy(node, value, _row(stacked, _place(node, k - count, step, steps)))
            ctx.bind(output, stacked)


def _place(node: Node, k: int, step: str, steps: Extent) -> str:
    """Where a step puts its result."""
    backwards = node.attributes["backwards"][k]
    return f"{spell(steps)} - 1 - {step}" if backwards else step


def _rows(ctx: Lowering, name: str, row: Ref, count: Extent) -> Ref:
    """An array of so many rows like one."""
    return ctx.array(name, row.dtype, Tensor(name, row.dtype, (count, *row.shape)).extents)


def _row(array: Ref, index: str) -> Ref:
    """One row of an array, as a tensor of its own."""
    rest = [f"i{k}" for k in range(array.rank - 1)]
    return array.through(view([index, *rest], array.rank - 1), array.shape[1:])
