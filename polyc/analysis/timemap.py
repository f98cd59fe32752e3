"""The time map of generated loops: what each `Assign` executes, and when.

Seen from one `Assign`, the loops around it span a space L of *counters* t0, t1, …, outermost first:
the variable of the k-th loop is  lower + step * t_k,  or t_k itself where the step is 1, so that a
step needs no existential variable. The `Execution` of the `Assign` says at which points of L it
runs, and which instance it executes there.

    for c0 in 0 .. 64 step 16:  for c1 in 0 .. 16:  # S[c0 + c1]

    points    { [t0, t1] : t0 >= 0 and 16 t0 < 64 and 0 <= t1 < 16 }
    instance  { [t0, t1] -> S[16 t0 + t1] }

Two executions are compared on the loops that they share, outermost first, and then by position in
the text: that is the lexicographic order of their time vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count, takewhile

import islpy as isl

from polyc.analysis.witness import illegal
from polyc.loopnest.index import (
    Affine,
    Atom,
    Choice,
    Compare,
    Condition,
    Extremum,
    FloorDiv,
    Logic,
    Mod,
    Scaled,
    Var,
    choice,
    const,
    substitute,
    var,
    variables,
)
from polyc.loopnest.marks import LoopKind
from polyc.loopnest.nodes import (
    Assign,
    Barrier,
    Block,
    For,
    If,
    Kernel,
    Local,
    Near,
    Node,
    extent_of,
)
from polyc.loopnest.substitute import substitute_condition
from polyc.poly.parameters import PARAM, assumptions
from polyc.scop.scop import Scop, Statement
from polyc.types.ranges import PREFIX, STEP

IN, SET = isl.dim_type.in_, isl.dim_type.set


@dataclass(frozen=True)
class Loop:
    """A loop around an execution; equal numbers mean the same loop of the text.

    extent: its iterations, 0 if that is not a constant; apart: the threads between two of them.
    """

    number: int
    var: str
    kind: LoopKind
    extent: int = 0
    apart: int = 1


@dataclass(frozen=True)
class Private:
    """A local in sight, of one block of the text, `depth` loops deep."""

    number: int
    depth: int
    local: Local


@dataclass(frozen=True)
class Nearby:
    """An array that may be near in one block of the text, `depth` loops deep."""

    number: int
    depth: int
    near: Near


Beside = tuple[int, int]
"""A node of a block: the number of barriers in front of it, and its own."""


@dataclass(frozen=True)
class Place:
    """What is in scope at a node of the text, and the points at which control arrives there.

    team: whether all threads of a team come here, or one of them; None where there is no team.
    """

    kernel: str
    points: isl.Set  # L
    loops: tuple[Loop, ...] = ()
    privates: Mapping[str, Private] = field(default_factory=dict)
    near: Mapping[str, Nearby] = field(default_factory=dict)
    beside: Mapping[int, Beside] = field(default_factory=dict)  # concurrent block -> node of it
    team: bool | None = None
    values: Mapping[str, Affine] = field(default_factory=dict)  # loop variable -> counters

    def counters(self, index: Affine) -> Affine:
        """A printed index, rewritten from loop variables to counters."""
        self._check(variables(index))
        return substitute(index, self.values)

    def index(self, indices: Sequence[Affine], name: str = "") -> isl.PwMultiAff:
        """# L -> name: printed indices as a function of the counters."""
        return index_function([self.counters(i) for i in indices], self.points.space, name)

    def where(self, condition: Condition) -> isl.Set:
        """# L: where a printed condition holds."""
        self._check(variables(choice(condition, const(1), const(0))))
        return condition_set(substitute_condition(condition, self.values), self.points.space)

    def _check(self, used: frozenset[str]) -> None:
        unknown = sorted(used - self.values.keys())
        if unknown:
            raise illegal(f"kernel {self.kernel}", f"{unknown[0]} is used outside of its loop")


@dataclass(frozen=True)
class Execution:
    """One `Assign` of the text: the points at which it runs, and the instance executed at each."""

    assign: Assign
    statement: Statement
    position: int
    place: Place
    instance: isl.PwMultiAff  # L -> S

    @property
    def points(self) -> isl.Set:
        """# L"""
        return self.place.points


