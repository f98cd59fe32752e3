"""Whether a schedule is legal: by the dependences, and by what its kinds of loops can do.

Directives are not judged one by one: what breaks a dependence may be mended by the next. If the
whole breaks one, the directives are applied one after the other to name the first that does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NoReturn

import islpy as isl

from polyc.analysis.dependences import Dependences, maps
from polyc.errors import IllegalSchedule
from polyc.loopnest.marks import LoopKind
from polyc.names import show
from polyc.poly.affine import moves
from polyc.schedule.coordinates import COORDINATES
from polyc.schedule.keeping import Keep
from polyc.schedule.loops import (
    Kept,
    Loop,
    LoopTree,
    children,
    lower_tree,
    restrict,
    statements_in,
    walk,
)
from polyc.schedule.names import short
from polyc.schedule.schedule import Schedule
from polyc.schedule.text import AnyDirective, spell
from polyc.schedule.threads import Lay, Swizzled, Use
from polyc.scop.scop import Statement
from polyc.target.instructions.matrices import MATRICES
from polyc.target.vectors import Vectors

WHERE: Mapping[LoopKind, str] = {
    "parallel": "between threads",
    "thread": "between threads",
    "block": "between blocks",
}
"""Kinds of loops that sums may not be carried by either, and where their iterations run."""

IN_LANES = ("unroll", "instruction")
"""Kinds of loops inside of a vector loop."""

FOR_GPUS = (*COORDINATES, Lay, Swizzled)
"""What changes no loop on a CPU, and so has to be refused by itself."""


def union_domain(statements: Sequence[Statement]) -> isl.UnionSet:
    """The instances of all statements."""
    domain = isl.UnionSet.from_set(statements[0].domain)
    for s in statements[1:]:
        domain = domain.union(isl.UnionSet.from_set(s.domain))
    return domain


def check_legal(schedule: isl.Schedule, dependences: Dependences, kernel: str) -> None:
    """Raise IllegalSchedule, with a pair of instances, if a dependence does not run forwards."""
    broken = find_broken(schedule, dependences.validity)
    if broken is not None:
        raise IllegalSchedule(
            f"kernel {kernel}: the schedule breaks a dependence: {broken.sample()}; this is a "
            "defect of polyc, not of the model: no code was run"
        )


def check_order(
    tree: isl.Schedule, order: isl.UnionMap, dependences: Dependences, kernel: str
) -> None:
    """Raise IllegalSchedule, with two instances, if a tree that a user gives breaks an order."""
    broken = find_broken(tree, order)
    if broken is not None:
        _refuse(kernel, "the schedule tree", broken, dependences, "runs them in the other order")


def find_broken(schedule: isl.Schedule, relation: isl.UnionMap) -> isl.UnionMap | None:
    """Pairs of a relation that a schedule does not execute in order, if there are any.

    # relation: S -> T, time: S -> [t]; time . relation . time^-1 must be lex-positive
    """
    time = schedule.get_map()
    moved = relation.apply_domain(time).apply_range(time)  # [t] -> [t']
    for _, _, each in maps(moved):
        backwards = each.intersect(isl.Map.lex_ge(each.get_space().domain()))
        if not backwards.is_empty():
            guilty = time.apply_range(isl.UnionMap.from_map(backwards)).apply_range(time.reverse())
            return guilty.intersect(relation)
    return None


def check_given(
    schedule: Schedule,
    start: LoopTree,
    domains: Mapping[str, isl.Set],
    dependences: Dependences,
    kernel: str,
    check_kinds: Callable[[LoopTree, str], None],
) -> None:
    """Raise IllegalSchedule for the first directive of a user's schedule that cannot stay.

    The message has two instances, and which dependence holds between them. check_kinds: raises it
    for loops that are nested as the target cannot run them; `start` is the tree without any.
    """
    end = schedule.apply(start)
    if find_broken(lower_tree(end, domains), dependences.validity) is not None:
        culprit, broken = _find_culprit(schedule, start, domains, dependences)
        _refuse(kernel, culprit, broken, dependences, "runs them in the other order")
    for path in _loop_paths(end, ()):
        *above, loop = path
        carried = find_carried(loop, above, dependences)
        if carried is not None:
            where = WHERE.get(loop.kind, "at once")
            _refuse(kernel, f"{loop.kind} {loop.name}", carried, dependences, f"runs them {where}")
    check_kinds(end, kernel)


def _find_culprit(
    schedule: Schedule,
    start: LoopTree,
    domains: Mapping[str, isl.Set],
    dependences: Dependences,
) -> tuple[str, isl.UnionMap]:
    """The directive from which on a dependence is broken, and the pairs that it breaks."""
    culprit, found = "the order of statements", None
    for directive, tree in schedule.steps(start):
        broken = find_broken(lower_tree(tree, domains), dependences.validity)
        if broken is not None and found is None:
            culprit = spell(directive)
        found = broken
    assert found is not None, "the whole is broken"
    return culprit, found


def find_carried(
    loop: Loop, above: Sequence[Loop], dependences: Dependences
) -> isl.UnionMap | None:
    """Pairs of instances in different iterations of a loop that may not run at the same time.

    # relation: S -> T, those with equal outer loops and another value of this one
    """
    if loop.kind in ("sequential", "unroll", "hold"):
        return None
    relation = dependences.validity if loop.kind in WHERE else dependences.coincidence
    for around in above:
        relation = relation.intersect(_together(around))
    time = isl.UnionMap.from_union_pw_aff(loop.function)
    below = time.domain()
    inside = relation.intersect_domain(below).intersect_range(below)
    carried = inside.subtract(time.apply_range(time.reverse()))
    return None if carried.is_empty() else carried


def _together(loop: Loop) -> isl.UnionMap:
    """# S -> T: the instances of one iteration."""
    time = isl.UnionMap.from_union_pw_aff(loop.function)
    return time.apply_range(time.reverse())


