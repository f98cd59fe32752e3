"""Peeling: the last, partial tile becomes code of its own.

    for t in 0 .. 50 step 16:                     for t in 0 .. 48 step 16:
      for p in 0 .. min(15, 49 - t) + 1:   ->       for p in 0 .. 16: …
        …                                         for p in 0 .. 2: …          (t = 48)

What is left is loops of constant extent, which can be unrolled into registers and cut into vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from polyc.codegen.index import (
    Affine,
    Compare,
    Condition,
    Extremum,
    FloorDiv,
    Logic,
    Mod,
    Var,
    const,
    decide,
    variables,
)
from polyc.codegen.loopnest import (
    Assign,
    Barrier,
    Block,
    Commit,
    For,
    If,
    Node,
    Transpose,
    substitute_block,
    walk_nodes,
)

Ranges = Mapping[str, tuple[int, int]]
"""Loop variable -> its smallest and largest value."""


def peel(block: Block) -> Block:
    """The nest with partial tiles split off and bounds simplified by the ranges of the loops."""
    return _block(block, {})


def _block(block: Block, ranges: Ranges) -> Block:
    body: list[Node] = []
    for node in block.body:
        body.extend(n for n in _node(node, ranges) if not _is_empty(n))
    return replace(block, body=tuple(body))


def _is_empty(node: Node) -> bool:
    """Whether a node has lost all that it would execute, to conditions that never hold."""
    match node:
        case Block(body=body) | For(body=Block(body=body)):
            return not body
        case If(then=then, otherwise=otherwise):
            return not then.body and not (otherwise and otherwise.body)
    return False


def _node(node: Node, ranges: Ranges) -> tuple[Node, ...]:
    match node:
        case Block():
            return (_block(node, ranges),)
        case If(condition, then, otherwise):
            known = simplify_condition(condition, ranges)
            decided = decide(known)
            if decided is True:
                return (_block(then, ranges),)
            other = _block(otherwise, ranges) if otherwise else None
            if decided is False:
                return (other,) if other else ()
            return (If(known, _block(then, ranges), other),)
        case For():
            return _for(node, ranges)
        case Assign() | Transpose() | Commit() | Barrier():
            return (node,)


def _for(loop: For, ranges: Ranges) -> tuple[Node, ...]:
    lower, upper = simplify_index(loop.lower, ranges), simplify_index(loop.upper, ranges)
    loop = replace(loop, lower=lower, upper=upper)
    if not (lower.is_constant and upper.is_constant):
        (least, latest), (_, end) = interval(lower, ranges), interval(upper, ranges)
        trips = upper - lower
        if trips.is_constant:  # so many iterations, wherever the loop begins
            end = latest + (trips.constant - 1) // loop.step * loop.step + 1
        return (replace(loop, body=_block(loop.body, {**ranges, loop.var: (least, end - 1)})),)
    start, stop, step = lower.constant, upper.constant, loop.step
    if start >= stop:
        return ()
    last = start + (stop - 1 - start) // step * step
    if last == start:
        return _once(loop, start, ranges)
    inside = {**ranges, loop.var: (start, last)}
    if not _bounds_vary(loop, inside):
        return (replace(loop, body=_block(loop.body, inside)),)
    full = {**ranges, loop.var: (start, last - step)}
    main = replace(loop, upper=const(last - step + 1), body=_block(loop.body, full))
    first = _once(loop, start, ranges) if last - step == start else (main,)
    return (*first, *_once(loop, last, ranges))


def _once(loop: For, value: int, ranges: Ranges) -> tuple[Node, ...]:
    """A single iteration; a vector or parallel loop of one iteration is no loop."""
    return (_block(substitute_block(loop.body, {loop.var: const(value)}), ranges),)


def _bounds_vary(loop: For, ranges: Ranges) -> bool:
    """Whether a bound below is a minimum or maximum that this loop decides."""
    for node in walk_nodes(loop.body):
        bounds = (node.lower, node.upper) if isinstance(node, For) else ()
        for bound in bounds:
            for atom, _ in simplify_index(bound, ranges).terms:
                if isinstance(atom, Extremum) and loop.var in variables(Affine(0, ((atom, 1),))):
                    return True
    return False


def interval(index: Affine, ranges: Ranges) -> tuple[int, int]:
    """Bounds of an index; terms that are not plain variables of known range widen it."""
    low = high = index.constant
    for atom, coefficient in index.terms:
        match atom:
            case Var(name) if name in ranges:
                ends = ranges[name]
            case Extremum(which, arguments):
                parts = [interval(a, ranges) for a in arguments]
                pick = min if which == "min" else max
                ends = (pick(p[0] for p in parts), pick(p[1] for p in parts))
            case FloorDiv(argument, divisor):
                low_end, high_end = interval(argument, ranges)
                ends = (-UNKNOWN, UNKNOWN)
                if low_end > -UNKNOWN and high_end < UNKNOWN:
                    ends = (low_end // divisor, high_end // divisor)
            case Mod(_, divisor):
                ends = (0, divisor - 1)
            case _:
                ends = (-UNKNOWN, UNKNOWN)
        products = (coefficient * ends[0], coefficient * ends[1])
        low, high = low + min(products), high + max(products)
    return low, high


UNKNOWN = 1 << 62


def simplify_index(index: Affine, ranges: Ranges) -> Affine:
    """The index with minima and maxima removed that the ranges decide."""
    total = const(index.constant)
    for atom, coefficient in index.terms:
        new = Affine(0, ((atom, 1),))
        if isinstance(atom, Extremum):
            new = _simplify_extremum(atom, ranges)
        total = total + new * coefficient
    return total


def _simplify_extremum(atom: Extremum, ranges: Ranges) -> Affine:
    arguments = [simplify_index(a, ranges) for a in atom.arguments]
    sign = 1 if atom.which == "min" else -1
    for candidate in arguments:
        if all(interval((other - candidate) * sign, ranges)[0] >= 0 for other in arguments):
            return candidate
    return Affine(0, ((Extremum(atom.which, tuple(arguments)), 1),))


def simplify_condition(condition: Condition, ranges: Ranges) -> Condition:
    """The condition with the comparisons removed that the ranges decide."""
    match condition:
        case Compare(operator, left):
            low, high = interval(left, ranges)
            if (operator == "ge" and low >= 0) or low == high == 0:
                return Logic("and", ())
            if high < 0 or (operator == "eq" and low > 0):
                return Logic("or", ())
            return condition
        case Logic(operator, arguments):
            kept = [simplify_condition(a, ranges) for a in arguments]
            neutral = operator == "and"
            kept = [a for a in kept if decide(a) is not neutral]
            if any(decide(a) is (not neutral) for a in kept):
                return Logic("or" if neutral else "and", ())
            return kept[0] if len(kept) == 1 else Logic(operator, tuple(kept))
