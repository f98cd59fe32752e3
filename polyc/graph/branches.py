"""Parts of a graph that some calls need: what one side of a Choose is computed from, and no other.

    t = Exp(x);  e = Neg(x);  y = Choose(c, t, e)

Exp is executed where c holds, and Neg where it does not. Whatever more than one side needs is in
what these have in common. So it follows from the graph alone, whatever rewrites have merged.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from polyc.graph.ir import INTERNAL, Graph, Node
from polyc.types.branches import Branch, Branches, find_common


def is_choice(node: Node) -> bool:
    """Whether a node has one of two tensors for its result, as a condition says."""
    return node.domain == INTERNAL and node.op == "Choose"


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
    readers: list[list[int]] = [[] for _ in graph.nodes]
    missing: list[int] = []
    for k, (node, branches) in enumerate(zip(graph.nodes, find_branches(graph), strict=True)):
        read = {*node.inputs, *(branch.condition for branch in branches)}
        needed = {position[name] for name in read if name in position}
        missing.append(len(needed))
        for other in needed:
            readers[other].append(k)
    ready = [k for k, count in enumerate(missing) if not count]
    heapq.heapify(ready)
    ordered = []
    while ready:
        k = heapq.heappop(ready)
        ordered.append(graph.nodes[k])
        for reader in readers[k]:
            missing[reader] -= 1
            if not missing[reader]:
                heapq.heappush(ready, reader)
    return graph.rewrite(ordered)
