"""Expressions of a kernel as expressions of a statement, typed as Python would have them.

    y[i] = 0.5 * x[i - 1]   for x, y of float32   ->   mul(0.5f, x[i - 1])

An expression is *emitted* at the points of the statement's domain at which Python would look at it:
what stands right of `and`, or in one branch of a conditional expression, only where an affine
condition says so. Elements are read there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from polyc.loops.lower.affine import IN, Scope, affine, condition, constant_of
from polyc.loops.lower.extrema import as_extremum, extremum
from polyc.loops.read.functions import BY_NAME, COMPARED, OPERATORS
from polyc.loops.read.infer import Types
from polyc.loops.read.syntax import (
    Apply,
    Binary,
    Choice,
    Comparison,
    Element,
    Expression,
    Logic,
    Name,
    Number,
    Place,
    Unary,
)
from polyc.loops.read.types import FLOAT64, compared, is_float, is_whole, settle
from polyc.scop.expr import (
    BOOL,
    INT64,
    Call,
    Cast,
    Const,
    Expr,
    Index,
    Load,
    Within,
    call,
    cast,
    weight,
)
from polyc.scop.lower.functions import constant, convert, select
from polyc.types.element_types import wide

Bounds = Callable[[isl.Set, str, Place], None]
"""Takes points, # L, that sizes must rule out, what would happen there, and where it stands."""


