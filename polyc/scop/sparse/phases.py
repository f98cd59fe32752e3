"""Elements that lie several apart as neighbours: a copy by phases.

    x[c, y, 2*a + b]   ->   copy[c, y, b, a]

So lanes of a convolution with a stride walk with unit step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import islpy as isl
import numpy as np

from polyc.names import fresh
from polyc.poly.affine import output, single_aff
from polyc.poly.boxes import box
from polyc.scop.expr import Const, Load
from polyc.scop.scop import Array, Statement
from polyc.scop.sparse.weights import Weights, places_of, steps_of


@dataclass(frozen=True)
class Phases:
    """An array in which every so many elements along a dimension are neighbours.

    x[c, y, s*a + b]  is  copy[c, y, b - first, a].  place: where the lanes begin in the dimension.
    Behind shorter phases zeros follow.
    """

    copies: tuple[Statement, ...]
    array: Array
    dimension: int
    step: int
    first: int
    place: int


def split_phases(
    s: Statement,
    data: Load,
    lane: int,
    step: int,
    weights: Weights,
    arrays: Mapping[str, Array],
    names: set[str],
) -> Phases | None:
    """A copy that lanes walk with unit step, where what is read lies `step` apart; or None."""
    rows, source = steps_of(data.index), arrays[data.array]
    d = next(k for k, row in enumerate(rows) if row[lane])
    others = [p for p in range(len(s.iterators)) if p != lane and p not in weights.summed]
    extent, aff = source.shape[d], single_aff(output(data.index, d))
    if aff is None or any(rows[d][p] for p in others) or not isinstance(extent, int):
        return None
    start = int(aff.get_constant_val().to_python())
    reached = np.unique((start + places_of(rows[d], s, weights)) % step)
    first, count = int(reached[0]), int(reached[-1] - reached[0] + 1)
    name = fresh(f"{source.name}_phases", arrays)
    shape = (*source.shape[:d], count, -(-extent // step), *source.shape[d + 1 :])
    array = Array(name, source.dtype, shape, "temporary")
    title = fresh(f"S_{name}", names)
    inside = [f"i{k}" for k in range(len(shape))]
    read = [*inside[:d], f"{step}*i{d + 1} + i{d} + {first}", *inside[d + 2 :]]
    here = f"{title}[{', '.join(inside)}]"
    copied = isl.PwMultiAff(f"{{ {here} -> {source.name}[{', '.join(read)}] }}")
    domain = box(title, shape).intersect(
        box(source.name, source.shape).preimage_pw_multi_aff(copied)
    )
    copy = Statement(
        title,
        domain,
        tuple(inside),
        name,
        isl.PwMultiAff(f"{{ {here} -> {name}[{', '.join(inside)}] }}"),
        Load(source.name, copied, source.dtype),
        origin=s.origin,
        step=s.step,
        branches=s.branches,
    )
    rest = box(title, shape).subtract(domain)
    if rest.is_empty():
        return Phases((copy,), array, d, step, first, start)
    label = fresh(f"{title}_fill", names)
    filled = isl.PwMultiAff(f"{{ {label}[{', '.join(inside)}] -> {name}[{', '.join(inside)}] }}")
    zeros = replace(
        copy,
        name=label,
        domain=rest.set_tuple_name(label),
        write=filled,
        value=Const(0.0, source.dtype),
    )
    return Phases((zeros, copy), array, d, step, first, start)


def by_phases(
    load: Load, places: Mapping[int, np.ndarray], phases: Phases
) -> tuple[Load, dict[int, np.ndarray]]:
    """The same elements in the copy by phases: each term's phase, and how far it is in that."""
    d, step = phases.dimension, phases.step
    at = phases.place + places.get(d, np.zeros(1, np.int64))
    found = {k if k < d else k + 1: place for k, place in places.items() if k != d}
    if d in places:
        found |= {d: at % step - phases.first, d + 1: at // step}
    rank = load.index.dim(isl.dim_type.out)
    old = [f"i{k}" for k in range(rank)]
    lanes = f"floor((i{d} - {phases.place})/{step})"
    start = ["0", lanes] if d in places else [f"{int(at[0]) % step - phases.first}", lanes]
    start[1] += "" if d in places else f" + {int(at[0]) // step}"
    new = ", ".join([*old[:d], *start, *old[d + 1 :]])
    moved = isl.PwMultiAff(f"{{ {load.array}[{', '.join(old)}] -> {phases.array.name}[{new}] }}")
    index = moved.pullback_pw_multi_aff(load.index)
    return replace(load, array=phases.array.name, index=index), dict(sorted(found.items()))
