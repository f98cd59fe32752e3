"""The last tile of a loop whose number of iterations is known only at run time.

    for t in 0 .. n step 13:                            for t in 0 .. n - 12 step 13:
      for r in 0 .. min(12, n - 1 - t) + 1: # unroll      for r in 0 .. 13: …
        …                                          ->   for t in 13 (n / 13) .. n - 3 step 4:
                                                          for r in 0 .. 4: …
                                                        for t in 4 (…) .. n:
                                                          for r in 0 .. 1: …

Loops that are unrolled into registers need a constant extent, so the rest of a tile is cut into
tiles of four rows, of two, and of one, or of more heights where each reads weights from afar; where
taps run along a diagonal, into rows. The rest of a vector loop is cut into whole vectors, and one
of which some lanes are idle.

These tiles begin inside the one that they are cut from. What an index says of t and of r by
themselves, as A[t / 13][r] does for an array that is stored in panels of 13, it says of that one,
T = 13 (n / 13): it becomes A[T / 13][t - T + r].
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from polyc.loopnest.index import (
    Affine,
    Var,
    const,
    extremum,
    floordiv,
    substitute,
    var,
    variables,
)
from polyc.loopnest.nodes import (
    Assign,
    Block,
    Element,
    For,
    Node,
    Read,
    Test,
    Value,
    rewrite_nodes,
    walk_expr,
    walk_nodes,
)
from polyc.loopnest.ranges import Known, interval, simplify_index
from polyc.loopnest.rewrite import rewrite_elements
from polyc.loopnest.substitute import substitute_block, substitute_element
from polyc.loopnest.uniform import widest_in
from polyc.predict.point import evaluate
from polyc.types.ranges import stated_range
from polyc.types.sizes import Extent, Size, bounds

ROWS = (4, 2, 1)
"""Heights of the tiles that the rest of a register tile is cut into."""

FEW_TILES = 8
ROWS_OF_FEW = (6, 4, 3, 2, 1)
"""The same of at most so many tiles at the hint that read weights from afar: in a call for less,
what is left of one may be all that there is, and each height goes through all weights for itself.
512 x 512 weights at 24 points take 890 us for 3 rows in one tile, and 1090 in two (Zen 4).
"""

MATRIX_ROWS = (8, *ROWS)
"""The same where matrices are multiplied, by which tiles are twice as high at least."""

SHRUNK_ROWS = (1,)
"""The same of a tile whose taps run along a diagonal, all of which is written out."""

Piece = tuple[For, tuple[Affine, ...]]
"""A loop over some of the iterations, and what is never negative inside."""


def cut_remainder(
    loop: For, known: Known, simd_bytes: int, far: Collection[str] = ()
) -> Iterator[Piece]:
    """The loop over whole tiles, and loops over what is left; the loop itself if nothing is gained.

    `known` holds the range of the loop; far: arrays that each tile reads from afar.
    """
    if {node.kind for node in _dependent_loops(loop)} <= {"sequential"}:
        yield loop, ()
        return
    loop = replace(loop, upper=_real_end(loop, known))
    size, left = loop.step, loop.upper - var(loop.var)  # iterations from here to the end
    yield replace(loop, upper=loop.upper - (size - 1)), (left - size,)
    end = _end(loop, known)
    start = loop.lower + floordiv(end - loop.lower, size) * size
    partial = left * -1 + (size - 1)  # not negative where the tile is not whole
    rest = replace(loop, lower=start)
    points = _point_loops(rest, left, known.and_facts(partial))
    if not points and _may_shrink(rest, known):
        for width in (w for w in SHRUNK_ROWS if w < size):
            cut = replace(rest, lower=start, upper=loop.upper - (width - 1), step=width)
            yield from _unless_empty(_shrink(cut, loop.upper - width), (left - width, partial))
            start = start + floordiv(end - start, width) * width
        return
    kinds = {node.kind for node in points} - {"sequential"}
    if not (len(kinds) == 1 or kinds == {"unroll", "instruction"}):  # tiles within are cut in turn
        cut = _cut_within(rest, left, known.and_facts(left - 1, partial), simd_bytes, far)
        yield from _unless_empty(cut, (left - 1, partial))
        return
    # What is left of a tile of 16 needs no vector of 64 bytes.
    lanes = min(_lanes(points, simd_bytes), 1 << (size - 1).bit_length())
    first = start
    widths = (lanes,) if kinds == {"vector"} else _heights(loop, "instruction" in kinds, far)
    for width in widths:
        if width < size:
            cut = replace(rest, upper=rest.upper - (width - 1), step=width)
            narrow = _narrow(cut, points, first, const(width))
            yield from _unless_empty(narrow, (left - width, partial))
            start = rest.lower + floordiv(end - rest.lower, width) * width
            rest = replace(rest, lower=start)
    if kinds == {"vector"}:
        facts = (left - 1, left * -1 + (min(lanes, size) - 1))
        narrow = _narrow(replace(rest, step=lanes), points, first, left, lanes)
        yield from _unless_empty(narrow, facts)


def _heights(loop: For, in_matrices: bool, far: Collection[str]) -> Sequence[int]:
    """The heights of the tiles that the rest of a register tile is cut into, high ones first."""
    if in_matrices:
        return MATRIX_ROWS
    assigns = (node for node in walk_nodes(loop.body) if isinstance(node, Assign))
    reads = (read for assign in assigns for read in walk_expr(assign.value))
    if not any(isinstance(read, Read) and read.element.array in far for read in reads):
        return ROWS
    most = max(0, evaluate(loop.upper - loop.lower, {}))
    return ROWS_OF_FEW if most <= FEW_TILES * loop.step else ROWS


def cut_into_vectors(loop: For, known: Known, simd_bytes: int) -> Iterator[Piece]:
    """A vector loop of any number of iterations as whole vectors, and one with idle lanes.

        for l in 0 .. n:  # vector   ->   for l in 0 .. n - 15 step 16:
          …                                 for l_lane in 0 .. 16:  # vector
                                          for l in 16 (n / 16) .. n step 16:
                                            for l_lane in 0 .. n - l:  # vector of 16 lanes

    Such is a tile that no call has more than one of. `known` holds the range of the loop.
    """
    width, lane = _lanes([loop], simd_bytes), f"{loop.var}_lane"
    left = loop.upper - var(loop.var)
    body = substitute_block(loop.body, {loop.var: var(loop.var) + var(lane)})
    start = loop.lower + floordiv(_end(loop, known) - loop.lower, width) * width

    def tiles(lower: Affine, upper: Affine, count: Affine, lanes: int) -> For:
        inner = replace(loop, var=lane, lower=const(0), upper=count, body=body, lanes=lanes)
        outer = replace(loop, lower=lower, upper=upper, step=width, kind="sequential")
        return replace(outer, body=Block((inner,)))

    yield tiles(loop.lower, loop.upper - (width - 1), const(width), 0), (left - width,)
    yield tiles(start, loop.upper, left, width), (left - 1, left * -1 + (width - 1))


def _real_end(loop: For, known: Known) -> Affine:
    """Where the last tile ends, which may lie behind the last place where isl says that one begins.

    for t in 0 .. 16 n - 1 step 6:              16 n, since t is never 16 n - 1, which is odd
      for r in 0 .. min(6, 16 n - t): …
    """
    left = loop.upper - var(loop.var)
    partial = known.and_facts(left * -1 + (loop.step - 1))
    beyond = {simplify_index(node.upper, partial) - left for node in _dependent_loops(loop)}
    more = beyond.pop() if len(beyond) == 1 else const(0)
    is_within = more.is_constant and 0 < more.constant < loop.step
    return loop.upper + more if is_within else loop.upper


def _end(loop: For, known: Known) -> Affine:
    """Where a loop ends, or where it begins if it ends before that and runs not once.

    for t in 0 .. n - 3, where n may be 1   ->   max(n - 3, 0)

    Inside of other loops it may not run as well: what shares its tiles may have more of them.
    """
    trips = loop.upper - loop.lower
    if interval(trips, known)[0] >= 0:
        return loop.upper
    if all(isinstance(atom, Var) and stated_range(atom.name) for atom, _ in trips.terms):
        count: Extent = trips.constant
        for atom, coefficient in trips.terms:
            assert isinstance(atom, Var)
            count = count + Size.of(atom.name) * coefficient
        if bounds(count)[0] >= 0:
            return loop.upper
    return simplify_index(extremum("max", (loop.upper, loop.lower)), known)


def _unless_empty(loop: For, facts: tuple[Affine, ...]) -> Iterator[Piece]:
    trips = loop.upper - loop.lower
    if not (trips.is_constant and trips.constant <= 0):
        yield loop, facts


def _dependent_loops(loop: For) -> list[For]:
    """The loops below whose bounds depend on the loop, or on one that does."""
    moving, found = {loop.var}, []
    for node in walk_nodes(loop.body):
        if isinstance(node, For) and moving & (variables(node.lower) | variables(node.upper)):
            moving.add(node.var)
            found.append(node)
    return found


def _point_loops(loop: For, left: Affine, known: Known) -> list[For]:
    """The loops below over the iterations of a partial tile; none if some bound is another one.

    They count from 0, or from where the tile begins, and then nothing inside ends by that. None as
    well if something is done outside of them: several tiles would do it several times.
    """
    found: list[For] = []
    for node in walk_nodes(loop.body):
        if isinstance(node, For) and loop.var in variables(node.lower) | variables(node.upper):
            found.append(node)
            start = simplify_index(node.lower, known)
            from_zero = start == const(0) or start == var(loop.var)
            if not from_zero or simplify_index(node.upper, known) - start != left:
                return []
            if start != const(0) and _dependent_loops(node):
                return []  # tiles of their own
    inside = {id(n) for point in found for n in walk_nodes(point.body) if isinstance(n, Assign)}
    whole = all(id(n) in inside for n in walk_nodes(loop.body) if isinstance(n, Assign))
    return found if whole else []


def _cut_within(
    loop: For, left: Affine, known: Known, simd_bytes: int, far: Collection[str]
) -> For:
    """The loop over a partial tile with the rest of register tiles that are as high cut as well.

    for t in 13 (n / 13) .. n:                          for t in 13 (n / 13) .. n:
      …                                             ->    …
      for r in 0 .. n - t: own[r] = …   # unroll          for u in 0 .. n - t - 3 step 4:
      for r in 0 .. n - t: Y[r] = own[r]  # unroll          for r in 0 .. 4: own[r] = …
                                                            for r in 0 .. 4: Y[u + r] = own[r]
                                                          …
    A part with lower ones has a loop over them, which is cut in turn.
    """
    row, inside = f"{loop.var}_row", known.and_range(f"{loop.var}_row", 0, loop.step - 1)

    def visit(node: Node) -> Node:
        if not (isinstance(node, Block) and node.locals):
            return node
        points = _point_loops(replace(loop, body=node), left, known)
        if not points or any(p.kind != "unroll" or p.lower != const(0) for p in points):
            return node
        own = {local.name for local in node.locals}

        def narrow(part: Node) -> Node:
            if not (isinstance(part, For) and any(_same_ends(part, p) for p in points)):
                return part
            upper = extremum("min", (const(loop.step), left - var(row)))
            return replace(part, upper=upper, body=_moved(part.body, part.var, var(row), own))

        body = rewrite_nodes(node, narrow)
        assert isinstance(body, Block)
        tiles = For(row, const(0), left, loop.step, body)
        _, *rest = cut_remainder(tiles, inside, simd_bytes, far)  # no tile is whole
        return Block(tuple(piece for piece, _ in rest))

    return replace(loop, body=rewrite_nodes(loop.body, visit))


def _may_shrink(loop: For, known: Known) -> bool:
    """Whether a lower tile does the same with fewer rows, as one whose taps run along a diagonal:

    for i in 0 .. min(9, n - t + 2):  # unroll
      for r in max(0, i - 2) .. min(6, n - t, i + 1):  # unroll

    All that depends on where the tile begins are bounds of loops that are written out, which say
    how far it is to the end, and places that move with it. Where one row is left one is executed.
    """
    inside: set[int] = set()
    rows: set[str] = set()
    for node in walk_nodes(loop.body):
        if not isinstance(node, For):
            continue
        if loop.var not in variables(node.lower) | variables(node.upper):
            continue
        last = _shrunk(node, loop.var, loop.upper - 1)
        if interval(last.upper - last.lower, known)[1] == 1:
            inside |= {id(n) for n in walk_nodes(node.body) if isinstance(n, Assign)}
        rows.add(node.var)
        shrunk = _shrunk(node, loop.var, loop.upper - var(_COUNT))
        left = variables(shrunk.lower) | variables(shrunk.upper)
        if node.kind != "unroll" or left & (variables(loop.upper) | {loop.var}):
            return False
    assigns = [n for n in walk_nodes(loop.body) if isinstance(n, Assign)]
    whole = all(id(n) in inside for n in assigns)
    told = all(_tells_rows(n, loop.var, rows) for n in assigns)
    return whole and bool(assigns) and told and not any(_divides(n, loop.var) for n in assigns)


_COUNT = "rows of a tile"
"""Stands for how many there are."""


def _shrunk(node: For, name: str, start: Affine) -> For:
    """A loop with the bounds that it has in a tile that begins there."""
    lower, upper = (substitute(bound, {name: start}) for bound in (node.lower, node.upper))
    return replace(node, lower=lower, upper=upper)


def _shrink(loop: For, start: Affine) -> For:
    """The loop around tiles of as many rows as there are from `start` on."""

    def visit(node: Node) -> Node:
        return _shrunk(node, loop.var, start) if isinstance(node, For) else node

    return replace(loop, body=rewrite_nodes(loop.body, visit))


def _tells_rows(assign: Assign, name: str, rows: set[str]) -> bool:
    """Whether what an assignment takes of its place as data is that of a row: of t + r, never of r.

    Places of elements are proven afterwards, but not what is data.
    """
    for part in walk_expr(assign.value):
        if isinstance(part, Test):
            return False
        if isinstance(part, Value):
            steps = {atom.name: step for atom, step in part.index.terms if isinstance(atom, Var)}
            whole = all(isinstance(atom, Var) for atom, _ in part.index.terms)
            own = {steps[row] for row in rows & steps.keys()}
            if not whole or own != ({steps[name]} if name in steps else set()):
                return False
    return True


def _divides(assign: Assign, name: str) -> bool:
    """Whether an assignment says where it is by more than multiples of a variable."""
    reads = (e for e in walk_expr(assign.value) if isinstance(e, Read))
    indices = [*assign.instance, *assign.target.index, *(i for r in reads for i in r.element.index)]
    atoms = (atom for index in indices for atom, _ in index.terms if not isinstance(atom, Var))
    return any(name in variables(Affine(0, ((atom, 1),))) for atom in atoms)


def _lanes(loops: Sequence[For], simd_bytes: int) -> int:
    """The lanes of a vector of the widest elements that the loops compute with."""
    return max(1, simd_bytes // (max(map(widest_in, loops), default=0) or 4))


def _narrow(loop: For, points: Sequence[For], first: Affine, extent: Affine, lanes: int = 0) -> For:
    """The loop with `extent` iterations in its point loops, which count from where it stands.

    `first` is where the tile begins that the loop's tiles are cut from. Arrays that live in the
    tile are the smaller tile's own, and are filled from 0 on.
    """
    here = f"{loop.var}'"  # the loop's variable, while its name still stands for `first`
    own = {a.name for n in walk_nodes(loop.body) if isinstance(n, Block) for a in n.locals}
    reached = substitute(extent, {loop.var: var(here)})

    def visit(node: Node) -> Node:
        if not isinstance(node, For) or not any(_same_ends(node, p) for p in points):
            return node
        if loop.var in variables(node.lower):
            body = _in_own(node.body, {loop.var: var(here)}, own)
            return replace(node, lower=var(here), upper=var(here) + reached, body=body)
        body = _moved(node.body, node.var, var(here) - first, own)
        return replace(node, upper=reached, lanes=lanes, body=body)

    body = rewrite_nodes(loop.body, visit)
    return replace(loop, body=substitute_block(body, {loop.var: first, here: var(loop.var)}))


def _moved(block: Block, name: str, by: Affine, own: Collection[str]) -> Block:
    """The block with the iterations of loop `name` moved on, but for places in arrays of its own.

    Y[r] = own[r]   ->   Y[r + by] = own[r]
    """

    kept = _in_own(block, {name: var(name) - by}, own)
    return substitute_block(kept, {name: var(name) + by})


def _in_own(block: Block, values: Mapping[str, Affine], own: Collection[str]) -> Block:
    """The block with variables replaced in the places of arrays of its own."""

    def change(element: Element) -> Element:
        return substitute_element(element, values) if element.array in own else element

    return rewrite_nodes(
        block, lambda n: rewrite_elements(n, change) if isinstance(n, Assign) else n
    )


def _same_ends(one: For, other: For) -> bool:
    return one.lower == other.lower and one.upper == other.upper
