"""Changes of coordinates: statements whose iterators are renamed, joined or cut.

    S[c, y, x]  ->  S[p]           c = floor(p/56), y = floor((p mod 56)/7), x = p mod 7

The loops of a GPU's grid are long and few, those of a graph short and many; so the mapping first
writes a cluster in the coordinates that it wants to loop over. What changes is what the instances
of a statement are called, nothing else: the new statements execute the same assignments.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TypeVar

import islpy as isl

from polyc.memory.strides import accesses
from polyc.poly.affine import coefficients, outputs, plain_iterator, simplify
from polyc.schedule.cluster import Cluster
from polyc.scop.expr import Expr, Load, pull_back, rebuild
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Array, Statement

T = TypeVar("T")


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


@dataclass(frozen=True)
class Joint:
    """Loops of several statements to be joined into one: each by statement, outermost first.

    A statement that is not in them has no such loops. `extents` are those of the loops.
    """

    name: str
    loops: tuple[Mapping[str, int], ...]
    extents: tuple[int, ...]

    @property
    def count(self) -> int:
        return prod(self.extents)

    def has(self, s: Statement) -> bool:
        return all(s.name in loop for loop in self.loops)

    def positions(self, s: Statement) -> list[int]:
        return [loop[s.name] for loop in self.loops if s.name in loop]


def join_loops(
    statements: Sequence[Statement],
    joint: Joint,
    private: Collection[str],
    arrays: Mapping[str, Array],
    largest: int,
) -> tuple[tuple[Statement, ...], dict[str, Array]]:
    """The statements with one iterator, their first, in place of those that are joined.

        acc[i, j] += x[i, k] * w[k, j]     ->     acc_e[e] += x[floor(e/64), k] * w[k, e mod 64]

    Private arrays with an element for each iteration, or at most `largest` bytes, have one index
    for it as well; these arrays are returned, by what they were.
    """
    made: dict[str, Array] = {}
    for array in sorted(private):
        dimensions = _find_dimensions(statements, joint, array)
        if dimensions is None:
            continue
        name = free_name(f"{array}_joint", arrays)
        new = _renumbered(arrays[array], name, dimensions, joint)
        if new.bytes <= largest * joint.count:
            made[array] = new
            statements = [_readdress(s, array, new.name, dimensions, joint) for s in statements]
    joined = [
        join_iterators(s, joint.positions(s), joint.extents, joint.name) if joint.has(s) else s
        for s in statements
    ]
    return tuple(joined), made


def _find_dimensions(
    statements: Sequence[Statement], joint: Joint, array: str
) -> frozenset[int] | None:
    """The dimensions of an array that the loops walk, each one of its own, in all accesses.

    None if there are other dimensions that the loops move in, or loops that do not move.
    """
    found: set[frozenset[tuple[int, int]]] = set()
    for s in statements:
        if any(load.array == array and load.dynamic for load in s.loads):
            return None
        loops = {loop[s.name]: d for d, loop in enumerate(joint.loops) if s.name in loop}
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
    (walked,) = found
    loops_ = [d for _, d in walked]
    missing = [d for d, n in enumerate(joint.extents) if d not in loops_ and n > 1]
    if missing or len(set(loops_)) < len(loops_) or not walked:
        return None
    return frozenset(k for k, _ in walked)


def free_name(name: str, arrays: Collection[str]) -> str:
    """The name of a new array, which begins so."""
    while name in arrays:
        name += "_"
    return name


def _renumbered(array: Array, name: str, dimensions: Collection[int], joint: Joint) -> Array:
    """An array with one index in place of some dimensions, where the first of them was."""
    shape = _replaced(array.shape, dimensions, joint.count)
    return replace(array, name=name, shape=tuple(shape))


def _replaced(items: Iterable[T], dimensions: Collection[int], new: T) -> list[T]:
    """The items with a new one in place of those of some dimensions."""
    first = min(dimensions)
    return [
        new if k == first else item
        for k, item in enumerate(items)
        if k == first or k not in dimensions
    ]


def _readdress(
    s: Statement, array: str, name: str, dimensions: Collection[int], joint: Joint
) -> Statement:
    """The statement with its accesses to an array turned to the renumbered one."""
    if s.array != array and all(load.array != array for load in s.loads):
        return s
    extents = joint.extents
    terms = [f"{prod(extents[k + 1 :])}*{s.iterators[p]}" for k, p in enumerate(joint.positions(s))]
    # S -> Z: the number of an iteration of the joined loops
    number = isl.PwAff(f"{{ {s.name}[{', '.join(s.iterators)}] -> [({' + '.join(terms)})] }}")

    def turned(index: isl.PwMultiAff) -> isl.PwMultiAff:
        here = number.intersect_domain(index.domain())
        return address(name, _replaced(outputs(index), dimensions, here))

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


def join_shared(
    cluster: Cluster,
    order: Sequence[int],
    name: str,
    private: Collection[str],
    arrays: Mapping[str, Array],
    largest: int,
    aligned: int = 1,
) -> tuple[Cluster, dict[str, Array]]:
    """The cluster with one shared loop in place of all, which runs through them in an order.

    The last of them is given an extent that is a multiple of `aligned`, with nothing at its end.
    The arrays that are made are by what they were.
    """
    extents = [
        max(s.estimated_extents[cluster.shared[d][s.name]] for s in cluster.statements)
        for d in order
    ]
    if aligned > 1 and extents:
        extents[-1] = -(-extents[-1] // aligned) * aligned
    loops = tuple(cluster.shared[d] for d in order)
    joint = Joint(name, loops, tuple(extents))
    statements, made = join_loops(cluster.statements, joint, private, arrays, largest)
    shared = ({s.name: 0 for s in statements},)
    return replace(cluster, statements=statements, shared=shared), made


def fresh_iterator(statements: Sequence[Statement], name: str) -> str:
    """A name that none of the statements has for an iterator."""
    taken = {i for s in statements for i in s.iterators}
    while name in taken:
        name += "_"
    return name
