"""Reductions: axes became an input, and Softmax no longer flattens its tensor."""

from __future__ import annotations

from polyc.graph.ir import Node
from polyc.graph.upgrade.context import (
    Context,
    Rules,
    constant,
    helper,
    integers,
    to_inputs,
    with_attributes,
)


def normalise_along_one_axis(node: Node, context: Context) -> list[Node]:
    """Softmax(x; axis=1) -> Reshape(Softmax(Flatten(x; axis=1); axis=-1), shape(x)).

    The old forms normalise over all dimensions from `axis` on. Where all but the first of them
    have one element, as in x[N,C,1,1], that is the new form, and the axis alone is kept.
    """
    (x,) = node.inputs
    axis = node.get("axis", 1)
    known = context.types.get(x)
    if axis == -1 or (known and all(d == 1 for d in known.shape[axis % max(known.rank, 1) + 1 :])):
        return [with_attributes(node, axis=axis)]
    flat, soft, shape = (context.fresh(node, s) for s in ("flat", "normalised", "shape"))
    # Where only the first dimension is flattened onto itself, Reshape's 0 copies a symbolic batch.
    extents = ((0, *known.shape[1:]) if axis == 1 else known.shape) if known else ("?",)
    if all(isinstance(d, int) for d in extents):
        original = constant(shape, integers(extents))
    else:
        original = helper(node, "Shape", (x,), shape)
    return [
        helper(node, "Flatten", (x,), flat, axis=axis),
        helper(node, node.op, (flat,), soft, axis=-1),
        original,
        Node(node.name, "Reshape", (soft, shape), node.outputs),
    ]


_REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSumSquare",
)  # fmt: skip

RULES: Rules = {
    **dict.fromkeys(_REDUCTIONS, ((18, to_inputs(axes=integers)),)),
    "ReduceSum": ((13, to_inputs(axes=integers)),),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), ((13, normalise_along_one_axis),)),
}
