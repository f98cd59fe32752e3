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

import islpy as isl

from polyc.loopnest.marks import LoopKind, LoopMark


@dataclass(frozen=True)
class Instances:
    """The instances of one statement: a leaf."""

    statement: str


@dataclass(frozen=True)
class Loop:
    """A loop over the values of a function of the instances below.

    size: how many values it takes at most, where it is inside of a tile; whole: the loop stays one
    loop where the domains of its statements differ, and isl may cut others into pieces. numbers: of
    a loop that was several, the number of an iteration, whatever it is cut into. step: what
    all its values are multiples of; extent: one more than the largest of them, None if it is not
    known; open: of a tile, that it may end before, as only a call knows. width, apart: of a loop
    over threads, the iterations that there is room for, and the threads between two of them.
    instruction: the row of the table that runs it, of that kind.
    """

    name: str
    function: isl.UnionPwAff = field(repr=False, compare=False)  # S -> Z
    body: LoopTree
    kind: LoopKind = "sequential"
    size: int | None = None
    whole: bool = False
    step: int = 1
    extent: int | None = None
    open: bool = False
    width: int = 0
    apart: int = 1
    instruction: str = ""
    numbers: isl.UnionPwAff | None = field(default=None, repr=False, compare=False)  # S -> Z

    @property
    def iterations(self) -> int | None:
        """How many iterations there are at most; None if that is not known."""
        return None if self.extent is None else -(-self.extent // self.step)


@dataclass(frozen=True)
class Sequence:
    """Parts that run one after another."""

    parts: tuple[LoopTree, ...]


@dataclass(frozen=True)
class Kept:
    """Where arrays live that are needed no longer than one execution of the body.

    arrays: their names, or None for whatever fits; at: the loop whose body this is, as a directive
    calls it, empty for none; in_place: rows may live where the result that overwrites them will be.
    space: the memory of a GPU that is meant, empty if that is said array by array.
    """

    arrays: tuple[str, ...] | None
    at: str
    body: LoopTree
    in_place: bool = False
    space: str = ""


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


def mark_names(tree: LoopTree, *, counted: bool = False) -> dict[str, str]:
    """The mark of each place where arrays are kept, by its loop: of a `tile` around others.

    counted: for a GPU, where it matters whether a thread keeps them, or a block.
    """
    kinds = (
        (node, _mark_kind(node, by_thread) if counted else "scope")
        for node, by_thread in _places(tree)
    )
    return {
        node.at: f"{'tile' if _is_around_others(node.body) else kind} {node.at}".rstrip()
        for node, kind in kinds
    }


def _is_around_others(body: LoopTree) -> bool:
    """Whether arrays are kept further inside as well; a loop that holds results keeps these."""
    holds = (isinstance(node, Loop) and node.kind == "hold" for node in walk(body))
    return any(_places(body)) or any(holds)


def _places(tree: LoopTree, by_thread: bool = False) -> Iterator[tuple[Kept, bool]]:
    """The places where arrays are kept, and whether each thread of a block has its own there."""
    if isinstance(tree, Kept):
        yield tree, by_thread
    by_thread |= isinstance(tree, Loop) and tree.kind == "thread"
    for below in children(tree):
        yield from _places(below, by_thread)


def _mark_kind(node: Kept, by_thread: bool) -> str:
    if by_thread:
        return "stack"
    return "shared" if node.space == "shared" else "spread"


def lower_tree(
    tree: LoopTree, domains: Mapping[str, isl.Set], *, counted: bool = False
) -> isl.Schedule:
    """The isl schedule tree of a loop tree: a band a loop, a mark where its kind says something.

    A loop of one iteration becomes nothing: it changes no order, but whoever reads the tree
    afterwards would have one dimension more to deal with. Tiles are counted in ones, for isl takes
    twice as long to generate loops in larger steps; but where only a call knows at which one they
    end, what is left is cut into smaller ones, by positions (`codegen/remainder.py`). For a GPU all
    loops are counted in ones, and stay: blocks and threads have numbers, and so have the ones that
    there is one of.
    """
    marks = mark_names(tree, counted=counted)

    def lower(node: LoopTree) -> isl.Schedule:
        match node:
            case Instances(statement):
                return isl.Schedule.from_domain(isl.UnionSet.from_set(domains[statement]))
            case Sequence(parts):
                return reduce(isl.Schedule.sequence, map(lower, parts))
            case Kept():
                below = lower(node.body).get_root().child(0)
                return below.insert_mark(isl.Id(marks[node.at])).get_schedule()
            case Loop() if counted:
                loop = replace(_in_ones(node), whole=True)
                return _insert(loop, _mark_inner(node, lower(node.body)))
            case Loop():
                inner = lower(node.body)
                if has_one_value(node.function, domains):
                    return inner
                by_positions = node.extent is None or node.open
                return _insert(node if by_positions else _in_ones(node), inner)

    return lower(tree)


def _in_ones(loop: Loop) -> Loop:
    """The loop counted in steps of one."""
    if loop.step == 1:
        return loop
    return replace(loop, function=loop.function.scale_down_val(isl.Val(loop.step)), step=1)


def _mark_inner(outer: Loop, schedule: isl.Schedule) -> isl.Schedule:
    """With a mark between a loop that has one and a plain one inside.

    isl leaves a loop out that runs once, and what its mark says would be said of the next.
    """
    inner = outer.body
    if outer.kind == "sequential" or not isinstance(inner, Loop) or inner.kind != "sequential":
        return schedule
    below = schedule.get_root().child(0)
    return below.insert_mark(isl.Id(str(LoopMark()))).get_schedule()


def _insert(loop: Loop, schedule: isl.Schedule) -> isl.Schedule:
    below = schedule.insert_partial_schedule(isl.MultiUnionPwAff.from_union_pw_aff(loop.function))
    band = below.get_root().child(0)
    if loop.whole:
        band = band.band_member_set_ast_loop_type(0, isl.ast_loop_type.atomic)
    if loop.kind != "sequential":
        # Of room for one, a loop says nothing, but for who copies alone: the first of all threads.
        says = loop.width > 1 or (loop.width, loop.apart) == (1, 1)
        at = find_value(loop.function, below.get_domain()) if says else None
        mark = LoopMark(loop.kind, loop.width, loop.apart, at, instruction=loop.instruction)
        band = band.insert_mark(isl.Id(str(mark)))
    return band.get_schedule()


def find_value(function: isl.UnionPwAff, domain: isl.UnionSet) -> int | None:
    """The value of a function on a domain, if it is a constant there."""
    values = isl.UnionMap.from_union_pw_aff(function).intersect_domain(domain).range()
    if values.is_empty():
        return None
    found = values.as_set()
    if not found.is_singleton():
        return None
    return int(found.sample_point().get_coordinate_val(isl.dim_type.set, 0).to_python())


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
