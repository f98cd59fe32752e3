"""Convolutions of 16-bit integers by minimal filtering, which is exact there.

    S: acc[n, o, y, x] add= int32(p[n, c, y + r, x + q]) * int32(W[o, c, r, q])     16 bits each
    ->
    V[a, b, t, c]     =  sum of B[a, i] B[b, j] p[n, c, 2 ty + i, 2 tx + j]         16 bits
    M[a, b, t, o]    +=  V[a, b, t, c] * U[a, b, o, c]                              32 bits
    acc[n, o, y, x]   =  (sum of A[y, a] A[x, b] M[a, b, t, o]) >> 2

F(2, 3) takes 16 products for each 2 by 2 outputs, where the direct form takes 36. Its B and A are
of 0, 1 and -1, and the fractions of G are halves: U = 4 G w G^T is of integers, and what comes out
is four times the sum (`lower/windows/winograd.py` has the transforms).

Why nothing is lost. V is a sum of as many p as rows of B have terms, four for F(2, 3): pixels less
their zero point have 9 bits, V has 11, and U is looked at. M and what follows are integers modulo
2^32, in which transforms may be computed as well; four times the sum is less than 2^31, by the
largest p and the weights of each filter, so that it is what comes out, and the shift is exact.

It is done where no instruction takes bytes: of those, as many products are summed up in the time of
the transforms. The image reaches to the end of the last tile: what is added is 0, and decides
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import lcm, prod

import islpy as isl
import numpy as np

from polyc.budget import UNLIMITED, Budget
from polyc.graph.ir import Node
from polyc.poly.affine import columns_of, is_affine, unit_dimension
from polyc.poly.boxes import box
from polyc.poly.parameters import is_part, read
from polyc.scop.expr import Call, Cast, Const, Expr, Load
from polyc.scop.factors.fill_groups import extend, is_written
from polyc.scop.factors.narrow_factors import find_range
from polyc.scop.lower.emit import Emitter
from polyc.scop.lower.functions import function
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.windows.choose_filters import Numbers, choose_filters
from polyc.scop.lower.windows.minimal_filter import MinimalFilter
from polyc.scop.lower.windows.winograd import (
    Tiling,
    convolve_minimally,
    count_tiles,
    transform_weights,
)
from polyc.scop.scop import Array, Scop, Statement
from polyc.scop.uses import Uses, drop_dead, find_uses
from polyc.types.element_types import INT16, INT32
from polyc.types.estimate import hinted
from polyc.types.parameters import has_name
from polyc.types.sizes import Extent, Size

PAIRS = Numbers(bytes=2, products=2, largest=4)
"""An instruction sums up two products of 16 bits. With five points, G has thirds: U, 24 times as
large in each dimension, would leave 16 bits."""

LARGEST = np.iinfo(INT16).max
LIMIT = 1 << 31
"""What no element of V and U, and no sum, gets beyond."""

shift_right = function("shr")

_Places = Sequence[tuple[int | None, ...]]
"""For each dimension of an array the iterators that go along it."""


def filter_minimally(scop: Scop, streamed: float | None, budget: Budget = UNLIMITED) -> Scop:
    """The scop with convolutions of 16-bit integers in fewer products, where that is cheaper.

    streamed: as in `choose_filters`; None if nobody wants minimal filtering. TooLarge: what is
    transformed does not fit into the budget's memory.
    """
    if streamed is None:
        return scop
    before = scop
    for s in before.statements:
        factors = _find_factors(s, scop.arrays)
        if factors is not None:
            scop = _rewrite(scop, s, *factors, streamed, budget)
    return scop if scop is before else drop_dead(scop)


def _find_factors(s: Statement, arrays: Mapping[str, Array]) -> tuple[Load, Load] | None:
    """The image and the weights that a sum of products of 16 bits is a convolution of, or None.

    acc[n, o, y…] add= p[n, c, y + r…] * W[o, c, r…], for all n, o, c, y… and r….
    """
    match s.value:
        case Call("mul", (Cast(Load(dynamic=()) as a), Cast(Load(dynamic=()) as b)), dtype):
            if s.reduction != "add" or s.time is not None or dtype != INT32:
                return None
        case _:
            return None
    known = [arrays[load.array].value is not None for load in (a, b)]
    if {a.dtype, b.dtype} != {INT16} or sum(known) != 1:
        return None
    weights, image = (a, b) if known[0] else (b, a)
    maps = s.write, weights.index, image.index
    ranks = {len(arrays[name].shape) for name in (s.array, weights.array, image.array)}
    if not all(map(is_affine, maps)) or len(ranks) != 1 or ranks.pop() < 3:
        return None
    kept, taken = _iterators(s.write), _iterators(weights.index)
    used = [p for p in (*kept, *taken[1:]) if p is not None]
    if kept[1] is None or taken[0] != kept[1] or len({*used}) != len(used):
        return None
    extents: list[Extent] = [1] * len(s.iterators)
    for array, places in ((s.array, kept), (weights.array, taken)):
        for p, extent in zip(places, arrays[array].shape, strict=True):
            if p is not None:
                extents[p] = extent
            elif extent != 1:
                return None
    plain: list[_Places] = [[(p,) for p in kept], [(p,) for p in taken]]
    plain.append([(kept[0],), (taken[1],), *zip(kept[2:], taken[2:], strict=True)])
    whole = box(s.name, tuple(extents))
    if not (is_part(whole, s.domain) and is_part(s.domain, whole)) or not all(
        map(_adds_up, maps, plain)
    ):
        return None
    return image, weights


def _iterators(index: isl.PwMultiAff) -> tuple[int | None, ...]:
    """The iterator that alone goes along each dimension of an array, in steps of 1."""
    found: list[int | None] = [None] * index.dim(isl.dim_type.out)
    for p, column in enumerate(columns_of(index)):
        d = unit_dimension(column)
        if d is not None:
            found[d] = p
    return tuple(found)


def _adds_up(index: isl.PwMultiAff, sums: _Places) -> bool:
    """Whether each coordinate is the sum of these iterators, and nothing else."""
    names = [f"i{p}" for p in range(index.dim(isl.dim_type.in_))]
    at = [" + ".join(names[p] for p in places if p is not None) or "0" for places in sums]
    plain = read(isl.PwMultiAff, f"{{ [{', '.join(names)}] -> [{', '.join(at)}] }}")
    for kind in (isl.dim_type.in_, isl.dim_type.out):
        plain = plain.set_tuple_id(kind, index.get_tuple_id(kind))
    return bool(index.is_equal(plain))


def _rewrite(
    scop: Scop, s: Statement, pixels: Load, factors: Load, streamed: float, budget: Budget
) -> Scop:
    """The scop with the sum in fewer products, or as it was: not cheaper so, or not exact."""
    uses, sums = find_uses(scop.statements), scop.arrays[s.array]
    image, known = (scop.arrays[load.array] for load in (pixels, factors))
    starts = [w for w in uses.writes(s.array) if w is not s]
    begins = len(starts) == 1 and starts[0].value == Const(0, INT32)
    batch, count, *output = sums.shape
    is_open = any(isinstance(n, Size) for n in (*output, *image.shape[1:]))
    if is_open or not begins or image.kind != "temporary" or sums.kind != "temporary":
        return scop
    assert known.value is not None
    value = known.value.astype(np.int64)
    layer = hinted(batch), 1, value.shape[1], count, value.shape[2:], output
    filters = choose_filters(*layer, streamed=streamed, numbers=PAIRS)
    if filters is None:
        return scop
    gaps = (1,) * len(filters)
    tiling = Tiling(filters, batch, count_tiles(filters, output, gaps), gaps)
    scale = prod(lcm(*(x.denominator for row in f.taps for x in row)) for f in filters)
    transformed = transform_weights(value, filters, scale)
    most = _find_most(image.name, uses, scop.arrays)
    exact = most is not None and _is_exact(value, transformed, filters, scale, most)
    # What tiles read: the windows of all outputs that they have.
    ends = (f.m * n + f.r - 1 for f, n in zip(filters, tiling.counts, strict=True))
    reached = (batch, value.shape[1], *ends)
    writers = uses.writes(image.name)
    if not (
        exact and has_name(tiling.number) and is_written(box(image.name, reached), image, writers)
    ):
        return scop
    larger = tuple(n if k < 2 else max(n, reached[k]) for k, n in enumerate(image.shape))
    if larger != image.shape:
        scop = extend(scop, image, larger, s, writers[0])
    emitter = Emitter.beside(scop, s, budget)
    node = Node(s.origin[-1] if s.origin else s.name, "Conv", (), (s.array,))
    weights = emitter.constant(f"{known.name}_minimal", transformed.astype(INT16))
    into = _seen(scop.arrays[s.array])

    def finish(_: Space, total: Expr) -> Expr:
        return shift_right(total, scale.bit_length() - 1) if scale > 1 else total

    convolve_minimally(
        emitter, node, _seen(scop.arrays[image.name]), weights, tiling, into, output, finish
    )
    new = [replace(each, origin=s.origin) for each in emitter.statements]
    statements: list[Statement] = []
    for each in scop.statements:
        statements += new if each.name == s.name else [each] if each is not starts[0] else []
    return replace(scop, statements=tuple(statements), arrays=emitter.arrays)


def _seen(array: Array) -> Ref:
    """An array as a tensor: all of it, element for element."""
    indices = ", ".join(f"i{k}" for k in range(len(array.shape)))
    whole = isl.PwMultiAff(f"{{ [{indices}] -> {array.name}[{indices}] }}")
    return Ref(array.name, whole, array.dtype, array.shape)


def _find_most(name: str, uses: Uses, arrays: Mapping[str, Array]) -> int | None:
    """The largest magnitude that an array may hold, by what is written to it; None: not known."""
    writers = uses.writes(name)
    if arrays[name].kind != "temporary" or any(w.reduction for w in writers):
        return None
    found: list[int | None] = []
    for w in writers:
        value = w.value.argument if isinstance(w.value, Cast) else w.value
        limits = find_range(value, arrays)
        if limits is not None:
            found.append(max(map(abs, limits)))
        elif isinstance(value, Load) and value.array != name and value.dtype.kind in "iu":
            found.append(_find_most(value.array, uses, arrays))
        else:
            return None
    known = [most for most in found if most is not None]
    return max(known, default=0) if len(known) == len(found) else None


def _is_exact(
    weights: np.ndarray,
    transformed: np.ndarray,
    filters: Sequence[MinimalFilter],
    scale: int,
    most: int,
) -> bool:
    """Whether U and V have 16 bits, and what comes out 32, for pixels up to `most`."""
    whole = all(
        x.denominator == 1 for f in filters for m in (f.input, f.output) for row in m for x in row
    )
    power = scale & (scale - 1) == 0
    grown = prod(max(sum(map(abs, row)) for row in f.input) for f in filters)
    heaviest = int(np.abs(weights).sum(axis=tuple(range(1, weights.ndim))).max(initial=0))
    fits = most * grown <= LARGEST and int(np.abs(transformed).max(initial=0)) <= LARGEST
    return bool(whole and power and fits and scale * most * heaviest < LIMIT)
