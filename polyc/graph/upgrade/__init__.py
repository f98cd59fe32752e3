"""Bring nodes of any version of the ONNX operator set to the newest form of their operator.

    Squeeze(x; axes=0)  in opset 11  ->  Squeeze(x, [0])

Each operator has a short list of (version, rule): the rule takes the form that was valid before
that version to the form of that version, and the rules of all later versions are chained. An
operator with no rule has kept one form, up to optional attributes with neutral defaults.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from polyc.graph.ir import Body, Node
from polyc.graph.upgrade import control, elementwise, movement, normalization, reduction, sampling
from polyc.graph.upgrade.context import Context, Rules

__all__ = ["FAMILIES", "RULES", "Context", "is_newest_form", "upgrade_nodes"]

FAMILIES = (control, elementwise, movement, normalization, reduction, sampling)
RULES: Rules = {op: rules for family in FAMILIES for op, rules in family.RULES.items()}


def is_newest_form(node: Node, opset: int) -> bool:
    """Whether no rule changes this node of a model in operator set `opset`."""
    rules = () if node.domain else RULES.get(node.op, ())
    inner = (n for v in node.attributes.values() if isinstance(v, Body) for n in v.nodes)
    return all(since <= opset for since, _ in rules) and all(
        is_newest_form(n, opset) for n in inner
    )


def upgrade_nodes(nodes: Iterable[Node], opset: int, context: Context) -> tuple[Node, ...]:
    """Nodes of operator set `opset` -> nodes in newest form; new constants are Constant nodes.

    Raises UnsupportedOp where an old form has no newest one.
    """
    return tuple(fresh for node in nodes for fresh in _upgrade_all(node, opset, context))


def _upgrade_all(node: Node, version: int, context: Context) -> list[Node]:
    """The node, and what its attributes hold."""

    def renewed(value: Any) -> Any:
        if not isinstance(value, Body):
            return value
        return replace(value, nodes=upgrade_nodes(value.nodes, version, context))

    attributes = {name: renewed(value) for name, value in node.attributes.items()}
    return _upgrade(replace(node, attributes=attributes), version, context)


def _upgrade(node: Node, version: int, context: Context) -> list[Node]:
    """One node, through the first rule after `version`, and what it gives through the later."""
    pending = () if node.domain else RULES.get(node.op, ())
    for since, rule in pending:
        if since > version:
            # What a rule returns is in the form of `since`, so the recursion ends at the newest.
            return [n for fresh in rule(node, context) for n in _upgrade(fresh, since, context)]
    return [node]
