"""Convolution by minimal filtering (Winograd): fewer multiplications, as ordinary statements.

For two dimensions, with tiles t = (ty, tx) of m x m outputs and n x n inputs:

    V[a, b, t, c]  =  sum of B[a, i] B[b, j] x[c, m ty + i, m tx + j]      input transform
    M[a, b, t, o] +=  V[a, b, t, c] * U[a, b, o, c]                        n^2 matrix products
    y[o, m ty + p, m tx + q]  =  sum of A[p, a] A[q, b] M[a, b, t, o]      output transform

U = G w G^T is computed at compile time. A transform goes one dimension at a time; its matrices are
small and full of zeros, so each row is a statement of its own with a literal sum. The transforms do
not care for groups; the products of a grouped convolution are a batch of n^2 for each group. A
window with gaps of d pixels is one without in each of d x d images, the phases (`Tiling`).

Exact in exact arithmetic, this is not the direct sum in floating point:

* it rounds differently (`error_bound` in `minimal_filter.py`);
* each output is computed from all n x n inputs of its tile. An output whose own window holds a NaN
  or an infinity is a NaN or an infinity, as in the direct form, though mostly a NaN where that has
  an infinity (inf - inf). But the other outputs of a tile that reads the special value become NaN
  or infinite too: up to m - 1 further in each dimension, of those pixels that a window with gaps
  may read together. Nothing spreads beyond those tiles;
* an infinite weight makes the outputs of its filter NaN;
* V exceeds x by up to 10 times a dimension for F(4, 3): inputs above 1e36 can overflow.

`Options.minimal_filtering = False` gives the direct form, which has none of this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod

import numpy as np

from polyc.graph.ir import Node
from polyc.poly.conditions import spell
from polyc.scop.expr import Expr, cast
from polyc.scop.lower.context import Lowering
from polyc.scop.lower.emit import Emitter
from polyc.scop.lower.functions import add, mul, neg, sub
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import accumulate_into
from polyc.scop.lower.windows.minimal_filter import (
    Matrix,
    MinimalFilter,
)
from polyc.types.element_types import INT32
from polyc.types.estimate import hinted
from polyc.types.sizes import Size

WIDE = 28
"""Tiles of a row from which on rows are loops of their own in the products as well, which can be
fused with the transforms then, row by row (`mapping/cpu/fuse_tiles.py`). Else all tiles of the
batch are rows of one matrix: what a register tile leaves over is less of that."""

CHUNK = 1 << 17
"""Multiplications of weights at a time when compiling: NumPy does so few on this core alone.

