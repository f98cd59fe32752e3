"""Promotion: arrays that live and die inside one tile need no memory.

An array of the kernel that nobody else reads is given local storage at a mark: at the innermost
`scope` of a part, or `tile` around several parts, that has all its users below it. For each
value of the loops around the mark (the prefix), the elements touched there fit a box of fixed size,

    footprint  { prefix -> A }        local index  { S -> A - lower corner(prefix(S)) }

so the accumulators of a register tile, or the row that a softmax keeps, become small local arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import prod
from types import MappingProxyType

import islpy as isl
import numpy as np

from polyc.memory.storage import Storage
from polyc.memory.strides import accesses
from polyc.names import local_name
from polyc.poly.tree import MARK
from polyc.promote.numbering import number_elements, renumber
from polyc.scop.scop import Array, Statement

LARGEST_LOCAL = 32 * 1024
"""Bytes of one local array: several of them fit any thread's stack and the L1 or L2 cache."""

LARGEST_HANDED = 512 * 1024
"""Bytes of arrays that parts hand each other, all together: they fit any stack, and for the most
part the L2 cache."""

LARGEST_STACK = 512
"""Bytes of an array that one thread of a GPU keeps: if it is indexed, it lies in memory."""

LARGEST_SHARED = 64 * 1024
"""Bytes of an array that the threads of a GPU's block share, or keep in registers between them."""

LARGEST_SPREAD = 256 * 1024
"""Bytes of an array that the threads of a block keep in registers between them: all there are."""

LIMITS = {
    "scope": LARGEST_LOCAL,
    "tile": LARGEST_HANDED,
    "stack": LARGEST_STACK,
    "spread": LARGEST_SPREAD,
    "shared": LARGEST_SHARED,
}

CPU_MARKS = frozenset({"scope", "tile"})
"""Those that a CPU's schedules place; the others are a GPU's."""


@dataclass(frozen=True)
class LocalArray:
    """Local storage for an array: its box, and where each access of a statement falls in it.

    mark: the mark that declares it, inside of `depth` others that may declare arrays.
    numbers: the array with dimensions that are counted as one (`promote/numbering.py`), or cut into
    panels of which the box has several: the box is one of A' then. order: the dimensions as the box
    has them.
    folds: of dimensions, as the array has them, of which the box has only so many places, in turns.
    """

    name: str
    mark: str
    source: str
    dtype: np.dtype
    shape: tuple[int, ...]
    order: tuple[int, ...]
    corner: isl.PwMultiAff  # prefix -> A': the element stored at index 0
    prefix: Mapping[str, isl.PwMultiAff]  # statement name -> { S -> prefix }
    numbers: isl.PwMultiAff | None = None  # A -> A'
    folds: Mapping[int, int] = field(default_factory=dict)
    depth: int = 0

    @property
    def bytes(self) -> int:
        """What it takes."""
        return prod(self.shape) * self.dtype.itemsize

    def place(self, statement: str, index: isl.PwMultiAff) -> isl.PwMultiAff:
        """# S -> L, for an access  S -> A."""
        origin = self.corner.pullback_pw_multi_aff(self.prefix[statement])
        if self.numbers is not None:
            index = self.numbers.pullback_pw_multi_aff(index)
        moved = isl.MultiPwAff.from_pw_multi_aff(index).sub(
            isl.MultiPwAff.from_pw_multi_aff(origin)
        )
        ordered = isl.MultiPwAff.from_pw_aff_list(
            moved.get_space(), _in_order(moved.get_list(), self.order, self.folds)
        )
        placed = isl.PwMultiAff.from_multi_pw_aff(ordered)
        return placed.set_tuple_id(isl.dim_type.out, isl.Id(self.name))


def kind_of(mark: str) -> str:
    """The kind of a mark: it may be followed by the loop that it stands in."""
    return mark.split(" ", 1)[0]


def promote_to_locals(
    schedule: isl.Schedule,
    statements: Sequence[Statement],
    private: frozenset[str],
    arrays: Mapping[str, Array],
    storages: Mapping[str, Storage],
    folds: Mapping[str, Mapping[int, int]] = MappingProxyType({}),
    named: Mapping[str, Collection[str] | None] = MappingProxyType({}),
    *,
    alone: bool = False,
    numbers: Sequence[isl.UnionPwAff] = (),
) -> dict[str, LocalArray]:
    """Local arrays for those of `private` whose footprint under a mark is a small box.

    folds: of arrays, dimensions of which no more than so many places are in use at a time. named:
    by mark, the only arrays that it may declare; any where it says None, or nothing. alone: only at
    marks of which no two executions touch one element; else that is known already. numbers: of
    iterations of loops that were several.
    """
    promoted = {}
    for name, users, around in list_around(schedule, statements, private, named):
        if alone:
            around = [node for node in around if _is_alone(name, users, node)]
        folded, array, storage = folds.get(name, {}), arrays[name], storages[name]
        numbered = number_elements(array, users, numbers)
        local = _promote(array, storage, users, around[-1], folded, numbered) if around else None
        if local is not None:
            promoted[name] = local
    return promoted


def list_around(
    schedule: isl.Schedule,
    statements: Sequence[Statement],
    private: Collection[str],
    named: Mapping[str, Collection[str] | None],
) -> Iterator[tuple[str, list[Statement], list[isl.ScheduleNode]]]:
    """Of each array: who touches it, and the marks around all of these that may declare it."""
    marks = [(node, _names_below(node)) for node in find_marks(schedule.get_root())]
    for name in sorted(private):
        users = [s for s in statements if any(a == name for a, _, _ in accesses(s))]
        around = [
            node
            for node, below in marks
            if all(s.name in below for s in users) and _may_declare(named, node, name)
        ]
        yield name, users, around


