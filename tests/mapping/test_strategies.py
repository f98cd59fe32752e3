"""Which strategy common forms are mapped by: what has once been chosen badly, and cost much."""

from __future__ import annotations

import numpy as np
import pytest

from polyc import Graph, ops
from polyc.graph.builder import Value
from polyc.options import Options
from polyc.pipeline import Compiled, run_pipeline
from polyc.target.machine import Target
from polyc.trace import Trace
from polyc.types.call_sizes import read_sizes


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


def compile_for_avx512(y: Value, hint: dict[str, int] | None = None) -> Compiled:
    options = Options(sizes=read_sizes(None, hint))
    return run_pipeline(Graph.of(y=y), Target.named("avx512"), options, Trace())


def schedules(y: Value, hint: dict[str, int] | None = None) -> list[str]:
    """The schedule of each kernel of a graph with one output, for AVX-512."""
    return [row.schedule for row in compile_for_avx512(y, hint).rows]


def test_of_a_batch_of_products_the_columns_are_vectors_and_nothing_is_packed():
    a, b = ops.input("a", (96, 64, 64)), ops.input("b", (96, 64, 64))
    (product,) = schedules(ops.matmul(a, b))
    assert product.startswith("order b0 ")
    assert "pack" not in product
    assert "vector j" in product


@pytest.mark.parametrize("axis", [1, 2])
def test_softmax_runs_vectors_along_rows_of_memory(axis: int):
    (kernel,) = schedules(ops.softmax(ops.input("x", (8, 1000, 64)), axis=axis))
    assert "vector i2 |" in kernel
    assert ("unroll" in kernel) == (axis == 1)  # some rows at a time, where they are added up


def test_softmax_with_a_mask_is_one_kernel():
    scores, mask = ops.input("s", (12, 128, 128)), ops.input("m", (1, 1, 128))
    (kernel,) = schedules(ops.softmax(scores + mask, axis=-1))
    assert kernel.startswith("parallel i0 i1 | vector i2")


def test_few_columns_are_sums_along_the_rows():
    (product,) = schedules(ops.matmul(ops.input("x", (2000, 512)), ones(512, 3)))
    assert "vector k'" in product


def test_gathered_rows_are_copied_in_vectors():
    rows = ops.input("i", (512,), "int64")
    (kernel,) = schedules(ops.gather(ops.input("x", (3000, 768)), rows))
    assert "vector i1" in kernel


def test_windows_are_put_together_by_a_copy_and_not_in_pieces():
    """16 windows of 7 x 7 pixels to an image in a frame: its place would be a choice of pieces."""
    x, image = ops.input("x", (2, 784, 8)), ops.input("r", (2, 28, 28, 8))
    windows = ops.matmul(ops.reshape(x, [-1, 49, 8]), ones(8, 8))
    windows = ops.transpose(ops.reshape(windows, [-1, 4, 4, 7, 7, 8]), [0, 1, 3, 2, 4, 5])
    y = ops.transpose(ops.reshape(windows, [-1, 28, 28, 8]) + image, [0, 3, 1, 2])
    graph = Graph.of(y=ops.conv(y, ones(8, 1, 3, 3), pads=(1, 1, 1, 1), group=8))
    compiled = run_pipeline(graph, Target.named("avx512"), Options(), Trace())
    assert max(map(len, compiled.sources.values())) < 40_000


def test_an_input_in_a_frame_lies_as_the_transform_reads_it():
    x, w = ops.input("x", (1, 64, 40, 40)), ones(64, 64, 3, 3)
    frame, transform, *_ = schedules(ops.conv(x, w, pads=(1, 1, 1, 1)))
    assert "vector Conv_0_pad_8.i1'" in frame  # channels
    assert "unroll e1 e0" in transform


def test_an_input_in_a_frame_stays_row_by_row_where_that_suits():
    x, w = ops.input("x", (1, 32, 56, 56)), ones(32, 1, 3, 3)
    (kernel,) = schedules(ops.conv(x, w, pads=(1, 1, 1, 1), group=32))
    frame, depthwise = kernel.split(" order g")
    assert "vector Conv_0_pad_8.i3'" in frame
    assert "vector x" in depthwise


