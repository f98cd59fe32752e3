"""Networks whose batch, height and width are open: compiled once, and right at any size."""

import numpy as np
import onnxruntime
import pytest

import polyc
from polyc import Graph, ops
from polyc.errors import ShapeError
from polyc.options import Options
from polyc.pipeline import run_pipeline
from polyc.run.cpu_model import CpuModel
from polyc.target.machine import Target
from polyc.trace import Trace
from polyc.types.ranges import SizeRange
from tests.e2e.compare import find_difference
from tests.e2e.shipped import NETWORKS, Writer
from tests.sampling import sampled
from tests.staged import assert_same, model_of, run_ort

RNG = np.random.default_rng(3)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Compile for a small machine, from nothing, each model once."""
    options = Options(cache_dir=tmp_path_factory.mktemp("cache"), threads=1)

    def compile_here(model, **more):
        return polyc.compile(model, target="baseline", options=options, **more)

    return compile_here


def check(model, network, sizes):
    """Compare a call with ONNX Runtime's."""
    session = onnxruntime.InferenceSession(
        network.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    known = dict(zip("nhw", sizes, strict=True))
    feeds = {
        spec.name: RNG.standard_normal([d if isinstance(d, int) else known[d] for d in spec.shape])
        for spec in model.inputs
    }
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    results = model.run(feeds)
    for spec, want in zip(model.outputs, session.run(None, feeds), strict=True):
        different = find_difference(results[spec.name], want, rtol=1e-4, atol=1e-4)
        assert different is None, f"{spec.name} at {sizes}: {different}"


LONG = {"pyramid", "hourglass", "separable", "pools", "scales", "upscaled", "unpadded"}
LONG |= {"computed_before", "relative", "normalised", "fitted", "attention", "residual"}
LONG |= {"windows", "reader", "dilated", "sized", "same_as_traced"}
LONG |= {"detector", "framed", "same_padding", "shapes_of_exporters"}
"""Those whose mechanisms the others have as well, and which take long to compile."""


@pytest.mark.parametrize(
    "name",
    sampled(NETWORKS, seldom=LONG),
)
def test_compiled_once_and_right(compiled, name, tmp_path):
    network, calls = NETWORKS[name]()
    model = compiled(network)
    assert type(model) is CpuModel
    for sizes in calls:
        check(model, network, sizes)
    model.save(tmp_path / "saved")
    model.export(tmp_path / "exported")
    again = polyc.load(tmp_path / "saved")
    assert again.outputs == model.outputs
    check(again, network, calls[-1])


@pytest.mark.thorough
def test_tiles_of_images_without_their_borders_are_counted():
    """floor((h - 5)/2)*floor((w - 5)/2)*n rows, nine at a time: the rest begins at no row before
    the first."""
    b = Writer()
    y = b.op("Relu", b.op("Conv", "x", b.weight(16, 3, 3, 3), strides=[2, 2]))
    network = b.model(b.op("Conv", y, b.weight(48, 16, 3, 3)))
    small = tuple(SizeRange(name, hint=112) for name in "hw")  # rows of large ones are loops
    compiled = run_pipeline(network, Target.named("avx512"), Options(sizes=small), Trace())
    assert any("split t 9" in kernel.schedule for kernel in compiled.rows)


def test_what_an_exporter_took_for_a_number_is_needed_in_each_call(compiled):
    """Traced at 7 x 9, with 63 pixels written into the model: any image of as many will do."""
    b = Writer()
    y = b.op("Reshape", b.conv("x", 3, 8, 3), b.ints(-1, 8, 63))
    network = b.model(b.op("MatMul", y, b.weight(63, 5)))
    model = compiled(network)
    assert type(model) is CpuModel
    for sizes in ((2, 7, 9), (1, 3, 21)):
        check(model, network, sizes)
    with pytest.raises(ShapeError, match="a call has"):
        model(np.ones((1, 3, 8, 9), np.float32))


def test_a_number_beside_one_that_follows_is_needed_in_each_call(compiled):
    """Traced at a width of 6, whose rows are joined with the batch, which other parts know."""
    b = Writer()
    n, *_ = b.extents("x")
    y = b.op("Reshape", b.op("Transpose", "x", perm=[3, 0, 1, 2]), b.ints(6, -1, 12))
    to = b.op("Concat", n, b.ints(12, 2), axis=0)
    other = b.op("Expand", b.weight(12, 2), to)
    y = b.op("MatMul", b.op("Transpose", y, perm=[1, 0, 2]), other)
    network = b.model(y, inputs=[("x", ("n", 4, 3, "w"))])
    model = compiled(network)
    assert type(model) is CpuModel
    for sizes in ((1, 0, 6), (5, 0, 6)):
        check(model, network, sizes)
    with pytest.raises(ShapeError, match="a call has"):
        model(np.ones((2, 4, 3, 5), np.float32))


def test_a_table_is_as_long_as_a_call_may_be(compiled):
    """The first positions of a table of 512: longer calls have no element to add."""
    b = Writer()
    table = b.weight(1, 512, 8)
    length = b.op(
        "Unsqueeze", b.op("Gather", b.op("Shape", "x"), b.constant(np.int64(1))), b.ints(0)
    )
    y = b.op("Add", "x", b.op("Slice", table, b.ints(0), length, b.ints(1)))
    network = b.model(y, inputs=[("x", ("n", "h", 8))])
    model = compiled(network)
    assert type(model) is CpuModel
    for sizes in ((1, 1, 0), (3, 512, 0)):
        check(model, network, sizes)
    with pytest.raises(ShapeError, match="a call has h = 513"):
        model(np.ones((1, 513, 8), np.float32))


def test_first_calls_find_memory_that_is_theirs_already(compiled):
    """At the sizes that kernels are chosen for, and at others up to four times as large."""
    b = Writer()
    y = b.conv(b.conv("x", 3, 8, 3), 8, 4, 3)
    model = compiled(b.model(y), hint={"n": 1, "h": 32, "w": 32})
    (arena,) = model._arenas.free
    for n, h, w in ((1, 32, 32), (1, 5, 7), (2, 32, 60)):
        model(np.ones((n, 3, h, w), np.float32))
        assert model._arenas.free[0] is arena


def test_what_is_no_name_is_any_size(compiled):
    """As old exporters write it: each "?", "-1", "None" and empty name is a size of its own."""
    b = Writer()
    shapes = (("x", ("?", 3, "?", "-1")), ("z", ("None", 2, "", "None")))
    model = compiled(b.model(b.conv("x", 3, 4, 3, 2), b.op("Exp", "z"), inputs=shapes))
    assert type(model) is CpuModel
    assert [spec.shape for spec in model.inputs] == [
        ("x_d0", 3, "x_d2", "x_d3"), ("z_d0", 2, "z_d2", "z_d3"),
    ]  # fmt: skip
    z = RNG.standard_normal((1, 2, 5, 4)).astype(np.float32)
    results = model(np.ones((2, 3, 8, 5), np.float32), z)
    assert results[0].shape == (2, 4, 4, 3)
    np.testing.assert_allclose(results[1], np.exp(z), rtol=1e-5)


def test_outputs_say_what_their_sizes_are(compiled):
    b = Writer()
    model = compiled(b.model(b.conv("x", 3, 8, 3, 2)))
    assert model.outputs[0].shape == ("n", 8, "floor((h + 1)/2)", "floor((w + 1)/2)")


def test_sizes_that_a_network_cannot_have_are_refused(compiled):
    b = Writer()
    halved = b.pool(b.conv("x", 3, 4, 1), 2, 2)
    doubled = b.op("Resize", halved, b.floats(), b.floats(1, 1, 2, 2), mode="nearest")
    model = compiled(b.model(b.op("Concat", doubled, "x", axis=1)))
    with pytest.raises(ShapeError, match="give it other sizes"):
        model(np.ones((1, 3, 7, 8), np.float32))
    b = Writer()
    model = compiled(b.model(b.op("Conv", "x", b.weight(8, 3, 3, 3))))
    with pytest.raises(ShapeError, match="h - 3 is not negative, but a call has h = 2"):
        model(np.ones((1, 3, 2, 8), np.float32))


def test_a_frame_of_any_size(compiled):
    """Relative positions are padded by as much as a text is longer than the window: n - 5."""
    source = model_of("""g (float[n, 9] t, float[k] x) => (float[p, 9] y, float[q] z) {
        s = Shape(t) first = Constant<value_ints = [0]>() n = Gather(s, first)
        five = Constant<value_ints = [5]>() more = Sub(n, five)
        pads = Concat<axis = 0>(more, first, more, first) v = Constant<value_float = 2.0>()
        a = Exp(t) y = Pad(a, pads, v)
        both = Concat<axis = 0>(n, more) u = Neg(x) z = Pad(u, both) }""")
    model = compiled(source)
    for n, k in ((7, 3), (5, 1), (4, 6), (40, 2)):
        feeds = {"t": RNG.random((n, 9)), "x": RNG.random(k)}
        feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
        for got, want in zip(model.run(feeds).values(), run_ort(source, feeds), strict=True):
            assert_same(got, want)


@pytest.mark.parametrize("name", ["max", "sum"])
def test_a_loop_that_runs_once_at_the_hint_may_run_more_often(compiled, name):
    x = ops.max_pool(ops.input("x", ("n", 32, "t")), (8,), strides=(8,))
    y = getattr(ops, f"reduce_{name}")(x, keepdims=False)
    model = compiled(Graph.of(y=y), hint={"n": 1, "t": 8})
    for n, t in ((1, 8), (2, 41)):
        value = RNG.integers(-9, 9, (n, 32, t)).astype(np.float32)
        pooled = value[:, :, : t // 8 * 8].reshape(n, 32, -1, 8).max(3)
        np.testing.assert_array_equal(model(value), getattr(pooled, name)())


def test_a_report_counts_what_there_is_at_the_hint(tmp_path):
    """Of a batch of 1 as well, though its loop is planned for two."""
    y = ops.matmul(ops.input("x", ("n", "t", 64)), np.ones((64, 48), "f4"))
    options = Options(cache_dir=tmp_path, threads=1)
    model = polyc.compile(Graph.of(y=y), options=options, hint={"n": 1, "t": 50})
    (row,) = model.explain().kernels
    assert row.flops == 2 * 50 * 64 * 48
    assert row.bytes == 4 * (50 * 64 + 64 * 48 + 50 * 48)


@pytest.mark.parametrize("name", ["floor(h/2)", "h*h"])
def test_a_dimension_that_follows_from_another_is_checked(compiled, name):
    x, y = ops.input("x", (1, 1, "h")), ops.input("y", (1, 1, name))
    pooled = ops.max_pool(x, (2,), strides=(2,))
    model = compiled(Graph.of(z=pooled + ops.reduce_max(y, [2]), e=ops.exp(y)))
    h = 5
    extent = {"floor(h/2)": h // 2, "h*h": h * h}[name]
    value, other = (RNG.standard_normal((1, 1, k)).astype(np.float32) for k in (h, extent))
    wanted = value[:, :, : h // 2 * 2].reshape(1, 1, -1, 2).max(3) + other.max()
    np.testing.assert_array_equal(model.run({"x": value, "y": other})["z"], wanted)
    with pytest.raises(ShapeError, match="where h = 5"):
        model.run({"x": value, "y": np.ones((1, 1, extent + 1), np.float32)})


@pytest.mark.parametrize("name", ["floor(h/2)", "min(h, 8)", "h*h"])
def test_a_name_in_a_file_that_reads_like_a_size_that_follows_is_another_size(compiled, name):
    source = (
        f'g (float[1, 1, h] x, float[1, 1, "{name}"] y) => (float[1, 1, k] z) '
        "{ p = MaxPool<kernel_shape = [2], strides = [2]>(x) z = Add(p, y) }"
    )
    proto = model_of(source.replace(f'"{name}"', "other"))
    proto.graph.input[1].type.tensor_type.shape.dim[2].dim_param = name
    model = compiled(proto, dims={name: (2, 90)})
    value, other = (RNG.standard_normal((1, 1, k)).astype(np.float32) for k in (9, 4))
    wanted = value[:, :, :8].reshape(1, 1, 4, 2).max(3) + other
    np.testing.assert_array_equal(model(value, other), wanted)
    with pytest.raises(ShapeError):
        model(value, np.ones((1, 1, 6), np.float32))


@pytest.mark.parametrize("tiles", ["split i 12 | split i' 3", "split i 8 | split i' 2"])
def test_tiles_within_a_tile_that_ends_early_are_in_registers(compiled, tiles):
    """Twelve rows at a time, three of them in registers: of 20 rows eight are left, two times three
    and two. A loop over rows that no register is known for would take four times as long."""
    chosen = (
        f"order i j | {tiles} | split j 16 | order i j i' | vector j' | unroll i'' | sink j' i'' "
        "| parallel i j | keep y_acc in registers at i'"
    )
    product = ops.input("a", ("n", 40)) @ ops.input("b", (40, 32))
    model = compiled(Graph.of(y=product), hint={"n": 128}, schedule={"MatMul_0_out": chosen})
    assert "y_acc_local_0_0" in model.source
    assert "y_acc_local[" not in model.source
    b = RNG.standard_normal((40, 32)).astype(np.float32)
    for rows in (1, 2, 3, 11, 12, 20, 23, 24, 35, 47):
        a = RNG.standard_normal((rows, 40)).astype(np.float32)
        np.testing.assert_allclose(model(a, b), a @ b, rtol=1e-4, atol=1e-4)


def test_a_transposed_convolution_ends_as_one_kernel_in_front_of_a_frame(compiled):
    """The frame begins at h, behind 2*floor(h/2): sizes that two statements read."""
    text = """g (float[n, 4, h, w] x, float[4, 6, 2, 2] f, float[6] b) => (float[n, c, h, w] y) {
        small = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(x)
        up = ConvTranspose<strides = [2, 2]>(small, f, b)
        whole = Shape<start = 2>(x) had = Shape<start = 2>(up) lacks = Sub(whole, had)
        none = Constant<value_ints = [0, 0, 0, 0, 0, 0]>() ends = Concat<axis = 0>(none, lacks)
        large = Pad(up, ends)
        joined = Concat<axis = 1>(x, large)
        y = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(joined) }"""
    model = compiled(model_of(text), dims={"h": (2, 300), "w": (2, 300)})
    kernels = [k for k in model.explain().kernels if not k.name.endswith("_packed")]
    (one,) = [k for k in kernels if any("ConvTranspose" in node for node in k.nodes)]
    assert any("Concat" in node for node in one.nodes)
    assert "keep up_acc in registers" in one.schedule
    for n, h, w in ((1, 2, 2), (2, 7, 5), (1, 16, 33)):
        feeds = {
            "x": RNG.standard_normal((n, 4, h, w)).astype(np.float32),
            "f": RNG.standard_normal((4, 6, 2, 2)).astype(np.float32),
            "b": RNG.standard_normal(6).astype(np.float32),
        }
        assert_same(model.run(feeds)["y"], run_ort(model_of(text), feeds)[0], atol=1e-5)


def test_an_image_fitted_to_another_is_transposed_between_rows_and_columns(compiled):
    """Rows are read along columns, from where data says: no lane looks for its own element."""
    text = """g (float[n, 5, h, w] x, float[n, 5, a, b] like) => (float[n, 5, a, b] y) {
        size = Shape(like)
        y = Resize<mode = "linear", coordinate_transformation_mode = "half_pixel">(x, , , size) }"""
    hint = {"n": 1, "h": 48, "w": 64, "a": 192, "b": 256}
    model = compiled(model_of(text), hint=hint)
    last = model.explain().kernels[-1].schedule
    assert "vector i2'" in last
    assert "unroll i3''" in last
    for small, large in (((3, 5), (9, 4)), ((48, 64), (192, 256)), ((1, 1), (3, 2))):
        x = RNG.standard_normal((2, 5, *small)).astype(np.float32)
        feeds = {"x": x, "like": np.zeros((2, 5, *large), np.float32)}
        assert_same(model.run(feeds)["y"], run_ort(model_of(text), feeds)[0], atol=1e-5)


def test_a_table_of_relative_positions_is_cut_to_the_length_of_a_call(compiled):
    """table[20 - n : 19 + n] has 2*n - 1 rows, as Reshape asks: but not where n is above 20."""
    text = """g (float[b, n, 6] x, float[39, 6] table) => (float[b, n, k] y) {
        one = Constant<value_ints = [1]>() twenty = Constant<value_ints = [20]>()
        first = Constant<value_ints = [0]>() six = Constant<value_ints = [6]>()
        n = Shape<start = 1, end = 2>(x)
        begin = Sub(twenty, n) before = Sub(twenty, one) end = Add(before, n)
        rows = Slice(table, begin, end, first)
        twice = Add(n, n) count = Sub(twice, one)
        shape = Concat<axis = 0>(one, count, six)
        near = Reshape(rows, shape)
        turned = Transpose<perm = [0, 2, 1]>(near)
        y = MatMul(x, turned) }"""
    model = compiled(model_of(text))
    assert type(model) is CpuModel
    for b, n in ((1, 1), (2, 7), (1, 20)):
        feeds = {
            "x": RNG.standard_normal((b, n, 6)).astype(np.float32),
            "table": RNG.standard_normal((39, 6)).astype(np.float32),
        }
        assert_same(model.run(feeds)["y"], run_ort(model_of(text), feeds)[0])
    with pytest.raises(ShapeError, match="not negative"):
        model.run({"x": np.ones((1, 21, 6), np.float32), "table": np.ones((39, 6), np.float32)})
