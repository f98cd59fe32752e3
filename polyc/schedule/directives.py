"""The directives that move and cut loops: each a record, and a function from tree to tree.

None of them asks whether the result is legal: that is a matter of the whole schedule
(`schedule/legality.py`), which may break a dependence on its way and keep it in the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import gcd

import islpy as isl

from polyc.errors import IllegalSchedule
from polyc.schedule.loops import (
    Instances,
    Kept,
    Loop,
    LoopKind,
    LoopTree,
    children,
    restrict,
    rewrite,
    walk,
    with_children,
)
from polyc.schedule.loops import Sequence as Parts
from polyc.schedule.names import (
    chains,
    edit_loops,
    find_statement,
    inside,
    select,
    split_statement,
)

LARGEST = 1 << 31
"""No tile is as large."""


@dataclass(frozen=True)
class Order:
    """The named loops of each nest in this order, in the places that they have.

    i ─ j ─ k   ->   k ─ j ─ i      order k i
    """

    loops: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        if len(set(self.loops)) < len(self.loops):
            raise IllegalSchedule("a loop is named twice")
        ranks = {id(n): k for k, name in enumerate(self.loops) for n in select(tree, name)}
        heads: dict[int, list[Loop]] = {}
        for chain in chains(tree):
            named = iter(sorted((n for n in chain if id(n) in ranks), key=lambda n: ranks[id(n)]))
            heads[id(chain[0])] = [next(named) if id(n) in ranks else n for n in chain]

        def visit(node: LoopTree) -> LoopTree:
            run = heads.get(id(node))
            if run is None:
                return with_children(node, tuple(map(visit, children(node))))
            below = node
            for _ in run:
                assert isinstance(below, Loop)
                below = below.body
            return reduce(lambda body, n: replace(n, body=body), reversed(run), visit(below))

        return visit(tree)


@dataclass(frozen=True)
class Split:
    """Each named loop as tiles of so many values, and a loop inside them.

    i   ->   size*floor(i/size) ─ i mod size      called i and i'
    """

    loops: tuple[str, ...]
    size: int

    def apply(self, tree: LoopTree) -> LoopTree:
        _check_size(self.size)

        def cut(loop: Loop) -> LoopTree:
            size = self.size
            tiles = _tiles(loop.function, size)
            rest = loop.function.sub(tiles)
            step = 1 if size % loop.step else loop.step
            within = replace(
                loop,
                name=inside(loop.name),
                function=rest,
                size=size,
                step=step,
                extent=size,
                open=loop.open or loop.extent is None,
            )
            whole = loop.step if loop.step % size == 0 else size
            return replace(loop, function=tiles, body=within, step=whole)

        _refuse_taken(tree, self.loops)
        return edit_loops(tree, self.loops, cut)


@dataclass(frozen=True)
class Sink:
    """The named loops, in this order, as the innermost of every statement inside them.

    i' ─ sequence { S, k ─ T }   ->   sequence { i' ─ S, k ─ i' ─ T }      sink i'
    """

    loops: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        for name in self.loops:
            tree = edit_loops(tree, (name,), _sink)
        return tree


@dataclass(frozen=True)
class Distribute:
    """Each named loop, which is around several parts, around each of them instead.

    i ─ sequence { S, T }   ->   sequence { i ─ S, i ─ T }      distribute i
    """

    loops: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        def spread(loop: Loop) -> LoopTree:
            below = loop.body.body if isinstance(loop.body, Kept) else loop.body
            if not isinstance(below, Parts):
                raise IllegalSchedule(
                    f"there is no sequence directly inside of {loop.name}; put it innermost of its "
                    "nest first, by order"
                )
            alone = [
                replace(loop, function=restrict(loop.function, p), body=p) for p in below.parts
            ]
            return _around(loop.body, Parts(tuple(alone)))

        for name in self.loops:
            tree = edit_loops(tree, (name,), spread)
        return rewrite(tree, _flat)


@dataclass(frozen=True)
class First:
    """The parts with the named loops in front of the others of their sequence.

    sequence { i ─ S, j ─ T }   ->   sequence { j ─ T, i ─ S }      first T.j
    """

    loops: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        named = {id(n) for name in self.loops for n in select(tree, name)}

        def visit(node: LoopTree) -> LoopTree:
            below = tuple(map(visit, children(node)))
            if not isinstance(node, Parts):
                return with_children(node, below)
            leads = _heads(node, named)
            return Parts(
                tuple(below[k] for k in sorted(range(len(below)), key=lambda k: k not in leads))
            )

        return visit(tree)


@dataclass(frozen=True)
class Fuse:
    """Loops of parts that run one after another as one loop around all of these parts.

    i ─ S, m ─ T   ->   i ─ sequence { S, T }                    fuse S.i T.m
    i ─ S, m ─ T   ->   i ─ sequence { i' ─ S, m' ─ T }          fuse S.i T.m 56

    With a size the new loop takes so many values at a time, and what was there runs inside it.
    The new loop has the name of the first.
    """

    loops: tuple[str, ...]
    size: int | None = None

    def apply(self, tree: LoopTree) -> LoopTree:
        if self.size is not None:
            _check_size(self.size)
            _refuse_taken(tree, self.loops)
        named = {id(n) for name in self.loops for n in select(tree, name)}
        for node in walk(tree):
            if isinstance(node, Parts) and len(_heads(node, named)) == len(named):
                return _replace(tree, node, self._fuse(node, named))
        raise IllegalSchedule(
            "these loops do not stand in parts of one sequence, one in each of them"
        )

    def _fuse(self, node: Parts, named: set[int]) -> LoopTree:
        heads = _heads(node, named)
        at = sorted(heads)
        if len(at) < 2 or at != list(range(at[0], at[0] + len(at))):
            raise IllegalSchedule("the parts that share a loop stand next to each other")
        loops = [heads[k] for k in at]
        function = reduce(isl.UnionPwAff.union_add, (loop.function for loop in loops))
        parts = []
        for k in at:
            loop = heads[k]
            left = loop.body if self.size is None else replace(loop, name=inside(loop.name))
            parts.append(_replace(node.parts[k], loop, left))
        fused = Loop(
            split_statement(self.loops[0])[1],
            function if self.size is None else _tiles(function, self.size),
            Parts(tuple(parts)),
            whole=True,
            step=gcd(*(loop.step for loop in loops)) if self.size is None else self.size,
            extent=_largest([loop.extent for loop in loops]),
        )
        rest = (*node.parts[: at[0]], fused, *node.parts[at[-1] + 1 :])
        return rest[0] if len(rest) == 1 else Parts(rest)


@dataclass(frozen=True)
class Reverse:
    """The named loops backwards: i -> -i."""

    loops: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        return edit_loops(tree, self.loops, lambda n: _moved(n, n.function.neg()))


@dataclass(frozen=True)
class Shift:
    """One statement later by so many iterations of a loop that it shares: S.i -> S.i + amount."""

    loop: str
    amount: int

    def apply(self, tree: LoopTree) -> LoopTree:
        statement, _ = split_statement(self.loop)
        loops = select(tree, self.loop)
        if not statement or len(loops) > 1:
            raise IllegalSchedule(
                f"say the loop of which statement, as in shift S.{loops[0].name} {self.amount}"
            )
        (loop,) = loops
        moved = restrict(loop.function, Instances(find_statement(tree, statement)))
        amount = isl.UnionPwAff.val_on_domain(moved.domain(), isl.Val(self.amount))
        rest = loop.function.subtract_domain(moved.domain())
        return _replace(tree, loop, _moved(loop, rest.union_add(moved.add(amount))))


@dataclass(frozen=True)
class Skew:
    """A loop moved by another one around it: j -> j + factor*i, so that j runs along a diagonal."""

    loop: str
    by: str
    factor: int

    def apply(self, tree: LoopTree) -> LoopTree:
        chosen = {id(n) for n in select(tree, self.loop)}
        others = select(tree, self.by)
        found: list[int] = []

        def visit(node: LoopTree, around: Loop | None) -> LoopTree:
            if any(node is other for other in others):
                assert isinstance(node, Loop)
                around = node
            new = with_children(node, tuple(visit(t, around) for t in children(node)))
            if id(node) not in chosen or around is None:
                return new
            assert isinstance(new, Loop)
            found.append(id(node))
            slope = restrict(around.function, node).scale_val(isl.Val(self.factor))
            return _moved(new, new.function.add(slope))

        new = visit(tree, None)
        if len(found) < len(chosen):
            raise IllegalSchedule(f"the loop {self.by} is not around every {self.loop}")
        return new


@dataclass(frozen=True)
class Run:
    """The named loops on threads, in SIMD lanes, or written out; on a GPU over blocks.

    Of a GPU also: combine, by threads that exchange what they have; copy, in the background; box,
    by the tensor memory accelerator.
    """

    kind: LoopKind
    loops: tuple[str, ...]

    def apply(self, tree: LoopTree) -> LoopTree:
        return edit_loops(tree, self.loops, lambda loop: replace(loop, kind=self.kind))


def _check_size(size: int) -> None:
    """Raise unless tiles may be of this size."""
    if not 1 <= size < LARGEST:
        raise IllegalSchedule("a tile has at least 1 iteration and less than 2**31")


def _tiles(function: isl.UnionPwAff, size: int) -> isl.UnionPwAff:
    """size*floor(f/size)"""
    return function.scale_down_val(isl.Val(size)).floor().scale_val(isl.Val(size))


def _moved(loop: Loop, function: isl.UnionPwAff) -> Loop:
    """The loop over other values, of which nothing is known."""
    return replace(loop, function=function, step=1, extent=None)


def _largest(extents: Sequence[int | None]) -> int | None:
    known = [n for n in extents if n is not None]
    return max(known) if len(known) == len(extents) else None


def _refuse_taken(tree: LoopTree, names: Sequence[str]) -> None:
    """Raise if a loop inside the named ones has the name that is about to be given there."""
    for loop in (n for name in names for n in select(tree, name)):
        taken = inside(loop.name)
        if any(isinstance(n, Loop) and n.name == taken for n in walk(loop.body)):
            raise IllegalSchedule(
                f"there is a loop {taken} inside of {loop.name} already; cut from the outside in, "
                "large tiles first, and fuse before that"
            )


def _sink(loop: Loop) -> LoopTree:
    def at_leaf(node: LoopTree) -> LoopTree:
        if not isinstance(node, Instances):
            return node
        return replace(loop, function=restrict(loop.function, node), body=node, whole=False)

    return rewrite(loop.body, at_leaf)


def _flat(node: LoopTree) -> LoopTree:
    """A sequence whose parts are none themselves, which is the same."""
    if not isinstance(node, Parts):
        return node
    parts = (part.parts if isinstance(part, Parts) else (part,) for part in node.parts)
    return Parts(tuple(each for some in parts for each in some))


def _around(old: LoopTree, new: LoopTree) -> LoopTree:
    """`new` below where arrays are kept, if `old` is such a place."""
    return replace(old, body=new) if isinstance(old, Kept) else new


def _heads(node: Parts, named: set[int]) -> dict[int, Loop]:
    """The named loops in the outermost nests of the parts of a sequence, by part."""
    found: dict[int, Loop] = {}
    for k, part in enumerate(node.parts):
        below: LoopTree = part
        while isinstance(below, Loop | Kept):
            if id(below) in named and isinstance(below, Loop):
                found[k] = below
                break
            below = below.body
    return found


def _replace(tree: LoopTree, old: LoopTree, new: LoopTree) -> LoopTree:
    """The tree with one node, the very object, replaced."""
    if tree is old:
        return new
    below = children(tree)
    edited = tuple(_replace(t, old, new) for t in below)
    same = all(a is b for a, b in zip(below, edited, strict=True))
    return tree if same else with_children(tree, edited)