def _loop_paths(tree: LoopTree, above: tuple[Loop, ...]) -> Iterator[tuple[Loop, ...]]:
    """Each loop, behind those around it."""
    if isinstance(tree, Loop):
        above = (*above, tree)
        yield above
    for below in children(tree):
        yield from _loop_paths(below, above)


def check_cpu_directives(schedule: Schedule, kernel: str, vectors: Vectors | None = None) -> None:
    """Raise IllegalSchedule for a directive that is a GPU's, or uses no instruction of these."""
    there = [row.name for row in vectors.instructions if row.inner] if vectors else []
    there += [row.name for row in vectors.matrices] if vectors else []
    for directive in schedule.directives:
        if isinstance(directive, Use) and directive.instruction not in there:
            raise IllegalSchedule(
                f"kernel {show(kernel)}: {show(directive.instruction)} is no instruction that "
                f"runs loops of a CPU; there are {', '.join(there) or 'none'}"
            )
    foreign = next((d for d in schedule.directives if _is_for_gpus(d)), None)
    if foreign is not None:
        raise IllegalSchedule(f"kernel {show(kernel)}: {spell(foreign)}: that is for GPUs")


def _is_for_gpus(directive: AnyDirective) -> bool:
    if isinstance(directive, Keep):
        everything = directive.arrays is None and directive.space
        return directive.space == "shared" or bool(everything)
    return isinstance(directive, FOR_GPUS)


