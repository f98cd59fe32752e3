"""Sums that nobody reads are not computed.

    S: acc[o, x] add= mul(W[o, c], a[c, x])     0 <= x <= n
    T: y[o, x] = acc[o, x]                      0 <= x < n
    ->
    S: acc[o, x] add= mul(W[o, c], a[c, x])     0 <= x < n

So it is where a convolution is cropped, as by exporters that know no padding on one side: with both
over the same box one tile does as much of either, and what is left of the last tile as well.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import islpy as isl

from polyc.scop.accesses import read_map, write_map
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, find_uses


def trim_sums(scop: Scop) -> Scop:
    """The scop with sums over the smallest box around those that are read."""
    uses, trimmed = find_uses(scop.statements), dict[str, isl.Set]()
    shared = {array.memory for array in scop.arrays.values()}  # read under other names as well
    for name, array in scop.arrays.items():
        if array.kind == "temporary" and uses.is_accumulator(name) and name not in shared:
            trimmed.update(_trim(array, uses))
    if not trimmed:
        return scop
    statements = (replace(s, domain=trimmed.get(s.name, s.domain)) for s in scop.statements)
    return replace(scop, statements=tuple(statements))


def _trim(array: Array, uses: Uses) -> dict[str, isl.Set]:
    """The smaller domains of the statements that write a sum; empty if all of it may be read."""
    writers, reads = uses.writes(array.name), uses.reads(array.name)
    if not reads or not all(_is_plain(s) for s in (*writers, *(reader for reader, _ in reads))):
        return {}
    read = reduce(isl.Set.union, (read_map(s, load, array).range() for s, load in reads))
    written = reduce(isl.Set.union, (write_map(s).range() for s in writers))
    if written.is_subset(read):
        return {}
    box, found = _box_around(read), {}
    for s in writers:
        domain = s.domain.intersect(box.preimage_pw_multi_aff(s.write)).coalesce()
        if not s.domain.is_subset(domain):
            found[s.name] = domain
    return found if all(domain.n_basic_set() == 1 for domain in found.values()) else {}


def _is_plain(s: Statement) -> bool:
    return s.time is None and s.step is None and s.group is None and not s.branches


def _box_around(places: isl.Set) -> isl.Set:
    """The elements that lie, in each dimension, between two of these places."""
    kind, count = isl.dim_type.set, places.dim(isl.dim_type.set)
    box = isl.Set.universe(places.get_space())
    for d in range(count):
        line = places.project_out(kind, d + 1, count - d - 1).project_out(kind, 0, d)
        line = isl.Set.from_basic_set(line.simple_hull().remove_divs())
        line = line.insert_dims(kind, 0, d).insert_dims(kind, d + 1, count - d - 1)
        box = box.intersect(line.set_tuple_id(places.get_tuple_id()))
    return box
