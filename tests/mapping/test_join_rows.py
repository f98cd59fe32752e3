"""Rows that run as one loop where only a call knows how many there are."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.analysis.joined_rows import check_joined_rows
from polyc.backends.common import kernel_scop
from polyc.errors import IllegalSchedule
from polyc.mapping.join_rows import join_rows
from polyc.memory.storage import permuted
from polyc.options import Options
from polyc.pipeline import cluster_model
from polyc.scop.expr import Const, Load
from polyc.target.machine import Target
from polyc.trace import make_trace
from polyc.types.ranges import assume
from tests.machines import need_named
from tests.sampling import thorough

SET = isl.dim_type.set
RNG = np.random.default_rng(41)
WEIGHTS = RNG.standard_normal((64, 48)).astype(np.float32)
BIAS = RNG.standard_normal(48).astype(np.float32)
POINTS = RNG.standard_normal((24, 16, 1, 1)).astype(np.float32)


def texts() -> Graph:
    """Rows of a batch of texts, times a matrix, and what is added to each."""
    x, z = ops.input("x", ("texts", "tokens", 64)), ops.input("z", ("texts", "tokens", 48))
    return Graph.of(y=ops.relu(ops.matmul(x, WEIGHTS) + BIAS) + z)


def images(channels: int = 16) -> Graph:
    """Pixels times a matrix, between layouts of their own."""
    y = ops.relu(ops.conv(ops.input("x", ("n", channels, "h", "w")), POINTS))
    return Graph.of(y=ops.transpose(y, (0, 2, 3, 1)))


def framed() -> Graph:
    """What a window around each pixel reads: rows of a frame have gaps between them."""
    y = ops.relu(ops.conv(ops.input("x", ("n", 16, "h", "w")), POINTS))
    window = np.ones((8, 24, 3, 3), np.float32)
    return Graph.of(y=ops.conv(y, window, pads=(1, 1, 1, 1)))


def compiled(graph: Graph, folder, **choices):
    options = Options(cache_dir=folder, threads=1)
    return polyc.compile(graph, target=need_named("avx2"), options=options, **choices)


@pytest.mark.parametrize("hint", [{"texts": 1, "tokens": 9}, thorough(None)])
def test_texts_of_a_batch(hint, tmp_path):
    model = compiled(texts(), tmp_path, hint=hint)
    assert any("collapse b0 i" in text for text in model.schedules.values())
    assert "const i64 size_rows = size_texts * size_tokens;" in model.source
    for b, t in ((1, 1), (1, 23), (32, 1), (3, 17), (5, 2), (2, 9)):
        x = RNG.standard_normal((b, t, 64)).astype(np.float32)
        z = RNG.standard_normal((b, t, 48)).astype(np.float32)
        wanted = np.maximum(x.astype(np.float64) @ WEIGHTS + BIAS, 0) + z
        np.testing.assert_allclose(model(x, z), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "shape", [("n", "floor(n/2)"), ("n", "2*n"), ("n", "n"), ("rows", "rows_1")]
)
def test_rows_whose_numbers_follow_from_each_other(shape, tmp_path):
    """One of them runs once at the hint; one is called as the kernel would call their product."""
    graph = Graph.of(y=ops.matmul(ops.input("x", (*shape, 64)), WEIGHTS))
    model = compiled(graph, tmp_path, dims={shape[0]: (0, None)})
    for n in (0, 1, 2, 7):
        rows = {"floor(n/2)": n // 2, "2*n": 2 * n, "n": n, "rows_1": 5}[shape[1]]
        x = RNG.standard_normal((n, rows, 128)).astype(np.float32)[..., ::2]
        np.testing.assert_allclose(model(x), x.astype(np.float64) @ WEIGHTS, rtol=1e-4, atol=1e-4)


def test_pixels_of_images(tmp_path):
    model = compiled(images(), tmp_path)
    (text,) = (text for text in model.schedules.values() if "collapse" in text)
    assert "collapse y x" in text
    for n, h, w in ((1, 1, 1), (3, 5, 2), (2, 7, 7), (1, 19, 23)):
        x = RNG.standard_normal((n, 16, h, w)).astype(np.float32)
        wanted = np.einsum("nchw,oc->nhwo", x.astype(np.float64), POINTS[:, :, 0, 0])
        np.testing.assert_allclose(model(x), np.maximum(wanted, 0), rtol=1e-4, atol=1e-4)


def test_a_kernel_that_is_kept_is_launched_with_all_sizes(tmp_path):
    """From the cache it comes without its loops, to a model that calls its arrays otherwise."""
    first = compiled(texts(), tmp_path)
    a, b = ops.input("a", ("texts", "tokens", 64)), ops.input("b", ("texts", "tokens", 48))
    y = ops.relu(ops.matmul(a, WEIGHTS) + BIAS) + b
    second = compiled(Graph.of(y=y, e=ops.exp(b)), tmp_path)
    assert "proven earlier and kept" in str(second.explain())
    x = RNG.standard_normal((3, 7, 64)).astype(np.float32)
    z = RNG.standard_normal((3, 7, 48)).astype(np.float32)
    np.testing.assert_array_equal(first(x, z), second(x, z)[0])


def test_rows_with_gaps_are_counted_one_by_one(tmp_path):
    model = compiled(framed(), tmp_path)
    assert not any("collapse n" in text for text in model.schedules.values())


def test_a_schedule_cannot_join_rows_with_gaps(tmp_path):
    model = compiled(framed(), tmp_path)
    name = next(n for n, t in model.schedules.items() if "order o n y x" in t or "order n" in t)
    given = {name: "order o n y x | collapse n y x | split n 4 | unroll n'"}
    with pytest.raises(IllegalSchedule, match="nobody knows how many iterations y has"):
        compiled(framed(), tmp_path, schedule=given)


def test_a_schedule_may_join_rows_that_are_evenly_apart(tmp_path):
    name = next(n for n, t in compiled(texts(), tmp_path).schedules.items() if "collapse" in t)
    given = {name: "order b0 i j | collapse b0 i | split b0 4 | vector j | unroll b0' | sink b0' j"}
    model = compiled(texts(), tmp_path, schedule=given)
    assert "collapse b0 i" in model.schedules[name]
    x = RNG.standard_normal((3, 5, 64)).astype(np.float32)
    wanted = np.maximum(x.astype(np.float64) @ WEIGHTS + BIAS, 0)
    np.testing.assert_allclose(model(x, np.zeros((3, 5, 48), "f4")), wanted, rtol=1e-4, atol=1e-4)


# -- the proof ------------------------------------------------------------------------------------


@pytest.fixture
def joined():
    """What is held against one another for one kernel, as (stated, seen) scops and storages."""
    options = Options()
    model = cluster_model(texts(), Target.named("avx2"), options, make_trace(options))
    with assume(model.sizes):
        (kernel,) = (k for k in model.kernels if k.parts[0].rows)
        found = join_rows(kernel, model.scop.arrays)
        assert found is not None
        stated = kernel_scop("k", kernel, model.scop)
        seen = kernel_scop("k", found.kernel, replace(model.scop, arrays=found.arrays))
        with assume([found.size]):
            yield stated, kernel.storages, seen, found.kernel.storages, found.rows


def test_rows_as_one_are_proven(joined):
    check_joined_rows("k", *joined)


def _other(of, name, **changes):
    """A scop with one of its statements changed."""
    changed = (replace(s, **changes) if s.name == name else s for s in of.statements)
    return replace(of, statements=tuple(changed))


def test_a_row_that_is_left_out_is_found(joined):
    stated, storages, seen, inside, rows = joined
    update = seen.statements[1]
    fewer = update.domain.lower_bound_val(SET, rows.where[update.name][-1], isl.Val(1))
    wrong = _other(seen, update.name, domain=fewer)
    with pytest.raises(IllegalSchedule, match="does not go through all of its rows as one"):
        check_joined_rows("k", stated, storages, wrong, inside, rows)


def test_rows_of_one_text_for_those_of_all_are_found(joined):
    """Only t of the b t rows, in a loop that is called the rows of all."""
    stated, storages, seen, inside, rows = joined
    update = stated.statements[1]
    wrong = _other(seen, update.name, domain=update.domain)
    with pytest.raises(IllegalSchedule, match="does not go through all of its rows as one"):
        check_joined_rows("k", stated, storages, wrong, inside, rows)


def test_another_access_is_found(joined):
    stated, storages, seen, inside, rows = joined
    end = seen.statements[-1]
    wrong = _other(seen, end.name, value=Const(np.float32(0), np.dtype("f4")))
    with pytest.raises(IllegalSchedule, match="computes something else"):
        check_joined_rows("k", stated, storages, wrong, inside, rows)


def test_memory_of_another_shape_is_found(joined):
    stated, storages, seen, inside, rows = joined
    wrong = {**inside, "x": replace(inside["x"], shape=(1, *storages["x"].shape[1:]))}
    with pytest.raises(IllegalSchedule, match="x lies elsewhere with its rows as one"):
        check_joined_rows("k", stated, storages, seen, wrong, rows)


def test_an_array_of_another_shape_is_found(joined):
    stated, storages, seen, inside, rows = joined
    arrays = {**seen.arrays, "x": replace(seen.arrays["x"], shape=(1, 5, 64))}
    with pytest.raises(IllegalSchedule, match="x has another shape than its rows as one"):
        check_joined_rows("k", stated, storages, replace(seen, arrays=arrays), inside, rows)


def test_extents_that_no_array_has_are_found(joined):
    stated, storages, seen, inside, rows = joined
    wrong = replace(rows, extents=(*rows.extents[:-1], rows.extents[0]))
    with pytest.raises(IllegalSchedule, match="does not go through all of them"):
        check_joined_rows("k", stated, storages, seen, inside, wrong)


@pytest.mark.parametrize(
    ("order", "gap", "why"),
    [
        ((1, 0, 2), 0, "x is not contiguous along them"),
        ((0, 2, 1), 0, "x is not contiguous along them"),
        ((2, 0, 1), 8, "x has gaps between them"),
    ],
)
def test_rows_that_lie_apart_are_no_single_loop(order, gap, why, joined):
    stated, storages, seen, inside, rows = joined
    apart = {**storages, "x": permuted(stated.arrays["x"], order, gap=gap)}
    with pytest.raises(IllegalSchedule, match=f"its rows are no single loop: {why}"):
        check_joined_rows("k", stated, apart, seen, inside, rows)


@pytest.mark.parametrize(
    ("index", "why"),
    [
        ("[b0, i, j] -> x[b0, i + 1, j]", "an access or a value moves with them"),
        ("[b0, i, j] -> x[i, b0, j]", "an access or a value moves with them"),
        ("[b0, i, j] -> x[0, i, j]", "an access or a value moves with them"),
    ],
)
def test_rows_that_are_read_in_another_way_are_no_single_loop(index, why, joined):
    """What the end adds to each row, from elsewhere than the same row."""
    stated, storages, seen, inside, rows = joined
    end = stated.statements[-1]
    function = isl.PwMultiAff(f"{{ {end.name}{index} }}")
    load = Load("x", function, np.dtype("f4"))
    other = _other(stated, end.name, value=load)
    with pytest.raises(IllegalSchedule, match=f"its rows are no single loop: .*{why}"):
        check_joined_rows("k", other, storages, seen, inside, rows)
