"""Contractions written as batched products of tiles, whatever they index.

    y[o, y, x] += w[o, c, r, s] * x[c, y + r, x + s]

    m = o, n = (y, x), k = (c, r, s):      acc[m, n] += a[m, k] * b[k, n]

The shared loops are sorted by which factor they move: rows move the one, columns the other, and
what moves both is a batch. Each kind will be joined into one long loop and cut into tiles, as will
the loops of the sum (`cut_tiles.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import prod

import islpy as isl

from polyc.memory.strides import accesses
from polyc.poly.affine import coefficients, outputs, plain_iterator
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import (
    Call,
    Cast,
    Const,
    Expr,
    Index,
    Load,
    Within,
    call,
    walk,
)
from polyc.scop.scop import Statement
from polyc.types.element_types import is_narrow, wide

SMALLEST = 8
"""Rows, or columns, of which a tile would be mostly empty if there were fewer."""


@dataclass(frozen=True)
class GemmForm:
    """Which shared loops of a contraction are its batch, rows and columns, and what it multiplies.

    The lists hold shared loops; `sums` are positions of the update's own iterators. `left` moves
    with the rows, `right` with the columns. extents: of batch, rows, columns and sum.
    """

    init: Statement
    update: Statement
    rest: tuple[Statement, ...]
    batch: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    sums: tuple[int, ...]
    left: Expr
    right: Expr
    extents: tuple[int, int, int, int]


def find_gemm_form(cluster: Cluster, private: Collection[str]) -> GemmForm | None:
    """The form of a cluster, if it is a sum of products of two factors, and what follows it."""
    if not cluster.has_reuse or len(cluster.statements) < 2:
        return None
    init, update, *rest = cluster.statements
    if update.reduction != "add" or init.array != update.array or update.array not in private:
        return None
    if any(s.reduction for s in rest) or not isinstance(init.value, Const):
        return None
    match update.value:
        case Call("mul", (left, right)) if update.domain.is_box():
            factors = (left, right)
        case _:
            return None
    shared = [loop[update.name] for loop in cluster.shared]
    sums = tuple(p for p in range(len(update.iterators)) if p not in shared)
    moves = [moving(factor) for factor in factors]
    sizes = update.estimated_extents
    kinds: dict[tuple[bool, bool], list[int]] = {}
    for d, p in enumerate(shared):
        kinds.setdefault((p in moves[0], p in moves[1]), []).append(d)
    first, second = kinds.get((True, False), []), kinds.get((False, True), [])
    batch = [*kinds.get((True, True), []), *kinds.get((False, False), [])]
    if not sums or not all(_is_plain(s, cluster, update.array) for s in cluster.statements):
        return None
    if not all(len(s.iterators) == len(cluster.shared) for s in (init, *rest)):
        return None
    if _walks_last(cluster, first):
        first, second, factors = second, first, (right, left)

    def extent(loops: Sequence[int]) -> int:
        return prod(sizes[shared[d]] for d in loops)

    extents = (extent(batch), extent(first), extent(second), prod(sizes[p] for p in sums))
    if min(extents[1:3]) < SMALLEST:
        return None
    return GemmForm(
        init,
        update,
        tuple(rest),
        tuple(batch),
        tuple(first),
        tuple(second),
        sums,
        *factors,
        extents,
    )


def in_stored_types(form: GemmForm) -> GemmForm:
    """The form with factors as memory has them, if both are of one narrow type."""
    left, right = stored_factor(form.left), stored_factor(form.right)
    if left is None or right is None or left.dtype != right.dtype:
        return form
    return replace(form, left=left, right=right)


def stored_factor(factor: Expr) -> Expr | None:
    """The expression in a narrow type of which a factor is the wide value; None if it is none."""
    match factor:
        case Cast(argument, dtype) if is_narrow(argument.dtype) and dtype == wide(argument.dtype):
            return argument
        case Call("select", (Within() as inside, value, Const(0))):
            stored = stored_factor(value)
            return stored and call("select", inside, stored, Const(0, stored.dtype))
    return None


def share_out(form: GemmForm, cluster: Cluster, batch: Sequence[int], row: int) -> GemmForm | None:
    """The form with given loops for its batch and its rows; None if a factor moves otherwise."""
    update, kept = form.update, {*batch, row}
    sizes, shared = update.estimated_extents, [loop[update.name] for loop in cluster.shared]
    columns = tuple(d for d in range(len(shared)) if d not in kept)
    left, right = form.left, form.right
    if shared[row] in moving(right):
        left, right = right, left
    across = {shared[d] for d in columns}
    if not columns or shared[row] in moving(right) or across & moving(left):
        return None

    def extent(loops: Sequence[int]) -> int:
        return prod(sizes[shared[d]] for d in loops)

    return replace(
        form,
        batch=tuple(batch),
        rows=(row,),
        columns=columns,
        left=left,
        right=right,
        extents=(extent(batch), extent([row]), extent(columns), form.extents[-1]),
    )


def moving(expr: Expr) -> set[int]:
    """The iterators that an expression depends on."""
    found: set[int] = set()
    for e in walk(expr):
        match e:
            case Load(index=index):
                for function in outputs(index):
                    found |= {p for p, c in enumerate(coefficients(function)) if c != 0}
                found |= _involved(index.domain())
            case Index(value=value):
                found |= {p for p, c in enumerate(coefficients(value)) if c != 0}
            case Within(domain=domain):
                found |= _involved(domain)
    return found


def _involved(domain: isl.Set) -> set[int]:
    count = domain.dim(isl.dim_type.set)
    return {p for p in range(count) if domain.involves_dims(isl.dim_type.set, p, 1)}


def _is_plain(s: Statement, cluster: Cluster, array: str) -> bool:
    """Whether all accesses of a statement to the sums are at the shared loops."""
    wanted = cluster.shared_positions(s)
    for name, index, _ in accesses(s):
        if name != array:
            continue
        plain = [plain_iterator(function) for function in outputs(index)]
        found = {p[0] for p in plain if p is not None and p[1] == 0}
        moving = {p for p in wanted if s.estimated_extents[p] > 1}
        if not moving <= found or not found <= wanted:
            return False
    return True


def _walks_last(cluster: Cluster, loops: Collection[int]) -> bool:
    """Whether some of the loops walk the last dimension of what the cluster writes."""
    s = cluster.statements[-1]
    *_, last = outputs(s.write)
    column = coefficients(last)
    return any(column[cluster.shared[d][s.name]] != 0 for d in loops)
