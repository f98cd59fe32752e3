"""Splitting: innermost loops are cut where conditions change, and have none in between.

    for j in 0 .. n:                                   for j in 0 .. min(1, n): …       (as it was)
      y[j] = i >= 1 and j >= 1 ? x[i-1][j-1] : 0  ->   if i >= 1:
                                                         for j in 1 .. n:
                                                           y[j] = x[i-1][j-1]
                                                       else: for j in 1 .. n: …         (as it was)

That is index-set splitting (Griebl, Feautrier and Lengauer 2000), done on generated loops, where
tiles and skews are known. A condition that changes near an end of its loop, as those of borders do,
leaves a border, which stays as it was, and an interior; one that changes anywhere cuts a loop into
two halves. Minima and maxima in subscripts count as conditions on their arguments. The proof judges
the result, and so a wrong cut is an error.

A loop and its borders are four loops, and what changes elsewhere makes `HALVES` times as many at
most. Borders are short, and stay out of lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from polyc.loopnest.decided import facts_of, simplify_block
from polyc.loopnest.index import (
    Affine,
    Choice,
    Compare,
    Extremum,
    FloorDiv,
    Logic,
    Mod,
    Scaled,
    Var,
    compared,
    extremum,
    floordiv,
    stride,
    variables,
)
from polyc.loopnest.nodes import (
    Assign,
    Block,
    For,
    If,
    Node,
    Read,
    Test,
    Value,
    walk_expr,
    walk_nodes,
)
from polyc.loopnest.ranges import UNKNOWN, Known, interval
from polyc.types.sizes import assumed_range

BORDER = 8
"""Iterations of a border, at most: what is farther from an end of its loop is in the middle."""

HALVES = 4
"""Loops that one becomes, at most, for conditions that change in the middle."""

Bounds = Mapping[str, tuple[tuple[Affine, ...], tuple[Affine, ...]]]
"""Loop variable -> what it is not less than, and what it is less than."""


def split_loops(block: Block, sizes: Iterable[str]) -> Block:
    """The nest with its innermost loops split; `sizes` are variables that no loop binds."""
    ranges = {name: assumed_range(name) for name in sizes}
    known = Known({n: r.ends(UNKNOWN) for n, r in ranges.items()})
    return _Splitting().block(block, known, {})


@dataclass(frozen=True)
class _Splitting:
    """The walk: each node is rewritten by what is known where it stands."""

    def block(self, block: Block, known: Known, bounds: Bounds) -> Block:
        return replace(block, body=tuple(self.node(n, known, bounds) for n in block.body))

    def node(self, node: Node, known: Known, bounds: Bounds) -> Node:
        match node:
            case Block():
                return self.block(node, known, bounds)
            case If(condition, then, otherwise):
                holds = known.and_facts(*facts_of(condition, True))
                fails = known.and_facts(*facts_of(condition, False))
                other = self.block(otherwise, fails, bounds) if otherwise else None
                return replace(node, then=self.block(then, holds, bounds), otherwise=other)
            case For() if next(_signs(node.body), None) is None:
                return node
            case For() if any(isinstance(n, For) for n in walk_nodes(node.body)):
                inside = _inside(node, known)
                ends = {**bounds, node.var: _ends(node)}
                return replace(node, body=self.block(node.body, inside, ends))
            case For(kind="sequential" | "simd", step=1):
                return _split(node, known, bounds)
            case _:
                return node


# -- what is known --------------------------------------------------------------------------------


def _ends(loop: For) -> tuple[tuple[Affine, ...], tuple[Affine, ...]]:
    """What a loop's variable is not less than, and what it is less than."""
    return tuple(_arguments("max", loop.lower)), tuple(_arguments("min", loop.upper))


def _arguments(which: str, index: Affine) -> Iterator[Affine]:
    """The indices whose maximum, or minimum, an index is: max(a, b) + 1 is max(a + 1, b + 1)."""
    for atom, coefficient in index.terms:
        if isinstance(atom, Extremum) and atom.which == which and coefficient == 1:
            rest = index - Affine(0, ((atom, 1),))
            for argument in atom.arguments:
                yield from _arguments(which, argument + rest)
            return
    yield index