@dataclass(frozen=True)
class Emitter:
    """Emits the expressions of one statement.

    statement: its name; scope: where it stands; held: the arrays of locals; require: is told of
    accesses that leave their array unless sizes rule that out; guard: data that says whether Python
    would look at the expression, if that is known by data alone.
    """

    statement: str
    scope: Scope
    types: Types
    held: Mapping[str, str]
    arrays: Mapping[str, str]
    require: Bounds
    guard: Expr | None = None

    def under(self, test: Expr) -> Emitter:
        """The emitter of what is looked at only where a test on data is true."""
        return replace(self, guard=test if self.guard is None else call("and", self.guard, test))

    def emit(self, at: Expression, dtype: np.dtype, points: isl.Set) -> Expr:
        """The expression as a value of a type, read at the points, # L, of the scope."""
        if isinstance(at, Number):
            return constant(_fitting(at.value, dtype, at.place), dtype)
        value = affine(at, self.scope)
        if value is not None:
            _fitting(constant_of(value) or 0, dtype, at.place)
            return convert(self._index(value), dtype)
        where = condition(at, self.scope)
        if where is not None:
            return convert(Within(where.set_tuple_name(self.statement)), dtype)
        own = settle(self.types.of(at))
        return _rounded_once(convert(self._natural(at, own, points), own), dtype)

    def _natural(self, at: Expression, own: np.dtype, points: isl.Set) -> Expr:
        """The expression in its own type; in float32 what is to be rounded to float16."""
        dtype = wide(own)
        match at:
            case Name(name, place):
                if name not in self.held:
                    place.refuse(
                        f"{name!r} has no value here", "a loop's variable ends with its loop"
                    )
                return self.load_local(self.held[name], own)
            case Element():
                return self.load(at, points)
            case Unary("not", operand):
                return call("not", self.truth(operand, points))
            case Unary(operator, operand):
                inside = self.emit(operand, dtype, points)
                names = {"-": "neg", "~": "bitnot"}
                return call(names[operator], inside) if operator in names else inside
            case Binary():
                return self._binary(at, dtype, points)
            case Comparison(operator, left, right):
                met = compared(self.types.of(left), self.types.of(right))
                sides = [convert(self.emit(side, met, points), wide(met)) for side in (left, right)]
                if met == BOOL and operator not in ("==", "!="):
                    at.place.refuse(f"`{operator}` of booleans", "use `==`, `and`, `or`, `not`")
                return call(COMPARED[operator], *sides)
            case Logic():
                return self._logic(at, points)
            case Choice():
                return self._choice(at, dtype, points)
            case Apply():
                return self._apply(at, dtype, points)
        raise AssertionError(f"{at} is affine, or no expression")

    def truth(self, at: Expression, points: isl.Set) -> Expr:
        """Whether Python takes the value for true."""
        return self.emit(at, BOOL, points)

    def _index(self, value: isl.PwAff) -> Expr:
        return Index(self._named(value), INT64)

    def _named(self, value: isl.PwAff) -> isl.PwAff:
        """# S -> Z, of a function of the loops, L -> Z.

        The tuple's id is taken from a set: one that is made of the name alone is another one.
        """
        space = self.scope.domain.get_space().set_tuple_name(isl.dim_type.set, self.statement)
        value = value.set_tuple_id(IN, space.get_tuple_id(isl.dim_type.set))
        for k, iterator in enumerate(self.scope.iterators):  # for people who read it
            value = value.set_dim_id(IN, k, isl.Id(iterator))
        return value

    # -- elements -----------------------------------------------------------------------------

    def load_local(self, array: str, dtype: np.dtype) -> Load:
        return Load(array, self._function([], array), dtype)

    def load(self, at: Element, points: isl.Set) -> Load:
        """The element that Python means: a negative subscript counts from the end."""
        index, computed = self.place(at, points)
        whole = self.scope.domain.is_subset(points)
        if not whole:
            index = index.intersect_domain(points.set_tuple_name(self.statement))
        return Load(self.arrays[at.array], index, self.types.elements[at.array], computed)

    def place(
        self, at: Element, points: isl.Set
    ) -> tuple[isl.PwMultiAff, tuple[tuple[int, Expr], ...]]:
        """# S -> A: where an element is, and the coordinates that are data."""
        shape = self.scope.shapes[at.array]
        if len(at.subscripts) != len(shape):
            rule = f"{at.array!r} has {len(shape)} dimensions, but {len(at.subscripts)} subscripts"
            at.place.refuse(rule, "give one for each")
        coordinates, computed = [], []
        for d, (subscript, extent) in enumerate(zip(at.subscripts, shape, strict=True)):
            if is_float(self.types.of(subscript)):
                at.place.refuse(f"a subscript of {at.array!r} is a float", "write int(…)")
            value, size = affine(subscript, self.scope), self.scope.size(extent)
            if value is None:
                inside = self.emit(subscript, INT64, points)
                if self.guard is not None:  # else it may be anything, and is not read
                    inside = call("select", self.guard, inside, Const(0, INT64))
                computed.append((d, call("index", inside, self._index(size), dtype=INT64)))
                value = size.sub(size)
                self._require_some(points, size, at)
            else:
                value = self._wrapped(value, size, points, at, subscript)
            coordinates.append(value)
        return self._function(coordinates, self.arrays[at.array]), tuple(computed)

    def pick(
        self, at: Element, points: isl.Set, first: int
    ) -> tuple[isl.PwMultiAff, tuple[Expr, ...]]:
        """# S -> A: where an element is written, and what has to hold for it to be meant.

        The coordinates that are data are what the loops from the `first` one on count.
        """
        index, computed = self.place(at, points)
        tests = []
        for k, (d, place) in enumerate(computed):
            local = isl.LocalSpace.from_space(self.scope.domain.get_space())
            here = isl.PwAff.var_on_domain(local, isl.dim_type.set, first + k)
            index = index.set_pw_aff(d, self._named(here))
            tests.append(call("eq", place, self._index(here)))
        return index, tuple(tests)

    def _wrapped(
        self, value: isl.PwAff, size: isl.PwAff, points: isl.Set, at: Element, part: Expression
    ) -> isl.PwAff:
        """An affine subscript within 0 .. size, as the points allow it."""
        zero = size.sub(size)
        negative = value.lt_set(zero)
        outside = points.intersect(value.ge_set(size).union(value.add(size).lt_set(zero)))
        if not outside.is_empty():
            self.require(outside, f"a subscript of {at.array!r} leaves the array", part.place)
            points = points.subtract(outside)
        if points.is_disjoint(negative):
            return value
        if points.is_subset(negative):
            return value.add(size)
        wrapped = value.add(size).intersect_domain(negative)
        return value.intersect_domain(negative.complement()).union_add(wrapped)

    def _require_some(self, points: isl.Set, size: isl.PwAff, at: Element) -> None:
        """An array that is read at computed places has elements."""
        empty = points.intersect(size.le_set(size.sub(size)))
        if not empty.is_empty():
            self.require(empty, f"{at.array!r} has no elements, but is read", at.place)

    def _function(self, coordinates: Sequence[isl.PwAff], array: str) -> isl.PwMultiAff:
        """# S -> A"""
        space = self.scope.domain.get_space().set_tuple_name(isl.dim_type.set, self.statement)
        target = isl.Space.set_alloc(space.get_ctx(), 0, len(coordinates)).align_params(space)
        target = target.set_tuple_name(isl.dim_type.set, array)
        function = isl.MultiPwAff.zero(space.map_from_domain_and_range(target))
        for d, value in enumerate(coordinates):
            function = function.set_pw_aff(d, self._named(value))
        result = isl.PwMultiAff.from_multi_pw_aff(function)
        for k, iterator in enumerate(self.scope.iterators):
            result = result.set_dim_id(IN, k, isl.Id(iterator))
        return result

    # -- operators ----------------------------------------------------------------------------

    def _binary(self, at: Binary, dtype: np.dtype, points: isl.Set) -> Expr:
        left, right = (self.emit(side, dtype, points) for side in (at.left, at.right))
        whole = is_whole(dtype)
        match at.operator:
            case "&" | "|" | "^" if dtype == BOOL:
                return call({"&": "and", "|": "or", "^": "xor"}[at.operator], left, right)
            case "/":
                return call("div", left, right)
            case "//" if whole:
                return floor_divide(left, right)
            case "//":
                return call("floor", call("div", left, right))
            case "%":
                return call("mod", left, right)
            case "**":
                return _power(left, right, _literal(at.right))
            case operator:
                return call(OPERATORS[operator], left, right)

    def _logic(self, at: Logic, points: isl.Set) -> Expr:
        """What stands right is evaluated where the left side does not decide."""
        where = condition(at.left, self.scope)
        if where is None:
            left = self.truth(at.left, points)
            decides = left if at.operator == "and" else call("not", left)
            return call(at.operator, left, self.under(decides).truth(at.right, points))
        reached = points.intersect(where if at.operator == "and" else where.complement())
        if reached.is_empty():  # the left side decides everywhere
            return Const(at.operator == "or", BOOL)
        right = self.truth(at.right, reached)
        test = Within(where.set_tuple_name(self.statement))
        if at.operator == "and":
            return select(test, right, Const(False, BOOL))
        return select(test, Const(True, BOOL), right)

    def _choice(self, at: Choice, dtype: np.dtype, points: isl.Set) -> Expr:
        found = as_extremum(at)
        if found is not None and all(settle(self.types.of(a)) == dtype for a in found.arguments):
            return self._apply(found, dtype, points)
        where = condition(at.condition, self.scope)
        if where is None:
            test = self.truth(at.condition, points)
            then = self.under(test).emit(at.then, dtype, points)
            otherwise = self.under(call("not", test)).emit(at.otherwise, dtype, points)
            return call("select", test, then, otherwise)
        if points.is_subset(where) or points.is_disjoint(where):
            taken = at.then if points.is_subset(where) else at.otherwise
            return self.emit(taken, dtype, points)
        yes = self.emit(at.then, dtype, points.intersect(where))
        no = self.emit(at.otherwise, dtype, points.subtract(where))
        return call("select", Within(where.set_tuple_name(self.statement)), yes, no)

    def _apply(self, at: Apply, dtype: np.dtype, points: isl.Set) -> Expr:
        known = BY_NAME[at.function]
        if known.rule == "convert":
            return self.emit(at.arguments[0], dtype, points)
        inner = FLOAT64 if known.rule in ("double", "whole") else dtype
        parts = [self.emit(a, inner, points) for a in at.arguments]
        if known.rule == "whole":
            return cast(call(known.runtime, *parts), INT64)
        if known.rule == "least":
            return extremum(known.runtime, parts)
        return call(known.runtime, *parts)


