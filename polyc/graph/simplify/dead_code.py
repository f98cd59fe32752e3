"""Remove what no output of the graph depends on."""

from __future__ import annotations

from dataclasses import replace

from polyc.graph.ir import Graph, Node
from polyc.graph.shapes.signature import find_signature
from polyc.graph.simplify.rewriting import RewriteNote, Rewritten


def remove_dead_code(graph: Graph) -> Rewritten:
    """Drop nodes that no output needs, and optional results that nobody reads; inputs stay.

    y, mask = MaxPool(x); z = Relu(x); return y   ->   y = MaxPool(x); return y
    """
    needed = set(graph.outputs)
    kept: list[Node] = []
    notes: list[RewriteNote] = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(o for o in node.outputs if o):
            text = f"{node.op} '{node.name}' removed: no output depends on it"
            notes.append(RewriteNote("dead_code", text))
            continue
        trimmed = _without_unread_options(node, needed)
        if trimmed is not node:
            text = f"optional results of {node.op} '{node.name}' removed: nobody reads them"
            notes.append(RewriteNote("dead_code", text))
        kept.append(trimmed)
        needed.update(node.inputs)
    if not notes:
        return Rewritten(graph)
    return Rewritten(graph.rewrite(kept[::-1]), tuple(reversed(notes)))


def _without_unread_options(node: Node, needed: set[str]) -> Node:
    # y, mask = MaxPool(x), mask unread -> y = MaxPool(x)
    if node.domain or all(o in needed for o in node.outputs if o):
        return node
    signature = find_signature(node.op)
    names = [
        "" if name not in needed and signature.formal_output(k).optional else name
        for k, name in enumerate(node.outputs)
    ]
    while names and not names[-1]:
        names.pop()
    return node if tuple(names) == node.outputs else replace(node, outputs=tuple(names))
