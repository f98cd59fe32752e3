"""Where the arrays of a block of threads live: in each thread's registers, or shared by all.

    for ty, tx (thread):  acc[4 ty + u][4 tx + v] = 0           each thread its own 4 x 4 elements
    for k …
      for ty, tx (thread):  acc[4 ty + u][4 tx + v] += …        in registers: acc[u][v]

An array is in registers if the loops over threads move all of its accesses in the same way, and the
rest of each index is known once loops are unrolled: then a thread meets none but its own elements.
The same is true of what is computed outside of such loops: all threads do it, each for itself.
Everything else is shared. This is a guess by the form of indices; that it is right is proven later.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from polyc.loopnest.index import Affine, Condition, const, decide, substitute, variables
from polyc.loopnest.lanes import LARGEST_UNROLL
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Local,
    Node,
    Read,
    extent_of,
    walk_expr,
)
from polyc.loopnest.ranges import simplify_condition
from polyc.loopnest.rewrite import rewrite_elements
from polyc.loopnest.swizzle import Swizzle


def assign_spaces(
    block: Block,
    swizzles: Mapping[str, Swizzle | None],
    shared: Collection[str] = (),
) -> Block:
    """The nest with the space of every array that is declared outside of loops over threads.

    swizzles: of those that are shared, by the array that lives there; shared: those that are to be
    in any case.
    """
    body = tuple(_inside(node, swizzles, shared) for node in block.body)
    block = replace(block, body=body)
    locals_ = []
    for local in block.locals:
        used = [a for a in _accesses(block) if a.element.array == local.name]
        if local.source not in shared and _is_owned(used):
            block = _keep_own(block, local)
            locals_.append(replace(local, space="register", shape=_own_shape(local, used)))
        else:
            locals_.append(replace(local, space="shared", swizzle=swizzles.get(local.source)))
    return replace(block, locals=tuple(locals_))


def _inside(node: Node, swizzles: Mapping[str, Swizzle | None], shared: Collection[str]) -> Node:
    match node:
        case Block():
            return assign_spaces(node, swizzles, shared)
        case For(kind="thread" | "combine"):
            return node
        case For(body=body):
            return replace(node, body=assign_spaces(body, swizzles, shared))
        case If(then=then, otherwise=other):
            other = assign_spaces(other, swizzles, shared) if other else None
            return replace(node, then=assign_spaces(then, swizzles, shared), otherwise=other)
    return node


@dataclass(frozen=True)
class _Use:
    """An access, the loops around it, and the conditions under which it is made."""

    element: Element
    is_write: bool
    loops: tuple[For, ...]
    conditions: tuple[Condition, ...]

    @property
    def threads(self) -> list[For]:
        """The loops that say which thread makes the access: what is combined, each its own."""
        kinds = ("thread",) if self.is_write else ("thread", "combine")
        return [loop for loop in self.loops if loop.kind in kinds]

    @property
    def alone(self) -> frozenset[tuple[int, int]]:
        """(apart, extent) of the loops over threads of which only the first iteration comes here.

        Where isl knows that number it stands in no index: such a loop moves the access like any.
        """
        return frozenset(
            (loop.apart, extent)
            for loop in self.threads
            if (extent := extent_of(loop) or 0) > 1
            and any(
                decide(simplify_condition(c, {loop.var: (1, extent - 1)})) is False
                for c in self.conditions
            )
        )

    @property
    def own(self) -> tuple[Affine, ...]:
        """The index without what the loops over threads add to it."""
        none = {loop.var: const(0) for loop in self.threads}
        return tuple(substitute(index, none) for index in self.element.index)

    @property
    def is_literal(self) -> bool:
        """Whether the rest of the index is known once loops are unrolled."""
        copied = {
            loop.var
            for loop in self.loops
            if loop.kind in ("unroll", "vector", "mma", "wgmma")
            and (extent_of(loop) or 99) <= LARGEST_UNROLL
        }
        return all(variables(index) <= copied for index in self.own)

    @property
    def moves(self) -> frozenset[tuple[int, int, tuple[Affine, ...]]]:
        """What each loop over threads adds to the index: (apart, extent, by how much)."""
        found = set()
        for loop in self.threads:
            others = {t.var: const(0) for t in self.threads if t is not loop}
            added = tuple(
                substitute(index, {**others, loop.var: const(1)}) - own
                for index, own in zip(self.element.index, self.own, strict=True)
            )
            if any(a != const(0) for a in added):
                found.add((loop.apart, extent_of(loop) or 0, added))
        return frozenset(found)


def _accesses(
    node: Node, loops: tuple[For, ...] = (), asked: tuple[Condition, ...] = ()
) -> Iterator[_Use]:
    match node:
        case Block(body=body):
            for child in body:
                yield from _accesses(child, loops, asked)
        case For(body=body):
            yield from _accesses(body, (*loops, node), asked)
        case If(condition, then, other):
            yield from _accesses(then, loops, (*asked, condition))
            if other:
                yield from _accesses(other, loops, asked)
        case Assign(target=target, value=value):
            yield _Use(target, True, loops, asked)
            for e in walk_expr(value):
                if isinstance(e, Read):
                    yield _Use(e.element, False, loops, asked)


def _is_owned(uses: list[_Use]) -> bool:
    """Whether no thread needs an element of another's."""
    if not all(use.is_literal for use in uses):
        return False
    moves = frozenset().union(*(use.moves for use in uses))
    return all(
        all(move in use.moves or move[:2] in use.alone for move in moves)
        and not (use.is_write and len(use.threads) != len(moves))
        for use in uses
    )


def _own_shape(local: Local, uses: list[_Use]) -> tuple[int, ...]:
    """The shape without the dimensions in which only threads move."""
    still = [all(use.own[d] == const(0) for use in uses) for d in range(len(local.shape))]
    return tuple(1 if s else extent for s, extent in zip(still, local.shape, strict=True))


def _keep_own(block: Block, local: Local) -> Block:
    """The nest with the accesses to an array reduced to what a thread sees."""

    def rewrite(node: Node, threads: dict[str, Affine]) -> Node:
        match node:
            case Block(body=body):
                return replace(node, body=tuple(rewrite(n, threads) for n in body))
            case For(body=body):
                over = node.kind in ("thread", "combine")
                inside = {**threads, node.var: const(0)} if over else threads
                new = rewrite(body, inside)
                assert isinstance(new, Block)
                return replace(node, body=new)
            case If(then=then, otherwise=other):
                new = rewrite(then, threads)
                rest = rewrite(other, threads) if other else None
                assert isinstance(new, Block)
                assert rest is None or isinstance(rest, Block)
                return replace(node, then=new, otherwise=rest)
            case Assign():
                return rewrite_elements(node, lambda e: own(e, threads))
        return node

    def own(element: Element, threads: dict[str, Affine]) -> Element:
        if element.array != local.name:
            return element
        return replace(element, index=tuple(substitute(i, threads) for i in element.index))

    new = rewrite(block, {})
    assert isinstance(new, Block)
    return new
