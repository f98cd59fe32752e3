"""Arrays of a kernel's own whose tiles are as large as a call says: near if that is little.

    for i step 30:                     # parallel
      for i in I: a[i, 0 .. s] = …         a tile touches a[i .. i + 30, 0 .. s]:
      for i in I: … = a[i, 0 .. s]         one run of memory from a[i, 0] on, 30 s long

What a tile hands on is of no use after it, so each tile may have its rows in the same place. How
long they are is known when a kernel runs: where they are short this place is the stack, and the
array's own memory is never touched (`Near`, `printing/near.py`). So a call of 2,000 tokens does not
write scores of attention to memory, though nobody knew when compiling that it has 2,000.

A tile touches such a run of an array as it is stored if, along its dimensions in their order,

    one place alone; …; at most r places from a corner on; all places; …; all places
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import islpy as isl

from polyc.memory.storage import Storage
from polyc.poly.affine import is_affine
from polyc.promote.local_arrays import (
    find_footprint,
    find_prefixes,
    is_computed,
    is_declaring,
    list_around,
)
from polyc.scop.scop import Statement
from polyc.types.ranges import ROWS_LIMIT
from polyc.types.sizes import Extent, Size, bounds


@dataclass(frozen=True)
class NearArray:
    """The run of an array, as it is stored, that is touched below a mark.

    mark: inside of `depth` others that may declare arrays; corner: # prefix -> M, the first place;
    rows: how many there are along `dimension`, at most.
    """

    mark: str
    depth: int
    corner: isl.PwMultiAff
    dimension: int
    rows: Extent


def find_near(
    schedule: isl.Schedule,
    statements: Sequence[Statement],
    private: Collection[str],
    storages: Mapping[str, Storage],
    named: Mapping[str, Collection[str] | None],
) -> dict[str, NearArray]:
    """Those of `private` of which a tile touches one run, whose length a call decides.

    named: by mark, the only arrays that it may declare; any where it says None, or nothing.
    """
    found = {}
    for name, users, around in list_around(schedule, statements, private, named):
        run = _find_run(name, users, around[-1], storages[name]) if around else None
        if run is not None:
            found[name] = run
    return found


def _find_run(
    array: str, users: Sequence[Statement], mark: isl.ScheduleNode, storage: Storage
) -> NearArray | None:
    if is_computed(array, users) or not is_affine(storage.map.to_pw_multi_aff()):
        return None
    footprint = find_footprint(array, users, find_prefixes(users, mark))
    if footprint is None:
        return None
    places = footprint.apply_range(storage.map.as_map()).coalesce()  # prefix -> M
    corners, extents = _find_corner(places, storage.shape)
    first = next((d for d, n in enumerate(extents) if n != 1), len(extents))
    if first == len(extents) or not any(isinstance(n, Size) for n in storage.shape[first:]):
        return None
    zero = isl.PwAff.from_aff(isl.Aff.zero_on_domain_space(places.domain().get_space()))
    corner = isl.PwAffList.alloc(isl.DEFAULT_CONTEXT, len(extents))
    for d, low in enumerate(corners):
        corner = corner.add(low if d < first or (d == first and extents[d]) else zero)
    function = isl.MultiPwAff.from_pw_aff_list(places.get_space(), corner)
    rows = extents[first]
    return NearArray(
        mark.mark_get_id().get_name(),
        sum(is_declaring(mark.ancestor(k)) for k in range(1, mark.get_tree_depth())),
        isl.PwMultiAff.from_multi_pw_aff(function),
        first,
        storage.shape[first] if rows is None else rows,
    )


def _find_corner(
    places: isl.Map, shape: Sequence[Extent]
) -> tuple[list[isl.PwAff], list[int | None]]:
    """# prefix -> Z, by dimension the least place; and how many there are, None: any number.

    So it is as well for more than rows may be, or than there are: all is the better bound then.
    """
    corners, extents = [], []
    for d, size in enumerate(shape):
        low, high = places.dim_min(d), places.dim_max(d)
        most = high.sub(low).as_map().range().dim_max_val(0)
        corners.append(low)
        count = int(most.to_python()) + 1 if most.is_int() else ROWS_LIMIT
        extents.append(count if count < min(ROWS_LIMIT, _most(size)) else None)
    return corners, extents


def _most(size: Extent) -> int | float:
    """The largest value that a size may have; more than any number that is one."""
    return bounds(size)[1] if isinstance(size, Size) else math.inf
