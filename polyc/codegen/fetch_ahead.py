"""Panels that are fetched from afar while the one before is multiplied.

    for j in panels:                                      for j in panels:
      for i in 10 tiles of rows:                            for i in 10 tiles of rows:
        for k: acc += x[i, k] * w[j][k][0..16]      ->        for k: fetch w[j + 1] at 2 (256 i + k)
                                                                     acc += x[i, k] * w[j][k][0..16]

The first tile of rows brings a panel near, the others find it there. So memory is busy in a tenth
of the time, and waited for in all of that. A panel is therefore fetched by the tiles of the one
before, to equal parts. What is fetched is only a hint: no value depends on it, and a place behind
the end of an array is none that is read.

Rows are fetched so as well, by the tile before theirs, where they lie one behind the other:

    for i in tiles of 6 rows:                             for i in tiles of 6 rows:
      for k in 0 .. 64: acc += x[i.., k] * w[k]    ->        for k: fetch x at 64 (i + 6) + 6 k
                                                                   acc += x[i.., k] * w[k]

A copy that packs some rows at once fetches the next ones, each line where it reads the one before.
A core that goes from row to row sees no run in this:

    for k in 0 .. K step 4:                               for k in 0 .. K step 4:
      for j in panels: p[j][k.., 0..16] = b[k.., j]  ->     for j in panels: fetch b at [k + 4.., j]
                                                                             p[j][k.., 0..16] = …

Where sizes say how many tiles of rows there are, a panel is parted among a few, or as many as at
the hint: where there are more, those behind fetch what the last one has.

    for t in 0 .. n - 5 step 6:
      for k: fetch w[j + 1] at 6 (256 min(t / 6, 3) + k)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, prod

from polyc.loopnest.index import (
    Affine,
    const,
    extremum,
    floordiv,
    stride,
    substitute,
    var,
    variables,
)
from polyc.loopnest.instructions import address
from polyc.loopnest.multiples import Multiples, divide_evenly, with_loop
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    If,
    Node,
    Read,
    TileMove,
    TileProduct,
    extent_of,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)
from polyc.loopnest.prototype import Param
from polyc.predict.point import evaluate
from polyc.printing.scope import LINE

MOST_LINES = 2
"""Cache lines that are fetched in an iteration: more would keep products waiting."""

MOST_COPIED = 8
"""The same in a copy, which does nothing else."""

MOST_SHARES = 4
"""Tiles of rows that fetch a panel where sizes say how many there are.

