"""Kernels that are equal but for literals become equal: each is given its own.

    K: y[i] = max(x[i] * 0.5, 0.0)      L: v[i] = max(u[i] * 0.7, 0.0)
    ->
    K: y[i] = max(x[i] * k[0], 0.0)     L: v[i] = max(u[i] * l[0], 0.0)      k = [0.5], l = [0.7]

The layers of a quantised network differ in their scales and zero points, and else in nothing: with
these in the text every layer would be scheduled, proven and compiled. A literal that is the same in
all of them stays one, and so does one in a kernel that has no like. All has been decided by then,
and what is decided does not depend on literals. That the element which is read is what the model
says, `analysis/launches/partition.py` proves.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import islpy as isl
import numpy as np

from polyc.mapping.signature import sign_cluster
from polyc.mapping.stored_cluster import StoredCluster
from polyc.mapping.stored_kernel import StoredKernel
from polyc.memory.storage import row_major
from polyc.names import fresh
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import Const, Expr, Load
from polyc.scop.literals import content_of, find_literals, replace_literals
from polyc.scop.scop import Array, Statement

Place = tuple[np.dtype, int]
"""Where a literal goes: the array of this type, and the element of it."""


def share_literals(
    kernels: Sequence[StoredKernel], arrays: Mapping[str, Array]
) -> tuple[tuple[StoredKernel, ...], dict[str, Array]]:
    """The kernels, and all arrays with those that hold literals.

    A kernel whose schedule was given stays as it is: people see its arrays, and may name them.
    """
    alike: dict[Hashable, list[int]] = {}
    for k, kernel in enumerate(kernels):
        if not kernel.given:
            alike.setdefault(kernel.form(arrays), []).append(k)
    shared, table = list(kernels), dict(arrays)
    for members in alike.values():
        for part in range(len(kernels[members[0]].parts)):
            stored = [kernels[k].parts[part] for k in members]
            places = _find_places([_list_literals(one) for one in stored])
            if not any(places):
                continue
            for k, one in zip(members, stored, strict=True):
                parts = list(shared[k].parts)
                parts[part] = _give(one, places, table)
                shared[k] = replace(shared[k], parts=tuple(parts))
    return tuple(shared), table


def _statements(one: StoredCluster) -> tuple[Statement, ...]:
    return *one.cluster.prelude, *one.cluster.statements


def _list_literals(one: StoredCluster) -> list[Const]:
    return [literal for s in _statements(one) for literal in find_literals(s.value)]


def _find_places(rows: Sequence[Sequence[Const]]) -> list[Place | None]:
    """For each literal of clusters of one form, where it goes; None where all have the same.

    Literals that are equal in each of the clusters, as those of a Quantize and its Dequantize
    are, share an element.
    """
    places: dict[Hashable, Place] = {}
    used: dict[np.dtype, int] = {}
    found: list[Place | None] = []
    for column in zip(*rows, strict=True):
        dtype, contents = column[0].dtype, tuple(content_of(one).tobytes() for one in column)
        if len(set(contents)) == 1:
            found.append(None)
            continue
        if (dtype, contents) not in places:
            places[dtype, contents] = dtype, used.get(dtype, 0)
            used[dtype] = used.get(dtype, 0) + 1
        found.append(places[dtype, contents])
    return found


def _give(
    one: StoredCluster, places: Sequence[Place | None], table: dict[str, Array]
) -> StoredCluster:
    """The cluster with its literals in arrays, which are entered in the table."""
    values: dict[np.dtype, dict[int, np.ndarray]] = {}
    for literal, place in zip(_list_literals(one), places, strict=True):
        if place:
            values.setdefault(place[0], {})[place[1]] = content_of(literal)
    names = {}
    for dtype, elements in values.items():
        content = np.array([elements[k] for k in range(len(elements))], dtype)
        name = fresh(f"{one.cluster.statements[-1].array}_literals", table)
        table[name] = Array(name, dtype, content.shape, "constant", content)
        names[dtype] = name
    waiting = iter(places)

    def rewrite(s: Statement) -> Statement:
        literals: list[Expr] = []
        for literal in find_literals(s.value):
            place = next(waiting)
            literals.append(_load(s, names[place[0]], place) if place else literal)
        return replace(s, value=replace_literals(s.value, literals))

    prelude = tuple(map(rewrite, one.cluster.prelude))
    statements = tuple(map(rewrite, one.cluster.statements))
    cluster: Cluster = replace(one.cluster, prelude=prelude, statements=statements)
    arrays = (*one.arrays, *names.values())
    storages = {**one.storages, **{n: row_major(table[n]) for n in names.values()}}
    signature = sign_cluster(cluster, arrays, table)
    return replace(one, cluster=cluster, arrays=arrays, storages=storages, signature=signature)


def _load(s: Statement, array: str, place: Place) -> Load:
    """The element of a place, in each instance of a statement."""
    dtype, element = place
    everywhere = isl.Set.universe(s.domain.get_space())
    vector = everywhere.get_space().params().add_unnamed_tuple_ui(1)
    space = vector.set_tuple_name(isl.dim_type.set, array)
    value = isl.MultiVal.zero(space).set_val(0, isl.Val(element))
    return Load(array, isl.PwMultiAff.multi_val_on_domain(everywhere, value), dtype)
