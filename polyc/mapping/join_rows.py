"""A kernel whose rows run as one loop, in terms of how many there are all together.

    collapse n y x      S[o, n, y, x, c] : 0 <= n < N and 0 <= y < H and 0 <= x < W and …
    ->                  S[o, n, y, x, c] : n = y = 0 and 0 <= x < R and …,    R = N H W

Where a number is known for each loop but the outermost, `schedule/counting.Collapse` says which row
it is by itself, however rows lie. Where only a call knows, they have to be evenly apart in memory:
then nobody needs to say (`analysis/joined_rows.py`, which also proves it). A tile of rows may then
go on from one image to the next, or from one text of a batch: with 32 texts of one token each it
multiplies 9 of them with what it loads of a matrix, and not one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from polyc.analysis.joined_rows import (
    JoinedRows,
    any_rows,
    count_rows,
    find_uneven,
    find_walked,
    join_extents,
    join_storage,
)
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import Storage
from polyc.names import fresh
from polyc.poly.affine import outputs, plain_iterator
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.types.estimate import hinted
from polyc.types.parameters import named
from polyc.types.ranges import PREFIX, SizeRange, assume, assumed_ranges
from polyc.types.sizes import Extent, bounds


@dataclass(frozen=True)
class Joined:
    """A kernel by the number of its rows, arrays as it sees them, and what that number may be."""

    kernel: StoredKernel
    arrays: Mapping[str, Array]
    rows: JoinedRows
    size: SizeRange

    @property
    def count(self) -> Extent:
        """That number, by the sizes that the kernel is given."""
        return prod(map(named, self.rows.extents))


def join_rows(kernel: StoredKernel, arrays: Mapping[str, Array]) -> Joined | None:
    """The kernel with the rows as one that its schedule collapses, if a call decides how many.

    None as well where they are not evenly apart: `Collapse` says then what it misses.
    """
    if len(kernel.parts) > 1:
        return None
    (part,) = kernel.parts
    rows = find_even_rows(part.cluster, part.rows, arrays, part.storages)
    if rows is None:
        return None
    size = SizeRange(
        rows.size,
        lower=int(all(bounds(extent)[0] >= 1 for extent in rows.extents)),
        hint=prod(map(hinted, rows.extents)),
    )
    walked = find_walked(kernel.statements, rows) or {}
    seen = {n: join_extents(arrays[n].shape, dims, rows) for n, dims in walked.items()}
    storages = {
        n: join_storage(storage, walked.get(n, ()), rows) for n, storage in part.storages.items()
    }
    with assume([size]):
        statements = tuple(_count(s, rows) for s in part.cluster.statements)
    cluster = replace(part.cluster, statements=statements, joined=part.rows)
    return Joined(
        replace(kernel, parts=(replace(part, cluster=cluster, storages=storages),)),
        {**arrays, **{name: replace(arrays[name], shape=shape) for name, shape in seen.items()}},
        rows,
        size,
    )


def find_even_rows(
    cluster: Cluster,
    loops: Sequence[int],
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
) -> JoinedRows | None:
    """Shared loops that can run as one though a call decides how often; None if they cannot."""
    last = cluster.statements[-1]
    where = {
        s.name: tuple(cluster.shared[d][s.name] for d in loops)
        for s in cluster.statements
        if all(s.name in cluster.shared[d] for d in loops)
    }
    if not loops or last.name not in where:
        return None
    if all(last.exact_extents[p] is not None for p in where[last.name]):
        return None
    dimensions = {plain_iterator(f): d for d, f in enumerate(outputs(last.write))}
    walked = [dimensions.get((p, 0)) for p in where[last.name]]
    extents = tuple(arrays[last.array].shape[d] for d in walked if d is not None)
    taken = {size.name for size in assumed_ranges()}
    rows = JoinedRows(where, extents, fresh(f"{PREFIX}rows", taken))
    statements = (*cluster.prelude, *cluster.statements)
    is_even = len(extents) == len(loops) and not find_uneven(statements, arrays, storages, rows)
    return rows if is_even else None


def _count(s: Statement, rows: JoinedRows) -> Statement:
    domain = any_rows(s.domain, rows.where[s.name])
    return replace(s, domain=domain.intersect(count_rows(s, rows)).coalesce())
