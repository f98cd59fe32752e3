"""One of two tensors, as a condition says that only a call decides.

if c:      y[i] = t[i]
if not c:  y[i] = e[i]
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from polyc.errors import NotFixed
from polyc.graph.ir import Node
from polyc.scop.lower.context import Lowering, lowers
from polyc.types.branches import Branch, Branches, Demands, unite_demands
from polyc.types.parameters import needed_ranges
from polyc.types.ranges import assume


@lowers("Choose")
def lower_choose(ctx: Lowering, node: Node) -> None:
    """Each side is copied in its branch; `merge_copies` lets it be written there."""
    condition, *sides = node.inputs
    if ctx.step:
        raise NotFixed(
            "each step of a loop decides what it executes",
            "write the loop out, or choose by Where",
            condition,
        )
    result = ctx.result(node)
    for name, holds in zip(sides, (True, False), strict=True):
        with enter(ctx, Branch(condition, holds)):
            ctx.copy(node, ctx.ref(name), result)


@contextmanager
def enter(ctx: Lowering, branch: Branch) -> Iterator[None]:
    """Statements emitted inside are in one more branch, whose condition is a tensor of one boolean.

    The array that holds it alone decides, and stays where it is. What the branch needs of sizes is
    assumed.
    """
    tensor = branch.condition
    key = ctx.branches, tensor
    if key not in ctx.conditions:
        ref = ctx.ref(tensor)
        array = ctx.arrays[ref.array]
        if not ctx.is_whole(ref) or array.kind == "constant" or array.memory:
            seen, ref = ref, ctx.array(tensor, ref.dtype, ref.shape)
            with ctx.before_steps():
                ctx.copy(Node(tensor, "Identity", (tensor,), (tensor,)), seen, ref)
        if ctx.arrays[ref.array].kind == "temporary":
            ctx.declare_output(ref)
        ctx.conditions[key] = ref.array
    around, ctx.taken = ctx.taken, (*ctx.taken, branch)
    inside = ctx.in_branches((*ctx.branches, Branch(ctx.conditions[key], branch.holds)))
    with inside, assume(needed_ranges(ctx.demands.get(ctx.taken, ()))):
        try:
            yield
        finally:
            ctx.taken = around


def demands_by_arrays(ctx: Lowering) -> Demands:
    """What branches need of sizes, by the arrays that decide, of those that statements are in."""

    def by_arrays(taken: Branches) -> Branches:
        found: Branches = ()
        for branch in taken:
            array = ctx.conditions[found, branch.condition]
            found = (*found, Branch(array, branch.holds))
        return found

    return unite_demands({by_arrays(taken): needs} for taken, needs in ctx.demands.items())
