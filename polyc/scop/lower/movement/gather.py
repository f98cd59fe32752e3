"""Reading at positions that are data: Gather, GatherElements, GatherND, and
ReverseSequence.

Y[i, j] = X[index(I[i]), j]      index: -1 is the last, anything outside stops the run
"""

from __future__ import annotations

import islpy as isl
import numpy as np

from polyc.graph.ir import Node
from polyc.graph.shapes.dims import normalize_axis
from polyc.poly.conditions import spell
from polyc.poly.parameters import assumed_of, parameters_of, read
from polyc.scop.expr import INT64, Expr, cast
from polyc.scop.lower.context import Lowering, lowers
from polyc.scop.lower.functions import lt, select, sub, wrap_index
from polyc.scop.lower.movement.known_places import find_affine, find_place
from polyc.scop.lower.movement.views import bind_view
from polyc.types.sizes import Extent, Size, bounds


@lowers("Gather")
def lower_gather(ctx: Lowering, node: Node) -> None:
    """Y[a…, p…, b…] = X[a…, I[p…], b…]; a view where the constants I[p…] are affine in p…"""
    data = ctx.type(node.inputs[0])
    indices = ctx.type(node.inputs[1])
    axis = normalize_axis(node.get("axis", 0), data.rank)
    names = [f"i{k}" for k in range(data.rank + indices.rank - 1)]
    before, position = names[:axis], names[axis : axis + indices.rank]
    after = names[axis + indices.rank :]
    if indices.value is not None:
        formula = _find_view(indices.value, data.shape[axis], position)
        if formula is not None:
            bind_view(ctx, node, [*before, formula, *after])
            return
    if indices.entries is not None and _is_inside(indices.entries, data.shape[axis]):
        bind_view(ctx, node, [*before, str(indices.entries.item()), *after])
        return
    place = find_place(ctx, ctx.ref(indices.name), data.extents[axis])
    if place is not None:
        _bind_view_at(ctx, node, place, before, position, after)
        return
    result = ctx.result(node)
    source = ctx.whole(node, ctx.ref(data.name))
    space = ctx.grid(node, result.shape)
    found = cast(space.load(ctx.ref(indices.name), *position), INT64)
    at: list[str | Expr] = [*before, wrap_index(found, space.number(source.shape[axis])), *after]
    ctx.assign(node, space, result, names, space.gather(source, at))


def _bind_view_at(
    ctx: Lowering,
    node: Node,
    place: isl.PwMultiAff,
    before: list[str],
    position: list[str],
    after: list[str],
) -> None:
    """The output is a view { [a…, p…, b…] -> [a…, place(p…), b…] } of the data."""
    names = ", ".join([*before, *position, *after])
    parts = [
        isl.Map(f"{{ [{names}] -> [{', '.join(part)}] }}") for part in (before, position, after)
    ]
    parts[1] = parts[1].apply_range(place.as_map())
    whole = parts[0].flat_range_product(parts[1]).flat_range_product(parts[2])
    shape = ctx.type(node.outputs[0]).extents
    seen = ctx.ref(node.inputs[0]).through(isl.PwMultiAff.from_map(whole), shape)
    ctx.bind(node.outputs[0], seen)


def _is_inside(entries: np.ndarray, extent: Extent) -> bool:
    """Whether a position that is known once sizes and steps are lies in a dimension, always."""
    if entries.size != 1 or entries.ndim or not entries.item().is_affine:
        return False
    inside = read(isl.Set, f"{{ : 0 <= {entries.item()} < {spell(extent)} }}")
    return bool(assumed_of(frozenset(parameters_of(inside))).is_subset(inside))


def _find_view(values: np.ndarray, extent: Extent, iterators: list[str]) -> str | None:
    """A formula for constant positions, if there is one; negative ones count from the end."""
    if not isinstance(extent, Size):
        return find_affine(np.mod(values, max(extent, 1)), iterators)
    formula = find_affine(values, iterators)
    if values.size and (values < 0).all():
        reach, formula = -int(values.min()), formula and f"{extent} + {formula}"
    else:
        reach = int(values.max(initial=-1)) + 1
    inside = (values < 0).all() or (values >= 0).all()
    return formula if inside and reach <= bounds(extent)[0] else None


@lowers("GatherElements")
def lower_gather_elements(ctx: Lowering, node: Node) -> None:
    """Y[i, j] = X[i, I[i, j]] for axis 1"""
    result = ctx.result(node)
    source = ctx.whole(node, ctx.ref(node.inputs[0]))
    axis = normalize_axis(node.get("axis", 0), source.rank)
    space = ctx.grid(node, result.shape)
    found = cast(space.load(ctx.ref(node.inputs[1]), *space.iterators), INT64)
    at: list[str | Expr] = [*space.iterators]
    at[axis] = wrap_index(found, space.number(source.shape[axis]))
    ctx.assign(node, space, result, space.iterators, space.gather(source, at))


@lowers("GatherND")
def lower_gather_nd(ctx: Lowering, node: Node) -> None:
    """Y[b…, p…, r…] = X[b…, I[b…, p…, 0], I[b…, p…, 1], …, r…]"""
    result = ctx.result(node)
    source, indices = ctx.whole(node, ctx.ref(node.inputs[0])), ctx.ref(node.inputs[1])
    batch, depth = node.get("batch_dims", 0), indices.shape[-1]
    space = ctx.grid(node, result.shape)
    point, rest = space.iterators[: indices.rank - 1], space.iterators[indices.rank - 1 :]
    found = [
        wrap_index(
            cast(space.load(indices, *point, str(d)), INT64),
            space.number(source.shape[batch + d]),
        )
        for d in range(depth)
    ]
    at: list[str | Expr] = [*point[:batch], *found, *rest]
    ctx.assign(node, space, result, space.iterators, space.gather(source, at))


@lowers("ReverseSequence")
def lower_reverse_sequence(ctx: Lowering, node: Node) -> None:
    """Y[t, b] = X[length[b] - 1 - t, b] where t < length[b], else X[t, b]"""
    result, source = ctx.result(node), ctx.whole(node, ctx.ref(node.inputs[0]))
    batch, time = node.get("batch_axis", 1), node.get("time_axis", 0)
    space = ctx.grid(node, result.shape)
    length = cast(space.load(ctx.ref(node.inputs[1]), f"i{batch}"), INT64)
    step = space.index(f"i{time}")
    found = select(lt(step, length), sub(sub(length, 1), step), step)
    at: list[str | Expr] = [*space.iterators]
    at[time] = wrap_index(found, space.number(source.shape[time]))
    ctx.assign(node, space, result, space.iterators, space.gather(source, at))
