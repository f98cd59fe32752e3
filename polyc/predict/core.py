"""Seconds that a core computes, with all that it needs in its first-level cache.

Vector and unrolled loops are straight text: their assignments start as fast as the busiest of
three kinds of unit lets them (arithmetic, loads, stores). A loop around them takes as long for each
iteration, or as long as a sum waits for its last term, if that is more:

    for k in 0 .. 256:                           26 multiply-adds, 13 + 2 loads
      for i in 0 .. 13:  # unroll                26 sums: none waits
        for j in 0 .. 32:  # vector
          acc[i][j] add= x[i][k] * w[k][j]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, log2, prod

from polyc.loopnest.nodes import Assign, LoopExpr, Read, children
from polyc.predict.nest import LANES, Access, Leaf, Loop, Nest, Tree, is_plain
from polyc.scop.expr import Call, Cast
from polyc.target.costs import FMA_UNITS, LOOKED_UP, OPERATIONS, Prices
from polyc.target.instructions.matrices import MATRICES, MOST

MATRIX_TERMS = {row.name: row.terms for row in MATRICES}
"""By instruction for matrices, the products that it sums up in each word."""


@dataclass(frozen=True)
class _Busy:
    """Seconds that each kind of unit is busy with straight text."""

    arithmetic: float = 0.0
    loads: float = 0.0
    stores: float = 0.0

    def __add__(self, other: _Busy) -> _Busy:
        return _Busy(
            self.arithmetic + other.arithmetic,
            self.loads + other.loads,
            self.stores + other.stores,
        )

    @property
    def seconds(self) -> float:
        return max(self.arithmetic, self.loads, self.stores)


def measure_core(trees: Sequence[Tree], nest: Nest, prices: Prices) -> float:
    """Seconds of one core for trees in order."""
    return _Core(nest, prices).run(trees, ())


@dataclass(frozen=True)
class _Core:
    nest: Nest
    prices: Prices

    def run(self, trees: Iterable[Tree], around: tuple[Loop, ...]) -> float:
        """Seconds of trees inside of loops that are no straight text."""
        total, straight = 0.0, _Busy()
        for tree in trees:
            if isinstance(tree, Leaf) or tree.is_plain:
                straight += self._busy(tree, around, ())
                continue
            total += straight.seconds + self._loop(tree, around)
            straight = _Busy()
        return total + straight.seconds

    def _loop(self, loop: Loop, around: tuple[Loop, ...]) -> float:
        inside = (*around, loop)
        each = max(self.run(loop.body, inside), self.prices.single)
        if all(map(is_plain, loop.body)):
            each = max(each, self._wait(loop))
        return self.prices.entry * (loop.trips > 1) + loop.trips * each

    def _wait(self, loop: Loop) -> float:
        """What the longest chain of sums through one iteration takes."""
        longest = 0.0
        for leaf, straight in _with_straight(loop.body, ()):
            if leaf.assign.reduction and not leaf.target.moves_with(loop.var):
                chain = prod(
                    part.trips
                    for part in straight
                    if part.node.kind not in LANES and not leaf.target.moves_with(part.var)
                )
                longest = max(longest, chain * self.prices.latency)
        return longest

    def _busy(self, tree: Tree, around: tuple[Loop, ...], straight: tuple[Loop, ...]) -> _Busy:
        if isinstance(tree, Leaf):
            return self._assign(tree, around, straight)
        total = _Busy()
        for child in tree.body:
            total += self._busy(child, around, (*straight, tree))
        return total

    def _assign(self, leaf: Leaf, around: tuple[Loop, ...], straight: tuple[Loop, ...]) -> _Busy:
        """One assignment, in all lanes and copies of it."""
        assign = leaf.assign
        vector = next((s for s in straight if s.node.kind in ("vector", "simd")), None)
        lanes = self.prices.lanes(assign.widest) if vector else 1
        counts = {s.var: s.trips for s in straight if s.node.kind not in LANES}
        if vector:
            counts[vector.var] = ceil(vector.trips / lanes)
            lanes = min(lanes, vector.trips)
        if straight and straight[0].node.instruction in MATRIX_TERMS:
            return self._matrices(straight)
        terms = next((s for s in straight if s.node.kind == "instruction"), None)
        each = self._operations(assign)
        if vector and terms:
            each = self.prices.sums.get(str(terms.node.instruction), each)
        total = _Busy(arithmetic=prod(counts.values()) * each * self.prices.fma)
        innermost = around[-1] if around else None
        for access in leaf.accesses:
            if self._in_register(access, straight, innermost):
                continue
            times = _distinct(access, counts, vector)
            one = self._moved(access, vector, straight, lanes)
            total += _Busy(*(times * part for part in one))
            if access.is_write and assign.reduction:
                total += _Busy(loads=times * self.prices.load)
        if vector and assign.reduction and not leaf.target.moves_with(vector.var):
            # Partial sums, one a lane, are added up across the lanes at the end.
            total += _Busy(arithmetic=log2(max(lanes, 2)) * self.prices.latency)
        return total

    def _matrices(self, loops: tuple[Loop, ...]) -> _Busy:
        """Products of matrices in registers: a row of the result, all words of it, in a cycle.

        What they hold is loaded meanwhile.
        """
        row = MOST * MOST * MATRIX_TERMS[str(loops[0].node.instruction)]
        cycles = prod(loop.trips for loop in loops) / row
        return _Busy(arithmetic=cycles * FMA_UNITS * self.prices.fma)

    def _operations(self, assign: Assign) -> float:
        """Vector operations of an assignment; a sum of products is one."""
        total = _operations(assign.value)
        match assign.value:
            case Call("mul") if assign.reduction == "add":
                return total
        return total + (1 if assign.reduction else 0)

    def _in_register(
        self, access: Access, straight: tuple[Loop, ...], innermost: Loop | None
    ) -> bool:
        """Whether an element is a named variable, or stays in one while a loop runs."""
        if self.nest.arrays[access.array].in_registers:
            return True
        return innermost is not None and not any(
            access.moves_with(loop.var) for loop in (innermost, *straight)
        )

    def _moved(
        self, access: Access, vector: Loop | None, straight: tuple[Loop, ...], lanes: int
    ) -> tuple[float, float, float]:
        """Seconds of arithmetic, loads and stores for one vector of elements."""
        prices = self.prices
        whole, single = prices.load, prices.single
        if access.is_write:
            whole = single = prices.store
        arithmetic = 0.0
        if vector is None or not access.moves_with(vector.var):
            seconds = single
        elif access.step(vector.var) == 1:
            seconds = whole
        elif any(_fills(access, s, vector) for s in straight):
            seconds = whole  # the terms of a lane, and then those of the next
        elif any(access.step(s.var) == 1 for s in straight):
            seconds, arithmetic = whole, log2(lanes) * prices.fma  # transposed in registers
        else:
            seconds, arithmetic = lanes * single, lanes * prices.fma
        return (arithmetic, 0.0, seconds) if access.is_write else (arithmetic, seconds, 0.0)


def _fills(access: Access, terms: Loop, vector: Loop) -> bool:
    """Whether an instruction reads one element behind the other: all terms, lane by lane."""
    steps = access.step(terms.var), access.step(vector.var)
    return terms.node.kind == "instruction" and steps == (1, terms.trips)


def _distinct(access: Access, counts: Mapping[str, int], vector: Loop | None) -> int:
    """How many vectors straight text loads or stores: what copies share is loaded once.

    x[h + r], 2 copies by h and 3 by r:  4 and not 6
    """
    moving = {name: n for name, n in counts.items() if access.moves_with(name)}
    lanes = {vector.var} & moving.keys() if vector else set()
    copies = moving.keys() - lanes
    box = prod(1 + sum(own.get(name, 0) for name in copies) for own in access.spans)
    return prod(moving[name] for name in lanes) * min(prod(moving[n] for n in copies), box)


def _operations(expr: LoopExpr) -> float:
    """Vector operations of an expression, a multiplication that is added at once left out."""
    total = 0.0
    for part in _computed(expr):
        match part:
            case Call("add" | "sub", arguments):
                fused = any(isinstance(a, Call) and a.function == "mul" for a in arguments)
                total += 0 if fused else 1
            case Call(function):
                total += OPERATIONS.get(function, 1.0)
            case Cast(argument, dtype):
                total += 0 if argument.dtype == dtype else 1
            case Read(dynamic=dynamic) if any(not _is_offset(e) for _, e in dynamic):
                total += LOOKED_UP
    return total


def _computed(expr: LoopExpr) -> Iterator[LoopExpr]:
    """Sub-expressions that vectors compute; what constants add to a place is added once for all."""
    yield expr
    for part in children(expr):
        if not _is_offset(part):
            yield from _computed(part)


def _is_offset(expr: LoopExpr) -> bool:
    return isinstance(expr, Call) and expr.function == "offset"


def _with_straight(
    trees: Iterable[Tree], straight: tuple[Loop, ...]
) -> Iterable[tuple[Leaf, tuple[Loop, ...]]]:
    for tree in trees:
        if isinstance(tree, Leaf):
            yield tree, straight
        else:
            yield from _with_straight(tree.body, (*straight, tree))