A call with fewer rows than the hint has is served by it as well: 768 x 3072 and back, for 128 rows
and called with 37, take 1.49 times as long as for 37 if the panel is parted among 15 tiles, 1.29
among 8, 1.03 among 4 and 1.15 among 2; with 128 and with 512 all are alike (Emerald Rapids).
"""

MOST_BESIDE_TILES = 32
"""The same where matrices are multiplied, which takes about as many cycles as that."""


def fetch_ahead(body: Block, arrays: Collection[str], params: Sequence[Param]) -> Block:
    """The loops of a kernel, as they are printed, with these arrays fetched panel by panel."""
    wanted: dict[int, tuple[Element, ...]] = {}  # by the identity of a loop
    for param in params:
        if param.name not in arrays:
            continue
        groups: dict[int, list[_Sum]] = defaultdict(list)  # by the loop over panels
        for one in _find_sums(body, param, _Place()):
            if one.panels:
                groups[id(one.panels)].append(one)
            elif places := tuple(one.rows_ahead()):
                inner = id(one.loops[-1])
                wanted[inner] = (*wanted.get(inner, ()), *places)
        for group in groups.values():
            fullest = max(group, key=lambda one: one.weight)
            inner = id(fullest.loops[-1])
            wanted[inner] = (*wanted.get(inner, ()), *fullest.fetched())

    def visit(node: Node) -> Node:
        places = wanted.get(id(node))
        return replace(node, ahead=places) if places and isinstance(node, For) else node

    return rewrite_nodes(body, visit) if wanted else body


@dataclass(frozen=True)
class _Place:
    """The loops around a node; `tile` of them are around the tile that it is in."""

    loops: tuple[For, ...] = ()
    tile: int = 0
    known: Multiples | None = None

    def inside(self, loop: For) -> _Place:
        return replace(self, loops=(*self.loops, loop), known=with_loop(self.known or {}, loop))


@dataclass(frozen=True)
class _Sum:
    """A sum of a tile that reads an array, step by step, in the innermost of its loops.

    place: the lowest that an iteration reads, and how far behind it the other ones are; the first
    `tile` loops are around the tile.
    """

    param: Param
    loops: tuple[For, ...]
    tile: int
    place: Affine
    offsets: tuple[int, ...] = (0,)

    @property
    def panels(self) -> For | None:
        """The innermost loop around tiles that read the same."""
        moving = (loop for loop in reversed(self.loops[: self.tile]) if self._moves(loop))
        return next(moving, None)

    @property
    def repeated(self) -> list[For]:
        """Loops over tiles that read the same, as far as sizes alone say their number."""
        found: list[For] = []
        around = {loop.var for loop in self.loops}
        for loop in reversed(self.loops[: self.tile]):
            if self._moves(loop) or around & variables(loop.upper - loop.lower):
                break
            found.insert(0, loop)
        return found

    @property
    def weight(self) -> int:
        """How often an iteration is executed for one panel."""
        return _count(self.repeated) * _count(self.loops[self.tile :])

    def fetched(self) -> Iterator[Element]:
        """Where an iteration fetches what the next panel has at its share of it."""
        inner, panels = self.loops[self.tile :], self.panels
        strides = [stride(self.place, loop.var) for loop in inner]
        steps = [(s or 0) * loop.step for s, loop in zip(strides, inner, strict=True)]
        tiles = _count(self.repeated)
        if panels is None or not _is_run(inner, steps):
            return
        rows = self._rows(steps[0] * (extent_of(inner[0]) or 0))
        if tiles * rows < 2:  # one after another, as a core sees by itself
            return
        after = substitute(self.place, {panels.var: var(panels.var) + panels.step}) - self.place
        share = ceil(steps[-1] * rows / tiles)
        lines = ceil(share * self.param.dtype.itemsize / LINE)
        most = MOST_BESIDE_TILES if _has_products(self.loops[-1]) else MOST_LINES
        if not after.is_constant or lines > most:
            return
        number = _number((*self.repeated, *inner))
        start = substitute(self.place, {loop.var: loop.lower for loop in inner})
        first = start + after.constant + number * share
        outer = (Affine(),) * (len(self.param.shape) - 1)
        for line in range(lines):
            place = first + line * LINE // self.param.dtype.itemsize
            yield Element(self.param.name, (*outer, place))

    def rows_ahead(self) -> Iterator[Element]:
        """Where a copy fetches lines of the rows that the next iteration around it reads."""
        if len(self.loops) < 2 or _adds(self.loops[-1]):
            return
        around, along = self.loops[-2:]
        rows, columns = (stride(self.place, loop.var) for loop in (around, along))
        if not rows or not columns or columns * along.step > rows * around.step:
            return
        line = LINE // self.param.dtype.itemsize
        starts: list[int] = []
        for offset in self.offsets:
            if not starts or offset >= starts[-1] + line:
                starts.append(offset)
        outer = (Affine(),) * (len(self.param.shape) - 1)
        for start in starts if len(starts) <= MOST_COPIED else ():
            yield Element(self.param.name, (*outer, self.place + rows * around.step + start))

    def _moves(self, loop: For) -> bool:
        return loop.var in variables(self.place)

    def _rows(self, run: int) -> int:
        """How many runs of so many elements an iteration reads of, one behind the other."""
        beside = tuple(run * k for k in range(len(self.offsets)))
        return len(self.offsets) if self.offsets == beside else 1


def _adds(loop: For) -> bool:
    """Whether a loop adds to what there is, and so is none that copies."""
    return any(isinstance(node, Assign) and node.reduction for node in walk_nodes(loop.body))


def _is_run(loops: Sequence[For], steps: Sequence[int]) -> bool:
    """Whether loops walk one run of memory, step by step, and are known to end."""
    walked = steps[-1]
    for loop, step in zip(reversed(loops), reversed(steps), strict=True):
        if step <= 0 or step != walked or not extent_of(loop):
            return False
        walked *= extent_of(loop) or 0
    return True


def _trips(loop: For) -> int:
    """Iterations of a loop; if sizes say how many, some that most calls have."""
    known = extent_of(loop)
    if known is None:
        at_hint = max(0, -(-evaluate(loop.upper - loop.lower, {}) // loop.step))
        return min(at_hint, MOST_SHARES)
    return known


def _count(loops: Iterable[For]) -> int:
    """Iterations of loops inside one another."""
    return prod(map(_trips, loops))


def _number(loops: Sequence[For]) -> Affine:
    """The number of an iteration of loops inside one another; the last one's for those behind."""
    number = Affine()
    for loop in loops:
        own = floordiv(var(loop.var) - loop.lower, loop.step)
        if extent_of(loop) is None:
            own = extremum("min", (own, const(_trips(loop) - 1)))
        number = number * _trips(loop) + own
    return number


