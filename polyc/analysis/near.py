"""Near: an array whose place may be the same in each execution of a block, as if it were new.

    near a[p, c, 0], r rows along dimension 1       (p, c: functions of the loops around the block)

Whether it is, a call decides. In memory each element has a place of its own, as the proof of
accesses says. On the stack a place is where it is in memory, less where the first one is. That is
the same to whoever reads the array if

    all accesses to it are in blocks that say so, and no others need it (`Param.inside`)
    in each they go to  p alone, c … c + r, anything                  (one run: no two meet in it)
    r rows are all of them, or few enough for their length to be a number of 64 bits
    every flow dependence through it stays in one execution of one block, of one thread
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from polyc.analysis.accesses import Access, Surroundings, show_instance
from polyc.analysis.dependences import Dependences, maps
from polyc.analysis.legality import Executions, instances, show_instances
from polyc.analysis.timemap import Execution, Nearby
from polyc.loopnest.show import show_element
from polyc.types.ranges import ROWS_LIMIT

IN, OUT = isl.dim_type.in_, isl.dim_type.out


def check_near(
    around: Surroundings,
    executions: Executions,
    accesses: Sequence[Access],
    dependences: Dependences,
) -> None:
    """Every array that may be near keeps its values there, or IllegalSchedule with a witness."""
    arrays = {name for runs in executions.values() for run in runs for name in run.place.near}
    for array in arrays:
        param = around.param(array)
        if param is None or not param.inside:
            raise around.illegal(f"{array} may be near, but is not the kernel's own")
    inside = {p.name for p in around.kernel.params if p.inside}
    for access in accesses:
        if access.array in inside:
            _check_run(around, access)
    written = {s.name: s.array for s in around.scop.statements}
    for source, sink, dependence in maps(dependences.flow):
        if written[source] in inside:
            for a, b, pairs in instances(dependence, executions[source], executions[sink]):
                _check_flow(around, a, b, pairs, written[source])


def _nearby(around: Surroundings, run: Execution, array: str) -> Nearby:
    nearby = run.place.near.get(array)
    if nearby is None:
        rule = f"{array} is the kernel's own, but not near where {run.statement.name} touches it"
        raise around.illegal(rule)
    if any(loop.kind == "parallel" for loop in run.place.loops[nearby.depth :]):
        raise around.illegal(f"threads share {array}, which is near each of them")
    return nearby


def _check_run(around: Surroundings, access: Access) -> None:
    """An access goes to the run of memory that begins at the first place; bounds are known."""
    nearby = _nearby(around, access.execution, access.array)
    param, near = around.param(access.array), nearby.near
    assert param is not None
    where = f"{show_element(access.element)} is not in the run from {show_element(near.first)} on"
    if access.computed or access.added or len(near.first.index) != len(param.shape):
        raise around.illegal(where)
    first = access.execution.place.index(near.first.index)
    inside = access.points
    for k in range(len(param.shape)):
        start = first.get_pw_aff(k)
        apart = access.place.get_pw_aff(k).sub(start)  # 0 <= … < rows, whichever is known
        if k < near.dimension:
            inside = inside.intersect(apart.zero_set())
        elif k == near.dimension and near.rows != param.shape[k]:
            assert isinstance(near.rows, int), "some rows, or all"
            if near.rows > ROWS_LIMIT:
                rule = f"{near.rows} rows of {access.array} may be more than 64 bits can count"
                raise around.illegal(rule)
            inside = inside.intersect(apart.nonneg_set())
            more = apart.add_constant_val(isl.Val(-near.rows))
            inside = inside.subtract(more.nonneg_set())
        else:  # all of them, which are in bounds
            inside = inside.intersect(start.zero_set())
    outside = access.points.subtract(inside)
    if not outside.is_empty():
        raise around.illegal(where, show_instance(access, outside))


def _check_flow(
    around: Surroundings, a: Execution, b: Execution, pairs: isl.Map, array: str
) -> None:
    """# L_a -> L_b: what is written is read in the same execution of the same block."""
    wrote, reads = _nearby(around, a, array), _nearby(around, b, array)
    if (wrote.number, wrote.near) != (reads.number, reads.near):
        rule = f"{array} is near in two blocks, of which one reads what the other wrote"
        raise around.illegal(rule, show_instances(pairs, a, b))
    for k in range(wrote.depth):
        leaving = pairs.order_lt(IN, k, OUT, k).union(pairs.order_gt(IN, k, OUT, k))
        if not leaving.is_empty():
            rule = f"a value leaves {array}, which is near in loop {a.place.loops[k].var}"
            raise around.illegal(rule, show_instances(leaving, a, b))
