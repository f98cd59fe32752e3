"""Accesses of generated loops: they are those of the statements, in their storage, in bounds.

A printed `Assign` is compared with its statement leaf by leaf. Where the statement reads element
index(i) of an array, the loops must read the place  storage(index(instance(t)))  at every point t
at which that leaf is evaluated:

    L --instance--> S --index--> A --storage--> M      =      L --printed index--> M

`select` on a condition over the iterators evaluates one branch only, so it narrows these points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import islpy as isl

from polyc.analysis.same import same_literal
from polyc.analysis.timemap import Execution, Private
from polyc.analysis.witness import illegal, show_first
from polyc.errors import IllegalSchedule
from polyc.loopnest.index import const
from polyc.loopnest.index_text import show_index
from polyc.loopnest.nodes import Element, Kernel, LoopExpr, Read, Test, Value
from polyc.loopnest.nodes import children as printed_children
from polyc.loopnest.prototype import Param
from polyc.loopnest.show import show_element, show_expr
from polyc.memory.storage import Storage
from polyc.poly.boxes import box
from polyc.poly.conditions import spell
from polyc.poly.parameters import read
from polyc.scop.expr import (
    Call,
    Cast,
    Const,
    Expr,
    Index,
    Load,
    Within,
    children,
    offset_range,
    show,
)
from polyc.scop.scop import Scop
from polyc.types.sizes import Extent, Size

IN, OUT, SET = isl.dim_type.in_, isl.dim_type.out, isl.dim_type.set


@dataclass(frozen=True)
class Access:
    """One printed access: what it means and where it goes, at each point where it is evaluated.

    `private` is the local that holds the array, if it has no storage in memory. `computed` are the
    stored dimensions whose coordinate is data, `added` those to whose coordinate a constant adds
    something, and from where to where that goes.
    """

    execution: Execution
    array: str
    points: isl.Set  # L
    index: isl.PwMultiAff  # L -> A
    place: isl.PwMultiAff  # L -> M
    element: Element
    private: Private | None
    computed: frozenset[int] = frozenset()
    added: tuple[tuple[int, tuple[int, int]], ...] = ()


@dataclass(frozen=True)
class Surroundings:
    """What accesses are judged by: the cluster, its kernel, and the storage of its arrays."""

    kernel: Kernel
    scop: Scop
    storages: Mapping[str, Storage]
    parameters: Mapping[str, str]  # array -> parameter

    def param(self, array: str) -> Param | None:
        """The parameter that holds an array; None where it must live in a local."""
        name = self.parameters.get(array)
        if name is None:
            return None
        for param in self.kernel.params:
            if param.name == name:
                return param
        raise self.illegal(f"array {array} is bound to {name}, which is no parameter")

    def illegal(self, rule: str, witness: str = "") -> IllegalSchedule:
        return illegal(f"kernel {self.kernel.name}", rule, witness)


def compute_accesses(around: Surroundings, execution: Execution) -> Iterator[Access]:
    """The write and the reads of an execution, matched with its statement and proven in place.

    Raises IllegalSchedule where the printed assignment is not the statement's, where an access
    differs from  storage . index . instance,  or where one leaves the box of its storage.
    """
    statement, assign = execution.statement, execution.assign
    where = f"statement {statement.name}"
    if assign.reduction != statement.reduction:
        raise around.illegal(f"{where} is printed with {assign.reduction or ''}=")
    if assign.dtype != around.scop.arrays[statement.array].dtype:
        raise around.illegal(f"{where} is printed with type {assign.dtype}")
    param = around.param(statement.array)
    if param and not param.writes:
        raise around.illegal(f"{where} writes parameter {param.name}, which is read-only")
    index = statement.write.pullback_pw_multi_aff(execution.instance)
    write = _access(around, execution, statement.array, execution.points, index, assign.target)
    for access in (write, *_match(around, execution, statement.value, assign.value, write.points)):
        _check_place(around, access)
        _check_bounds(around, access)
        yield access


def _match(
    around: Surroundings, run: Execution, expr: Expr, printed: LoopExpr, points: isl.Set
) -> Iterator[Access]:
    """The reads of a printed value; `points`, # L, are those at which it is evaluated."""
    if not _agree(run, expr, printed, points):
        rule = f"{run.statement.name} computes {show(expr)}, but printed is {show_expr(printed)}"
        raise around.illegal(rule)
    if isinstance(expr, Load):
        assert isinstance(printed, Read)
        yield from _match_load(around, run, expr, printed, points)
        return
    below = zip(
        children(expr), printed_children(printed), _branches(run, expr, points), strict=True
    )
    for child, printed_child, where in below:
        yield from _match(around, run, child, printed_child, where)


