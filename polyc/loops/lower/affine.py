"""Affine expressions and conditions of a kernel, as functions and sets of isl.

A `Scope` is where an expression stands: the loops around it span a space L, whose points `domain`
are those at which control arrives there.

    for i in range(n): for j in range(i, n):      domain { [i, j] : 0 <= i <= j < n }
    2*i + j // 4                                  { [i, j] -> [(2i + floor(j/4))] }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import islpy as isl

from polyc.loops.read.functions import NEGATED
from polyc.loops.read.syntax import (
    Apply,
    Binary,
    Choice,
    Comparison,
    Expression,
    Extent,
    Logic,
    Name,
    Number,
    Place,
    Unary,
)
from polyc.types.sizes import Extent as Size

IN, SET, PARAM = isl.dim_type.in_, isl.dim_type.set, isl.dim_type.param


@dataclass(frozen=True)
class Scope:
    """Where an expression stands.

    iterators: the loops around, outermost first, as text of isl has them. values: names that are
    affine functions, each of the loops that were around where it was defined. shapes: of arrays, an
    extent being a number or a `Size` of one name.
    """

    domain: isl.Set  # L
    shapes: Mapping[str, tuple[Size, ...]]
    iterators: tuple[str, ...] = ()
    values: Mapping[str, isl.PwAff] = field(default_factory=dict)  # name -> (L' -> Z)

    def with_value(self, name: str, value: isl.PwAff) -> Scope:
        return replace(self, values={**self.values, name: value})

    def without_value(self, name: str) -> Scope:
        return replace(self, values={n: v for n, v in self.values.items() if n != name})

    def within(self, condition: isl.Set) -> Scope:
        return replace(self, domain=self.domain.intersect(condition).coalesce())

    def enter(
        self, name: str, iterator: str, bounds: tuple[isl.PwAff, isl.PwAff], step: int
    ) -> Scope:
        """Inside of `for name in range(start, stop, step)`."""
        start, stop = (b.add_dims(IN, 1) for b in bounds)
        depth = len(self.iterators)
        domain = self.domain.add_dims(SET, 1)
        here = isl.PwAff.var_on_domain(_local(domain), SET, depth)
        first, last = (start, stop) if step > 0 else (stop, start)
        inside = here.ge_set(first).intersect(here.lt_set(last))
        if step < 0:
            inside = here.gt_set(first).intersect(here.le_set(last))
        if abs(step) > 1:
            inside = inside.intersect(here.sub(start).mod_val(abs(step)).zero_set())
        entered = replace(
            self, domain=domain.intersect(inside), iterators=(*self.iterators, iterator)
        )
        return entered.with_value(name, here)

    def extent(self, at: Extent) -> isl.PwAff:
        """A.shape[k]"""
        shape = self.shapes[at.array]
        if not -len(shape) <= at.axis < len(shape):
            at.place.refuse(
                f"{at.array!r} has {len(shape)} dimensions, but axis {at.axis} is asked for",
                "ask for one that it has",
            )
        return self.size(shape[at.axis])

    def size(self, extent: Size) -> isl.PwAff:
        """# L -> Z: a number, or a size by its name."""
        local = _local(self.domain)
        if isinstance(extent, int):
            return isl.PwAff.val_on_domain(self.domain, isl.Val(extent))
        position = self.domain.find_dim_by_name(PARAM, str(extent))
        return isl.PwAff.var_on_domain(local, PARAM, position)

    def lift(self, value: isl.PwAff) -> isl.PwAff:
        """A function of outer loops as one of all loops here."""
        return value.add_dims(IN, len(self.iterators) - value.dim(IN))


def _local(domain: isl.Set) -> isl.LocalSpace:
    return isl.LocalSpace.from_space(domain.get_space())


def constant_of(value: isl.PwAff) -> int | None:
    """The value of a function that is one number."""
    if value.n_piece() != 1 or not value.is_cst():
        return None
    ((_, aff),) = value.get_pieces()
    number = aff.get_constant_val()
    return int(number.to_python()) if number.is_int() else None


def affine(at: Expression, scope: Scope) -> isl.PwAff | None:
    """# L -> Z: the expression, if it is an affine one of whole numbers."""
    match at:
        case Number(bool() | float()):
            return None
        case Number(value):
            return isl.PwAff.val_on_domain(scope.domain, isl.Val(int(value)))
        case Name(name):
            return scope.lift(scope.values[name]) if name in scope.values else None
        case Extent():
            return scope.extent(at)
        case Unary("-", operand):
            inside = affine(operand, scope)
            return None if inside is None else inside.neg()
        case Unary("+", operand):
            return affine(operand, scope)
        case Binary(operator, left, right):
            one, other = affine(left, scope), affine(right, scope)
            if one is None or other is None:
                return None
            if operator in ("//", "%") and constant_of(other) is None:
                return _divided(operator, one, other, scope.domain)
            return _binary(operator, one, other, at.place)
        case Choice(test, then, otherwise):
            where, yes, no = condition(test, scope), affine(then, scope), affine(otherwise, scope)
            if where is None or yes is None or no is None:
                return None
            return yes.intersect_domain(where).union_add(no.intersect_domain(where.complement()))
        case Apply("min" | "max" | "abs" | "int" as function, arguments):
            parts = [affine(a, scope) for a in arguments]
            known = [p for p in parts if p is not None]
            return _applied(function, known) if len(known) == len(parts) else None
        case _:
            return None


