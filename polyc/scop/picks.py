"""Iterators that data picks: a statement does something with one of all their values, or some.

    h[p] add= index(x[i]) == p ? 1 : 0                 p is x[i]; other places of h stay
    a[p]  =   index(x[i]) == p ? b[i] : a[p]
    y[i] add= begin[i] <= k and k < end[i] ? v[k] : 0      k is in begin[i] .. end[i]

So sets have what a program writes where data says, `h[x[i]] += 1`: as a loop over all places, in
which each asks whether it is meant. All that is known of order holds for it, and so do proofs. Of
the loop what is meant is left when it is printed (`codegen/bound_by_data.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import islpy as isl

from polyc.poly.affine import plain_iterator
from polyc.scop.expr import Call, Const, Expr, Index, Load, Within, conjuncts, walk
from polyc.scop.scop import Statement, identity


def find_picks(statement: Statement) -> Mapping[int, Expr]:
    """{the position of an iterator that data picks: what it has to be}"""
    match statement.value:
        case Call("select", (condition, _, otherwise)) if _changes_nothing(statement, otherwise):
            return dict(_picks(condition))
    return {}


def find_walks(statement: Statement) -> frozenset[int]:
    """The positions of iterators of which data says where they begin and end."""
    match statement.value:
        case Call("select", (condition, _, _)):
            tests = list(conjuncts(condition))
            begins = {k for test in tests if (k := _compared(test, "le", 1)) is not None}
            ends = {k for test in tests if (k := _compared(test, "lt", 0)) is not None}
            return frozenset(begins & ends)
    return frozenset()


def find_left(statement: Statement) -> Iterator[Load]:
    """What must be false for a statement to do something, as that a loop was left."""
    match statement.value:
        case Call("select", (condition, _, _)):
            for test in conjuncts(condition):
                match test:
                    case Call("not", (Load() as flag,)):
                        yield flag


def _compared(test: Expr, function: str, side: int) -> int | None:
    """The iterator that a test compares with data, on one side of it."""
    match test:
        case Call(name, arguments) if name == function:
            one, other = arguments[side], arguments[1 - side]
            if isinstance(one, Index) and isinstance(other, Load):
                found = plain_iterator(one.value)
                return found[0] if found is not None and found[1] == 0 else None
    return None


def _changes_nothing(statement: Statement, value: Expr) -> bool:
    """Whether a value leaves what is there: it is neutral, or what is there."""
    match value:
        case Const(number) if statement.reduction:
            return bool(number == identity(statement.reduction, statement.value.dtype))
        case Load(array, index, _, ()) if not statement.reduction:
            return array == statement.array and bool(index.plain_is_equal(statement.write))
    return False


def _picks(condition: Expr) -> Iterator[tuple[int, Expr]]:
    for test in conjuncts(condition):
        match test:
            case Call("eq", (place, Index(value))):
                found = plain_iterator(value)
                if found is not None and found[1] == 0 and not _moves(place, found[0]):
                    yield found[0], place


def _moves(expr: Expr, iterator: int) -> bool:
    """Whether an expression may change as an iterator moves."""
    functions = [
        part.value if isinstance(part, Index) else part.index
        for part in walk(expr)
        if isinstance(part, Index | Load)
    ]
    asks = any(isinstance(part, Within) for part in walk(expr))
    return asks or any(f.involves_dims(isl.dim_type.in_, iterator, 1) for f in functions)