def shared_loops(a: Execution, b: Execution) -> tuple[Loop, ...]:
    """The loops around both, outermost first."""
    pairs = zip(a.place.loops, b.place.loops, strict=False)
    return tuple(loop for loop, _ in takewhile(lambda p: p[0].number == p[1].number, pairs))


def are_concurrent(a: Execution, b: Execution) -> bool:
    """Whether they stand in different nodes of a block, with no barrier between these."""
    mine, other = a.place.beside, b.place.beside
    return any(
        mine[block][0] == other[block][0] and mine[block][1] != other[block][1]
        for block in mine.keys() & other.keys()
    )


def compute_executions(kernel: Kernel, scop: Scop) -> tuple[Execution, ...]:
    """The executions of a kernel in textual order; IllegalSchedule if it is not well formed."""
    statements = {s.name: s for s in scop.statements}
    numbers = count()

    def visit(node: Node, place: Place) -> Iterator[Execution]:
        number = next(numbers)
        place = _check_team(node, place)
        match node:
            case Block(body, locals_, concurrent, team, near):
                depth = len(place.loops)
                inside = {x.name: Private(number, depth, x) for x in locals_}
                nearby = {x.first.array: Nearby(number, depth, x) for x in near}
                for x in near:
                    place.index(x.first.index)  # of loops around alone
                below = replace(
                    place,
                    privates={**place.privates, **inside},
                    near={**place.near, **nearby},
                )
                barriers = 0
                for k, child in enumerate(body):
                    barriers += team and isinstance(child, Barrier)
                    if concurrent or team:
                        below = replace(below, beside={**place.beside, number: (barriers, k)})
                    yield from visit(child, below)
            case For(body=body):
                yield from visit(body, _enter(node, place, number))
            case If(condition, then, otherwise):
                holds = place.where(condition)
                yield from visit(then, replace(place, points=place.points.intersect(holds)))
                if otherwise:
                    fails = place.points.subtract(holds)
                    yield from visit(otherwise, replace(place, points=fails))
            case Assign():
                yield _execution(node, statements, place, number)

    start = isl.Set("{ [] }").intersect_params(assumptions())
    if scop.context is not None:
        start = start.intersect_params(scop.context)
    values = {name: var(name) for name in kernel.known}
    team = True if kernel.body.team else None
    return tuple(visit(kernel.body, Place(kernel.name, start, values=values, team=team)))


def _check_team(node: Node, place: Place) -> Place:
    """The place inside a node, once it is clear who of a team executes that.

    All threads go through team blocks, and are not left alone there with an assignment; a barrier
    is for all of them, and ends each iteration of a loop that all go through.
    """
    if place.team is None:
        return place
    where = f"kernel {place.kernel}"
    match node:
        case Barrier() | Block(team=True) if not place.team:
            raise illegal(where, "a barrier stands where only one thread comes")
        case Block(locals=(x, *_), team=True):
            raise illegal(where, f"all threads of a team share {x.name}")
        case Assign() if place.team:
            raise illegal(where, f"{node.statement} is executed by every thread of a team")
        case For(kind="parallel") | Block(team=False):
            return replace(place, team=False)
        case For(body=body) if place.team:
            if not (body.team and body.body and isinstance(body.body[-1], Barrier)):
                rule = f"threads of a team may be in different iterations of loop {node.var}"
                raise illegal(where, rule)
    return place


def _enter(loop: For, place: Place, number: int) -> Place:
    """The place inside a loop: one more counter, with  t >= 0  and  lower + step t < upper."""
    if loop.step < 1:
        raise illegal(f"kernel {place.kernel}", f"loop {loop.var} has step {loop.step}")
    counter = var(f"t{len(place.loops)}")
    lower, upper = place.counters(loop.lower), place.counters(loop.upper)
    value = lower + counter * loop.step if loop.step > 1 else counter
    first = counter if loop.step > 1 else counter - lower
    points = place.points.add_dims(SET, 1)
    space = points.space
    for bound in (*_at_least_zero(first), *_at_least_zero(upper - value - 1)):
        points = points.intersect(_compile(bound, space).nonneg_set())
    entered = Loop(number, loop.var, loop.kind, extent_of(loop) or 0, loop.apart)
    return replace(
        place,
        points=points,
        loops=(*place.loops, entered),
        values={**place.values, loop.var: value},
    )


