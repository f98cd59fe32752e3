"""Compute each thing once: merge equal constants, then equal nodes."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from polyc.graph.equal import freeze, key_of
from polyc.graph.ir import Graph, Node
from polyc.graph.simplify.rewriting import (
    SMALL_CONSTANT_BYTES,
    Change,
    RewriteNote,
    Rewritten,
    Scope,
    apply_rule,
    is_repeatable,
)

_NAME = "common_subexpressions"


def merge_common_subexpressions(graph: Graph) -> Rewritten:
    """Merge nodes of the same operator, inputs and attributes; small constants merge by content.

    a = Exp(x); b = Exp(x); y = Add(a, b)   ->   a = Exp(x); y = Add(a, a)

    Equality is of bits, so that 0.0 and -0.0 stay apart. Random operators are never merged.
    """
    constants = _merge_constants(graph)
    seen: dict[Hashable, Node] = {}

    def rule(scope: Scope, node: Node) -> Change | None:
        if node.op == "Identity" or not is_repeatable(node):
            return None
        first = seen.setdefault(key_of(node), node)
        if first is node:
            return None
        aliases = {o: f for o, f in zip(node.outputs, first.outputs, strict=True) if o}
        text = f"{node.op} '{node.name}' merged with '{first.name}', which computes the same"
        return Change(text, aliases=aliases)

    nodes = apply_rule(constants.graph, _NAME, rule)
    return Rewritten(nodes.graph, constants.notes + nodes.notes)


def _merge_constants(graph: Graph) -> Rewritten:
    first: dict[Hashable, str] = {}
    aliases: dict[str, str] = {}
    fixed = {*graph.inputs, *graph.outputs}
    for name, tensor in graph.tensors.items():
        value = tensor.value
        if value is None or name in fixed or value.nbytes > SMALL_CONSTANT_BYTES:
            continue
        kept = first.setdefault(freeze(value), name)
        if kept != name:
            aliases[name] = kept
    if not aliases:
        return Rewritten(graph)
    nodes = [
        replace(n, inputs=tuple(aliases.get(i, i) for i in n.inputs))
        if any(i in aliases for i in n.inputs)
        else n
        for n in graph.nodes
    ]
    notes = [
        RewriteNote(_NAME, f"constant '{name}' merged with '{kept}', which holds the same")
        for name, kept in aliases.items()
    ]
    return Rewritten(graph.rewrite(nodes), tuple(notes))