def _applied(function: str, parts: list[isl.PwAff]) -> isl.PwAff:
    if function == "int":
        return parts[0]
    if function == "abs":
        return parts[0].max(parts[0].neg())
    result = parts[0]
    for part in parts[1:]:
        result = result.min(part) if function == "min" else result.max(part)
    return result


def _binary(operator: str, one: isl.PwAff, other: isl.PwAff, place: Place) -> isl.PwAff | None:
    match operator:
        case "+":
            return one.add(other)
        case "-":
            return one.sub(other)
        case "*":
            factors = constant_of(one), constant_of(other)
            if factors[1] is not None:
                return one.scale_val(isl.Val(factors[1]))
            return None if factors[0] is None else other.scale_val(isl.Val(factors[0]))
        case "//" | "%":
            divisor = constant_of(other)
            assert divisor is not None, "division by what is not a number has its own function"
            if divisor == 0:
                place.refuse(f"`{operator}` by 0", "divide by another number")
            if divisor < 0:  # a // -b = -a // b, and a % -b = -(-a % b)
                one, divisor = one.neg(), -divisor
                if operator == "%":
                    return one.mod_val(isl.Val(divisor)).neg()
            if operator == "%":
                return one.mod_val(isl.Val(divisor))
            return one.scale_down_val(isl.Val(divisor)).floor()
        case _:
            return None


QUOTIENTS = (0, -1, 1)
"""Of a division by a size: (i - 1) % n and (i + 1) % n, for i from 0 to n - 1, have these."""


def _divided(operator: str, one: isl.PwAff, other: isl.PwAff, domain: isl.Set) -> isl.PwAff | None:
    """one // other, or one % other, if `other` is positive and the quotient -1, 0 or 1; else None.

    (i - 1) % n   ->   i - 1 if i >= 1 else i - 1 + n
    """
    if not domain.is_subset(other.gt_set(other.sub(other))):
        return None
    result, left = None, domain
    for quotient in QUOTIENTS:
        rest = one.sub(other.scale_val(isl.Val(quotient)))
        where = rest.ge_set(rest.sub(rest)).intersect(rest.lt_set(other))
        if left.is_disjoint(where):
            continue
        value = rest if operator == "%" else rest.sub(rest).add_constant_val(isl.Val(quotient))
        value = value.intersect_domain(where)
        result = value if result is None else result.union_add(value)
        left = left.subtract(where)
    return result if left.is_empty() else None


def condition(at: Expression, scope: Scope) -> isl.Set | None:
    """# L: where a condition holds, if it is an affine one."""
    match at:
        case Number(bool(value)):
            space = scope.domain.get_space()
            return isl.Set.universe(space) if value else isl.Set.empty(space)
        case Comparison(operator, left, right):
            one, other = affine(left, scope), affine(right, scope)
            return None if one is None or other is None else _compared(operator, one, other)
        case Logic(operator, left, right):
            sides = condition(left, scope), condition(right, scope)
            if sides[0] is None or sides[1] is None:
                return None
            joined = sides[0].intersect if operator == "and" else sides[0].union
            return joined(sides[1]).coalesce()
        case Unary("not", Comparison(operator, left, right, place)):
            return condition(Comparison(NEGATED[operator], left, right, place), scope)
        case Unary("not", operand):
            inside = condition(operand, scope)
            return None if inside is None else inside.complement()
        case _:
            return None


def _compared(operator: str, one: isl.PwAff, other: isl.PwAff) -> isl.Set:
    match operator:
        case "<":
            return one.lt_set(other)
        case "<=":
            return one.le_set(other)
        case ">":
            return one.gt_set(other)
        case ">=":
            return one.ge_set(other)
        case "==":
            return one.eq_set(other)
        case _:
            return one.ne_set(other)


def is_split(where: isl.Set, scope: Scope) -> bool:
    """Whether a condition cuts a domain into two convex parts, each a loop of its own."""
    parts = (scope.domain.intersect(where), scope.domain.subtract(where))
    return all(part.coalesce().n_basic_set() <= 1 and not _divides(part) for part in parts)


def _divides(points: isl.Set) -> bool:
    """Whether a set says something of remainders, as of even numbers."""
    pieces = points.get_basic_set_list()
    return any(pieces.get_at(k).dim(isl.dim_type.div) for k in range(points.n_basic_set()))
