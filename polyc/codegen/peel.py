"""Peeling: the last, partial tile becomes code of its own.

    for t in 0 .. 50 step 16:                     for t in 0 .. 48 step 16:
      for p in 0 .. min(15, 49 - t) + 1:   ->       for p in 0 .. 16: …
        …                                         for p in 0 .. 2: …          (t = 48)

What is left is loops of constant extent, which can be unrolled into registers and cut into vectors.
Where the number of iterations is known only at run time, the last tile is cut into smaller ones
(`codegen/remainder.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from polyc.codegen.remainder import cut_into_vectors, cut_remainder
from polyc.loopnest.index import Affine, Extremum, const, decide, var, variables
from polyc.loopnest.nodes import Block, For, If, Node, walk_nodes
from polyc.loopnest.ranges import UNKNOWN, Known, interval, simplify_condition, simplify_index
from polyc.loopnest.substitute import substitute_block
from polyc.types.sizes import assumed_range

MOST_ASIDE = 4
"""The most iterations of a loop that become code of their own: each is as long as the loop."""


def peel(
    block: Block,
    sizes: Iterable[str] = (),
    simd_bytes: int = 0,
    far: Collection[str] = (),
) -> Block:
    """The nest with partial tiles split off and bounds simplified by the ranges of the loops.

    `sizes` are variables of the nest that no loop binds: sizes known only at run time. For what is
    left of vectors over these, `simd_bytes` is what a vector holds. far: arrays that tiles read
    from beyond the second-level cache.
    """
    ranges = {name: assumed_range(name) for name in sizes}
    known = {n: r.ends(UNKNOWN) for n, r in ranges.items()}
    return _Peeling(simd_bytes, far).block(block, Known(known))


@dataclass(frozen=True)
class _Peeling:
    """The walk: each node is rewritten by what is known where it stands."""

    simd_bytes: int
    far: Collection[str]

    def block(self, block: Block, known: Known) -> Block:
        body: list[Node] = []
        for node in block.body:
            body.extend(n for n in self.node(node, known) if not _is_empty(n))
        return replace(block, body=tuple(body))

    def node(self, node: Node, known: Known) -> tuple[Node, ...]:
        match node:
            case Block():
                return (self.block(node, known),)
            case If(condition, then, otherwise):
                condition = simplify_condition(condition, known)
                decided = decide(condition)
                if decided is True:
                    return (self.block(then, known),)
                other = self.block(otherwise, known) if otherwise else None
                if decided is False:
                    return (other,) if other else ()
                return (If(condition, self.block(then, known), other),)
            case For():
                return self.loop(node, known)
            case _:
                return (node,)

    def loop(self, loop: For, known: Known) -> tuple[Node, ...]:
        lower, upper = simplify_index(loop.lower, known), simplify_index(loop.upper, known)
        loop = replace(loop, lower=lower, upper=upper)
        if lower.is_constant and upper.is_constant:
            return self.constant_loop(loop, known)
        (least, latest), (_, end) = interval(lower, known), interval(upper, known)
        trips = upper - lower
        inside = known.and_range(loop.var, least, end - 1)
        if trips.is_constant:  # so many iterations, wherever the loop begins
            more = (trips.constant - 1) // loop.step * loop.step
            inside = known.and_range(loop.var, least, latest + more)
            if loop.step > 1:  # the last of tiles within a whole tile is whole
                inside = inside.and_facts(lower + more - var(loop.var))
        is_open = loop.kind == "vector" and not (loop.lanes or trips.is_constant)
        if is_open and loop.step == 1 and self.simd_bytes:
            pieces = cut_into_vectors(loop, inside, self.simd_bytes)
        elif _bounds_vary(loop, inside):
            pieces = cut_remainder(loop, inside, self.simd_bytes, self.far)
        else:
            return (replace(loop, body=self.block(loop.body, inside)),)
        return tuple(
            replace(piece, body=self.block(piece.body, inside.and_facts(*facts)))
            for piece, facts in pieces
        )

    def constant_loop(self, loop: For, known: Known) -> tuple[Node, ...]:
        start, stop, step = loop.lower.constant, loop.upper.constant, loop.step
        if start >= stop:
            return ()
        last = start + (stop - 1 - start) // step * step
        if last == start:
            return self.once(loop, start, known)
        inside = known.and_range(loop.var, start, last)
        full = known.and_range(loop.var, start, last - step)
        if not (_bounds_vary(loop, inside) or _ends_partly(loop, inside, full)):
            return (replace(loop, body=self.block(loop.body, inside)),)
        aside = self.count_aside(loop, start, last, known)
        end = last - aside * step
        main = replace(loop, upper=const(end + 1))
        main = replace(main, body=self.block(loop.body, known.and_range(loop.var, start, end)))
        first = self.once(loop, start, known) if end == start else (main,)
        rest = range(end + step, last + 1, step)
        return (*first, *(node for value in rest for node in self.once(loop, value, known)))

    def count_aside(self, loop: For, start: int, last: int, known: Known) -> int:
        """How many iterations at the end are code of their own: all that are partial.

        That is the last, and more where statements of fewer rows share the tiles of one: of 129
        and 77 rows in tiles of 26, the fifth tile of the first, and the third of the others.
        """
        for aside in range(1, MOST_ASIDE + 1):
            end = last - aside * loop.step
            if aside > 1 and end <= start:
                break  # no loop would be left
            if not _bounds_vary(loop, known.and_range(loop.var, start, end)):
                return aside
        return 1

    def once(self, loop: For, value: int, known: Known) -> tuple[Node, ...]:
        """A single iteration; a vector or parallel loop of one iteration is no loop."""
        return (self.block(substitute_block(loop.body, {loop.var: const(value)}), known),)


def _is_empty(node: Node) -> bool:
    """Whether a node has lost all that it would execute, to conditions that never hold."""
    match node:
        case Block(body=body) | For(body=Block(body=body)):
            return not body
        case If(then=then, otherwise=otherwise):
            return not then.body and not (otherwise and otherwise.body)
    return False


def _ends_partly(loop: For, known: Known, before: Known) -> bool:
    """Whether the last iteration decides a bound that loops in between lead to.

    Of tiles within tiles the last one of the last is partial. The loop around has a part in that,
    though no minimum names it: of 3137 rows in 25 tiles of 7 tiles of 18,

        for t in 0 .. 25: for u in 7 t .. 7 t + 7: for p in 0 .. min(17, 3136 - 18 u) + 1

    known: what is known inside; before: the same of all iterations but the last.
    """
    partial = _count_partial(loop.body, known)
    return partial > 0 and _count_partial(loop.body, before) < partial


def _count_partial(block: Block, known: Known) -> int:
    """How many bounds are minima or maxima still, where all loops are within their ranges."""
    count = 0
    for node in block.body:
        match node:
            case Block():
                count += _count_partial(node, known)
            case If(then=then, otherwise=otherwise):
                count += sum(_count_partial(b, known) for b in (then, otherwise) if b)
            case For():
                bounds = [simplify_index(bound, known) for bound in (node.lower, node.upper)]
                atoms = (atom for bound in bounds for atom, _ in bound.terms)
                count += sum(isinstance(atom, Extremum) for atom in atoms)
                (least, _), (_, end) = (interval(bound, known) for bound in bounds)
                count += _count_partial(node.body, known.and_range(node.var, least, end - 1))
    return count


def _bounds_vary(loop: For, known: Known) -> bool:
    """Whether a bound below is a minimum or maximum that this loop decides."""
    for node in walk_nodes(loop.body):
        bounds = (node.lower, node.upper) if isinstance(node, For) else ()
        for bound in bounds:
            for atom, _ in simplify_index(bound, known).terms:
                if isinstance(atom, Extremum) and loop.var in variables(Affine(0, ((atom, 1),))):
                    return True
    return False
