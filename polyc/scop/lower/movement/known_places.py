"""Positions that are data in a graph, and follow from iterators: slices assigned, and frames.

    I = Concat(Expand(Range(n)[:, None]), Expand(2))        I[k, 0] = k, I[k, 1] = 2
    y = ScatterND(x, I, u)                                  y[i, 2] = u[i]; the rest of y is x

    I = Range(f)[:, None] * 160 + [0, 1, … 399]             I[f, k] = 160 f + k
    y = Gather(x, I)                                        y[f, k] = x[160 f + k], a view

Exporters write `x[:, 2] = u` and `x.unfold(0, 400, 160)` so, with an index for each element. Where
no two of them are equal, an element of y knows who writes it, and nobody searches.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl
import numpy as np

from polyc.poly.affine import output, outputs, single_aff
from polyc.poly.boxes import box
from polyc.poly.conditions import spell
from polyc.poly.parameters import among_own_sizes, assumed_of, is_part, parameters_of, read
from polyc.scop.expr import INT64, Call, Cast, Const, Expr, Index, Load
from polyc.scop.lower.context import Lowering
from polyc.scop.lower.space import Ref
from polyc.types.sizes import Extent

WIDE = 4
"""Bytes of integers that hold any position: narrower ones begin anew at 128, or at 32768."""


def find_writer(ctx: Lowering, indices: Ref, shape: Sequence[Extent]) -> isl.PwMultiAff | None:
    """# [i…] -> [k…]: which tuple of indices is a point of a shape, where one is.

    None where that is no affine function, or two tuples may be equal, or one out of range.
    """
    names = [f"k{d}" for d in range(indices.rank - 1)]
    inside = box("", tuple(shape[: indices.shape[-1]]))
    tuples, domain = ", ".join(names), among_own_sizes(box("", indices.shape[:-1]), inside)
    place: isl.Map | None = None  # [k…] -> [i…]
    for d in range(indices.shape[-1]):
        row = isl.PwMultiAff(f"{{ [{tuples}] -> [{', '.join([*names, str(d)])}] }}")
        at = indices.map.pullback_pw_multi_aff(row).intersect_domain(domain)
        index = _element(ctx, indices.array, at)
        if index is None or not is_part(domain, index.domain()):
            return None
        graph = _count_from_front(index.as_map().intersect_domain(domain), shape[d])
        place = graph if place is None else place.flat_range_product(graph)
    if place is None or not place.is_injective():
        return None
    if not is_part(place.range(), inside):
        return None
    # What holds of the sizes in any case is left out.
    writer = isl.PwMultiAff.from_map(place.reverse())
    writer = writer.gist_params(assumed_of(frozenset(parameters_of(writer)))).coalesce()
    return writer.drop_unused_params() if writer.n_piece() == 1 else None


def find_place(ctx: Lowering, indices: Ref, extent: Extent) -> isl.PwMultiAff | None:
    """# [k…] -> [i]: which position of a dimension an element of a tensor says.

    None where that is no affine function, or may be out of range.
    """
    inside = box("", (extent,))
    domain = among_own_sizes(box("", indices.shape), inside)
    index = _element(ctx, indices.array, indices.map.intersect_domain(domain))
    if index is None or not is_part(domain, index.domain()):
        return None
    place = _count_from_front(index.as_map().intersect_domain(domain), extent)
    if not is_part(place.range(), inside):
        return None
    found = isl.PwMultiAff.from_map(place.gist_domain(domain)).coalesce().drop_unused_params()
    return found if found.n_piece() == 1 else None


def _count_from_front(index: isl.Map, extent: Extent) -> isl.Map:
    """# [k…] -> Z: -1 -> extent - 1"""
    if index.range().is_subset(isl.Set("{ [i] : i >= 0 }")):
        return index
    n = spell(extent)
    return index.apply_range(read(isl.Map, f"{{ [i] -> [i + {n}] : i < 0; [i] -> [i] : i >= 0 }}"))


