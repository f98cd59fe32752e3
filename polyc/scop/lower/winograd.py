"""Convolution by minimal filtering (Winograd): fewer multiplications, as ordinary statements.

For two dimensions, with tiles t = (ty, tx) of m x m outputs and n x n inputs:

    V[a, b, t, c]  =  sum of B[a, i] B[b, j] x[c, m ty + i, m tx + j]      input transform
    M[a, b, t, o] +=  V[a, b, t, c] * U[a, b, o, c]                        n^2 matrix products
    y[o, m ty + p, m tx + q]  =  sum of A[p, a] A[q, b] M[a, b, t, o]      output transform

U = G w G^T is computed at compile time. A transform goes one dimension at a time; its matrices are
small and full of zeros, so each row is a statement of its own with a literal sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from math import ceil, prod

import numpy as np

from polyc.graph.ir import Node
from polyc.scop.expr import Expr
from polyc.scop.lower.context import Lowering
from polyc.scop.lower.functions import add, mul, neg, sub
from polyc.scop.lower.minimal_filter import LARGEST, MinimalFilter, minimal_filter
from polyc.scop.lower.space import Ref, Space
from polyc.scop.lower.totals import accumulate_into

CHANNELS = 16
"""Fewer input or output channels than a vector leave the matrix products too thin."""

LANES = 16
WEIGHT_BYTES_A_CYCLE = 8
TRANSFORM_CYCLES = 8
"""Of the cost model: floats a vector, bytes of transformed weights that come from L3 or memory a
cycle, cycles to transform a vector (its loads, stores, and about four additions)."""

WORTHWHILE = 0.9
"""The estimated gain below which the direct form stays: it is one kernel instead of three."""


def choose_filters(
    batch: int, channels: int, filters: int, kernel: Sequence[int], output: Sequence[int]
) -> tuple[MinimalFilter, ...] | None:
    """The cheapest F(m, r) in each dimension by estimated cycles, or None for the direct form."""
    if min(channels, filters) < CHANNELS or all(r == 1 for r in kernel) or 0 in output:
        return None
    direct = batch * channels * filters * prod(kernel) * prod(output) / LANES
    best, cheapest = None, WORTHWHILE * direct
    sizes = [range(1, 2) if r == 1 else range(2, LARGEST - r + 2) for r in kernel]
    for ms in product(*sizes):
        points = prod(m + r - 1 for m, r in zip(ms, kernel, strict=True))
        tiles = batch * prod(ceil(n / m) for n, m in zip(output, ms, strict=True))
        products = points * tiles * channels * filters / LANES * (1 + 1.5 / min(tiles, 14))
        weights = points * channels * filters * 4 / WEIGHT_BYTES_A_CYCLE
        transforms = points * tiles * (channels + filters) / LANES * TRANSFORM_CYCLES
        cost = products + weights + transforms
        if cost < cheapest:
            best, cheapest = ms, cost
    if best is None:
        return None
    return tuple(minimal_filter(m, r) for m, r in zip(best, kernel, strict=True))


def lower_minimal(
    ctx: Lowering, node: Node, source: Ref, filters: Sequence[MinimalFilter], output: Sequence[int]
) -> None:
    """y = bias + conv(source, w) with stride 1; `source` reaches to the end of the last tile."""
    tiles = [ceil(n / f.m) for n, f in zip(output, filters, strict=True)]
    weight = _transform_weights(ctx, node, filters)
    values = _transform_input(ctx, node, source, filters, tiles)
    products = _multiply(ctx, node, values, weight, filters)
    _transform_output(ctx, node, products, filters, tiles, output)


def _transform_weights(ctx: Lowering, node: Node, filters: Sequence[MinimalFilter]) -> Ref:
    """U[a, b, o, c] = sum of G[a, r] G[b, q] w[o, c, r, q], in float64, rounded once."""
    value = ctx.type(node.inputs[1]).value
    assert value is not None
    result = value.astype(np.float64)
    for k, f in enumerate(filters):
        matrix = np.array(f.taps, dtype=np.float64)
        result = np.moveaxis(np.tensordot(matrix, result, (1, 2 + k)), 0, 2 + k)
    order = [*range(2, result.ndim), 0, 1]
    name = f"{node.inputs[1]}_minimal"
    return ctx.constant(name, np.ascontiguousarray(result.transpose(order).astype(value.dtype)))


def _transform_input(
    ctx: Lowering,
    node: Node,
    source: Ref,
    filters: Sequence[MinimalFilter],
    tiles: Sequence[int],
) -> Ref:
    """V[a, b, t, c], one dimension at a time; the tiles are counted by one index t."""
    batch, channels = source.shape[:2]
    places = _tile_iterators(filters)
    outer = {"n": batch, **dict(zip(places, tiles, strict=True))}
    stages = [k for k, f in enumerate(filters) if f.r > 1]
    points = [f.n for f in filters]
    current = source
    with ctx.together(node, *outer, "c"):
        for stage in stages:
            last = stage == stages[-1]
            shape = [*points, batch * prod(tiles), channels] if last else None
            name = f"{node.outputs[0]}_{'inputs' if last else 'rows'}"
            target = ctx.array(name, source.dtype, shape or [*outer.values(), *points, channels])
            for a, row in enumerate(filters[stage].input):
                inner = _offsets(points, stage)
                space = ctx.space(node, **outer, **inner, c=channels)
                at = [_offset(points, k) for k in range(len(points))]

                def load(i: int, space: Space = space, at: Sequence[str] = at) -> Expr:
                    shown = [*at]
                    shown[stage] = str(i)
                    if stage == stages[0]:
                        moved = [
                            f"{f.m}*{t} + {e}"
                            for f, t, e in zip(filters, places, shown, strict=True)
                        ]
                        return space.load(source, "n", "c", *moved)
                    return space.load(current, *outer, *shown, "c")

                shown = [*at]
                shown[stage] = str(a)
                index = [*shown, _tile_index(places, tiles), "c"] if last else [*outer, *shown, "c"]
                ctx.assign(node, space, target, index, _combine(row, load))
            current = target
    return current


def _multiply(
    ctx: Lowering, node: Node, values: Ref, weight: Ref, filters: Sequence[MinimalFilter]
) -> Ref:
    """M[a, b, t, o] += V[a, b, t, c] * U[a, b, o, c]: a matrix product for each a, b."""
    points = [f.n for f in filters]
    tiles, channels = values.shape[-2:]
    target = ctx.array(
        f"{node.outputs[0]}_products", values.dtype, [*points, tiles, weight.shape[-2]]
    )
    space = ctx.space(
        node, **_offsets(points, None), t=tiles, o=weight.shape[-2], c=channels
    )
    at = [_offset(points, k) for k in range(len(points))]
    value = mul(space.load(values, *at, "t", "c"), space.load(weight, *at, "o", "c"))
    kept = [i for i in space.extents if i != "c"]
    accumulate_into(ctx, node, target, space, kept, value, "add", into=[*at, "t", "o"])
    return target


def _transform_output(
    ctx: Lowering,
    node: Node,
    products: Ref,
    filters: Sequence[MinimalFilter],
    tiles: Sequence[int],
    output: Sequence[int],
) -> None:
    """y[n, o, m ty + p, m tx + q], one dimension at a time; the last tile may be cut off."""
    result = ctx.result(node)
    batch, channels = result.shape[:2]
    places = _tile_iterators(filters)
    outer = {"n": batch, **dict(zip(places, tiles, strict=True))}
    stages = [k for k, f in enumerate(filters) if f.r > 1]
    sizes = [f.n for f in filters]  # of each dimension, before its stage n, after it m
    current = products
    with ctx.together(node, *outer, "o"):
        for stage in stages:
            last = stage == stages[-1]
            before, sizes[stage] = [*sizes], filters[stage].m
            if not last:
                target = ctx.array(
                    f"{node.outputs[0]}_columns",
                    result.dtype,
                    [*outer.values(), *sizes, channels],
                )
            for p, row in enumerate(filters[stage].output):
                shown = [_offset(before, k) for k in range(len(before))]
                shown[stage] = str(p)
                moved = [
                    f"{f.m}*{t} + {e}" for f, t, e in zip(filters, places, shown, strict=True)
                ]
                inside = " and ".join(f"{y} < {n}" for y, n in zip(moved, output, strict=True))
                space = ctx.space(node, **outer, **_offsets(before, stage), o=channels)
                space = Space(space.name, space.extents, inside if last else "")

                def load(a: int, space: Space = space, shown: Sequence[str] = shown) -> Expr:
                    at = [*shown]
                    at[stage] = str(a)
                    if stage == stages[0]:
                        return space.load(products, *at, _tile_index(places, tiles), "o")
                    return space.load(current, *outer, *at, "o")

                value = _combine(row, load)
                if not last:
                    ctx.assign(node, space, target, [*outer, *shown, "o"], value)
                    continue
                if ctx.has(node, 2):
                    value = add(value, space.load(ctx.ref(node.inputs[2]), "o"))
                ctx.assign(node, space, result, ["n", "o", *moved], value)
            if not last:
                current = target


def _combine(row, load) -> Expr:  # type: ignore[no-untyped-def]
    """The sum of row[i] * load(i) over the coefficients that are not zero."""
    total: Expr | None = None
    for i, coefficient in sorted(enumerate(row), key=lambda t: t[1] < 0):
        if coefficient == 0:
            continue
        size = abs(Fraction(coefficient))
        term = load(i) if size == 1 else mul(load(i), float(size))
        if total is None:
            total = neg(term) if coefficient < 0 else term
        else:
            total = sub(total, term) if coefficient < 0 else add(total, term)
    assert total is not None, "a row of zeros"
    return total


def _tile_iterators(filters: Sequence[MinimalFilter]) -> list[str]:
    return [f"t{k}" for k in range(len(filters))]


def _tile_index(places: Sequence[str], tiles: Sequence[int]) -> str:
    """The number of a tile, batch included: "(n*14 + t0)*14 + t1"."""
    index = "n"
    for place, count in zip(places, tiles, strict=True):
        index = f"{count}*({index}) + {place}"
    return index


def _offsets(points: Sequence[int], stage: int | None) -> dict[str, int]:
    """Iterators over the places in a tile, but those of one dimension, or of extent 1."""
    return {f"e{k}": n for k, n in enumerate(points) if k != stage and n != 1}


def _offset(points: Sequence[int], k: int) -> str:
    return f"e{k}" if points[k] != 1 else "0"
