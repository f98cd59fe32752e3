"""Boxes: the index sets of arrays."""

from __future__ import annotations

from functools import cache

import islpy as isl

from polyc.poly.conditions import spell
from polyc.poly.parameters import among_own_sizes, read
from polyc.types.sizes import Extent


def box(name: str, shape: tuple[Extent, ...]) -> isl.Set:
    """The index set  { name[i…] : 0 <= i_k < shape_k }  of an array, for all sizes."""
    return among_own_sizes(_box(name, tuple(map(spell, shape))))


@cache
def _box(name: str, shape: tuple[str, ...]) -> isl.Set:
    indices = [f"i{k}" for k in range(len(shape))]
    bounds = [f"0 <= {i} < {n}" for i, n in zip(indices, shape, strict=True)]
    return read(isl.Set, f"{{ {name}[{', '.join(indices)}] : {' and '.join(bounds) or 'true'} }}")
