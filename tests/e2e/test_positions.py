"""Compiled operators that read, write and choose at positions that are data; and resampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import polyc
from polyc import ops
from polyc.errors import RuntimeFailure
from polyc.graph.builder import graph_of
from tests.e2e.cases import FLOATS, NUMBERS, Case, family, ints, seeds, shapes, small, special


def scatter(data: st.DataObject) -> list[Case]:
    """ScatterElements and ScatterND, by all reductions."""
    cases = []
    for reduction in ("none", "add", "mul", "max", "min"):
        dtype = data.draw(st.sampled_from(("float32", "int32", "float64")))
        rng = data.draw(seeds())
        x = small(rng, dtype, data.draw(shapes(1, 3, empty=False)))
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        count = int(rng.integers(1, x.shape[axis] + 1))
        order = np.argsort(rng.random(x.shape), axis=axis)
        indices = np.take(order, range(count), axis=axis)
        updates = small(rng, dtype, indices.shape)
        flags = {"axis": axis, "reduction": reduction}
        cases.append(Case("ScatterElements", [x, indices, updates], flags, rtol=1e-6))
        rows = rng.permutation(x.shape[0])[:count, None]
        updates = small(rng, dtype, (len(rows), *x.shape[1:]))
        flags = {"reduction": reduction}
        cases.append(Case("ScatterND", [x, rows, updates], flags, rtol=1e-6))
    return cases


def order(data: st.DataObject) -> list[Case]:
    """TopK among NaN, infinities and ties."""
    cases = []
    for dtype in (*FLOATS, data.draw(st.sampled_from(NUMBERS))):
        x = special(data.draw(seeds()), dtype, data.draw(shapes(1, 3, empty=False)))
        axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
        count = data.draw(st.integers(1, x.shape[axis]))
        for largest in (0, 1):
            keys = -x[...] if largest and x.dtype.kind == "f" else x
            if x.dtype.kind == "f":  # NaN first among the largest, last among the smallest
                keys = np.where(np.isnan(x), -np.inf if largest else np.inf, keys)
                classes = ~np.isnan(x) if largest else np.isnan(x)
                indices = np.lexsort((keys, classes), axis=axis)
            elif largest:
                ranks = np.unique(x, return_inverse=True)[1].reshape(x.shape)
                indices = np.argsort(-ranks, axis=axis, kind="stable")
            else:
                indices = np.argsort(x, axis=axis, kind="stable")
            chosen = np.take(indices, range(count), axis=axis)
            expected = [np.take_along_axis(x, chosen, axis), chosen]
            flags = {"axis": axis, "largest": largest}
            cases.append(Case("TopK", [x, ints(count)], flags, (1,), 2, expected))
    return cases


def resizing(data: st.DataObject) -> list[Case]:
    """Resize by any sizes in all modes."""
    cases = []
    for mode in ("nearest", "linear", "cubic"):
        shape = data.draw(shapes(2, 4, empty=False))
        x = small(data.draw(seeds()), "float32", shape)
        sizes = [data.draw(st.sampled_from([1, 2, 5, 9, 2 * n])) for n in shape]
        sizes[0] = shape[0]
        how = st.sampled_from(["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
        flags = {"mode": mode, "coordinate_transformation_mode": data.draw(how)}
        cases.append(Case("Resize", [x, None, None, ints(*sizes)], flags, (3,), atol=1e-5))
    return cases


test_scatter = family(scatter)
test_order = family(order)
test_resizing = family(resizing)


def test_an_index_outside_is_an_error_that_names_the_node():
    x, i, u = ops.input("x", (3, 40)), ops.input("i", (3, 40), "int64"), ops.input("u", (3, 40))
    model = polyc.compile(graph_of({"y": ops.scatter_elements(x, i, u, axis=1)}), threads=1)
    zeros = np.zeros((3, 40), np.float32)
    with pytest.raises(RuntimeFailure, match="ScatterElements"):
        model(zeros, np.full((3, 40), 40), zeros)


def test_a_cache_is_written_where_the_data_say():
    past, update, where = ops.input("p", (2, 3, 17, 8)), ops.input("u", (2, 3, 2, 8)), None
    where = ops.input("w", (2,), "int64")
    model = polyc.compile(graph_of({"y": ops.tensor_scatter(past, update, where)}), threads=1)
    old, new = (np.random.default_rng(k).random(v.shape, np.float32) for k, v in
                enumerate((past, update)))  # fmt: skip
    expected = old.copy()
    expected[0, :, 15:17], expected[1, :, 3:5] = new[0], new[1]
    np.testing.assert_array_equal(model(old, new, np.array([15, 3])), expected)