@pytest.mark.parametrize(("size", "kernels"), [(28, 1), (7, 2)])
def test_a_frame_is_filled_tile_by_tile_unless_it_stays_in_the_first_level_cache(size, kernels):
    x, w = ops.input("x", (1, 64, size, size)), ones(64, 1, 5, 5)
    found = schedules(ops.conv(x, w, pads=(2, 2, 2, 2), group=64))
    assert len(found) == kernels
    assert found[-1].startswith("fuse") == (kernels == 1)


def test_a_pool_between_given_layouts_reads_every_second_element():
    """Channels as vectors would be stored lane by lane, for nine elements read."""
    x = ops.input("x", (1, 64, 112, 112))
    *_, pool = schedules(ops.max_pool(x, (3, 3), strides=(2, 2), pads=(1, 1, 1, 1)))
    assert "vector x" in pool


def head(height: int | str, width: int | str, channels: int) -> Value:
    """A convolution whose output is given row by row, behind one that makes channels innermost."""
    y = ops.conv(ops.input("x", (1, 32, height, width)), ones(64, 32, 3, 3), pads=(1, 1, 1, 1))
    return ops.conv(ops.relu(y), ones(channels, 64, 1, 1), ones(channels))


@pytest.mark.parametrize("sizes", [(32, 40), (64, 72), (16, 24)])
def test_results_are_not_stored_lane_by_lane_to_fill_vectors(sizes: tuple[int, int]):
    """Columns fill whole vectors, rows do not; but results lie side by side along rows."""
    *_, last = schedules(head(*sizes, 52))
    assert "vector y" not in last


def test_vectors_are_as_full_as_another_call_may_have_them():
    """What the hint of a height fills tells nothing of other heights."""
    *_, last = schedules(head("height", "width", 52), {"height": 32, "width": 40})
    assert "vector y" not in last


@pytest.mark.parametrize("channels", [37, 53, 85])
@pytest.mark.parametrize("columns", [4, 5, 8])
def test_sums_of_which_squares_are_transposed_stay_in_registers(channels: int, columns: int):
    """At the border as well, where squares have fewer rows than vectors have lanes."""
    schedule = f"order y o x | split o 48 | split x {columns} | vector o' | unroll x' | sink o' x'"
    schedule += " | keep y_acc in registers at x"
    options = Options(schedules=(("Conv_2_out", schedule),))
    graph = Graph.of(y=head(32, 80, channels))
    compiled = run_pipeline(graph, Target.named("avx512"), options, Trace())
    source = compiled.sources[f"{compiled.rows[-1].name}.c"]
    assert "pc_transpose_f32x16" in source
    assert "_acc_local[" not in source


def test_rows_from_where_data_says_are_normalised_as_rows():
    """With rows in lanes each element would be loaded, and its row's number checked, by itself."""
    words, kinds = (ops.input(name, (1, 128), "int64") for name in "wk")
    places = np.arange(128 * 768, dtype=np.float32).reshape(1, 128, 768)
    rows = ops.gather(ones(3000, 768), words) + ops.gather(ones(2, 768), kinds) + places
    rows = ops.layer_normalization(rows, ones(768), ones(768))
    kernel, _ = schedules(rows @ ones(768, 768) + rows)
    assert kernel.startswith("parallel i1 |")


def test_the_largest_of_all_is_found_along_rows_of_memory():
    """Channels lie side by side behind a convolution, and are the first of three here."""
    x, w = ops.input("x", (1, 3, 40, 40)), ones(32, 3, 3, 3)
    *_, largest = schedules(ops.reduce_max(ops.sigmoid(ops.conv(x, w)), axes=(0, 1, 2, 3)))
    assert "vector r1" in largest


def test_a_sum_of_all_keeps_its_order():
    x, w = ops.input("x", (1, 3, 40, 40)), ones(32, 3, 3, 3)
    *_, total = schedules(ops.reduce_sum(ops.sigmoid(ops.conv(x, w)), axes=(0, 1, 2, 3)))
    assert "order" not in total
