"""Changes of coordinates: statements whose iterators are renamed, joined or cut.

    S[c, y, x]  ->  S[p]           c = floor(p/56), y = floor((p mod 56)/7), x = p mod 7

The loops of a GPU's grid are long and few, those of a graph short and many; so the mapping first
writes a cluster in the coordinates that it wants to loop over. What changes is what the instances
of a statement are called, nothing else: the new statements execute the same assignments.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import prod

import islpy as isl

from polyc.memory.strides import accesses
from polyc.poly.affine import box_extents, coefficients, outputs, plain_iterator, simplify
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import Expr, Load, pull_back, rebuild
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Array, Statement


def change_coordinates(
    s: Statement, iterators: Sequence[str], formulas: Sequence[str], bounds: str
) -> Statement:
    """The statement over new iterators; `formulas` are the old ones in terms of these, in order.

    bounds: what holds of the new iterators besides; every old instance must have one new one.
    """
    new = ", ".join(iterators)
    # T -> S
    onto = isl.PwMultiAff(f"{{ {s.name}[{new}] -> {s.name}[{', '.join(formulas)}] : {bounds} }}")
    domain = s.domain.preimage_pw_multi_aff(onto).coalesce()
    return replace(
        s,
        domain=domain,
        iterators=tuple(iterators),
        write=simplify(s.write.pullback_pw_multi_aff(onto), domain),
        value=simplify_indices(pull_back(s.value, onto), domain),
    )


def digits(name: str, extents: Sequence[int]) -> list[str]:
    """The digits of a mixed-radix number, most significant first.

    p, [4, 8, 7]  ->  floor(p/56), floor((p mod 56)/7), p mod 7
    """
    found = []
    for k, extent in enumerate(extents):
        step, size = prod(extents[k + 1 :]), prod(extents[k:])
        digit = name if k == 0 else f"({name} mod {size})"
        if extent == 1:
            digit = "0"
        elif step > 1:
            digit = f"floor({digit}/{step})"
        found.append(digit)
    return found


def join_iterators(
    s: Statement, positions: Sequence[int], extents: Sequence[int], name: str
) -> Statement:
    """The statement with one iterator in place of some, its first; the last of them is fastest."""
    formulas = list(s.iterators)
    for p, digit in zip(positions, digits(name, extents), strict=True):
        formulas[p] = digit
    rest = [i for p, i in enumerate(s.iterators) if p not in positions]
    return change_coordinates(s, [name, *rest], formulas, f"0 <= {name} < {prod(extents)}")


def join_shared(
    cluster: Cluster,
    order: Sequence[int],
    private: Collection[str],
    arrays: Mapping[str, Array],
    largest: int,
) -> tuple[Cluster, dict[str, Array]]:
    """The cluster with one shared loop in place of all, which runs through them in an order.

        acc[i, j] += x[i, k] * w[k, j]     ->     acc_e[e] += x[floor(e/64), k] * w[k, e mod 64]

    Private arrays with at most `largest` bytes for each iteration have one index for it as well;
    these arrays are returned.
    """
    name = fresh_iterator(cluster, "e")
    extents = [
        max(box_extents(s.domain)[loop[s.name]] for s in cluster.statements)
        for loop in cluster.shared
    ]
    made: dict[str, Array] = {}
    statements = list(cluster.statements)
    for array in sorted(private):
        dimensions = _find_dimensions(cluster, array)
        if dimensions is None:
            continue
        new = _renumbered(arrays[array], dimensions, prod(extents))
        if new.bytes <= largest * new.shape[0]:
            made[new.name] = new
            numbers = [
                _number(s, [cluster.shared[d][s.name] for d in order], [extents[d] for d in order])
                for s in statements
            ]
            statements = [
                _readdress(s, array, new.name, dimensions, number)
                for s, number in zip(statements, numbers, strict=True)
            ]
    joined = []
    for s in statements:
        positions = [cluster.shared[d][s.name] for d in order]
        joined.append(join_iterators(s, positions, [extents[d] for d in order], name))
    shared = ({s.name: 0 for s in joined},)
    return replace(cluster, statements=tuple(joined), shared=shared), made


def _find_dimensions(cluster: Cluster, array: str) -> set[int] | None:
    """The dimensions of an array that the shared loops walk, each one of its own, in all accesses.

    None if there are other dimensions that shared loops move in, or shared loops that do not move.
    """
    found: set[frozenset[tuple[int, int]]] = set()
    for s in cluster.statements:
        if any(load.array == array and load.dynamic for load in s.loads):
            return None
        loops = {loop[s.name]: d for d, loop in enumerate(cluster.shared)}
        for name, index, _ in accesses(s):
            if name != array:
                continue
            pairs = set()
            for k, function in enumerate(outputs(index)):
                moving = [p for p, c in enumerate(coefficients(function)) if c != 0]
                if any(p in loops for p in moving):
                    plain = plain_iterator(function)
                    if plain is None or plain[1]:
                        return None
                    pairs.add((k, loops[plain[0]]))
            found.add(frozenset(pairs))
    if len(found) != 1:
        return None
    (pairs_,) = found
    walked = [d for _, d in pairs_]
    sizes = cluster.extents
    missing = [d for d in range(len(sizes)) if d not in walked and sizes[d] > 1]
    return None if missing or len(set(walked)) < len(walked) else {k for k, _ in pairs_}


def _renumbered(array: Array, dimensions: Collection[int], count: int) -> Array:
    """An array with one index, its first, in place of some dimensions."""
    rest = tuple(n for k, n in enumerate(array.shape) if k not in dimensions)
    return replace(array, name=f"{array.name}_e", shape=(count, *rest))


def _number(s: Statement, positions: Sequence[int], extents: Sequence[int]) -> isl.PwAff:
    """# S -> Z: the number of an iteration of joined loops."""
    terms = [f"{prod(extents[k + 1 :])}*{s.iterators[p]}" for k, p in enumerate(positions)]
    text = f"{{ {s.name}[{', '.join(s.iterators)}] -> [({' + '.join(terms) or '0'})] }}"
    return isl.PwAff(text)


def _readdress(
    s: Statement, array: str, name: str, dimensions: Collection[int], number: isl.PwAff
) -> Statement:
    """The statement with its accesses to an array turned to the renumbered one."""

    def turned(index: isl.PwMultiAff) -> isl.PwMultiAff:
        rest = [f for k, f in enumerate(outputs(index)) if k not in dimensions]
        return address(name, [number.intersect_domain(index.domain()), *rest])

    def leaf(e: Expr) -> Expr:
        if isinstance(e, Load) and e.array == array:
            return replace(e, array=name, index=turned(e.index))
        return e

    new = replace(s, value=rebuild(s.value, leaf))
    return replace(new, array=name, write=turned(s.write)) if s.array == array else new


def address(array: str, indices: Sequence[isl.PwAff]) -> isl.PwMultiAff:
    """# S -> A"""
    domain = indices[0].domain().get_space()
    target = isl.Space.set_alloc(domain.get_ctx(), 0, len(indices))
    target = target.set_tuple_name(isl.dim_type.set, array)
    result = isl.MultiPwAff.zero(domain.map_from_domain_and_range(target))
    for k, index in enumerate(indices):
        result = result.set_pw_aff(k, index)
    return isl.PwMultiAff.from_multi_pw_aff(result)


def fresh_iterator(cluster: Cluster, name: str) -> str:
    """A name that no statement of the cluster has for an iterator."""
    taken = {i for s in cluster.statements for i in s.iterators}
    while name in taken:
        name += "_"
    return name
