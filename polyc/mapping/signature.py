"""Clusters without names: equal signatures mean equal code, in any model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from polyc.memory.storage import Storage
from polyc.poly.canonical import Canonical
from polyc.schedule.cluster import Cluster
from polyc.scop.scop import Array, Statement
from polyc.types.element_types import scalar_type
from polyc.types.ranges import STEP
from polyc.types.sizes import Extent, Size


def sign_cluster(
    cluster: Cluster,
    touched: Sequence[str],
    arrays: Mapping[str, Array],
    key: Callable[[Statement], Canonical] = lambda s: s.structure.key,
) -> Canonical:
    """Statements, shared loops and arrays; everything but layouts.

    key: what is said of a statement, besides the arrays that its structure lists.

    An array is its position among those touched, a statement its position in textual order.
    """
    statements = (*cluster.prelude, *cluster.statements)
    places = {name: position for position, name in enumerate(touched)}
    numbers = {s.name: position for position, s in enumerate(statements)}
    step = {cluster.step.name: Size.of(STEP)} if cluster.step else {}
    return (
        (len(cluster.prelude), int(cluster.has_reuse), int(cluster.is_group)),
        tuple(tuple(sorted((numbers[n], p) for n, p in loop.items())) for loop in cluster.shared),
        tuple(tuple(sorted((numbers[n], p) for n, p in loop.items())) for loop in cluster.summed),
        tuple((key(s), tuple(places[name] for name in s.structure.arrays)) for s in statements),
        tuple(_sign_array(arrays[name], step) for name in touched),
    )


def _sign_array(array: Array, step: Mapping[str, Extent]) -> Canonical:
    shape = _sign_shape(array.shape, step)
    return scalar_type(array.dtype), shape, "constant" if array.kind == "constant" else ""


def sign_layouts(
    touched: Sequence[str], storages: Mapping[str, Storage], private: frozenset[str]
) -> Canonical:
    """How the arrays are stored, "open" for one that is not decided, and which are private."""
    return tuple((_sign_layout(storages.get(n)), int(n in private)) for n in touched)


def _sign_layout(storage: Storage | None) -> Canonical:
    if storage is None:
        return "open"
    return storage.permutation, storage.blocks, _sign_shape(storage.shape, {})


def _sign_shape(shape: Sequence[Extent], step: Mapping[str, Extent]) -> Canonical:
    """Extents, of which those known only at run time are sums of products of names."""
    found = (extent.at(step) if isinstance(extent, Size) else extent for extent in shape)
    return tuple(e.terms if isinstance(e, Size) else int(e) for e in found)
