"""Compiled operators that read, write and choose at positions that are data; and resampling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import strategies as st

import polyc
from polyc import ops
from polyc.errors import RuntimeFailure
from polyc.graph.builder import apply, graph_of
from polyc.options import Options
from tests.e2e.cases import FLOATS, NUMBERS, Case, family, ints, seeds, shapes, small, special
from tests.sampling import thorough


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


NUMBER = np.random.default_rng(5)
ROWS = {
    "in order": np.arange(2, 7),
    "every second one, backwards": np.arange(8, 0, -2),
    "one": np.array([3]),
    "twice the same": np.array([3, 3, 3]),  # the last one counts
    "from the end": np.array([-3, -2, -1]),
    "in no order": np.array([4, 0, 5, 1]),
}


@pytest.mark.parametrize("reduction", ["none", thorough("add"), thorough("max")])
@pytest.mark.parametrize("rows", ROWS.values(), ids=list(ROWS))
def test_rows_that_are_written_at_constant_positions(rows, reduction, tmp_path):
    """Where positions are affine nobody searches for a writer; the others are searched for."""
    x, u = ops.input("x", (10, "n", 3)), ops.input("u", (len(rows), "n", 3))
    graph = graph_of({"y": ops.scatter_nd(x, rows[:, None], u, reduction)})
    model = polyc.compile(graph, options=Options(threads=1, cache_dir=tmp_path))
    is_known = len(np.unique(rows)) == len(rows) and (np.diff(rows, 2) == 0).all()
    assert (len(model.explain().kernels) == 1) == is_known
    old, new = (NUMBER.standard_normal((n, 4, 3)).astype(np.float32) for n in (10, len(rows)))
    expected = old.copy()
    if reduction == "none":
        expected[rows] = new
    else:
        (np.add if reduction == "add" else np.maximum).at(expected, rows, new)
    np.testing.assert_allclose(model(old, new), expected, rtol=1e-6)


@pytest.mark.parametrize("shape", [("a", "b", 3), thorough((4, "b", 2)), thorough((4, 5, 2))])
def test_a_slice_that_is_assigned_knows_its_place(shape, tmp_path):
    """x[:, :, 1] = u, as exporters write it: an index for each element, from Range and Expand."""
    x, u = ops.input("x", shape), ops.input("u", (*shape[:2], 1))
    sizes, counted = ops.shape_of(u), []
    for axis, view in ((0, [-1, 1, 1]), (1, [-1, 1])):
        count = apply("Gather", [ops.shape_of(x), np.int64(axis)])
        along = apply("Range", [np.int64(0), count, np.int64(1)])
        counted.append(ops.expand(ops.reshape(along, view), sizes))
    counted.append(ops.expand(np.array([1], np.int64), sizes))
    indices = ops.concat([ops.unsqueeze(one, 3) for one in counted], axis=-1)
    graph = graph_of({"y": ops.scatter_nd(x, indices, u)})
    model = polyc.compile(graph, options=Options(threads=1, cache_dir=tmp_path))
    assert len(model.explain().kernels) == 1
    extents = [{"a": 6, "b": 7}.get(n, n) for n in shape]
    old, new = (NUMBER.standard_normal([*extents[:2], n]).astype(np.float32) for n in (shape[2], 1))
    expected = old.copy()
    expected[:, :, 1:2] = new
    np.testing.assert_array_equal(model(old, new), expected)


@pytest.mark.parametrize("late", [0, 1, -7])
def test_frames_of_a_signal_are_a_view_of_it(late, tmp_path):
    """x.unfold(1, 7, 3), as exporters write it: the position of each element, from a Range.

    late: what is added to the positions: by 1 they reach beyond the end, by -7 they count from it.
    """
    x = ops.input("x", (2, "n"))
    length = apply("Gather", [ops.shape_of(x), np.int64(1)])
    ends = ops.sub(length, np.int64(6)) if late >= 0 else np.int64(1)
    starts = apply("Range", [np.int64(0), ends, np.int64(3)])
    within = np.arange(7, dtype=np.int64) + late
    places = ops.add(ops.unsqueeze(starts, 1), within)
    graph = graph_of({"y": ops.mul(apply("Gather", [x, places], axis=1), np.float32(2))})
    options = Options(threads=1, cache_dir=tmp_path)
    model = polyc.compile(graph, options=options, dims={"n": (7, None)})
    assert ("pc_index" in model.source) == (late == 1)
    for n in (7, 8, 20, 100):
        signal = NUMBER.standard_normal((2, n)).astype(np.float32)
        firsts = np.arange(0, n - 6 if late >= 0 else 1, 3)
        wanted = firsts[:, None] + within
        if wanted.max() >= n:
            with pytest.raises(RuntimeFailure):
                model(signal)
        else:
            np.testing.assert_array_equal(model(signal), 2 * signal[:, wanted])


@pytest.mark.parametrize("kind", ["int64", "int32"])
def test_frames_by_their_numbers_are_a_view(kind, tmp_path):
    """Range(f) * 3 + [0, 1, 2], of an open length; what 32 bits may not hold is computed."""
    x = ops.input("x", (2, "n"))
    length = ops.cast(apply("Gather", [ops.shape_of(x), np.int64(1)]), kind)
    three = np.array(3, kind)
    frames = apply("Range", [np.array(0, kind), apply("Div", [length, three]), np.array(1, kind)])
    places = ops.cast(ops.unsqueeze(frames, 1) * three + np.arange(3, dtype=kind), "int64")
    graph = graph_of({"y": ops.mul(apply("Gather", [x, places], axis=1), np.float32(2))})
    options = Options(threads=1, cache_dir=tmp_path)
    model = polyc.compile(graph, options=options, dims={"n": (3, None)})
    assert ("pc_index" in model.source) == (kind == "int32")
    for n in (3, 5, 6, 100):
        signal = NUMBER.standard_normal((2, n)).astype(np.float32)
        wanted = np.arange(n // 3)[:, None] * 3 + np.arange(3)
        np.testing.assert_array_equal(model(signal), 2 * signal[:, wanted])


def test_positions_in_narrow_integers_begin_anew(tmp_path):
    """int16(16384) * 2 is -32768: an element counted from the end, and not the one at 32768."""
    x, k = ops.input("x", (70_000,)), ops.input("k", ("n",))
    length = ops.reshape(ops.cast(ops.shape_of(k), "int16"), [])
    one = apply("Range", [np.int16(0), length, np.int16(1)])
    places = ops.cast(ops.add(one, one), "int64")
    graph = graph_of({"y": apply("Gather", [x, places], axis=0)})
    options = Options(threads=1, cache_dir=tmp_path)
    model = polyc.compile(graph, options=options, dims={"n": (1, 30_000)})
    values = NUMBER.standard_normal(70_000).astype(np.float32)
    for n in (10, 20_000):
        wanted = 2 * np.arange(n, dtype=np.int16)
        np.testing.assert_array_equal(model(values, np.zeros(n, np.float32)), values[wanted])


def test_loops_over_all_updates_are_not_written_out_together(tmp_path):
    """Each of them decides the number of the update, and is short: 96 copies of 18 vectors."""
    counts, shape = (4, 2, 3, 4), (8, 4, 4, 9)
    rows = [NUMBER.permutation(n)[:k] for n, k in zip(shape, counts, strict=True)]
    indices = np.stack(np.meshgrid(*rows, indexing="ij"), -1)
    x, u = ops.input("x", shape), ops.input("u", counts)
    graph = graph_of({"y": ops.scatter_nd(x, indices, u)})
    model = polyc.compile(graph, options=Options(threads=1, cache_dir=tmp_path))
    assert len(model.source) < 100_000
    old, new = (NUMBER.standard_normal(n).astype(np.float32) for n in (shape, counts))
    expected = old.copy()
    expected[np.ix_(*rows)] = new
    np.testing.assert_array_equal(model(old, new), expected)
