"""Nodes that stand for several others: functions of the standard, layers, control flow.

Where this compiler has no rule of its own for an operator, what it compiles is what the standard
says about it in terms of others, or what a table here says. `expand_node` is asked during type
inference, when types and many values are known. What comes out is ordinary nodes, so that all that
follows, fusion above all, sees what there is to compute.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from polyc.graph.bodies import Names, instantiate
from polyc.graph.functions import find_function
from polyc.graph.ir import Body, Node, Tensor
from polyc.graph.recurrent import expand_recurrent
from polyc.graph.shapes import is_supported
from polyc.graph.unroll import CONTROL_FLOW

COMPOSED: dict[str, Callable[[Node, Sequence[Tensor | None]], Body]] = {
    **CONTROL_FLOW,
    **dict.fromkeys(("LSTM", "GRU", "RNN"), expand_recurrent),
}
"""Operator -> the nodes that it stands for, by its own inputs."""


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
    composed = COMPOSED.get(node.op) if node.domain == "" else None
    body = composed(node, inputs) if composed else find_function(node, inputs)
    return None if body is None else instantiate(node, body, names)