def _may_declare(
    named: Mapping[str, Collection[str] | None], mark: isl.ScheduleNode, array: str
) -> bool:
    arrays = named.get(mark.mark_get_id().get_name())
    return arrays is None or array in arrays


def is_declaring(node: isl.ScheduleNode) -> bool:
    """Whether a node is a mark that may declare arrays."""
    return node.get_type() == MARK and kind_of(node.mark_get_id().get_name()) in LIMITS


def find_marks(node: isl.ScheduleNode) -> list[isl.ScheduleNode]:
    """The marks of a tree that may declare arrays, outer ones before those inside them."""
    own = is_declaring(node)
    inside = (find_marks(node.child(k)) for k in range(node.n_children()))
    return [*([node] if own else []), *chain.from_iterable(inside)]


def _names_below(node: isl.ScheduleNode) -> frozenset[str]:
    """The statements that run below a node."""
    sets = node.get_domain().get_set_list()
    return frozenset(sets.get_at(k).get_tuple_name() for k in range(sets.n_set()))


def _is_alone(array: str, users: Sequence[Statement], mark: isl.ScheduleNode) -> bool:
    """Whether each element is touched in one execution of what is below a mark."""
    footprint = find_footprint(array, users, find_prefixes(users, mark))
    return footprint is not None and bool(footprint.is_injective())


def find_prefixes(users: Sequence[Statement], mark: isl.ScheduleNode) -> dict[str, isl.PwMultiAff]:
    """Statement name -> { S -> prefix }."""
    prefix = mark.get_prefix_schedule_union_map()  # S -> prefix
    return {
        s.name: isl.PwMultiAff.from_map(
            prefix.intersect_domain(isl.UnionSet.from_set(s.domain)).as_map()
        )
        for s in users
    }


def find_footprint(
    array: str, users: Sequence[Statement], functions: Mapping[str, isl.PwMultiAff]
) -> isl.Map | None:
    """# prefix -> A: the elements touched in one execution of a mark."""
    footprint: isl.Map | None = None
    for s in users:
        for name, index, _ in accesses(s):
            if name != array:
                continue
            touched = functions[s.name].as_map().reverse().apply_range(index.as_map())
            footprint = touched if footprint is None else footprint.union(touched)
    return footprint


def _promote(
    array: Array,
    storage: Storage,
    users: Sequence[Statement],
    mark: isl.ScheduleNode,
    folds: Mapping[int, int],
    numbers: isl.PwMultiAff | None,
) -> LocalArray | None:
    functions = find_prefixes(users, mark)
    footprint = find_footprint(array.name, users, functions)
    if footprint is None or is_computed(array.name, users):
        return None
    order = _order_inside(storage)
    if numbers is not None:
        footprint = footprint.apply_range(numbers.as_map())
        order = renumber(order, numbers)
    box = _find_box(footprint, folds)
    if box and numbers is None and any(box.shape[d] > size for d, size in storage.blocks):
        numbers = storage.map.to_pw_multi_aff()
        order = tuple(range(numbers.dim(isl.dim_type.out)))
        box = _find_box(footprint.apply_range(numbers.as_map()), folds)
    kind = mark.mark_get_id().get_name()
    if box is None or prod(box.shape) * array.dtype.itemsize > LIMITS[kind_of(kind)]:
        return None
    return LocalArray(
        local_name(array.name),
        kind,
        array.name,
        array.dtype,
        tuple(box.shape[d] for d in order),
        order,
        box.corner,
        functions,
        numbers,
        folds,
        sum(is_declaring(mark.ancestor(k)) for k in range(1, mark.get_tree_depth())),
    )


@dataclass(frozen=True)
class _Box:
    """The elements that are touched lie in a box of this shape, from the corner on."""

    corner: isl.PwMultiAff  # prefix -> A'
    shape: tuple[int, ...]


def _find_box(footprint: isl.Map, folds: Mapping[int, int]) -> _Box | None:
    """The box of a footprint  prefix -> A'; None if its extents differ without bound."""
    footprint = footprint.coalesce()
    rank = footprint.dim(isl.dim_type.out)
    corners = isl.PwAffList.alloc(isl.DEFAULT_CONTEXT, rank)
    shape = []
    for d in range(rank):
        low, high = footprint.dim_min(d), footprint.dim_max(d)
        extent = high.sub(low).as_map().range().dim_max_val(0)
        if not extent.is_int():
            return None
        shape.append(min(int(extent.to_python()) + 1, folds.get(d, 1 << 30)))
        corners = corners.add(low)
    corner = isl.MultiPwAff.from_pw_aff_list(footprint.get_space(), corners)
    return _Box(isl.PwMultiAff.from_multi_pw_aff(corner), tuple(shape))


def _order_inside(storage: Storage) -> tuple[int, ...]:
    """The dimensions of a box, as the array lies: those that are cut into blocks innermost.

    b stored [j/48][k][j mod 48]  ->  a panel of it is [k][j]
    """
    cut = tuple(d for d, _ in storage.blocks)
    return (*(d for d in storage.permutation if d not in cut), *cut)


def is_computed(array: str, users: Sequence[Statement]) -> bool:
    """Whether some coordinate of an access to the array is data."""
    return any(load.array == array and load.dynamic for s in users for load in s.loads)


def _in_order(
    parts: isl.PwAffList, order: Sequence[int], folds: Mapping[int, int]
) -> isl.PwAffList:
    result = isl.PwAffList.alloc(isl.DEFAULT_CONTEXT, len(order))
    for d in order:
        part = parts.get_at(d)
        result = result.add(part.mod_val(folds[d]) if d in folds else part)
    return result