def _inside(loop: For, known: Known) -> Known:
    """What is known inside of a loop."""
    least, most = interval(loop.lower, known)[0], interval(loop.upper, known)[1] - 1
    lower, upper = _ends(loop)
    here = Affine(0, ((Var(loop.var), 1),))
    facts = [*(here - bound for bound in lower), *(bound - 1 - here for bound in upper)]
    return known.and_range(loop.var, least, most).and_facts(*facts)


# -- one loop -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cut:
    """An index that changes its sign between two iterations of a loop: it is negative in front of
    iteration `at`, or, if it is `falling`, from there on."""

    index: Affine
    loop: str
    at: Affine
    falling: bool


def _split(
    loop: For,
    known: Known,
    bounds: Bounds,
    halves: int = HALVES,
    done: frozenset[Affine] = frozenset(),
) -> Node:
    """An innermost loop in pieces; itself if that gains nothing.

    halves: the loops that it may become; done: the indices by which it has been cut.
    """
    inside = _inside(loop, known)
    loop = replace(loop, body=simplify_block(loop.body, inside))
    bounds = {**bounds, loop.var: _ends(loop)}
    signs = (index for index in _signs(loop.body) if index not in done)
    cuts = [c for index in signs if (c := _cut(index, bounds, inside)) is not None]
    tiles = [cut for cut in cuts if _counts_tiles(cut.loop, bounds)]
    if tiles and halves > 1:  # a tile at a border is no border: it has an interior itself
        return _in_halves(loop, known, bounds, tiles[0], halves // 2, done)
    middle: list[_Cut] = []
    outside: list[Affine] = []  # not negative in the interior of the loops around
    first, last = list[Affine](), list[Affine]()
    for cut in cuts:
        side = _interior(cut, bounds[cut.loop], inside)
        if side is None:
            middle.append(cut)
        elif cut.loop != loop.var:
            positive = (side == "behind") != cut.falling
            outside.append(cut.index if positive else cut.index * -1 - 1)
        else:
            (first if side == "behind" else last).append(cut.at)
    if outside or first or last:
        at_borders = done.union(cut.index for cut in cuts if cut not in middle)
        interior = (outside, first, last)
        return _with_borders(loop, known, bounds, interior, halves, at_borders)
    if middle and halves > 1:
        return _in_halves(loop, known, bounds, middle[0], halves // 2, done)
    return loop


def _with_borders(
    loop: For,
    known: Known,
    bounds: Bounds,
    interior: tuple[Sequence[Affine], Sequence[Affine], Sequence[Affine]],
    halves: int,
    done: frozenset[Affine],
) -> Node:
    """The loop over its interior, without conditions that change at borders, and over the rest."""
    outside, first, last = interior
    dense = known.and_facts(*outside)
    start = _extremum("max", [loop.lower, *first], dense)
    stop = _extremum("min", [loop.upper, *last], dense)
    inner = replace(loop, lower=start, upper=stop)
    nodes: list[Node] = []
    plain = replace(loop, kind="sequential")
    if first:
        nodes.append(replace(plain, upper=_extremum("min", [loop.upper, *_max(first)], dense)))
    nodes.append(_split(inner, dense, bounds, halves, done))
    if last:
        begin = _extremum("max", [loop.lower, *first, *_min(last)], dense)
        nodes.append(replace(plain, lower=begin))
    if not outside:
        return Block(tuple(nodes))
    conditions = tuple(Compare("ge", index) for index in outside)
    test = conditions[0] if len(conditions) == 1 else Logic("and", conditions)
    return If(test, Block(tuple(nodes)), Block((loop,)))


def _max(indices: Sequence[Affine]) -> list[Affine]:
    return [extremum("max", tuple(dict.fromkeys(indices)))]


def _min(indices: Sequence[Affine]) -> list[Affine]:
    return [extremum("min", tuple(dict.fromkeys(indices)))]


def _in_halves(
    loop: For, known: Known, bounds: Bounds, cut: _Cut, halves: int, done: frozenset[Affine]
) -> Node:
    """The loop where an index is negative, and where it is not."""
    done = done | {cut.index}
    if cut.loop != loop.var:
        negative = known.and_facts(cut.index * -1 - 1)
        positive = known.and_facts(cut.index)
        return If(
            Compare("ge", cut.index),
            Block((_split(loop, positive, bounds, halves, done),)),
            Block((_split(loop, negative, bounds, halves, done),)),
        )
    front = replace(loop, upper=_extremum("min", [loop.upper, cut.at], known))
    behind = replace(loop, lower=_extremum("max", [loop.lower, cut.at], known))
    return Block(tuple(_split(half, known, bounds, halves, done) for half in (front, behind)))


def _extremum(which: str, indices: Sequence[Affine], known: Known) -> Affine:
    """The maximum, or minimum, without arguments that another one is sure to beat."""
    assert which in ("max", "min")
    sign = 1 if which == "max" else -1
    kept: list[Affine] = []
    for index in dict.fromkeys(a for i in indices for a in _arguments(which, i)):
        if any(interval((other - index) * sign, known)[0] >= 0 for other in kept):
            continue
        kept = [k for k in kept if interval((index - k) * sign, known)[0] < 0]
        kept.append(index)
    return extremum("max" if which == "max" else "min", tuple(kept))


# -- where it is cut ------------------------------------------------------------------------------


def _cut(index: Affine, bounds: Bounds, known: Known) -> _Cut | None:
    """Where an index changes its sign along the innermost loop that it depends on."""
    low, high = interval(index, known)
    if low >= 0 or high < 0:
        return None
    used = variables(index)
    loop = next((name for name in reversed([*bounds]) if name in used), None)
    step = None if loop is None else stride(index, loop)
    if loop is None or not step:
        return None
    rest = index - Affine(0, ((Var(loop), step),))
    if step > 0:  # step * v + rest >= 0 from v = ceil(-rest / step) on
        return _Cut(index, loop, floordiv(rest, step) * -1, False)
    return _Cut(index, loop, floordiv(rest, -step) + 1, True)


def _counts_tiles(loop: str, bounds: Bounds) -> bool:
    """Whether a loop goes from tile to tile: those inside of it begin or end at multiples of it."""
    ends = (bound for both in bounds.values() for side in both for bound in side)
    return any(abs(stride(bound, loop) or 0) > BORDER for bound in ends)


def _interior(
    cut: _Cut, ends: tuple[tuple[Affine, ...], tuple[Affine, ...]], known: Known
) -> str | None:
    """On which side of a cut the interior is; None if the cut is in the middle."""
    lower, upper = ends
    if any(interval(cut.at - bound, known)[1] <= BORDER for bound in lower):
        return "behind"
    if any(interval(bound - cut.at, known)[1] <= BORDER for bound in upper):
        return "before"
    return None


def _signs(block: Block) -> Iterator[Affine]:
    """Indices on whose signs it depends what an innermost loop does, each once."""
    found: dict[Affine, None] = {}
    for node in walk_nodes(block):
        match node:
            case If(condition):
                found |= dict.fromkeys(compared(condition))
            case Assign(target=target, value=value):
                indices = list(target.index)
                for e in walk_expr(value):
                    match e:
                        case Test(condition):
                            found |= dict.fromkeys(compared(condition))
                        case Read(element=element):
                            indices += element.index
                        case Value(index):
                            indices.append(index)
                found |= dict.fromkeys(s for i in indices for s in _chosen(i))
    return iter(found)


def _chosen(index: Affine) -> Iterator[Affine]:
    """The signs that decide minima, maxima and choices inside of an index."""
    for atom, _ in index.terms:
        match atom:
            case Extremum(_, arguments):
                for k, argument in enumerate(arguments):
                    yield from _chosen(argument)
                    yield from (argument - other for other in arguments[:k])
            case Choice(condition, then, otherwise):
                yield from compared(condition)
                yield from _chosen(then)
                yield from _chosen(otherwise)
            case FloorDiv(argument) | Mod(argument) | Scaled(_, argument):
                yield from _chosen(argument)