def _element(ctx: Lowering, array: str, at: isl.PwMultiAff) -> isl.PwAff | None:
    """# at: D -> A;  D -> Z: the value of an element of integers, if it follows from the place."""
    value = ctx.arrays[array].value
    if value is not None:
        return _constant(value, at)
    total: isl.PwAff | None = None
    for s in (s for s in ctx.statements if s.array == array):
        writer = s.write.as_map().intersect_domain(s.domain).reverse()  # A -> S
        if s.reduction or s.step is not None or s.branches or not writer.is_single_valued():
            return None
        part = at.as_map().apply_range(writer)
        if part.is_empty():
            continue
        found = _value(ctx, s.value, isl.PwMultiAff.from_map(part))
        if found is None:
            return None
        total = found if total is None else total.union_add(found)
    return None if total is None else total.coalesce()


def _value(ctx: Lowering, expr: Expr, at: isl.PwMultiAff) -> isl.PwAff | None:
    """# at: D -> S;  D -> Z: what an expression of a statement S is."""
    match expr:
        case Const(value, dtype) if dtype.kind in "iu":
            return _number(int(value), at)
        case Index(value, dtype) if dtype.itemsize >= WIDE:
            return value.pullback_pw_multi_aff(at)
        case Load(array, index, dtype, ()) if dtype.kind in "iu":
            return _element(ctx, array, index.pullback_pw_multi_aff(at))
        case Cast(argument, dtype) if dtype.kind == argument.dtype.kind == "i":
            wide = dtype.itemsize >= argument.dtype.itemsize
            return _value(ctx, argument, at) if wide else None
        case Call("add" | "sub" | "mul" as function, (first, second), dtype) if (
            dtype.itemsize >= WIDE
        ):
            one, other = (_value(ctx, e, at) for e in (first, second))
            if one is None or other is None:
                return None
            if function == "mul":
                return _multiply(one, other, dtype)
            return one.add(other) if function == "add" else one.sub(other)
    return None


def _multiply(one: isl.PwAff, other: isl.PwAff, dtype: np.dtype) -> isl.PwAff | None:
    """The product by a number, if it is one of its type: it would begin anew at 2^31."""
    if not (one.is_cst() or other.is_cst()):
        return None
    product = one.mul(other)
    ends = np.iinfo(dtype)
    whole = isl.Set(f"{{ [i] : {ends.min} <= i <= {ends.max} }}")
    return product if dtype == INT64 or product.as_map().range().is_subset(whole) else None


def _number(value: int, at: isl.PwMultiAff) -> isl.PwAff:
    space = at.get_domain_space()
    return isl.PwAff.from_aff(isl.Aff.val_on_domain_space(space, isl.Val(value))).intersect_domain(
        at.domain()
    )


def _constant(values: np.ndarray, at: isl.PwMultiAff) -> isl.PwAff | None:
    """An element of a constant whose values are affine, where some of its indices are numbers."""
    if values.dtype.kind not in "iu":
        return None
    fixed: list[int | slice] = []
    moving: list[int] = []
    for d, function in enumerate(outputs(at)):
        aff = single_aff(function)
        if aff is not None and aff.is_cst():
            fixed.append(int(aff.get_constant_val().to_python()))
        else:
            fixed.append(slice(None))
            moving.append(d)
    names = [f"a{d}" for d in range(len(moving))]
    formula = find_affine(np.asarray(values[tuple(fixed)]), names)
    if formula is None:
        return None
    function = isl.PwAff(f"{{ [{', '.join(names)}] -> [({formula})] }}")
    if not moving:
        return _number(int(values[tuple(fixed)]), at)
    place = output(at, moving[0]).as_map()
    for d in moving[1:]:
        place = place.flat_range_product(output(at, d).as_map())
    return function.pullback_pw_multi_aff(isl.PwMultiAff.from_map(place))


def find_affine(values: np.ndarray, iterators: list[str]) -> str | None:
    """A formula for an array of integers, if it is affine in its indices.

    [[1, 3, 5], [7, 9, 11]], i, j -> "1 + 6*i + 2*j";  [0, 1, 3] -> None
    """
    if not values.size:
        return "0"
    start = int(values.flat[0])
    formula, fitted = str(start), np.full(values.shape, start, np.int64)
    for k, extent in enumerate(values.shape):
        if extent == 1:
            continue
        step = int(np.take(values, 1, axis=k).flat[0]) - start
        formula += f" + {step}*{iterators[k]}"
        along = [extent if d == k else 1 for d in range(values.ndim)]
        fitted += step * np.arange(extent).reshape(along)
    return formula if (fitted == values).all() else None