def _agree(run: Execution, expr: Expr, printed: LoopExpr, points: isl.Set) -> bool:
    """Whether the roots of two expressions are the same at the points; places are checked later."""
    if expr.dtype != printed.dtype:
        return False
    match expr, printed:
        case Const(value), Const(other):
            return same_literal(value, other)
        case Index(value), Value(index):
            wanted = value.pullback_pw_multi_aff(run.instance)
            printed_as = run.place.index([index]).get_pw_aff(0)
            return bool(find_differences(points, wanted, printed_as).is_empty())
        case Within(domain), Test(condition):
            holds = domain.preimage_pw_multi_aff(run.instance).intersect(points)
            return holds.is_equal(run.place.where(condition).intersect(points))
        case Load(dynamic=dynamic), Read(dynamic=computed):
            return len(dynamic) == len(computed)
        case Call(function, arguments), Call(other, again):
            return function == other and len(arguments) == len(again)
        case _:
            return isinstance(expr, Cast) and isinstance(printed, Cast)


def _branches(run: Execution, expr: Expr, points: isl.Set) -> list[isl.Set]:
    """# L: where each child is evaluated; `select` on a condition evaluates one branch."""
    match expr:
        case Call("select", (Within(domain), _, _)):
            holds = domain.preimage_pw_multi_aff(run.instance)
            return [points, points.intersect(holds), points.subtract(holds)]
        case _:
            return [points] * len(children(expr))


def _match_load(
    around: Surroundings, run: Execution, load: Load, read: Read, points: isl.Set
) -> Iterator[Access]:
    """The access of a load, after those of its computed coordinates.

    What is not guarded may be read in all lanes, whatever the conditions around it say.
    A computed coordinate must be kept in range by the function "index", and be stored by itself:
    the bounds check relies on the first, the printed text on the second. The text adds it to the
    place that is printed besides, whose coordinate must therefore be 0. If a constant adds to a
    coordinate, the place besides is that of the rest; that the constant keeps to the range that is
    said of it, `launches/offsets.py` looks up for each launch.
    """
    array = around.scop.arrays[load.array]
    points = points if read.guarded else run.points
    computed, added = [], []
    for (dimension, expr), (stored, printed) in zip(load.dynamic, read.dynamic, strict=True):
        if stored != _stored_dimension(around, load.array, dimension):
            rule = f"dimension {dimension} of {load.array} is data, but is not stored by itself"
            raise around.illegal(f"statement {run.statement.name}: {rule} in {show_expr(read)}")
        ends = offset_range(expr)
        if ends is not None:
            added.append((stored, ends))
            yield from _match(around, run, expr, printed, points)
            continue
        if not _is_kept_in_range(run, expr, array.shape[dimension], points):
            rule = f"nothing keeps the index {show(expr)} of {load.array} in range"
            raise around.illegal(f"statement {run.statement.name}: {rule}")
        if read.element.index[stored] != const(0):
            rule = f"{show_index(read.element.index[stored])} is added to an index that is data"
            raise around.illegal(f"statement {run.statement.name}: {rule} in {show_expr(read)}")
        computed.append(stored)
        yield from _match(around, run, expr, printed, points)
    index = load.index.pullback_pw_multi_aff(run.instance)
    access = _access(around, run, load.array, points, index, read.element, frozenset(computed))
    yield replace(access, added=tuple(added))


def _stored_dimension(around: Surroundings, array: str, dimension: int) -> int | None:
    """Where a logical dimension is stored, if it is by itself, as it is, and not in a local."""
    storage = around.storages.get(array) if array in around.parameters else None
    if storage is None:
        return None
    affs = [storage.map.get_aff(k) for k in range(storage.map.dim(OUT))]
    moving = [k for k, aff in enumerate(affs) if aff.involves_dims(IN, dimension, 1)]
    if len(moving) != 1:
        return None
    alone = isl.Aff.var_on_domain(affs[moving[0]].get_domain_local_space(), SET, dimension)
    return moving[0] if affs[moving[0]].plain_is_equal(alone) else None


def _is_kept_in_range(run: Execution, expr: Expr, extent: Extent, points: isl.Set) -> bool:
    """Whether a computed coordinate is taken modulo something in 1 .. extent wherever it is used.

    Where there is no element at all, as along an extent of 0, nothing can be kept in range.
    """
    match expr:
        case Call("index", (_, Const(bound))) if not isinstance(extent, Size):
            return 1 <= bound <= extent or bool(points.is_empty())
        case Call("index", (_, Index(bound))):
            iterators = ", ".join(f"i{k}" for k in range(bound.dim(IN)))
            domain = f"{bound.space.get_tuple_name(IN)}[{iterators}]"
            least, most = (
                read(isl.PwAff, f"{{ {domain} -> [({limit})] }}")  # S -> Z
                for limit in ("1", spell(extent))
            )
            fitting = bound.ge_set(least).intersect(bound.le_set(most))
            return bool(points.is_subset(fitting.preimage_pw_multi_aff(run.instance)))
        case _:
            return False