def check_cpu_kinds(tree: LoopTree, kernel: str, *, may_wait: bool = False) -> None:
    """Raise IllegalSchedule where loops are nested as no kernel for a CPU can run them.

    may_wait: threads may share out loops inside of others, and wait for one another in each
    iteration of these.
    """
    for path in _loop_paths(tree, ()):
        *above, loop = path
        said = f"kernel {show(kernel)}: {loop.kind} {loop.name}"
        if loop.kind not in ("sequential", "parallel", "vector", "unroll", "hold", "instruction"):
            raise IllegalSchedule(
                f"{said}: that is for GPUs; on a CPU loops are parallel, vector, unroll or hold"
            )
        around = next((n for n in above if n.kind != "parallel"), None)
        if loop.kind == "parallel" and around is not None and not may_wait:
            raise IllegalSchedule(
                f"{said}: threads share out the outermost loops, and {around.name} around it is "
                f"{around.kind}; put {loop.name} outside by order, or make that one parallel"
            )
        inner = next((n for n in walk(loop.body) if isinstance(n, Loop)), None)
        several = loop.instruction in (row.name for row in MATRICES)
        together = several and inner is not None and inner.instruction == loop.instruction
        if loop.kind == "instruction" and inner is not None and not together:
            raise IllegalSchedule(
                f"{said}: an instruction is the innermost loop, and {inner.name} is inside of it; "
                f"put {loop.name} inside by sink"
            )
        in_lanes = any(n.kind == "vector" for n in above)
        if loop.kind == "instruction" and not in_lanes and not several:
            raise IllegalSchedule(
                f"{said}: an instruction runs it in each lane, and no loop around it is in lanes; "
                "say which is, by vector"
            )
        if loop.kind == "vector" and inner is not None and inner.kind not in IN_LANES:
            raise IllegalSchedule(
                f"{said}: inside of a vector loop all loops are unrolled, and {inner.name} is "
                f"{inner.kind}; put {loop.name} inside of it by order, or say unroll {inner.name}"
            )
        if loop.kind == "vector" and len(statements_in(loop)) > 1:
            raise IllegalSchedule(
                f"{said}: a vector loop is around one statement, and this one is around "
                f"{', '.join(map(short, sorted(statements_in(loop))))}; say sink {loop.name} first"
            )
        if loop.kind == "hold" and len(statements_in(loop)) > 1:
            raise IllegalSchedule(
                f"{said}: it holds what one statement updates, and inside of it are "
                f"{', '.join(map(short, sorted(statements_in(loop))))}; say distribute first"
            )
    for node in walk(tree):
        if isinstance(node, Kept) and any(
            isinstance(n, Loop) and n.kind == "parallel" for n in walk(node.body)
        ):
            raise IllegalSchedule(
                f"kernel {show(kernel)}: what is kept at {node.at or 'the top'} would be shared by "
                "the iterations of a parallel loop inside; keep it at a loop inside of that one"
            )


def check_held_loops(tree: LoopTree, statements: Sequence[Statement], kernel: str) -> None:
    """Raise IllegalSchedule for a loop that is to hold results, and goes from one to the next."""
    writes = {s.name: s for s in statements}
    for node in walk(tree):
        if not (isinstance(node, Loop) and node.kind == "hold"):
            continue
        (name,) = statements_in(node)
        s, function = writes[name], restrict(node.function, node).get_pw_aff_list().get_at(0)
        iterators = range(len(s.iterators))
        over = [p for p in iterators if function.involves_dims(isl.dim_type.in_, p, 1)]
        if s.reduction is None or any(moves(s.columns[0][p]) for p in over):
            raise IllegalSchedule(
                f"kernel {show(kernel)}: hold {node.name}: {short(name)} updates another element "
                "in each iteration; hold a loop of a sum, whose results stay"
            )


def _refuse(
    kernel: str, what: str, pairs: isl.UnionMap, dependences: Dependences, how: str
) -> NoReturn:
    """Raise IllegalSchedule with one of the pairs, and the kind of dependence between the two."""
    pair = isl.Map.from_basic_map(pairs.sample())
    witness = isl.UnionMap.from_map(pair)
    kinds = {"flow": dependences.flow, "anti": dependences.anti, "output": dependences.output}
    kind = next(k for k, relation in kinds.items() if witness.is_subset(relation))
    first, second = (_show_instance(s) for s in (pair.domain(), pair.range()))
    raise IllegalSchedule(
        f"kernel {show(kernel)}: {what} breaks a dependence ({kind}): {second} has to run after "
        f"{first}, and this schedule {how}"
    )


def _show_instance(instances: isl.Set) -> str:
    """conv1[0, 3] of a set that holds one instance."""
    point = instances.sample_point()
    values = (
        point.get_coordinate_val(isl.dim_type.set, k)
        for k in range(instances.dim(isl.dim_type.set))
    )
    return f"{short(instances.get_tuple_name())}[{', '.join(map(str, values))}]"
