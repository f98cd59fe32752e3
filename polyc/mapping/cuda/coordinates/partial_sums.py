"""A sum as one for each value of a loop, and one over these: what threads share out.

total[e] += x[e, k, t]   ->   parts[e, t] = 0;  parts[e, t] += x[e, k, t];
                              total[e] += parts[e, t]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import islpy as isl

from polyc.errors import IllegalSchedule
from polyc.names import show
from polyc.poly.affine import coefficients, outputs
from polyc.schedule.cluster import Cluster
from polyc.schedule.names import short
from polyc.scop.expr import Const, Load
from polyc.scop.scop import Array, Statement, identity

WORDS = (4, 8)
"""Bytes of what threads can hand each other."""


def split_sum(
    cluster: Cluster,
    statement: str,
    position: int,
    extent: int,
    name: str,
    arrays: Mapping[str, Array],
) -> tuple[Cluster, Array]:
    """The cluster with the sum of a statement in so many parts, by one of its own iterators.

    Also the array of the parts, called `name`.
    """
    s = cluster.statement(statement)
    _check(s, cluster, arrays)
    rows = [loop[s.name] for loop in cluster.shared]
    sizes = s.estimated_extents
    total = arrays[s.array]
    shape = (*(sizes[p] for p in rows), extent)
    parts = Array(name, total.dtype, shape, "temporary")
    new = _split(s, rows, position, parts)
    statements = tuple(x for one in cluster.statements for x in (new if one is s else [one]))
    shared = tuple(
        {**loop, **{x.name: k for x in (new[0], new[2])}} for k, loop in enumerate(cluster.shared)
    )
    return replace(cluster, statements=statements, shared=shared), parts


def _check(s: Statement, cluster: Cluster, arrays: Mapping[str, Array]) -> None:
    """Raise IllegalSchedule if a statement is no sum, or one that moves with what is summed."""
    if s.reduction is None:
        raise IllegalSchedule(f"{show(short(s.name))} is no sum, and has no parts")
    if arrays[s.array].dtype.itemsize not in WORDS:
        raise IllegalSchedule(
            f"threads hand each other 4 or 8 bytes, and no {arrays[s.array].dtype}"
        )
    shared = cluster.shared_positions(s)
    if any(
        coefficients(f)[p]
        for f in outputs(s.write)
        for p in range(len(s.iterators))
        if p not in shared
    ):
        raise IllegalSchedule(
            f"{show(short(s.name))} has a sum for each value of a loop of its own already"
        )


def _split(
    s: Statement, rows: Sequence[int], position: int, parts: Array
) -> tuple[Statement, Statement, Statement]:
    """(parts begin, the statement, parts come together), over the rows and the loop of parts."""
    assert s.reduction is not None
    around = [s.iterators[p] for p in rows]
    t, extent = s.iterators[position], parts.shape[-1]
    start, combine = f"{s.name}_start", f"{s.name}_combine"
    few = (*around, t)

    def place(name: str, iterators: Sequence[str]) -> isl.PwMultiAff:
        # S -> A
        return isl.PwMultiAff(
            f"{{ {name}[{', '.join(iterators)}] -> {parts.name}[{', '.join(few)}] }}"
        )

    def on_parts(name: str) -> Statement:
        # S -> T: all parts, for each row that there is
        free = [i if i in around else f"p{k}" for k, i in enumerate(s.iterators)]
        on = isl.Map(
            f"{{ {s.name}[{', '.join(free)}] -> {name}[{', '.join(few)}] : 0 <= {t} < {extent} }}"
        )
        domain = s.domain.apply(on).coalesce()
        for k, i in enumerate(few):
            domain = domain.set_dim_name(isl.dim_type.set, k, i)
        return replace(s, name=name, domain=domain, iterators=few)

    neutral = Const(identity(s.reduction, parts.dtype), parts.dtype)
    origin = ", ".join(i if i in around else "0" for i in s.iterators)
    first = isl.PwMultiAff(f"{{ {combine}[{', '.join(few)}] -> {s.name}[{origin}] }}")
    begun = replace(
        on_parts(start), array=parts.name, write=place(start, few), value=neutral, reduction=None
    )
    update = replace(s, array=parts.name, write=place(s.name, s.iterators))
    combined = replace(
        on_parts(combine),
        write=s.write.pullback_pw_multi_aff(first),
        value=Load(parts.name, place(combine, few), parts.dtype),
    )
    return begun, update, combined