The others have kernels to compile, and would be waited for.
"""


def count_tiles(
    filters: Sequence[MinimalFilter], output: Sequence[int], dilations: Sequence[int]
) -> tuple[int, ...]:
    """The tiles along each dimension, of each phase; the last may be cut off."""
    steps = zip(output, filters, dilations, strict=True)
    return tuple(-(-n // (f.m * d)) for n, f, d in steps)


@dataclass(frozen=True)
class Tiling:
    """Outputs cut into tiles: iterators n (batch), t0 t1… (tile), e0 e1… (place inside a tile).

    A window with gaps reads every d-th pixel. Those that it may read together are an image of their
    own, a phase: of tiles, its number p0 p1… comes before theirs, where a dilation is more than 1.

    A place of extent 1 has no iterator. What a transform reads and writes is seen through views of
    [n, t…, e…, c], so that all its stages look alike. Matrices have a row for each tile of the
    batch, or of large images [n, t…] rows (`is_wide`). No formula says the number of a row where
    how many tiles an image has is known only at run time (`is_numbered`): then what a transform
    writes or reads is [e…, n, t…, c], in the same memory (`is_regrouped`).
    """

    filters: tuple[MinimalFilter, ...]
    batch: int
    counts: tuple[int, ...]
    dilations: tuple[int, ...]

    @property
    def tiles(self) -> tuple[str, ...]:
        return tuple(f"t{k}" for k in range(len(self.counts)))

    @property
    def phases(self) -> dict[str, int]:
        return {f"p{k}": d for k, d in enumerate(self.dilations) if d > 1}

    @property
    def outer(self) -> dict[str, int]:
        return {"n": self.batch, **self.phases, **dict(zip(self.tiles, self.counts, strict=True))}

    @property
    def stages(self) -> tuple[int, ...]:
        """The dimensions that are filtered at all."""
        return tuple(k for k, f in enumerate(self.filters) if f.r > 1)

    @property
    def is_numbered(self) -> bool:
        """Whether the number of a tile in the batch is a formula of n and t…."""
        return not any(isinstance(count, Size) for count in self.counts)

    @property
    def is_wide(self) -> bool:
        """Whether rows of tiles stay loops of their own, as they are at the hint."""
        return hinted(self.counts[-1]) >= WIDE

    @property
    def is_regrouped(self) -> bool:
        """Whether transforms see the rows of a matrix as others, in the same memory."""
        return not (self.is_numbered or self.is_wide)

    @property
    def rows(self) -> dict[str, int]:
        """The iterators of the products that count tiles."""
        return self.outer if self.is_wide else {"t": self.number}

    @property
    def seen_rows(self) -> tuple[int, ...]:
        """The dimensions of matrices that count tiles, as the transforms see them."""
        return tuple((self.outer if self.is_regrouped else self.rows).values())

    @property
    def number(self) -> int:
        """The tiles of the batch."""
        return prod(self.outer.values())

    @property
    def points(self) -> tuple[int, ...]:
        return tuple(f.n for f in self.filters)

    def positions(self, places: Sequence[str]) -> list[str]:
        """Places in the tiles as positions in the image: ["4*t0 + e0", "2*(4*t1 + e1) + p1"]."""
        parts = zip(self.filters, self.tiles, places, strict=True)
        plain = [f"{f.m}*{t} + {e}" for f, t, e in parts]
        steps = enumerate(zip(plain, self.dilations, strict=True))
        return [f"{d}*({y}) + p{k}" if d > 1 else y for k, (y, d) in steps]

    def of_image(self, image: Ref, sizes: Sequence[int]) -> Ref:
        """An image (n, c, y…) as tiles of the given sizes; [n, t…, e…, c] -> [n, c, m t + e…]."""
        return self._seen(image, sizes, ["n", "c", *self.positions(_places(sizes))], image.shape[1])

    def of_matrices(self, matrices: Ref) -> Ref:
        """Matrices (e…, rows, c) as tiles; [n, t…, e…, c] -> [e…, number, c], or [e…, n, t…, c]."""
        if self.is_wide or self.is_regrouped:
            shown = [*_places(self.points), *self.outer, "c"]
            return self._seen(matrices, self.points, shown, matrices.shape[-1])
        number, *inner = self.outer
        for iterator in inner:
            number = f"{self.outer[iterator]}*({number}) + {iterator}"
        shown = [*_places(self.points), number, "c"]
        return self._seen(matrices, self.points, shown, matrices.shape[-1])

    def _seen(self, ref: Ref, sizes: Sequence[int], at: Sequence[str], channels: int) -> Ref:
        indices = [*self.outer, *(f"e{k}" for k in range(len(sizes))), "c"]
        view = f"{{ [{', '.join(indices)}] -> [{', '.join(at)}] }}"
        return ref.through(view, [*self.outer.values(), *sizes, channels])


def lower_minimal(
    ctx: Lowering,
    node: Node,
    source: Ref,
    filters: Sequence[MinimalFilter],
    output: Sequence[int],
    dilations: Sequence[int],
) -> None:
    """y = bias + conv(source, w) with stride 1; `source` reaches to the end of the last tile."""
    counts = count_tiles(filters, output, dilations)
    tiling = Tiling(tuple(filters), source.shape[0], counts, tuple(dilations))
    value = ctx.type(node.inputs[1]).value
    assert value is not None
    weight = ctx.constant(f"{node.inputs[1]}_minimal", transform_weights(value, filters))

    def finish(space: Space, total: Expr) -> Expr:
        return add(total, space.load(ctx.ref(node.inputs[2]), "o")) if ctx.has(node, 2) else total

    convolve_minimally(ctx, node, source, weight, tiling, ctx.result(node), output, finish)


def convolve_minimally(
    ctx: Emitter,
    node: Node,
    source: Ref,
    weight: Ref,
    tiling: Tiling,
    result: Ref,
    output: Sequence[int],
    finish: Callable[[Space, Expr], Expr],
) -> None:
    """result[n, o, y…] = finish(conv(source, w)), w being the weights that were transformed.

    Floats are transformed as they are. Integers have 16 bits, and their sums 32; so have the terms
    of an output, of which `finish` takes out what the weights were multiplied by.
    """
    values = _transform_input(ctx, node, source, tiling, weight.dtype)
    products = _multiply(ctx, node, values, weight, tiling)
    _transform_output(ctx, node, products, tiling, result, output, finish)


def transform_weights(
    value: np.ndarray, filters: Sequence[MinimalFilter], scale: int = 1
) -> np.ndarray:
    """U[a, b, o, c] = scale * sum of G[a, r] G[b, q] w[o, c, r, q], in float64, rounded once."""
    # One product for all dimensions: a point of the tile is a sum over all taps of a filter.
    matrix: np.ndarray = np.full((1, 1), float(scale))
    for each in filters:
        matrix = np.kron(matrix, np.array(each.taps, dtype=np.float64))
    taps = value.reshape(-1, matrix.shape[1])
    result = np.empty((len(matrix), len(taps)), value.dtype)
    columns = max(1, CHUNK // matrix.size)
    for start in range(0, len(taps), columns):
        part = slice(start, start + columns)
        result[:, part] = matrix @ taps[part].T.astype(np.float64)
    return result.reshape(*(f.n for f in filters), *value.shape[:2])


def _transform_input(ctx: Emitter, node: Node, source: Ref, tiling: Tiling, dtype: np.dtype) -> Ref:
    """V[a, b, t, c]; all tiles of the batch are counted by one index t."""
    channels, name = source.shape[1], node.outputs[0]
    shape = [*tiling.points, *tiling.seen_rows, channels]
    target = ctx.array(f"{name}_inputs", dtype, shape)
    seen = tiling.of_image(source, tiling.points), tiling.of_matrices(target)
    _transform(ctx, node, tiling, [f.input for f in tiling.filters], *seen, f"{name}_rows", "c")
    if tiling.is_regrouped:
        return ctx.regrouped(node, target, [*tiling.points, tiling.number, channels])
    return target


def _multiply(ctx: Emitter, node: Node, values: Ref, weight: Ref, tiling: Tiling) -> Ref:
    """M[a, b, t, o] += V[a, b, t, c] * U[a, b, o, c]: a matrix product for each a, b and group."""
    points, rows = tiling.points, tiling.rows
    groups, at = node.get("group", 1), [*_places(points), *rows]
    filters, channels = weight.shape[-2] // groups, weight.shape[-1]
    every = [*points, *rows.values(), groups * filters]
    summed = INT32 if values.dtype.kind in "iu" else values.dtype
    target = ctx.array(f"{node.outputs[0]}_products", summed, every)
    group = {"g": groups} if groups > 1 else {}
    space = ctx.space(node, **_iterated(points), **group, **rows, o=filters, c=channels)
    channel, filter_ = (
        f"{n}*g + {i}" if group else i for n, i in ((channels, "c"), (filters, "o"))
    )
    weights = space.load(weight, *_places(points), filter_, "c")
    value = mul(cast(space.load(values, *at, channel), summed), cast(weights, summed))
    kept = [i for i in space.extents if i != "c"]
    accumulate_into(ctx, node, target, space, kept, value, "add", into=[*at, filter_])
    return target


def _transform_output(
    ctx: Emitter,
    node: Node,
    products: Ref,
    tiling: Tiling,
    result: Ref,
    output: Sequence[int],
    finish: Callable[[Space, Expr], Expr],
) -> None:
    """y[n, o, m ty + p, m tx + q]; the last tile of a dimension may be cut off."""
    tiles = tiling.of_image(result, [f.m for f in tiling.filters])
    matrices = [f.output for f in tiling.filters]
    if tiling.is_regrouped:
        every = [*tiling.points, *tiling.seen_rows, products.shape[-1]]
        products = ctx.regrouped(node, products, every)
    source, rows = tiling.of_matrices(products), f"{node.outputs[0]}_columns"
    _transform(ctx, node, tiling, matrices, source, tiles, rows, "o", output, finish)


def _transform(
    ctx: Emitter,
    node: Node,
    tiling: Tiling,
    matrices: Sequence[Matrix],
    source: Ref,
    target: Ref,
    hint: str,
    channel: str,
    cut: Sequence[int] | None = None,
    finish: Callable[[Space, Expr], Expr] = lambda _, value: value,
) -> None:
    """target = the matrices applied to source, one dimension at a time; both are [n, t…, e…, c].

    What a stage leaves to the next is a new array `hint`. The last one writes nothing at positions
    from `cut` on, and what it writes is given by `finish`.
    """
    outer, channels = tiling.outer, source.shape[-1]
    sizes = [len(matrix[0]) for matrix in matrices]
    with ctx.together(node, *outer, channel):
        for stage in tiling.stages:
            last = stage == tiling.stages[-1]
            free = {**outer, **_iterated(sizes, stage), channel: channels}
            shown = _places(sizes)
            sizes[stage] = len(matrices[stage])
            into = target
            if not last:
                into = ctx.array(hint, target.dtype, [*outer.values(), *sizes, channels])
            for p, row in enumerate(matrices[stage]):
                space = ctx.space(node, **free)
                at = _with(shown, stage, p)
                if last and cut is not None:
                    inside = zip(tiling.positions(at), cut, strict=True)
                    space = replace(
                        space, where=" and ".join(f"{y} < {spell(n)}" for y, n in inside)
                    )
                terms = [
                    (c, space.load(source, *outer, *_with(shown, stage, i), channel))
                    for i, c in enumerate(row)
                    if c
                ]
                value = finish(space, _combine(terms)) if last else _combine(terms)
                ctx.assign(node, space, into, [*outer, *at, channel], value)
            source = into


def _combine(terms: Sequence[tuple[Fraction, Expr]]) -> Expr:
    """The sum of coefficient * value; those that are subtracted come last."""
    total: Expr | None = None
    for coefficient, value in sorted(terms, key=lambda t: t[0] < 0):
        size = abs(coefficient)
        term = value if size == 1 else mul(value, float(size))
        if total is None:
            total = neg(term) if coefficient < 0 else term
        else:
            total = sub(total, term) if coefficient < 0 else add(total, term)
    assert total is not None, "a row of zeros"
    return total


def _places(sizes: Sequence[int]) -> list[str]:
    """A place in a tile as indices: (6, 1) -> ["e0", "0"]."""
    return [f"e{k}" if n != 1 else "0" for k, n in enumerate(sizes)]


def _iterated(sizes: Sequence[int], stage: int | None = None) -> dict[str, int]:
    """Iterators over the places in a tile, without that of one dimension."""
    return {f"e{k}": n for k, n in enumerate(sizes) if k != stage and n != 1}


def _with(places: Sequence[str], stage: int, index: int) -> list[str]:
    """The places, those of one dimension fixed."""
    return [str(index) if k == stage else place for k, place in enumerate(places)]
