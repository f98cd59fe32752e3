"""Proof that copies in the background have ended where what they bring is read.

A copy may happen at any time from where the text has it up to the barrier that waits for its group.
Let a loop have copies directly in it, which its one `Commit` closes into a group in each iteration,
and let b read in iteration i what a copied in iteration i - d. Up to a barrier of iteration i there
are so many groups after that of a:

    d - 1, and one more if the commit is in front of the barrier

So a's group has ended if one of the barriers in front of b leaves no more than these. Between
iterations that are farther apart there are more.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyc.analysis.accesses import Surroundings
from polyc.analysis.dependences import Dependences, maps
from polyc.analysis.legality import Executions, instances, show_instances
from polyc.analysis.timemap import Execution, shared_loops
from polyc.codegen.loopnest import Assign, Barrier, Block, Commit, For, Node, walk_nodes

IN, OUT = isl.dim_type.in_, isl.dim_type.out


def check_copies(around: Surroundings, executions: Executions, dependences: Dependences) -> int:
    """Raises IllegalSchedule where a copy may not have ended; gives the number of dependences."""
    checked = 0
    for source, sink, dependence in maps(dependences.flow):
        for a, b, pairs in instances(dependence, executions[source], executions[sink]):
            if any(loop.kind == "copy" for loop in a.place.loops):
                _check_pair(around, a, b, pairs)
                checked += 1
    return checked


def _check_pair(around: Surroundings, a: Execution, b: Execution, pairs: isl.Map) -> None:
    """pairs  # L_a -> L_b"""
    rule = f"{b.statement.name} reads what {a.statement.name} may not have copied yet"
    sequential = [k for k, loop in enumerate(shared_loops(a, b)) if loop.kind == "sequential"]
    if not sequential:
        raise around.illegal(rule, show_instances(pairs, a, b))
    loop = sequential[-1]
    for k in range(loop):
        if not pairs.equate(IN, k, OUT, k).is_equal(pairs):
            raise around.illegal(rule, show_instances(pairs, a, b))
    steps = pairs
    for side in (IN, OUT):
        steps = steps.project_out(side, loop + 1, pairs.dim(side) - loop - 1)
    apart = steps.deltas().dim_min_val(loop)
    body = _body_of(around.kernel.body, a.assign)
    if not apart.is_int() or _pending(body, a.assign, b.assign) > int(apart.to_python()) - 1:
        raise around.illegal(rule, show_instances(pairs, a, b))


def _body_of(block: Block, assign: Assign) -> Sequence[Node]:
    """What stands in the innermost sequential loop around an assignment."""
    loops = [
        node
        for node in walk_nodes(block)
        if isinstance(node, For)
        and node.kind == "sequential"
        and any(n is assign for n in walk_nodes(node))
    ]
    return loops[-1].body.body


def _pending(body: Sequence[Node], a: Assign, b: Assign) -> int:
    """Groups that the barriers in front of b leave at least, without one of its own iteration."""
    never = 1 << 30
    places = [k for k, node in enumerate(body) for x in (a, b) if x in list(walk_nodes(node))]
    commits = [k for k, node in enumerate(body) if isinstance(node, Commit)]
    if len(places) != 2 or len(commits) != 1 or commits[0] < places[0]:
        return never
    left = [
        node.pending - (commits[0] < k)
        for k, node in enumerate(body[: places[1]])
        if isinstance(node, Barrier) and node.pending is not None
    ]
    return min(left, default=never)