def _find_sums(node: Node, param: Param, place: _Place) -> Iterator[_Sum]:
    """The innermost loops that read an array in vectors, or in registers for matrices."""
    match node:
        case Block(body=body, locals=locals_):
            stored = {n.first.array for n in walk_nodes(node) if isinstance(n, TileMove)}
            if any(local.in_registers or local.name in stored for local in locals_):
                place = replace(place, tile=len(place.loops))
            for child in body:
                yield from _find_sums(child, param, place)
        case If(then=then, otherwise=otherwise):
            for branch in (then, *([otherwise] if otherwise else [])):
                yield from _find_sums(branch, param, place)
        case For(kind="parallel" | "sequential", body=body):
            inside = place.inside(node)
            if any(isinstance(n, For) and n.kind == "sequential" for n in walk_nodes(body)):
                yield from _find_sums(body, param, inside)
            elif found := _find_lowest(body, param, inside.known or {}):
                yield _Sum(param, inside.loops, place.tile, *found)


def _find_lowest(
    body: Block, param: Param, known: Multiples
) -> tuple[Affine, tuple[int, ...]] | None:
    """The lowest place of an array that vectors read, and how far behind it the others are.

    None if they are not at known distances.
    """
    places = [
        divide_evenly(substitute(address(read.element, param.shape), _starts(loop)), known)
        for loop in walk_nodes(body)
        if isinstance(loop, For) and loop.kind == "vector"
        for assign in walk_nodes(loop.body)
        if isinstance(assign, Assign)
        for read in walk_expr(assign.value)
        if isinstance(read, Read) and read.element.array == param.name and not read.dynamic
    ]
    places += [
        divide_evenly(address(node.first, param.shape), known)
        for node in walk_nodes(body)
        if isinstance(node, TileMove) and node.first.array == param.name
    ]
    if not places or any(place.terms != places[0].terms for place in places):
        return None
    lowest = min(places, key=lambda place: place.constant)
    return lowest, tuple(sorted({place.constant - lowest.constant for place in places}))


def _has_products(loop: For) -> bool:
    """Whether matrices are multiplied in an iteration."""
    return any(isinstance(node, TileProduct) for node in walk_nodes(loop))


def _starts(loop: For) -> dict[str, Affine]:
    """The first values of a loop and of those inside."""
    return {inner.var: inner.lower for inner in walk_nodes(loop) if isinstance(inner, For)}