def _at_least_zero(index: Affine) -> tuple[Affine, ...]:
    """index >= 0 as a conjunction without a minimum where it has the form  min(…) + rest.

    rest + min(a, b) >= 0  and  rest - max(a, b) >= 0  keep the set of points convex.
    """
    for atom, coefficient in index.terms:
        if isinstance(atom, Extremum) and coefficient == (1 if atom.which == "min" else -1):
            rest = index - Affine(0, ((atom, coefficient),))
            parts = [_at_least_zero(rest + a * coefficient) for a in atom.arguments]
            return tuple(p for part in parts for p in part)
    return (index,)


def _execution(
    assign: Assign, statements: Mapping[str, Statement], place: Place, number: int
) -> Execution:
    where = f"kernel {place.kernel}"
    statement = statements.get(assign.statement)
    if statement is None:
        raise illegal(where, f"{assign.statement} is executed, but is no statement of the cluster")
    if len(assign.instance) != len(statement.iterators):
        raise illegal(where, f"{statement.name} is executed with {len(assign.instance)} indices")
    instance = place.index(assign.instance, statement.name)
    return Execution(assign, statement, number, place, instance)


# -- indices and conditions over the counters -----------------------------------------------------


def index_function(indices: Sequence[Affine], space: isl.Space, name: str) -> isl.PwMultiAff:
    """# L -> name"""
    target = isl.Space.set_alloc(space.get_ctx(), 0, len(indices)).align_params(space)
    if name:
        target = target.set_tuple_name(SET, name)
    function = isl.MultiPwAff.zero(space.map_from_domain_and_range(target))
    for k, index in enumerate(indices):
        function = function.set_pw_aff(k, _compile(index, space))
    return isl.PwMultiAff.from_multi_pw_aff(function)


def condition_set(condition: Condition, space: isl.Space) -> isl.Set:
    """# L: where a condition over the counters holds."""
    match condition:
        case Compare(operator, left):
            value = _compile(left, space)
            return value.nonneg_set() if operator == "ge" else value.zero_set()
        case Logic(operator, arguments):
            parts = [condition_set(a, space) for a in arguments]
            if operator == "and":
                return reduce(isl.Set.intersect, parts, isl.Set.universe(space))
            return reduce(isl.Set.union, parts, isl.Set.empty(space))


def _compile(index: Affine, space: isl.Space) -> isl.PwAff:
    """# L -> Z: an index over the counters t0, t1, … of the space."""
    linear = isl.Aff.zero_on_domain(isl.LocalSpace.from_space(space))
    linear = linear.set_constant_val(index.constant)
    others = []
    for atom, coefficient in index.terms:
        if isinstance(atom, Var) and atom.name.startswith((PREFIX, STEP)):
            position = space.find_dim_by_name(PARAM, atom.name)
            linear = linear.add_coefficient_val(PARAM, position, coefficient)
        elif isinstance(atom, Var):
            position = int(atom.name.removeprefix("t"))
            linear = linear.add_coefficient_val(IN, position, coefficient)
        else:
            others.append(_compile_atom(atom, space).scale_val(coefficient))
    return reduce(isl.PwAff.add, others, isl.PwAff.from_aff(linear))


def _compile_atom(atom: Atom, space: isl.Space) -> isl.PwAff:
    match atom:
        case FloorDiv(argument, divisor):
            return _compile(argument, space).scale_down_val(divisor).floor()
        case Mod(argument, divisor):
            return _compile(argument, space).mod_val(divisor)
        case Extremum(which, arguments):
            choose = isl.PwAff.min if which == "min" else isl.PwAff.max
            return reduce(choose, [_compile(a, space) for a in arguments])
        case Choice(condition, then, otherwise):
            holds = condition_set(condition, space)
            yes = _compile(then, space).intersect_domain(holds)
            no = _compile(otherwise, space).intersect_domain(holds.complement())
            return yes.union_add(no)
        case Var() | Scaled():
            raise AssertionError("variables belong to the linear part, products to addresses")
