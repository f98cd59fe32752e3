"""What is read along one loop and written along another, by way of a copy in tiles.

    y[j, i] = f(x[i, j])   ->   tile[j, i] = x[i, j];   y[j, i] = f(tile[j, i])

The copy is a statement like any other, over the same instances; in shared memory it lets both
accesses to memory be of neighbours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import islpy as isl

from polyc.errors import IllegalSchedule
from polyc.mapping.cuda.coordinates.change import free_name
from polyc.memory.storage import Storage
from polyc.memory.strides import compute_strides
from polyc.names import show
from polyc.schedule.cluster import Cluster
from polyc.schedule.names import short
from polyc.scop.expr import Expr, Load, rebuild
from polyc.scop.scop import Array, Statement


def find_turned(
    s: Statement,
    rows: int,
    columns: int,
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
) -> tuple[Load, ...]:
    """The loads with unit step along `columns`, and a larger one along `rows`."""
    _, *read = compute_strides(s, arrays, storages)
    return tuple(
        load
        for load, one in zip(s.loads, read, strict=True)
        if one.steps[columns] == 1 and one.steps[rows] not in (0, 1)
    )


def stage_loads(
    cluster: Cluster,
    rows: int,
    columns: int,
    staged: Collection[str],
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
) -> tuple[Cluster, dict[str, Array]]:
    """The only statement of a cluster behind copies of what it reads of some arrays; the copies."""
    (s,) = cluster.statements
    found = find_turned(s, rows, columns, arrays, storages)
    turned = [load for load in dict.fromkeys(found) if load.array in staged]
    missing = [name for name in staged if name not in {load.array for load in turned}]
    i, j = s.iterators[rows], s.iterators[columns]
    if missing or rows == columns or any(load.dynamic or load.array == s.array for load in turned):
        raise IllegalSchedule(
            f"{show(short(s.name))} reads {', '.join(map(show, missing or staged))} nowhere with "
            f"unit step along {show(j)} and a larger one along {show(i)}"
        )
    if s.reduction or len(cluster.shared) < len(s.iterators):
        raise IllegalSchedule(f"{show(short(s.name))} is a sum, and what it reads is not staged")
    copies = {load: _copy(s, load, k, rows, columns, arrays) for k, load in enumerate(turned)}

    def leaf(e: Expr) -> Expr:
        if not isinstance(e, Load) or e not in copies:
            return e
        copy, _ = copies[e]
        same = ", ".join(s.iterators)
        index = copy.write.pullback_pw_multi_aff(
            isl.PwMultiAff(f"{{ {s.name}[{same}] -> {copy.name}[{same}] }}")
        )
        return Load(copy.array, index.intersect_domain(e.index.domain()), e.dtype)

    finish = replace(s, value=rebuild(s.value, leaf))
    statements = (*(copy for copy, _ in copies.values()), finish)
    shared = tuple({x.name: loop[s.name] for x in statements} for loop in cluster.shared)
    made = {array.name: array for _, array in copies.values()}
    return replace(cluster, statements=statements, shared=shared), made


def _copy(
    s: Statement, load: Load, number: int, rows: int, columns: int, arrays: Mapping[str, Array]
) -> tuple[Statement, Array]:
    """The statement that copies what a load reads, and the array that it copies to."""
    name = free_name(f"{s.array}_tile{number}", arrays)
    sizes = s.estimated_extents
    order = [p for p in range(len(sizes)) if p not in (rows, columns)]
    order += [rows, columns]
    array = Array(name, load.dtype, tuple(sizes[p] for p in order), "temporary")
    title = f"S_{name}"
    places = ", ".join(s.iterators[p] for p in order)
    joined = ", ".join(s.iterators)
    onto = isl.PwMultiAff(f"{{ {title}[{joined}] -> {s.name}[{joined}] }}")  # T -> S
    index = load.index.pullback_pw_multi_aff(onto)
    domain = s.domain.intersect(load.index.domain()).preimage_pw_multi_aff(onto)
    write = isl.PwMultiAff(f"{{ {title}[{joined}] -> {name}[{places}] }}")
    value = Load(load.array, index, load.dtype)
    return Statement(title, domain, s.iterators, name, write, value, None, s.origin), array
