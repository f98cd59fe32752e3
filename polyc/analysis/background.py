"""Proof that copies in the background have ended where what they bring is read.

A copy may happen at any time from where the text has it up to the barrier that waits for its group.
Let a loop have copies directly in it, which its one `Commit` closes into a group in each iteration,
and let b read in iteration i what a copied in iteration i - d. Up to a barrier of iteration i there
are so many groups after that of a:

    d - 1, and one more if the commit is in front of the barrier

So a's group has ended if one of the barriers in front of b leaves no more than these. Between
iterations that are farther apart there are more.

Boxes come in groups with a number: iteration v begins group v + d, and a barrier of iteration v
waits for group v + e. For group n it waits for phase n / p of barrier n mod p in shared memory, of
which it sees one bit. So it means that the group has arrived if no other phase of that barrier can
have this bit at that time:

    the first group is number 0, and none is skipped: phases are waited for in turn
    group n + p begins behind the wait for group n: no phase is later by two

What a brought is there if  d - e  is at most the iterations from a to b. Where a box lies outside
of its array, zeros come; so it must be zeros that the text has there, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyc.analysis.accesses import Surroundings
from polyc.analysis.dependences import Dependences, maps
from polyc.analysis.legality import Executions, instances, show_instances
from polyc.analysis.timemap import Execution, shared_loops
from polyc.loopnest.copies import find_source
from polyc.loopnest.index import const, var
from polyc.loopnest.nodes import Assign, Barrier, Block, Commit, For, Node, walk_nodes
from polyc.poly.boxes import box

IN, OUT = isl.dim_type.in_, isl.dim_type.out


def check_copies(around: Surroundings, executions: Executions, dependences: Dependences) -> int:
    """Raises IllegalSchedule where a copy may not have ended; gives the number of dependences."""
    checked = 0
    for source, sink, dependence in maps(dependences.flow):
        copies = [run for run in executions[source] if _is_in_background(run)]
        for a, b, pairs in instances(dependence, copies, executions[sink]):
            _check_pair(around, a, b, pairs)
            checked += 1
    for run in (run for runs in executions.values() for run in runs):
        if any(loop.kind == "box" for loop in run.place.loops):
            _check_outside(around, run)
    return checked


def _is_in_background(run: Execution) -> bool:
    return any(loop.kind in ("copy", "box") for loop in run.place.loops)


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
    inner = _loop_of(around.kernel.body, a.assign)
    body = inner.body.body
    if not apart.is_int():
        raise around.illegal(rule, show_instances(pairs, a, b))
    if any(loop.kind == "box" for loop in a.place.loops):
        once = all(x.kind == "block" for x in shared_loops(a, b)[:loop])
        arrived = once and _has_arrived(inner, a.assign, b.assign, int(apart.to_python()))
    else:
        arrived = _pending(body, a.assign, b.assign) < int(apart.to_python())
    if not arrived:
        raise around.illegal(rule, show_instances(pairs, a, b))


def _check_outside(around: Surroundings, run: Execution) -> None:
    """A box is zero exactly where it lies outside of its array."""
    read, conditions = find_source(run.assign.value)
    shapes = {p.name: p.shape for p in around.kernel.params}
    if read is None or read.element.array not in shapes:
        raise around.illegal(f"{run.statement.name} is no copy of an array in memory")
    name = read.element.array
    index = run.place.index(read.element.index, name)
    there = run.points
    for condition in conditions:
        there = there.intersect(run.place.where(condition))
    inside = box(name, shapes[name]).preimage_pw_multi_aff(index).intersect(run.points)
    if not there.is_equal(inside):
        rule = f"{run.statement.name} has other than zeros outside of {name}, or zeros inside"
        raise around.illegal(rule)


def _has_arrived(loop: For, a: Assign, b: Assign, apart: int) -> bool:
    """Whether b comes behind a wait for the group of the boxes that a asked for."""
    body = loop.body.body
    at = [k for x in (a, b) for k, node in enumerate(body) if x in list(walk_nodes(node))]
    if len(at) != 2 or loop.step != 1:
        return False
    begun = [n.group for n in body[at[0] :] if isinstance(n, Commit) and n.group]
    if len(begun) != 1:
        return False
    first, places = begun[0].number - var(loop.var), begun[0].places
    if not first.is_constant or loop.lower + first != const(0):
        return False
    for k, node in enumerate(body[: at[1]]):
        if isinstance(node, Barrier) and node.group and node.group.places == places:
            ahead = begun[0].number - node.group.number  # groups begun behind the one waited for
            in_turn = ahead.is_constant and 0 <= ahead.constant < places + (k < at[0])
            if in_turn and ahead.constant <= apart:
                return True
    return False


def _loop_of(block: Block, assign: Assign) -> For:
    """The innermost sequential loop around an assignment."""
    loops = [
        node
        for node in walk_nodes(block)
        if isinstance(node, For)
        and node.kind == "sequential"
        and any(n is assign for n in walk_nodes(node))
    ]
    return loops[-1]


def _pending(body: Sequence[Node], a: Assign, b: Assign) -> int:
    """Groups that the barriers in front of b leave at least, without one of its own iteration."""
    never = 1 << 30
    places = [k for k, node in enumerate(body) for x in (a, b) if x in list(walk_nodes(node))]
    commits = [k for k, node in enumerate(body) if node == Commit()]
    if len(places) != 2 or len(commits) != 1 or commits[0] < places[0]:
        return never
    left = [
        node.pending - (commits[0] < k)
        for k, node in enumerate(body[: places[1]])
        if isinstance(node, Barrier) and node.pending is not None
    ]
    return min(left, default=never)
