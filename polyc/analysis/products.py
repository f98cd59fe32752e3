"""Proof that what products of warpgroups make, and take, is left alone until they have ended.

A product (a nest of kind "wgmma") goes on in the background from where the text has it up to an
`Await` that leaves no more products than were begun behind it. Each one is followed by an Await of
its own, so with at most n pending a product has ended when n more have been begun. For that

    a thread that takes part in iterations i and k of a loop takes part in all between them

and what a product adds to is touched by nothing else until none may be pending. That the tiles that
it reads are not written again too early is a matter of barriers: `threads.Flights`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import islpy as isl

from polyc.analysis.accesses import Surroundings
from polyc.analysis.legality import Executions
from polyc.analysis.timemap import Execution
from polyc.loopnest.nodes import Assign, Await, Block, For, If, Node, Read, walk_expr, walk_nodes
from polyc.names import show

IN, OUT = isl.dim_type.in_, isl.dim_type.out


def check_products(around: Surroundings, executions: Executions) -> None:
    """Raises IllegalSchedule where a product may not have ended."""
    if not any(isinstance(n, For) and n.kind == "wgmma" for n in walk_nodes(around.kernel.body)):
        return
    walk = _Walk(around)
    if walk.after(around.kernel.body, frozenset()):
        raise around.illegal("products are begun that nothing waits for")
    for run in (run for runs in executions.values() for run in runs):
        if walk.pending.get(id(run.assign), 0):
            _check_in_turn(around, run)


Sums = frozenset[str]
"""Arrays that products in the background may add to."""


@dataclass
class _Walk:
    """pending: products that may go on behind that of an assignment, by its identity."""

    around: Surroundings
    pending: dict[int, int] = field(default_factory=dict)

    def after(self, node: Node, sums: Sums) -> Sums:
        """What products may add to behind a node."""
        match node:
            case Block(body=body):
                for k, child in enumerate(body):
                    if isinstance(child, For) and child.kind == "wgmma":
                        sums |= self.begin(child, body[k + 1 : k + 2], sums)
                    else:
                        sums = self.after(child, sums)
            case For(body=body):
                once = self.after(body, sums)
                return sums | (once if once <= sums else self.after(body, sums | once))
            case If(then=then, otherwise=other):
                after = self.after(then, sums)
                return after | (self.after(other, sums) if other else sums)
            case Await(pending=0):
                return frozenset()
            case Assign():
                self.check(node, {node.target.array, *_reads(node)}, sums)
        return sums

    def begin(self, nest: For, behind: tuple[Node, ...], sums: Sums) -> Sums:
        """A product, and what stands directly behind it; what it adds to."""
        (assign,) = (n for n in walk_nodes(nest) if isinstance(n, Assign))
        if not (behind and isinstance(behind[0], Await)):
            raise self.around.illegal(f"nothing waits for the product of {assign.statement}")
        self.check(assign, _reads(assign), sums)
        self.pending[id(assign)] = behind[0].pending
        return frozenset({assign.target.array})

    def check(self, assign: Assign, touched: set[str], sums: Sums) -> None:
        if touched & sums:
            name = show(min(touched & sums))
            rule = f"{assign.statement} touches {name}, to which a product may still add"
            raise self.around.illegal(rule)


def _reads(assign: Assign) -> set[str]:
    return {e.element.array for e in walk_expr(assign.value) if isinstance(e, Read)}


def _check_in_turn(around: Surroundings, run: Execution) -> None:
    """A thread has a part in iterations of the innermost loop that directly follow each other."""
    loops = [k for k, loop in enumerate(run.place.loops) if loop.kind == "sequential"]
    if not loops:
        raise around.illegal(f"the product of {run.statement.name} goes on behind no loop")
    here, loop = run.points, loops[-1]
    everywhere = isl.Map.universe(isl.Space.map_from_set(here.space))
    later = everywhere.order_lt(IN, loop, OUT, loop)  # L -> L: the same, some iterations later
    for k in range(here.dim(isl.dim_type.set)):
        if k != loop:
            later = later.equate(IN, k, OUT, k)
    between = here.apply(later).intersect(here.apply(later.reverse()))
    if not between.is_subset(here):
        raise around.illegal(f"the product of {run.statement.name} skips iterations")
