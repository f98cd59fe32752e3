"""Nodes that stand for several others: functions of the standard, and control flow that is known.

Where this compiler has no rule of its own for an operator, what the standard says about it in
terms of others is what it compiles. `expand_node` is asked during type inference, when types and
many values are known. What comes out is ordinary nodes, so that all that follows, fusion above
all, sees what there is to compute.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyc.graph.bodies import Names, instantiate
from polyc.graph.functions import find_function
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes import is_supported
from polyc.graph.unroll import CONTROL_FLOW


def expand_node(
    node: Node, inputs: Sequence[Tensor | None], names: Names
) -> tuple[Node, ...] | None:
    """The nodes that a node stands for, in order; None if it stands for itself.

    `inputs` are its operands' types, with values where they are known. The new nodes write
    `node.outputs`, and may have to be expanded again. Raises UnsupportedOp for control flow that
    is decided at run time.
    """
    if node.domain == "" and is_supported(node.op):
        return None
    control = CONTROL_FLOW.get(node.op) if node.domain == "" else None
    body = control(node, inputs) if control else find_function(node, inputs)
    return None if body is None else instantiate(node, body, names)
