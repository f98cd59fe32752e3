"""The literals that a statement computes with, and its structure without what they say.

    S[i]: y[i] = max(x[i] * 0.5, 0.0)     literals 0.5 and 0.0;   form  y[i] = max(x[i] * _, _)

Those in computed coordinates do not count: they say where an element lies, which is what bounds are
proven by; nor does the extent that an index is held below, as one that is computed by a statement
of its own. Nor do truth values and narrow types, which nothing computes with.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from polyc.poly.canonical import Canonical
from polyc.scop.expr import Call, Const, Expr, Load, children, with_children
from polyc.scop.scop import Statement
from polyc.types.element_types import is_narrow, scalar_type


def find_literals(expr: Expr) -> tuple[Const, ...]:
    """The literals of an expression, from left to right."""
    return tuple(e for e, counts in _walk(expr) if counts and isinstance(e, Const))


def replace_literals(expr: Expr, values: Sequence[Expr]) -> Expr:
    """The expression with `values`, as many as it has literals, in their places."""
    waiting = iter(values)

    def visit(e: Expr) -> Expr:
        if _counts(e):
            return next(waiting)
        if isinstance(e, Load):
            return e
        kept = [_says_where(e, k) for k in range(len(children(e)))]
        below = zip(children(e), kept, strict=True)
        return with_children(e, tuple(child if keeps else visit(child) for child, keeps in below))

    return visit(expr)


def compute_form(s: Statement) -> Canonical:
    """The key of a statement's structure (`structure.py`) without what its literals say."""
    pairs = zip(s.structure.nodes, _walk(s.value), strict=True)
    nodes = (("literal", scalar_type(e.dtype)) if counts else node for node, (e, counts) in pairs)
    return *s.structure.places, *nodes


def content_of(literal: Const) -> np.ndarray:
    """A literal as an array element has it: its type decides how it is rounded."""
    return np.array(literal.value, literal.dtype)


def _walk(expr: Expr, computed: bool = False) -> Iterator[tuple[Expr, bool]]:
    """Every sub-expression, parents first, and whether it is a literal that counts.

    computed: whether it is part of a computed coordinate.
    """
    yield expr, not computed and _counts(expr)
    for k, child in enumerate(children(expr)):
        yield from _walk(child, computed or _says_where(expr, k))


def _says_where(expr: Expr, child: int) -> bool:
    """Whether a child of an expression is a computed coordinate, or the bound of one."""
    return isinstance(expr, Load) or (
        isinstance(expr, Call) and expr.function == "index" and child == 1
    )


def _counts(expr: Expr) -> bool:
    if not isinstance(expr, Const) or is_narrow(expr.dtype):
        return False
    if expr.dtype.kind == "f":
        return True
    if expr.dtype.kind not in "iu":
        return False
    limits = np.iinfo(expr.dtype)
    return bool(limits.min <= expr.value <= limits.max)