def _access(
    around: Surroundings,
    run: Execution,
    array: str,
    points: isl.Set,
    index: isl.PwMultiAff,
    element: Element,
    computed: frozenset[int] = frozenset(),
) -> Access:
    """An access whose printed name is checked: the parameter of its array, or a local for it."""
    param, private = around.param(array), run.place.privates.get(element.array)
    expected = param.name if param else f"a local for {array}"
    held = element.array == expected if param else private and private.local.source == array
    if not held or (param and private):
        rule = f"{show_element(element)} stands for an element of {array}, which is in {expected}"
        raise around.illegal(f"statement {run.statement.name}: {rule}")
    place = run.place.index(element.index)
    return Access(run, array, points, index, place, element, private, computed)


def _check_place(around: Surroundings, access: Access) -> None:
    """A place in memory is  storage . index;  the places in a local are judged by `locality`."""
    points, where = access.points, f"statement {access.execution.statement.name}"
    if not points.is_subset(access.index.domain()):
        undefined = show_instance(access, points.subtract(access.index.domain()))
        rule = f"{where}: {show_element(access.element)} is read where the statement reads nothing"
        raise around.illegal(rule, undefined)
    if access.private:
        return
    storage = isl.PwMultiAff.from_multi_aff(around.storages[access.array].map)
    expected = storage.pullback_pw_multi_aff(access.index)  # L -> M
    _check_rank(around, access, expected.dim(OUT))
    for k in range(expected.dim(OUT)):
        if k in access.computed:
            continue
        # One coordinate has fewer pieces than all of them together.
        wanted, printed = expected.get_pw_aff(k), access.place.get_pw_aff(k)
        if wanted.plain_is_equal(printed):
            continue
        wrong = find_differences(points, wanted, printed)
        if not wrong.is_empty():
            rule = f"{where}: {show_element(access.element)} is not where {access.array} is stored"
            raise around.illegal(rule, show_instance(access, wrong))


def find_differences(points: isl.Set, one: isl.PwAff, other: isl.PwAff) -> isl.Set:
    """The points at which two functions are not both defined, or are not the same.

    Each is restricted to the points before they are compared, so that little is left of its pieces:
    for windows that are rolled, 16 pieces each, `eq_set` found no end where this takes 0.2 s.
    """
    here, there = (f.coalesce().intersect_domain(points).coalesce() for f in (one, other))
    difference = here.sub(there)
    return points.subtract(difference.domain()).union(difference.non_zero_set())


def _check_bounds(around: Surroundings, access: Access) -> None:
    """The image of an access lies in the box of its storage, computed coordinates aside."""
    holder = access.private.local if access.private else around.param(access.array)
    assert holder is not None
    _check_rank(around, access, len(holder.shape))
    fixed = [k for k in range(len(holder.shape)) if k not in access.computed]
    place = access.place
    for k in sorted(access.computed, reverse=True):
        place = place.drop_dims(OUT, k, 1)
    whole = box("", tuple(holder.shape[k] for k in fixed))
    inside = whole.preimage_pw_multi_aff(place)
    for k, ends in access.added:
        for end in ends:
            inside = inside.intersect(whole.preimage_pw_multi_aff(_add(place, fixed.index(k), end)))
    if not access.points.is_subset(inside):
        outside = access.points.subtract(inside)
        element, shape = show_element(access.element), list(holder.shape)
        rule = f"statement {access.execution.statement.name}: {element} leaves the bounds {shape}"
        witness = f"{show_instance(access, outside)} at {show_first(outside.apply(place.as_map()))}"
        raise around.illegal(rule, witness)


def _add(place: isl.PwMultiAff, k: int, number: int) -> isl.PwMultiAff:
    """A place so much further along one coordinate."""
    coordinate = place.get_pw_aff(k)
    more = isl.Aff.val_on_domain_space(coordinate.domain().space, isl.Val(number))
    return place.set_pw_aff(k, coordinate.add(isl.PwAff.from_aff(more)))


def _check_rank(around: Surroundings, access: Access, rank: int) -> None:
    if access.place.dim(OUT) != rank:
        rule = f"{show_element(access.element)} should have {rank} indices"
        raise around.illegal(f"statement {access.execution.statement.name}: {rule}")


def show_instance(access: Access, points: isl.Set) -> str:
    """The first instance executed at the points, # L: "S[4, 4]"."""
    return show_first(points.apply(access.execution.instance.as_map()))