def _fitting(value: float, dtype: np.dtype, place: Place) -> float:
    """A literal that a type of integers holds; NumPy raises OverflowError for others."""
    if is_whole(dtype) and isinstance(value, int):
        bounds = np.iinfo(dtype)
        if not bounds.min <= value <= bounds.max:
            place.refuse(
                f"{value} is out of bounds for {dtype}",
                f"convert what it meets first, as in int(x) + {value}",
            )
    return value


MOST_FACTORS, HEAVIEST = 16, 64
"""Of a power that is computed by products, whose errors add up, half a unit in the last place each;
and what all factors together may weigh for the C compiler (`scop.expr.weight`), if they are more
than two."""

ROUNDED = frozenset({"add", "sub", "mul", "div", "sqrt"})
"""Operations whose exact result float64 rounds so closely that to round it to float32 after that
gives what rounding once would: 53 bits are 2 * 24 + 2 at least (Figueroa 1995, "When is double
rounding innocuous?")."""


def _rounded_once(value: Expr, dtype: np.dtype) -> Expr:
    """A value as another type.

    float32(sqrt(float64(x)))   ->   sqrt(x), for x of float32
    """
    match value:
        case Call(function, arguments) if function in ROUNDED and dtype == np.float32:
            narrow = [_as_float32(a) for a in arguments]
            if value.dtype == FLOAT64 and None not in narrow:
                return call(function, *(a for a in narrow if a is not None))
    return convert(value, dtype)


