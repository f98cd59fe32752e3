"""A loop tree: what a schedule makes of a kernel's statements, as plain data.

    j  ─ i ─ keep acc ─ sequence                     for j in tiles:  (parallel)
                        ├ j' ─ i' ─ init               for i in tiles:  (parallel)
                        ├ k ─ j' ─ i' ─ update           local acc
                        └ j' ─ i' ─ finish               …

A loop has a name and a function of the instances below it: they run in the order of its values.
`lower_tree` makes an isl schedule tree of it, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Literal

import islpy as isl

LoopKind = Literal["sequential", "parallel", "vector", "unroll"]


@dataclass(frozen=True)
class Instances:
    """The instances of one statement: a leaf."""

    statement: str


@dataclass(frozen=True)
class Loop:
    """A loop over the values of a function of the instances below.

    size: how many values it takes at most, where it is inside of a tile; whole: the loop stays one
    loop where the domains of its statements differ, and isl may cut others into pieces.
    """

    name: str
    function: isl.UnionPwAff = field(repr=False, compare=False)  # S -> Z
    body: LoopTree
    kind: LoopKind = "sequential"
    size: int | None = None
    whole: bool = False


@dataclass(frozen=True)
class Sequence:
    """Parts that run one after another."""

    parts: tuple[LoopTree, ...]


@dataclass(frozen=True)
class Kept:
    """Where arrays live that are needed no longer than one execution of the body.

    arrays: their names, or None for whatever fits; at: the loop whose body this is, as a directive
    calls it, empty for none; in_place: rows may live where the result that overwrites them will be.
    """

    arrays: tuple[str, ...] | None
    at: str
    body: LoopTree
    in_place: bool = False


LoopTree = Instances | Loop | Sequence | Kept


def children(tree: LoopTree) -> tuple[LoopTree, ...]:
    """The trees directly below."""
    match tree:
        case Instances():
            return ()
        case Sequence(parts):
            return parts
        case Loop() | Kept():
            return (tree.body,)


def with_children(tree: LoopTree, below: tuple[LoopTree, ...]) -> LoopTree:
    """The tree with other trees below."""
    match tree:
        case Instances():
            return tree
        case Sequence():
            return Sequence(below)
        case Loop() | Kept():
            return replace(tree, body=below[0])


def rewrite(tree: LoopTree, edit: Callable[[LoopTree], LoopTree]) -> LoopTree:
    """The tree with `edit` applied to every node, innermost ones first."""
    return edit(with_children(tree, tuple(rewrite(t, edit) for t in children(tree))))


def walk(tree: LoopTree) -> Iterator[LoopTree]:
    """The node and all below it, outer ones first."""
    yield tree
    for below in children(tree):
        yield from walk(below)


def statements_in(tree: LoopTree) -> frozenset[str]:
    """The statements whose instances run below."""
    return frozenset(n.statement for n in walk(tree) if isinstance(n, Instances))


def paths(tree: LoopTree, above: tuple[LoopTree, ...] = ()) -> Iterator[tuple[LoopTree, ...]]:
    """For each statement in order: the nodes above it, outermost first."""
    if isinstance(tree, Instances):
        yield above
    for below in children(tree):
        yield from paths(below, (*above, tree))


def restrict(function: isl.UnionPwAff, tree: LoopTree) -> isl.UnionPwAff:
    """The function on the statements of a tree alone."""
    below = statements_in(tree)
    parts = function.get_pw_aff_list()
    kept = (parts.get_at(k) for k in range(parts.n_pw_aff()))
    chosen = [f for f in kept if f.get_domain_space().get_tuple_name(isl.dim_type.set) in below]
    return reduce(isl.UnionPwAff.union_add, map(isl.UnionPwAff.from_pw_aff, chosen))


def mark_names(tree: LoopTree) -> dict[str, str]:
    """The mark of each place where arrays are kept, by its loop: of a `tile` around others."""
    return {
        node.at: f"{'tile' if any(isinstance(n, Kept) for n in walk(node.body)) else 'scope'}"
        + f" {node.at}".rstrip()
        for node in walk(tree)
        if isinstance(node, Kept)
    }


def lower_tree(tree: LoopTree, domains: Mapping[str, isl.Set]) -> isl.Schedule:
    """The isl schedule tree of a loop tree: a band a loop, a mark where its kind says something.

    A loop of one iteration becomes nothing: it changes no order, but whoever reads the tree
    afterwards would have one dimension more to deal with.
    """
    marks = mark_names(tree)

    def lower(node: LoopTree) -> isl.Schedule:
        match node:
            case Instances(statement):
                return isl.Schedule.from_domain(isl.UnionSet.from_set(domains[statement]))
            case Sequence(parts):
                return reduce(isl.Schedule.sequence, map(lower, parts))
            case Kept():
                below = lower(node.body).get_root().child(0)
                return below.insert_mark(isl.Id(marks[node.at])).get_schedule()
            case Loop():
                return _lower_loop(node, lower(node.body), domains)

    return lower(tree)


def _lower_loop(loop: Loop, schedule: isl.Schedule, domains: Mapping[str, isl.Set]) -> isl.Schedule:
    if has_one_value(loop.function, domains):
        return schedule
    below = schedule.insert_partial_schedule(isl.MultiUnionPwAff.from_union_pw_aff(loop.function))
    band = below.get_root().child(0)
    if loop.whole:
        band = band.band_member_set_ast_loop_type(0, isl.ast_loop_type.atomic)
    if loop.kind != "sequential":
        band = band.insert_mark(isl.Id(loop.kind))
    return band.get_schedule()


def has_one_value(function: isl.UnionPwAff, domains: Mapping[str, isl.Set]) -> bool:
    """Whether a function has one value for all instances of all its statements."""
    parts = function.get_pw_aff_list()
    value: isl.Val | None = None
    for k in range(parts.n_pw_aff()):
        part = parts.get_at(k)
        name = part.get_domain_space().get_tuple_name(isl.dim_type.set)
        part = part.gist(domains[name])
        if not part.is_cst() or (value is not None and not value.eq(part.max_val())):
            return False
        value = part.max_val()
    return True
