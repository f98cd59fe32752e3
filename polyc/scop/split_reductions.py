"""Split a long reduction that leaves nothing to do in parallel: partial results first.

    acc[j] = 0                          part[p, j] = 0
    acc[j] += X[i, j]   over i    ->    part[p, j] += X[256 p + q, j]   over q
                                        parts[p, j] = part[p, j]
                                        acc[j] = 0
                                        acc[j] += parts[p, j]           over p

The parts are computed in parallel, by as many threads as there are: how many parts there are
depends on the sizes and the kind of machine alone, so that results do not depend on the number of
threads, and on a GPU not on the order in which blocks run, as with atomics. A declared
reduction may be reordered so; sums round differently, and less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

import islpy as isl

from polyc.names import fresh
from polyc.poly.affine import coefficients, columns_of, moves, outputs, simplify, unit_dimension
from polyc.poly.injective import is_injective
from polyc.scop.expr import Const, Load, pull_back
from polyc.scop.inline import simplify_indices
from polyc.scop.scop import Array, Scop, Statement, identity
from polyc.scop.uses import Uses, find_uses
from polyc.target.cuda import CudaTarget
from polyc.target.machine import Target


@dataclass(frozen=True)
class Grain:
    """Which reductions are split, and into how many parts.

    long: elements from which on a reduction is split; row: of them, for each parallel iteration;
    few: parallel iterations that are enough without; run: elements along a row that one thread, or
    block of threads, works on together: they count as one iteration. fewest, most: parts. free:
    what is computed may lie in any order, and the channels of a convolution be the row.
    """

    long: int
    row: int
    few: int
    run: int
    fewest: int
    most: int
    free: bool = False

    @staticmethod
    def of(target: Target | CudaTarget) -> Grain:
        """That of a machine."""
        return _of_gpu(target) if isinstance(target, CudaTarget) else CPU


CPU = Grain(long=1 << 18, row=1, few=8, run=4096, fewest=16, most=64, free=True)
"""1 MB of floats takes 30 us to read. Parts are many enough for any number of threads, and few
enough to be combined in no time; they depend on sizes alone."""


def _of_gpu(target: CudaTarget) -> Grain:
    """Parts for all multiprocessors, where a block alone would take longer than another launch.

    A block reads some 25 GB/s: 16384 floats while a kernel is launched.
    """
    count = target.multiprocessors
    return Grain(long=1 << 16, row=1 << 14, few=count, run=256, fewest=count, most=4 * count)


FindParts = Callable[[Statement], tuple[int, int] | None]
"""(position of the iterator to cut, parts) of an update that a machine computes better so."""


def split_reductions(scop: Scop, grain: Grain = CPU, find_parts: FindParts | None = None) -> Scop:
    """The scop with the long reductions split that have few parallel iterations."""
    uses = find_uses(scop.statements)
    for s in scop.statements:
        found = _find_split(s, scop, uses, grain)
        if found is None and find_parts and _is_alone(s, uses):
            found = _cut(s, find_parts(s))
        if found is None:
            continue
        (start,) = (w for w in uses.writes(s.array) if not w.reduction)
        scop = put_in_place(scop, s, start, *_Split(s, start, *found).rewrite(scop))
    return scop


def put_in_place(
    scop: Scop,
    update: Statement,
    start: Statement,
    arrays: Sequence[Array],
    parts: Sequence[Statement],
) -> Scop:
    """The scop with statements in place of a reduction and its initialisation, and their arrays."""
    statements = [s for s in scop.statements if s is not start]
    at = next(k for k, s in enumerate(statements) if s is update)
    statements[at : at + 1] = parts
    known = {**scop.arrays, **{a.name: a for a in arrays}}
    return replace(scop, statements=tuple(statements), arrays=known)


def _find_split(s: Statement, scop: Scop, uses: Uses, grain: Grain) -> tuple[int, int, int] | None:
    """(position of the iterator, number of parts, their size) of a statement to split."""
    if s.reduction is None or s.group is not None:
        return None
    extents = s.estimated_extents
    moving = [moves(column) for column in s.columns[0]]
    kept = [p for p, moves in enumerate(moving) if moves]
    if prod(extents) < grain.long or not s.domain.is_box():
        return None
    streamed = _find_streamed(s, scop)
    if streamed is None or len(uses.writes(s.array)) != 2:
        return None
    rows = [coefficients(function) for function in outputs(streamed.index)]
    along = [p for p in kept if rows and rows[-1][p] == 1]
    if grain.free and not along and scop.arrays[streamed.array].kind == "temporary":
        places = {p: unit_dimension(columns_of(streamed.index)[p]) for p in kept}
        channels = _find_channels(streamed.array, scop, uses)
        found = (p for p, d in places.items() if d in channels)
        along = sorted(found, key=lambda p: -extents[p])[:1]
    iterations = prod(-(-extents[p] // grain.run) if p in along else extents[p] for p in kept)
    if iterations >= grain.few or prod(extents) < grain.row * iterations:
        return None
    for p in range(len(extents)):
        extent = s.exact_extents[p]
        if p not in kept and extent is not None and extent >= grain.fewest:
            count = _count_parts(extent, grain)
            return p, count, -(-extent // count)
    return None


def _find_channels(array: str, scop: Scop, uses: Uses) -> set[int]:
    """The dimensions of an array along which weights move, where it was multiplied with some.

        acc[n, o, y, x] += x[n, c, y + r, x + q] * w[o, c, r, q]        y = relu(acc)        {1}

    Products are computed in lanes along these, which are rows in memory then; so are they in what
    is computed of them, one by one. Scores of an attention have none: both factors are computed.
    """
    channels: set[int] = set()
    waiting = [(array, d, d) for d in range(len(scop.arrays[array].shape))]
    seen = set(waiting)
    while waiting:
        name, dimension, first = waiting.pop()
        for writer in uses.writes(name):
            into = columns_of(writer.write)
            moved = [p for p, column in enumerate(into) if unit_dimension(column) == dimension]
            for load, p in product(writer.loads, moved):
                kind, column = scop.arrays[load.array].kind, columns_of(load.index)[p]
                if kind == "constant" and writer.reduction and moves(column):
                    channels.add(first)
                d = unit_dimension(column)
                if kind == "temporary" and d is not None and (load.array, d, first) not in seen:
                    seen.add((load.array, d, first))
                    waiting.append((load.array, d, first))
    return channels


def _is_alone(s: Statement, uses: Uses) -> bool:
    """Whether an update and its initialisation are all that write a total."""
    return s.reduction is not None and s.group is None and len(uses.writes(s.array)) == 2


def _cut(s: Statement, found: tuple[int, int] | None) -> tuple[int, int, int] | None:
    """The iterator, the parts, and their size."""
    if found is None:
        return None
    p, count = found
    return p, count, -(-s.estimated_extents[p] // count)


def _find_streamed(s: Statement, scop: Scop) -> Load | None:
    """A load of which every instance reads an element of its own: the one that takes the time."""
    for load in s.loads:
        if load.dynamic or scop.arrays[load.array].kind == "constant":
            continue
        if is_injective(load.index, s.domain):
            return load
    return None


def _count_parts(extent: int, grain: Grain) -> int:
    """A divisor of the extent, so that all parts are equal; else the fewest."""
    divisors = [n for n in range(grain.fewest, grain.most + 1) if extent % n == 0]
    return divisors[0] if divisors else grain.fewest


@dataclass(frozen=True)
class _Split:
    """A reduction, its initialisation, and the iterator that is cut into parts of a size."""

    update: Statement
    start: Statement
    position: int
    count: int
    size: int

    @property
    def part(self) -> str:
        return f"{self.update.iterators[self.position]}_part"

    def rewrite(self, scop: Scop) -> tuple[tuple[Array, ...], tuple[Statement, ...]]:
        """The arrays of partial results, and the statements that stand for the reduction."""
        s, start, part = self.update, self.start, self.part
        assert s.reduction is not None
        total = scop.arrays[s.array]
        shape, dtype = (self.count, *total.shape), total.dtype
        title = fresh(f"{total.name}_parts", scop.arrays)
        parts = Array(title, dtype, shape, "temporary", None, True)
        running = Array(fresh(f"{parts.name}_acc", scop.arrays), dtype, shape, "temporary")

        begin = self._for_each_part(f"{start.name}_parts", [part, *start.iterators])
        neutral = Const(identity(s.reduction, dtype), dtype)
        begin = replace(begin, **self._into(running, begin), value=neutral)
        partial = self._partial(running)
        end = self._for_each_part(f"{s.name}_part", [part, *start.iterators])
        end = replace(end, **self._into(parts, end), value=self._load(running, end))
        combine = self._for_each_part(s.name, [*start.iterators, part])
        value = self._load(parts, combine)
        combine = replace(combine, value=value, reduction=s.reduction, origin=s.origin)
        return (parts, running), (begin, partial, end, start, combine)

    def _partial(self, running: Array) -> Statement:
        """The update, of the running total of its part."""
        s, part = self.update, self.part
        iterator = s.iterators[self.position]
        rest = f"{iterator}_rest"
        size = self.size
        inside = [part, *(rest if i == iterator else i for i in s.iterators)]
        outside = [f"{size}*{part} + {rest}" if i == iterator else i for i in s.iterators]
        bounds = f"0 <= {part} < {self.count} and 0 <= {rest} < {size}"
        name = f"{s.name}_parts"
        # T -> S
        split = isl.PwMultiAff(
            f"{{ {name}[{', '.join(inside)}] -> {s.name}[{', '.join(outside)}] : {bounds} }}"
        )
        domain = s.domain.preimage_pw_multi_aff(split)
        write = simplify(s.write.pullback_pw_multi_aff(split), domain)
        value = simplify_indices(pull_back(s.value, split), domain)
        new = replace(
            s, name=name, domain=domain, iterators=tuple(inside), write=write, value=value
        )
        return replace(new, **self._into(running, new))

    def _for_each_part(self, name: str, iterators: Sequence[str]) -> Statement:
        """The initialisation with one more iterator, of the part."""
        kept = ", ".join(self.start.iterators)
        bounds = f"0 <= {self.part} < {self.count}"
        # T -> start
        onto = isl.PwMultiAff(
            f"{{ {name}[{', '.join(iterators)}] -> {self.start.name}[{kept}] : {bounds} }}"
        )
        return replace(
            self.start,
            name=name,
            domain=self.start.domain.preimage_pw_multi_aff(onto),
            iterators=tuple(iterators),
            write=self.start.write.pullback_pw_multi_aff(onto),
        )

    def _into(self, array: Array, by: Statement) -> dict[str, Any]:
        """Where a statement that writes an element of the total writes that of its part."""
        return {"array": array.name, "write": _beside(self.part, by.write, array.name)}

    def _load(self, array: Array, by: Statement) -> Load:
        """That element of its part."""
        return Load(array.name, _beside(self.part, by.write, array.name), array.dtype)


def _beside(part: str, write: isl.PwMultiAff, array: str) -> isl.PwMultiAff:
    """{ T -> A[i] } as { T -> array[part, i] }; `part` is an iterator of T."""
    domain = write.space.domain()
    position = domain.find_dim_by_name(isl.dim_type.set, part)
    variable = isl.Aff.var_on_domain(isl.LocalSpace.from_space(domain), isl.dim_type.set, position)
    places = [isl.PwAff.from_aff(variable).intersect_domain(write.domain()), *outputs(write)]
    target = isl.Space.set_alloc(domain.get_ctx(), 0, len(places)).align_params(domain)
    target = target.set_tuple_name(isl.dim_type.set, array)
    result = isl.MultiPwAff.zero(domain.map_from_domain_and_range(target))
    for k, place in enumerate(places):
        result = result.set_pw_aff(k, place)
    return isl.PwMultiAff.from_multi_pw_aff(result)