def _as_float32(value: Expr) -> Expr | None:
    """The float32 that a float64 is equal to, if it is known."""
    match value:
        case Cast(argument) if argument.dtype == np.float32:
            return argument
        case Const(number) if float(np.float32(number)) == number:
            return Const(number, np.dtype(np.float32))
    return None


def floor_divide(left: Expr, right: Expr) -> Expr:
    """a // b of integers, rounded down: a / b truncates, and is one too many where signs differ."""
    match right:
        case Const(value=number) if number > 0 and int(number).bit_count() == 1:
            return call("shr", left, Const(int(number).bit_length() - 1, right.dtype))
    differs = call("ne", call("mod", left, right), call("fmod", left, right))
    return call("sub", call("div", left, right), cast(differs, left.dtype))


def _literal(at: Expression) -> float | None:
    """The number that an expression is, if it is one, with a sign or without."""
    match at:
        case Number(value):
            return value
        case Unary("-", Number(value)):
            return -value
    return None


def _power(left: Expr, right: Expr, exponent: float | None) -> Expr:
    """x ** y; where y is a literal of a few halves, by products, roots and a division.

    x ** 6  ->  (x * x * x) * (x * x * x)              x ** -1.5  ->  1 / (x * sqrt(x))
    """
    whole = left.dtype.kind != "f"
    if not exponent or (2 * exponent) % 1 or (whole and (exponent < 0 or exponent % 1)):
        return call("pow", left, right)
    count = int(abs(exponent))
    if count > 2 and (count > MOST_FACTORS or count * weight(left) > HEAVIEST):
        return call("pow", left, right)
    factors = [left] * count
    if exponent % 1:
        factors.append(call("sqrt", left))
    value = _product(factors)
    return call("div", constant(1, left.dtype), value) if exponent < 0 else value


def _product(factors: Sequence[Expr]) -> Expr:
    """The factors multiplied in halves: of equal ones the C compiler computes equal halves once."""
    if len(factors) == 1:
        return factors[0]
    half = (len(factors) + 1) // 2
    return call("mul", _product(factors[:half]), _product(factors[half:]))
