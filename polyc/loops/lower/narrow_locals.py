"""Locals of 64 bits in 32, where all that is ever in them fits.

    for u in range(5): for v in range(5): s += int(a[i + u, j + v])        a: uint8

    s lies between 0 and 25 * 255

How many instances add to an element is asked of isl, of the locals as they are expanded
(`expand.py`): these have an element for each time that they are begun anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import islpy as isl

from polyc.analysis.dependences import compute_dependences
from polyc.loops.lower.expand import expand
from polyc.loops.lower.lowered import Lowered
from polyc.loops.lower.narrow import INT32, Bounds, Known, bounds_of, fits, narrow
from polyc.loops.lower.webs import split_locals
from polyc.loops.read.sizes import Signature
from polyc.scop.expr import INT64, Expr, Load, cast, rebuild
from polyc.scop.scop import Scop, Statement

OUT = isl.dim_type.out


def narrow_locals(lowered: Lowered, signature: Signature) -> Lowered:
    """The kernel with those locals in 32 bits that these are known to hold."""
    arrays = lowered.bare.arrays.values()
    wide = {a.name for a in arrays if a.kind == "temporary" and a.dtype == INT64}
    if not _find(lowered.bare, wide, lambda _: 1):
        return lowered
    split = split_locals(lowered, compute_dependences(lowered.bare))
    expanded = expand(split, compute_dependences(split.bare), signature).bare
    became = {s.name: s.array for s in expanded.statements}
    parts = {became[s.name]: s.array for s in lowered.bare.statements if s.array in wide}
    known = _find(expanded, parts, _most_instances)
    # A local that has become several is one again.
    found = {
        name: _join(known[part] for part in parts if parts[part] == name)
        for name in wide
        if all(part in known for part, whole in parts.items() if whole == name)
    }
    if not found:
        return lowered
    scop, bare = (_narrowed(one, found) for one in (lowered.scop, lowered.bare))
    return replace(lowered, scop=scop, bare=bare)


def _find(
    scop: Scop, names: Collection[str], count: Callable[[Statement], float]
) -> dict[str, Bounds]:
    """Between which numbers those of some locals lie that 32 bits hold."""
    known: dict[str, Bounds] = {}
    while True:  # what is known of some says more of others
        found = {n: _bounds(scop, n, known, count) for n in names if n not in known}
        fitting = {name: bounds for name, bounds in found.items() if bounds and fits(bounds)}
        if not fitting:
            return known
        known |= fitting


def _join(bounds: Iterable[Bounds]) -> Bounds:
    starts, ends = zip(*bounds, strict=True)
    return min(starts), max(ends)


def _bounds(
    scop: Scop, name: str, known: Known, count: Callable[[Statement], float]
) -> Bounds | None:
    """Between which numbers lie all that an element is assigned, and all that it becomes.

    count: how many instances of a statement write to one element, at most.
    """
    assigned: list[float] = [0]
    added: list[Bounds] = []  # in all, by each statement
    for s in scop.statements:
        if s.array != name:
            continue
        reads_itself = any(load.array == name for load in s.loads)
        if reads_itself or s.reduction not in (None, "add", "min", "max"):
            return None
        least, most = bounds_of(s.value, known)
        if s.reduction != "add":
            assigned += (least, most)
        elif least or most:
            times = count(s)
            added.append((min(least, 0) and least * times, max(most, 0) and most * times))
    least, most = (sum(ends) for ends in zip((0, 0), *added, strict=True))
    return min(assigned) + least, max(assigned) + most


def _most_instances(s: Statement) -> float:
    """How many instances of a statement write to one element, at most."""
    instances = s.write.as_map().intersect_domain(s.domain).reverse()  # A -> S
    count = 1.0
    for k in range(instances.dim(OUT)):
        width = instances.dim_max(k).sub(instances.dim_min(k)).max_val()
        if not width.is_int():
            return math.inf
        count *= width.to_python() + 1
    return count


def _narrowed(scop: Scop, locals_: Known) -> Scop:
    """The scop with some locals in 32 bits."""

    def leaf(expr: Expr) -> Expr:
        if isinstance(expr, Load) and expr.array in locals_:
            return cast(replace(expr, dtype=INT32), INT64)
        return expr

    def rewritten(s: Statement) -> Statement:
        value = rebuild(s.value, leaf)
        value = cast(value, INT32) if s.array in locals_ else value
        return replace(s, value=narrow(value, locals_))

    arrays = {n: replace(a, dtype=INT32) if n in locals_ else a for n, a in scop.arrays.items()}
    return replace(scop, statements=tuple(map(rewritten, scop.statements)), arrays=arrays)
