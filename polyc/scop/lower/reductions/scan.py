"""Running totals: each element continues the one before it.

Y[0] = X[0];   Y[i + 1] = Y[i] + X[i + 1]
"""

from __future__ import annotations

from polyc.graph.ir import Node
from polyc.graph.shapes.checks import constant_scalar
from polyc.graph.shapes.dims import normalize_axis
from polyc.poly.conditions import spell
from polyc.scop.expr import Const, Expr, call
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.scop import Reduction, identity
from polyc.types.sizes import bounds

OPERATORS: dict[str, Reduction] = {"CumSum": "add", "CumProd": "mul"}


@lowers(*OPERATORS)
def lower_scan(ctx: Lowering, node: Node) -> None:
    """A recurrence along the axis, from the far end if reverse; exclusive: without X[i] itself.

    Y[0] = X[0]            Y[i] = Y[i - 1] op X[i]
    Y[0] = identity        Y[i] = Y[i - 1] op X[i - 1]      exclusive
    """
    ref, result = ctx.ref(node.inputs[0]), ctx.result(node)
    operator = OPERATORS[node.op]
    axis = normalize_axis(constant_scalar(ctx.type(node.inputs[1]), "axis"), ref.rank)
    extent = ref.shape[axis]

    def along(step: str) -> list[str]:
        position = f"{extent - 1} - ({step})" if node.get("reverse") else step
        return [position if k == axis else f"i{k}" for k in range(ref.rank)]

    exclusive = bool(node.get("exclusive"))
    others = {f"i{k}": n for k, n in enumerate(ref.shape) if k != axis}
    if extent != 0:
        start = ctx.space(node, **others)
        if bounds(extent)[0] < 1:  # there may be no first element
            start = start.restricted(f"{spell(extent)} >= 1")
        first: Expr = start.load(ref, *along("0"))
        if exclusive:
            first = Const(identity(operator, ref.dtype), ref.dtype)
        ctx.assign(node, start, result, along("0"), first)
    if extent not in (0, 1):
        steps = {f"i{k}": n - 1 if k == axis else n for k, n in enumerate(ref.shape)}
        space = ctx.space(node, **steps)
        element = space.load(ref, *along(f"i{axis}" if exclusive else f"i{axis} + 1"))
        value = call(operator, space.load(result, *along(f"i{axis}")), element)
        ctx.assign(node, space, result, along(f"i{axis} + 1"), value)
