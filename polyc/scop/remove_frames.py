"""Frames removed: what reads a padded copy asks instead whether its element exists.

    P[y + 1, x + 1] = X[y, x]   P = 0 around it       S: … P[y + r, x + q] …
    ->
    S: … select((y + r - 1, x + q - 1) within X, X[y + r - 1, x + q - 1], 0) …

A frame spares the innermost loop of a convolution its conditions (see
`scop/lower/movement/padding.py`). A GPU copies windows into shared memory, where a condition costs
next to nothing, while each side of a frame would be a launch of its own; and X stays where its
producer writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl

from polyc.poly.parameters import is_part
from polyc.scop.expr import Const, Expr, Load, Within, call, pull_back, rebuild, restrict
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Scop, Statement
from polyc.scop.uses import Uses, drop_dead, find_uses


@dataclass(frozen=True)
class Frame:
    """A padded copy: what is copied, by which instance each element is written, and the fill."""

    value: Expr  # over P
    writer: isl.PwMultiAff  # A -> P, on the elements inside the frame
    fill: Const


def remove_frames(scop: Scop) -> Scop:
    """The scop with no temporary left that is a copy inside a frame of one value."""
    uses = find_uses(scop.statements)
    frames: dict[str, Frame] = {}
    statements: list[Statement] = []
    for s in scop.statements:
        s = replace(s, value=_look_through(s, frames))  # a copy may read another frame
        statements.append(s)
        frame = _find_frame(s, uses) if scop.arrays[s.array].kind == "temporary" else None
        if frame is not None:
            frames[s.array] = frame
    return drop_dead(replace(scop, statements=tuple(statements)))


def _find_frame(copy: Statement, uses: Uses) -> Frame | None:
    """The frame that a statement completes, if all else in its array is one value."""
    fills = [w for w in uses.writes(copy.array) if w.name != copy.name]
    values = {repr(w.value.value): w.value for w in fills if isinstance(w.value, Const)}
    if len(values) != 1 or any(w.reduction or not isinstance(w.value, Const) for w in fills):
        return None
    if copy.reduction or isinstance(copy.value, Const):
        return None
    if any(load.dynamic for _, load in uses.reads(copy.array)):
        return None
    backwards = copy.write.as_map().intersect_domain(copy.domain).reverse()
    if not backwards.is_single_valued():
        return None
    (fill,) = values.values()
    return Frame(copy.value, isl.PwMultiAff.from_map(backwards), fill)


def _look_through(s: Statement, frames: Mapping[str, Frame]) -> Expr:
    """The statement's value with its reads of frames turned to what they are copies of."""

    def leaf(e: Expr) -> Expr:
        if not isinstance(e, Load) or e.array not in frames:
            return e
        frame = frames[e.array]
        wanted = s.domain.intersect(e.index.domain())
        writer = frame.writer.pullback_pw_multi_aff(e.index)  # S -> A -> P
        inside = wanted.intersect(writer.domain()).coalesce()
        if inside.is_empty():
            return frame.fill
        value = simplify_indices(pull_back(frame.value, writer), inside)
        if is_part(wanted, inside):
            return value
        guard = inside.gist(
            s.domain
        )  # says nothing of iterators that the element does not move with
        return call("select", Within(guard), restrict(value, guard), frame.fill)

    return rebuild(s.value, leaf)
