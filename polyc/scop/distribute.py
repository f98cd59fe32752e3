"""Distribute a pointwise reader over the statements that write what it reads in pieces.

    W0: X[2i] = a(i)      W1: X[2i + 1] = b(i)      R: Y[j] = f(X[j], Z[j])
    ->
    W0: Y[2i] = f(a(i), Z[2i])                      W1: Y[2i + 1] = f(b(i), Z[2i + 1])

Each piece takes the place of its writer, so that the activation after a tiled convolution, or after a
concatenation, is computed where the value is still in a register.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from polyc.poly.affine import simplify
from polyc.scop.expr import Expr, Load, pull_back, rebuild, walk
from polyc.scop.inline import LARGEST_EXPRESSION, simplify_indices
from polyc.scop.scop import Scop, Statement
from polyc.scop.uses import Uses, drop_dead, find_uses


def distribute(scop: Scop) -> Scop:
    """The scop with each reader distributed whose input is assembled from pieces for it alone."""
    statements = list(scop.statements)
    for array in scop.arrays.values():
        uses = find_uses(tuple(statements))
        if array.kind == "temporary" and len(uses.writes(array.name)) > 1:
            statements = _distribute(array.name, statements, uses)
    return drop_dead(replace(scop, statements=tuple(statements)))


def _distribute(array: str, statements: list[Statement], uses: Uses) -> list[Statement]:
    writers = uses.writes(array)
    reads = uses.reads(array)
    if not reads or any(s.reduction for s in writers):
        return statements
    reader = reads[0][0]
    if any(s.name != reader.name for s, _ in reads) or reader.reduction or reader.group:
        return statements
    order = {s.name: k for k, s in enumerate(statements)}
    written = {s.array: order[s.name] for s in statements}
    first = min(order[w.name] for w in writers)
    others = [load.array for load in reader.loads if load.array != array]
    index = reads[0][1].index
    once = index.as_map().intersect_domain(reader.domain)
    if any(written.get(a, -1) > first for a in others) or any(ld.dynamic for ld in reader.loads):
        return statements
    if not once.is_injective() or any(not ld.index.is_equal(index) for _, ld in reads):
        return statements
    size = sum(1 for _ in walk(reader.value))
    if any(size + sum(1 for _ in walk(w.value)) > LARGEST_EXPRESSION for w in writers):
        return statements
    back = isl.PwMultiAff.from_map(once.reverse())  # X -> R
    pieces = [_piece(reader, w, back) for w in writers]
    gone = {w.name for w in writers} | {reader.name}
    result: list[Statement] = []
    for s in statements:
        if s.name == reader.name:
            result += [p for p in pieces if not p.domain.is_empty()]
        elif s.name not in gone:
            result.append(s)
    return result


def _piece(reader: Statement, writer: Statement, back: isl.PwMultiAff) -> Statement:
    """The part of the reader that uses what `writer` wrote, as a statement in the writer's place."""
    into = back.pullback_pw_multi_aff(writer.write)  # W -> X -> R
    domain = writer.domain.intersect(into.domain())

    def leaf(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.array == writer.array:
            return writer.value
        return pull_back(expr, into)

    return replace(
        writer,
        domain=domain,
        array=reader.array,
        write=simplify(reader.write.pullback_pw_multi_aff(into), domain),
        value=simplify_indices(rebuild(reader.value, leaf), domain),
        origin=tuple(dict.fromkeys((*writer.origin, *reader.origin))),
    )
