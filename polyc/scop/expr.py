"""Scalar expressions: what one statement instance computes.

An expression is a tree over the iterators of its statement S. Its leaves say where data comes from
by isl functions on S, so that a whole expression moves to another iteration space T by one
substitution T -> S (`pull_back`). That is how a consumer reads through a view, and how a producer
is inlined into its consumer. `Call` and `Cast` are generic in what they are applied to, since
generated loops (`loopnest/nodes.py`) have the same trees over leaves of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

import islpy as isl
import numpy as np

from polyc.poly.affine import outputs
from polyc.poly.show import show_value

BOOL = np.dtype(np.bool_)
INT64 = np.dtype(np.int64)

E = TypeVar("E", covariant=True)
"""The expressions that a call or a cast is applied to."""

T = TypeVar("T")


@dataclass(frozen=True)
class Const:
    """A literal."""

    value: int | float | bool
    dtype: np.dtype


@dataclass(frozen=True)
class Index:
    """An integer that depends on the iterators alone, e.g. the position that ArgMax reports."""

    value: isl.PwAff  # S -> Z
    dtype: np.dtype = INT64


@dataclass(frozen=True)
class Within:
    """Whether the instance lies in a set; guards the pieces of a piecewise view."""

    domain: isl.Set  # S
    dtype: np.dtype = BOOL


@dataclass(frozen=True)
class Load:
    """An array element. `dynamic` says for which coordinates of `index` data counts as well.

    index is defined exactly where the element is read: a load under `select(Within(D), …)` has an
    index with domain D. A coordinate that is data alone is kept in range by its own expression
    (function "index"); its value in `index` is a placeholder. What is added to a coordinate comes
    from a constant, of which it is known between which numbers it lies (function "offset").
    """

    array: str
    index: isl.PwMultiAff  # S -> A
    dtype: np.dtype
    dynamic: tuple[tuple[int, Expr], ...] = ()


@dataclass(frozen=True)
class Call(Generic[E]):
    """A function of `runtime/` applied to expressions: add, mul, exp, select, lt, …"""

    function: str
    arguments: tuple[E, ...]
    dtype: np.dtype


@dataclass(frozen=True)
class Cast(Generic[E]):
    """A conversion with the rules of `runtime/`: total, NaN and values out of range included.

    One that is `for_storage` is there because memory holds a narrow type: who gets the value
    without the way through memory may compute with what it was before.
    """

    argument: E
    dtype: np.dtype
    for_storage: bool = False


Expr: TypeAlias = Const | Index | Within | Load | Call["Expr"] | Cast["Expr"]


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Call(arguments=arguments):
            return arguments
        case Cast(argument=argument):
            return (argument,)
        case Load(dynamic=dynamic):
            return tuple(e for _, e in dynamic)
        case _:
            return ()


def conjuncts(condition: T) -> Iterator[T]:
    """The parts of a condition, all of which have to hold."""
    match condition:
        case Call("and", parts):
            for part in parts:
                yield from conjuncts(part)
        case _:
            yield condition


def walk(expr: Expr) -> Iterator[Expr]:
    """Every sub-expression, parents first."""
    stack = [expr]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(children(top)))


def loads(expr: Expr) -> Iterator[Load]:
    return (e for e in walk(expr) if isinstance(e, Load))


def rebuild(expr: Expr, leaf: Callable[[Expr], Expr]) -> Expr:
    """expr with `leaf` applied to each Const, Index, Within and Load (bottom up)."""
    new = with_children(expr, tuple(rebuild(child, leaf) for child in children(expr)))
    return new if isinstance(new, Call | Cast) else leaf(new)


def with_children(expr: Expr, parts: tuple[Expr, ...]) -> Expr:
    """expr applied to `parts` in place of its children; expr itself if they are the same objects.

    So what does not change is shared by an expression and those that are made from it.
    """
    if all(new is old for new, old in zip(parts, children(expr), strict=True)):
        return expr
    match expr:
        case Call(function, _, dtype):
            return Call(function, parts, dtype)
        case Cast(_, dtype, for_storage):
            (argument,) = parts
            return Cast(argument, dtype, for_storage)
        case Load(array, index, dtype, dynamic):
            places = (dimension for dimension, _ in dynamic)
            return Load(array, index, dtype, tuple(zip(places, parts, strict=True)))
        case _:
            return expr


def pull_back(expr: Expr, substitution: isl.PwMultiAff) -> Expr:
    """e(S) -> e(f(T)) for the substitution f: T -> S."""
    return rebuild(expr, lambda e: pull_back_leaf(e, substitution))


def pull_back_leaf(leaf: Expr, substitution: isl.PwMultiAff) -> Expr:
    """`pull_back` for one leaf; the computed coordinates of a Load are left as they are."""
    match leaf:
        case Index(value=value):
            return replace(leaf, value=value.pullback_pw_multi_aff(substitution))
        case Within(domain=domain):
            inverse = substitution.as_map()  # T -> S
            return replace(leaf, domain=domain.apply(inverse.reverse()))
        case Load(index=index):
            return replace(leaf, index=index.pullback_pw_multi_aff(substitution))
        case _:
            return leaf


def restrict(expr: Expr, domain: isl.Set) -> Expr:
    """The same expression, with every load defined on `domain` only (it stands under a guard)."""

    def leaf(e: Expr) -> Expr:
        if isinstance(e, Load):
            return replace(e, index=e.index.intersect_domain(domain))
        return e

    return rebuild(expr, leaf)


def call(function: str, *arguments: Expr, dtype: np.dtype | None = None) -> Call[Expr]:
    """A call whose type is that of its last argument unless given (comparisons are bool)."""
    if dtype is None:
        dtype = BOOL if function in COMPARISONS else arguments[-1].dtype
    return Call(function, tuple(arguments), dtype)


def cast(argument: Expr, dtype: np.dtype) -> Expr:
    return argument if argument.dtype == dtype else Cast(argument, np.dtype(dtype))


def drop_roundings(expr: Expr) -> Expr:
    """expr without conversions for storage where nothing is stored.

    float32(float16(e)) -> e, for e of float32, if float16 was for storage
    """
    match expr:
        case Cast(Cast(inner, for_storage=True), dtype) if inner.dtype == dtype:
            return drop_roundings(inner)
        case _:
            return with_children(expr, tuple(map(drop_roundings, children(expr))))


def offset(load: Load, least: int, most: int) -> Call[Expr]:
    """What a constant adds to a coordinate: from `least` to `most`, whichever element is read."""
    numbers = (Const(least, INT64), Const(most, INT64))
    return Call("offset", (cast(load, INT64), *numbers), INT64)


def offset_range(expr: Expr) -> tuple[int, int] | None:
    """From where to where an `offset` goes; None if a coordinate is data alone."""
    match expr:
        case Call("offset", (_, Const(least), Const(most))):
            return int(least), int(most)
        case _:
            return None


ORDERED = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
COMPARISONS = ORDERED | {"isnan", "isinf"}


def operations(expr: Expr) -> int:
    """Scalar operations of one evaluation (each call and cast counts one).

    What a constant adds to a coordinate is no operation, nor is to ask where a row of entries ends.
    """
    return _count(expr, (Call, Cast))


def arithmetic(expr: Expr) -> int:
    """The same without casts: what multiplies bytes that are added up as integers counts one."""
    return _count(expr, (Call,))


def _count(expr: Expr, kinds: tuple[type, ...]) -> int:
    match expr:
        case Call("select", (Call("lt", (Index(), _)), value, Const(0.0))):
            return _count(value, kinds)
        case Call("offset"):
            return 0
        case _:
            return isinstance(expr, kinds) + sum(_count(e, kinds) for e in children(expr))


WEIGHTS = {
    **dict.fromkeys(("sin", "cos", "tan"), 50),
    "pow": 30,
    **dict.fromkeys(("asinh", "acosh", "atanh"), 20),
    **dict.fromkeys(("sinh", "cosh", "expm1"), 12),
    **dict.fromkeys(("exp", "exp_normal", "exp2", "sigmoid", "tanh", "erf"), 6),
    **dict.fromkeys(("log", "log2", "log1p", "asin", "acos", "atan"), 6),
}
"""Functions that a kernel has inlined -> what they count for, where a cheap one counts 1.

