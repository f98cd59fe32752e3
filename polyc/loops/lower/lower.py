"""A kernel -> `Scop`: statements with domains, accesses, expressions and their original order.

    for i in range(n):              S0: { S0[i] : 0 <= i < n }          x[i] = b[i]
        x[i] = b[i]                 S1: { S1[i, j] : 0 <= j < i < n }   x[i] add= -(L[i, j] * x[j])
        for j in range(i):
            x[i] -= L[i, j] * x[j]

Conditions on loop variables restrict domains. One on data is kept in a local, unless it is for one
assignment, and an assignment under it becomes `target = value if condition else target`. `+=`, `-=`
and `*=` declare a reduction; a maximum or minimum is one as well (`extrema.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import TypeAlias

import islpy as isl
import numpy as np

from polyc.loops.lower.affine import Scope, affine, condition, is_split
from polyc.loops.lower.aliases import alias_of
from polyc.loops.lower.arms import Beginning, find_beginnings
from polyc.loops.lower.emit import Emitter
from polyc.loops.lower.extrema import operator_of, reduced_by
from polyc.loops.lower.lowered import Lowered, Requirement
from polyc.loops.lower.narrow import narrow
from polyc.loops.lower.order import LoopNode, OrderNode, StatementLeaf, time_of
from polyc.loops.lower.walks import Asked, find_extent, picks_places, within
from polyc.loops.read.infer import Types, infer
from polyc.loops.read.sizes import Signature
from polyc.loops.read.syntax import (
    Assign,
    Binary,
    Branch,
    Choice,
    Command,
    Comparison,
    Element,
    Expression,
    Function,
    Logic,
    Loop,
    Name,
    Number,
    Place,
    Unary,
    same_but_for_places,
)
from polyc.loops.read.types import FLOAT64, is_float, join, settle
from polyc.names import ISL_WORDS, fresh, identifier
from polyc.scop.expr import BOOL, INT64, Const, Expr, Load, call
from polyc.scop.scop import Array, Reduction, Scop, Statement, identity
from polyc.types.element_types import is_narrow

Guards: TypeAlias = tuple[Expression | Asked, ...]
"""Conditions on data under which something is executed."""

REDUCTIONS: Mapping[str, Reduction] = {"+": "add", "-": "add", "*": "mul"}


def lower(function: Function, signature: Signature, sizes: isl.Set | None = None) -> Lowered:
    """The kernel on arguments of these types; UnsupportedLoop for what is outside of the subset.

    sizes: those that it is lowered for, a set of parameters; by default all.
    """
    context = signature.context()
    context = context if sizes is None else context.intersect_params(sizes)
    types = infer(function, signature.arguments)
    begun = find_beginnings(function)
    lowering = _Lowering(function, signature, types, context.params(), begun)
    scope = Scope(context, signature.shapes)
    for name in signature.numbers:
        scope = scope.with_value(name, scope.size(signature.numbers[name]))
    order, _ = lowering.body(function.body, scope, ())
    return lowering.finish(tuple(order))


@dataclass
class _Lowering:
    """The walk: statements in textual order, and the arrays that locals are kept in."""

    function: Function
    signature: Signature
    types: Types
    sizes: isl.Set  # of parameters alone
    beginnings: frozenset[Beginning]  # assignments behind which alone a local is there
    statements: list[Statement] = field(default_factory=list)
    places: dict[str, Place] = field(default_factory=dict)
    held: dict[str, str] = field(default_factory=dict)
    locals: dict[str, Array] = field(default_factory=dict)
    requirements: list[Requirement] = field(default_factory=list)
    conditions: int = 0
    walks: int = 0
    left: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name, array in self.signature.arrays.items():
            if self.signature.arguments[name].dims is None:
                self.held[name] = array.name

    # -- commands -----------------------------------------------------------------------------

    def body(
        self, body: Sequence[Command], scope: Scope, guards: Guards
    ) -> tuple[list[OrderNode], Scope]:
        """The nodes of a body, and its scope with the values that it has defined."""
        nodes: list[OrderNode] = []
        for k, command in enumerate(body):
            match command:
                case Assign():
                    value = None
                    if all(isinstance(guard, Asked) for guard in guards):
                        value = alias_of(command, scope, body[k + 1 :], self.function)
                    if value is None:
                        nodes += self.assign(command, scope, guards)
                    else:
                        assert isinstance(command.target, Name)
                        scope = scope.with_value(command.target.name, value)
                case Loop():
                    nodes += self.loop(command, scope, guards)
                case Branch():
                    nodes += self.branch(command, scope, guards)
        return nodes, scope

    def loop(self, loop: Loop, scope: Scope, guards: Guards) -> list[OrderNode]:
        bounds = tuple(affine(b, scope) for b in (loop.start, loop.stop))
        if loop.left:
            left = Name(loop.left, loop.place)
            guards = (*guards, Asked(Unary("not", left, loop.place)))
            self.left |= {self.held[loop.left]}
        if bounds[0] is None or bounds[1] is None:
            return self._walk(loop, scope, guards)
        iterator = self._iterator(loop.variable, scope)
        inside = scope.enter(loop.variable, iterator, (bounds[0], bounds[1]), loop.step)
        if inside.domain.is_empty():
            return []
        nodes, _ = self.body(loop.body, inside, guards)
        depth = len(scope.iterators)
        return [LoopNode(iterator, depth, loop.step < 0, tuple(nodes))] if nodes else []

    def _walk(self, loop: Loop, scope: Scope, guards: Guards) -> list[OrderNode]:
        """A loop whose bounds are data: over all that it may walk, under a condition.

        for k in range(b[i], b[i + 1]): s += x[k]

        ->   for k in range(len(x)): if begin <= k and k < end: s += x[k]
        """
        extent = find_extent(loop, scope)
        self.walks += 1
        names = f"{loop.variable} begins {self.walks}", f"{loop.variable} ends {self.walks}"
        nodes: list[OrderNode] = []
        for name, bound in zip(names, (loop.start, loop.stop), strict=True):
            self.types = Types({**self.types.names, name: INT64}, self.types.elements)
            self.beginnings |= {(name, loop.place)}
            kept = Assign(Name(name, loop.place), bound, None, loop.place)
            nodes += self.assign(kept, scope, guards)
            written = self.statements[-1]
            self.statements[-1] = replace(written, value=within(written, extent, scope))
        iterator = self._iterator(loop.variable, scope)
        inside = scope.enter(loop.variable, iterator, (extent.sub(extent), extent), 1)
        begin, end = (Name(name, loop.place) for name in names)
        counter = Name(loop.variable, loop.place)
        behind = Comparison("<=", begin, counter, loop.place)
        before = Comparison("<", counter, end, loop.place)
        below, _ = self.body(loop.body, inside, (*guards, Asked(behind), Asked(before)))
        if below:
            nodes.append(LoopNode(iterator, len(scope.iterators), False, tuple(below)))
        return nodes

    def _iterator(self, variable: str, scope: Scope) -> str:
        base = identifier(variable.replace(".", "_")) or "i"
        if base.lower() in ISL_WORDS or base[0].isdigit() or base.startswith(("size_", "step_")):
            base = f"i_{base}"
        return fresh(base, scope.iterators)

    def branch(self, at: Branch, scope: Scope, guards: Guards) -> list[OrderNode]:
        where = condition(at.condition, scope)
        choice = self._choice(at, scope)
        # What affine conditions leave out has no instance, unless all of it has one anyway.
        whole = where is None or (at.otherwise and not is_split(where, scope))
        if choice is not None and whole:
            return self.assign(choice, scope, guards)
        if where is not None:
            nodes: list[OrderNode] = []
            for body, points in ((at.then, where), (at.otherwise, where.complement())):
                inside = scope.within(points)
                if body and not inside.domain.is_empty():
                    nodes += self.body(body, inside, guards)[0]
            return nodes
        match at.condition:
            case Logic("and", left, right) if not at.otherwise and (
                condition(left, scope) is not None
            ):
                inner = Branch(right, at.then, (), at.place)
                return self.branch(Branch(left, (inner,), (), at.place), scope, guards)
        match at.then:
            case (Assign(operator=str()) as only,) if not at.otherwise:
                return self.assign(only, scope, (*guards, _truth(at.condition)))
        self.conditions += 1
        name = f"if {self.conditions}"
        self.types = Types({**self.types.names, name: BOOL}, self.types.elements)
        kept = Assign(Name(name, at.place), _truth(at.condition), None, at.place)
        self.beginnings |= {(name, at.place)}
        # A place that data picks is looked at only where Python would.
        nodes = self.assign(kept, scope, guards if picks_places(at.condition, scope) else ())
        nodes += self.body(at.then, scope, (*guards, kept.target))[0]
        if at.otherwise:
            self.conditions += 1
            other = f"if {self.conditions}"
            self.types = Types({**self.types.names, other: BOOL}, self.types.elements)
            opposite = Unary("not", kept.target, at.place)
            nodes += self.assign(Assign(Name(other, at.place), opposite, None, at.place), scope, ())
            nodes += self.body(at.otherwise, scope, (*guards, Name(other, at.place)))[0]
        return nodes

    def _choice(self, at: Command, scope: Scope) -> Assign | None:
        """A condition that decides what one place is assigned, as an assignment.

        if c: A[i] = x
        else: A[i] = y            ->       A[i] = x if c else y

        Without an alternative the place keeps what it has.
        """
        if not isinstance(at, Branch):
            return at if isinstance(at, Assign) and at.operator is None else None
        if len(at.then) != 1 or len(at.otherwise) > 1:
            return None
        one = self._choice(at.then[0], scope)
        if one is None or picks_places(one.target, scope):
            return None
        keeping = replace(one, value=one.target)
        other = self._choice(at.otherwise[0], scope) if at.otherwise else keeping
        if other is None or not same_but_for_places(one.target, other.target):
            return None
        types = [self.types.of(each.value) for each in (one, other)]
        among_floats = is_float(join(*types)) and not all(map(is_float, types))
        if among_floats and self._written(one.target)[1] != FLOAT64:
            return None  # in an array of integers, 2 ** 62 + 1 is not what it is there
        return replace(one, value=Choice(at.condition, one.value, other.value, at.place))

    # -- assignments --------------------------------------------------------------------------

    def assign(self, at: Assign, scope: Scope, guards: Guards) -> list[OrderNode]:
        """One statement, over the points of the scope, and over all places if data picks one."""
        target, name = at.target, f"S{len(self.statements)}"
        array, dtype = self._written(target)
        arrays = {a: array_.name for a, array_ in self.signature.arrays.items()}
        first = len(scope.iterators)
        scope = self._over_places(target, scope)
        emitter = Emitter(name, scope, self.types, self.held, arrays, self._require(scope))
        tests: list[Expr] = []
        for guard in guards:
            question = guard.question if isinstance(guard, Asked) else guard
            tests.append(emitter.emit(question, BOOL, scope.domain))
            emitter = emitter.under(tests[-1])
        if isinstance(target, Element):
            index, picks = emitter.pick(target, scope.domain, first)
        else:
            index, picks = emitter.load_local(array, dtype).index, ()
        there = Load(array, index, dtype) if picks else None
        value, reduction = self._value(at, emitter, dtype, (*picks, *tests), there)
        is_asked = any(isinstance(guard, Asked) for guard in guards)
        value = value if picks or is_asked else narrow(value)
        domain = scope.domain.set_tuple_name(name)
        for k, iterator in enumerate(scope.iterators):
            domain = domain.set_dim_name(isl.dim_type.set, k, iterator)
        origin = (f"line {at.place.line}",)
        self.statements.append(
            Statement(name, domain, scope.iterators, array, index, value, reduction, origin)
        )
        self.places[name] = at.place
        nodes: list[OrderNode] = [StatementLeaf(name)]
        for k in reversed(range(first, len(scope.iterators))):
            nodes = [LoopNode(scope.iterators[k], k, False, tuple(nodes), places=True)]
        return nodes

    def _over_places(self, target: Name | Element, scope: Scope) -> Scope:
        """The scope inside of a loop over each dimension of what is written in which data picks.

        h[x[i]] += 1   ->   for slot in range(len(h)): if x[i] == slot: h[slot] += 1
        """
        if not isinstance(target, Element):
            return scope
        shape = scope.shapes[target.array]
        for subscript, extent in zip(target.subscripts, shape, strict=False):
            if affine(subscript, scope) is None:
                iterator = fresh("slot", scope.iterators)
                bounds = scope.size(0), scope.size(extent)
                scope = scope.enter(f" {iterator}", iterator, bounds, 1)
        return scope

    def _written(self, target: Name | Element) -> tuple[str, np.dtype]:
        """The array that an assignment writes, and its type."""
        if isinstance(target, Element):
            return self.signature.arrays[target.array].name, self.types.elements[target.array]
        dtype = settle(self.types.names[target.name])
        if target.name not in self.held:
            base = identifier(target.name.replace(".", "_").replace(" ", "_")) or "local"
            taken = {a.name for a in self.signature.arrays.values()} | set(self.locals)
            name = fresh(base, taken)
            self.held[target.name] = name
            self.locals[name] = Array(name, dtype, (), "temporary")
        return self.held[target.name], dtype

    def _value(
        self,
        at: Assign,
        emitter: Emitter,
        dtype: np.dtype,
        tests: Sequence[Expr],
        there: Load | None,
    ) -> tuple[Expr, Reduction | None]:
        """What is assigned where some tests hold, and the operator of a reduction.

        there: what is at a place that data picks.
        """
        points = emitter.scope.domain
        met = settle(join(dtype, self.types.of(at.value))) if at.operator else dtype
        test = reduce(partial(call, "and"), tests) if tests else None
        found = self._reduction(at, dtype)
        if found and met == dtype and dtype != BOOL and not is_narrow(dtype):
            operator, part = found
            value = emitter.emit(part, dtype, points)
            value = call("neg", value) if at.operator == "-" else value
            if test is not None:
                value = call("select", test, value, neutral(operator, dtype))
            return value, operator
        written: Expression = at.value
        if at.operator:
            written = Binary(at.operator, at.target, at.value, at.place)
        value = emitter.emit(written, dtype, points)
        if test is not None:
            begins = isinstance(at.target, Name) and (at.target.name, at.place) in self.beginnings
            kept = Const(0, dtype) if begins else there or emitter.emit(at.target, dtype, points)
            value = call("select", test, value, kept)
        return value, None

    def _reduction(self, at: Assign, dtype: np.dtype) -> tuple[Reduction, Expression] | None:
        """The operator of a reduction, and what is added to it, if an assignment is one."""
        if at.operator:
            operator = REDUCTIONS.get(at.operator)
            return (operator, at.value) if operator else None
        found = reduced_by(at.target, at.value, dtype)
        if found is None or settle(self.types.of(at.value)) != dtype:
            return None
        return operator_of(found[0], dtype), found[1]

    def _require(self, scope: Scope) -> Callable[[isl.Set, str, Place], None]:
        def require(points: isl.Set, what: str, place: Place) -> None:
            sizes = points.params()
            if scope.domain.params().is_subset(sizes):
                place.refuse(f"{what} whatever the sizes are", "correct the subscript")
            self.requirements.append(Requirement(sizes, what, place))

        return require

    # -- the end ------------------------------------------------------------------------------

    def finish(self, order: tuple[OrderNode, ...]) -> Lowered:
        """The scop, for those sizes alone for which nothing happens that may not."""
        context = self.sizes
        for requirement in self.requirements:
            context = context.subtract(requirement.sizes).coalesce()
        times = time_of(order, {s.name: s.domain for s in self.statements})
        statements, bare = [], []
        for s in self.statements:
            domain = s.domain.intersect_params(context).coalesce()
            statements.append(replace(s, domain=domain, time=times[s.name]))
            bare.append(replace(statements[-1], domain=s.domain.gist_params(self.sizes)))
        written = {s.array for s in statements}
        arrays = {
            a.name: replace(a, kind="state" if a.name in written else "input")
            for a in self.signature.arrays.values()
        }
        outputs = tuple(a for a in arrays if a in written)
        scop = Scop(
            self.function.name,
            tuple(statements),
            {**arrays, **self.locals},
            tuple(arrays),
            outputs,
            context,
        )
        simple = replace(scop, statements=tuple(bare), context=None)
        requirements = tuple(self.requirements)
        return Lowered(scop, simple, self.sizes, order, self.places, requirements, self.left)


def neutral(operator: Reduction, dtype: np.dtype) -> Const:
    """What changes nothing: of sums the zero that keeps the sign of another."""
    is_sum = operator == "add" and dtype.kind == "f"
    return Const(-0.0 if is_sum else identity(operator, dtype), dtype)


def _truth(at: Expression) -> Expression:
    """The expression as a condition; Emitter converts numbers to booleans."""
    return at if not isinstance(at, Number) else Choice(at, at, at, at.place)
