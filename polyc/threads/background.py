"""Copies in the background: where their groups end, and which barriers wait for them.

    for k in -3 .. n:                            for k in -3 .. n:
      barrier                                      barrier, at most 2 groups of copies pending
      for t:  tile[(k + 3) mod 4][t] = …    ->     for t:  tile[(k + 3) mod 4][t] = …   # copy
      for t:  … tile[k mod 4][…] …                 commit
                                                   for t:  … tile[k mod 4][…] …

A group is what one iteration copies. The barrier of an iteration waits until no more groups are
left than were begun since the one that is read next: those of the iterations between. That this is
enough is proven on the result (`analysis/background.py`).

Boxes, which the tensor memory accelerator brings, are groups of their own; each has the number of
the iteration that reads it, and the barrier of that iteration waits for it.

Products of warpgroups go on in the background as well. Where their factors have places for several
iterations in use, as many but one go on while the next one is begun, and the last ones are waited
for behind the loop:

    for k in 0 .. n:                               for k in 0 .. n:
      barrier                                        barrier
      sums += tile[k mod 4] * …    # wgmma   ->      sums += tile[k mod 4] * …    # wgmma
                                                     await, at most 1 product pending
                                                   await, at most 0 products pending
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from polyc.loopnest.index import var
from polyc.loopnest.marks import LoopKind
from polyc.loopnest.nodes import (
    Assign,
    Await,
    Barrier,
    Block,
    Commit,
    For,
    Group,
    If,
    Node,
    Read,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)


def wait_for_copies(block: Block, ahead: Mapping[str, int]) -> Block:
    """The nest with groups and waits; ahead: iterations between copy and use, by array."""
    blocks = [node for node in walk_nodes(block) if isinstance(node, Block)]
    local = {x.name: ahead[x.source] for b in blocks for x in b.locals if x.source in ahead}

    def visit(node: Node) -> Node:
        if isinstance(node, For) and node.kind == "sequential":
            return replace(node, body=_with_boxes(node.var, _with_groups(node.body, local), local))
        return node

    return rewrite_nodes(block, visit)


def _with_groups(body: Block, distances: Mapping[str, int]) -> Block:
    """The body of a loop, if there are copies directly in it: one group for all of an iteration."""
    targets = [_copied(node, "copy") for node in body.body]
    copying = [k for k, names in enumerate(targets) if names]
    if not copying:
        return body
    ahead = min(distances[name] for names in targets for name in names)
    nodes: list[Node] = []
    for k, node in enumerate(body.body):
        behind = k > copying[-1]
        pending = ahead if behind else ahead - 1
        nodes.append(replace(node, pending=pending) if isinstance(node, Barrier) else node)
        if k == copying[-1]:
            nodes.append(Commit())
    return replace(body, body=tuple(nodes))


def _with_boxes(var_: str, body: Block, distances: Mapping[str, int]) -> Block:
    """The body of a loop, if there are boxes directly in it: as a group with a number."""
    targets = [_copied(node, "box") for node in body.body]
    copying = [k for k, names in enumerate(targets) if names]
    if not copying:
        return body
    (ahead,) = {distances[name] for names in targets for name in names}
    needed, begun = Group(var(var_), ahead + 1), Group(var(var_) + ahead, ahead + 1)
    nodes: list[Node] = []
    for k, node in enumerate(body.body):
        nodes.append(replace(node, group=needed) if isinstance(node, Barrier) else node)
        if k == copying[-1]:
            nodes.append(Commit(begun))
    return replace(body, body=tuple(nodes))


def _copied(node: Node, kind: LoopKind) -> set[str]:
    """The arrays that a phase copies to in the background, by loops of a kind."""
    if not isinstance(node, For) or node.kind != "thread":
        return set()
    loops = [n for n in walk_nodes(node) if isinstance(n, For) and n.kind == kind]
    return {n.target.array for x in loops for n in walk_nodes(x) if isinstance(n, Assign)}


def wait_for_products(block: Block, used: Mapping[str, int]) -> Block:
    """The nest with waits for products; used: places in use at a time, by array."""
    blocks = [node for node in walk_nodes(block) if isinstance(node, Block)]
    local = {x.name: used.get(x.source, 1) for b in blocks for x in b.locals}
    return _Waits(local).block(block)


@dataclass
class _Waits:
    """Walks the text with the places in use of each local; `flying`: products that go on."""

    used: Mapping[str, int]
    flying: bool = False

    def block(self, block: Block) -> Block:
        nodes: list[Node] = []
        for node in block.body:
            nodes.append(self.inner(node))
            if isinstance(node, For) and node.kind == "wgmma":
                pending = self._pending(node)
                self.flying |= pending > 0
                nodes.append(Await(pending))
            elif isinstance(node, For) and node.kind == "sequential" and self.flying:
                self.flying = False
                nodes.append(Await(0))
        return replace(block, body=tuple(nodes))

    def inner(self, node: Node) -> Node:
        match node:
            case Block():
                return self.block(node)
            case For(kind=kind, body=body) if kind != "wgmma":
                return replace(node, body=self.block(body))
            case If(then=then, otherwise=other):
                other = self.block(other) if other else None
                return replace(node, then=self.block(then), otherwise=other)
        return node

    def _pending(self, nest: For) -> int:
        """Products that may go on behind this one: as both of its factors have places for."""
        values = [node.value for node in walk_nodes(nest) if isinstance(node, Assign)]
        reads = [e.element.array for v in values for e in walk_expr(v) if isinstance(e, Read)]
        return min(self.used[name] for name in reads) - 1