Their order follows what gcc -O3 took for one more of them in a kernel for AVX2, one run each: some
140 ms for a sine, 60 for a power, 10 for an exponential, under 1 for an addition. A sine counts for
less than that, so that a statement may have a few.
"""


def calls_functions(expr: Expr) -> bool:
    """Whether an expression has functions of several operations, of which C compilers know no
    vectors: series, and conversions of floats to whole numbers."""
    return any(
        e.function in WEIGHTS if isinstance(e, Call) else _truncates(e)
        for e in walk(expr)
        if isinstance(e, Call | Cast)
    )


def _truncates(cast: Cast[Expr]) -> bool:
    return cast.dtype.kind in "iu" and cast.argument.dtype.kind == "f"


def weight(expr: Expr) -> int:
    """What an expression is for the C compiler: its nodes, functions counting for what they are."""
    return sum(WEIGHTS.get(e.function, 1) if isinstance(e, Call) else 1 for e in walk(expr))


def show(expr: Expr) -> str:
    """The expression as text, for dumps and reports."""
    match expr:
        case Const(value=value):
            return repr(value)
        case Index(value=value):
            return f"index({show_value(value)})"
        case Within(domain=domain):
            return f"within{domain}"
        case Load(array=array, index=index, dynamic=dynamic):
            places = [show_value(value) for value in outputs(index)]
            for dimension, computed in dynamic:
                places[dimension] = show(computed)
            return f"{array}[{', '.join(places)}]"
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(map(show, arguments))})"
        case Cast(argument=argument, dtype=dtype):
            return f"{dtype}({show(argument)})"
