"""Parts of a graph that some calls need: what one side of a Choose is computed from, and no other.

    t = Exp(x);  e = Neg(x);  y = Choose(c, t, e)

Exp is executed where c holds, and Neg where it does not. Whatever more than one side needs is in
what these have in common. So it follows from the graph alone, whatever rewrites have merged.

A Choose also says what its sides need of sizes, `needs`: of calls that take them, and of no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from polyc.graph.ir import INTERNAL, Graph, Node
from polyc.graph.sorting import sort_stably
from polyc.types.branches import Branch, Branches, Demands, find_common, needs_in, unite_demands
from polyc.types.sizes import Extent, Size


def is_choice(node: Node) -> bool:
    """Whether a node has one of two tensors for its result, as a condition says."""
    return node.domain == INTERNAL and node.op == "Choose"


def needs_of(node: Node) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
    """What must not be negative where a choice takes its first side, and where its second."""
    one, other = node.get("needs") or ((), ())
    return one, other


def with_needs_by(node: Node, change: Callable[[Size], Extent]) -> Node:
    """A node in other sizes; what is a number by then and not negative holds anyway."""
    if not is_choice(node) or not any(needs_of(node)):
        return node
    sides = (tuple(map(change, side)) for side in needs_of(node))
    kept = tuple(tuple(n for n in side if isinstance(n, Size) or n < 0) for side in sides)
    return replace(node, attributes={**node.attributes, "needs": kept})


def find_demands(graph: Graph) -> Demands:
    """What the calls that take branches need of sizes, by branches; nothing of dead nodes."""
    read = graph.consumers.keys() | set(graph.outputs)
    sides = (
        {(*inside, Branch(node.inputs[0], holds)): needs}
        for node, inside in zip(graph.nodes, find_branches(graph), strict=True)
        if is_choice(node) and not read.isdisjoint(node.outputs)
        for holds, needs in zip((True, False), needs_of(node), strict=True)
        if needs
    )
    return unite_demands(sides)


def list_needed(graph: Graph) -> list[tuple[Size, ...]]:
    """Of each node, what the branches that it is in need of sizes."""
    demands = find_demands(graph)
    if not demands:
        return [()] * len(graph.nodes)
    return [needs_in(demands, inside) for inside in find_branches(graph)]


def find_branches(graph: Graph) -> tuple[Branches, ...]:
    """The branches that each node is in, by the names of conditions; none of a dead node's."""
    wanted: dict[str, list[Branches]] = {name: [()] for name in graph.outputs}
    found: list[Branches] = []
    for node in reversed(graph.nodes):
        uses = [use for name in node.outputs for use in wanted.get(name, ())]
        inside = find_common(uses) if uses else ()
        found.append(inside)
        for name, branches in _list_uses(node, inside):
            wanted.setdefault(name, []).append(branches)
    return tuple(reversed(found))


def _list_uses(node: Node, inside: Branches) -> Iterator[tuple[str, Branches]]:
    """What a node reads, and in which branches."""
    if not is_choice(node):
        yield from ((name, inside) for name in node.inputs if name)
        return
    condition, *sides = node.inputs
    yield condition, inside
    for name, holds in zip(sides, (True, False), strict=True):
        yield name, (*inside, Branch(condition, holds))


def sort_branches(graph: Graph) -> Graph:
    """The graph with each node behind the conditions that decide whether it is executed.

        e = Exp(x);  c = Less(m, 0);  y = Choose(c, e, x)   ->   c = …;  e = …;  y = …

    Else nodes keep their order. No condition depends on what it decides about.
    """
    if not any(map(is_choice, graph.nodes)):
        return graph
    position = {name: k for k, n in enumerate(graph.nodes) for name in n.outputs if name}
    needed = []
    for node, branches in zip(graph.nodes, find_branches(graph), strict=True):
        read = {*node.inputs, *(branch.condition for branch in branches)}
        needed.append({position[name] for name in read if name in position})
    return graph.rewrite([graph.nodes[k] for k in sort_stably(needed)])
