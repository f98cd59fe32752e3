"""Conversions of whole constants: done when compiling.

    W: w_wide[i, j] = float32(w[i, j])      w: a constant of float16
    ->
    w_wide: a constant of float32

This is for what inlining has left: a weight that is read once, as in the product of a matrix with a
vector, is converted where it is read, and stays as small in memory as it was. One that is read many
times is converted here, at the price of its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import islpy as isl
import numpy as np

from polyc.poly.boxes import box
from polyc.scop.expr import Cast, Load
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import drop_dead, find_uses


def convert_constants(scop: Scop) -> Scop:
    """The scop without statements that only convert a constant."""
    uses = find_uses(scop.statements)
    arrays, kept = dict(scop.arrays), []
    for s in scop.statements:
        target = scop.arrays[s.array]
        alone = target.kind == "temporary" and len(uses.writes(s.array)) == 1
        value = _converted(s, scop.arrays, target) if alone else None
        if value is None:
            kept.append(s)
        else:
            arrays[s.array] = replace(target, kind="constant", value=value)
    return drop_dead(replace(scop, statements=tuple(kept), arrays=arrays))


def _converted(s: Statement, arrays: Mapping[str, Array], target: Array) -> np.ndarray | None:
    """The value of an array that is a constant, element for element, in another type."""
    match s.value:
        case Cast(Load(array, index, dynamic=()), dtype) if s.reduction is None:
            source = arrays[array]
        case _:
            return None
    if source.value is None or source.shape != target.shape:
        return None
    written = s.write.as_map().intersect_domain(s.domain)
    read = index.as_map().intersect_domain(s.domain).set_tuple_name(isl.dim_type.out, s.array)
    whole = box(s.array, target.shape)
    if not (written.is_equal(read) and written.is_injective() and written.range().is_equal(whole)):
        return None
    return source.value.astype(dtype)
