"""Models of sizes known only at run time: compiled once, and right for each size of a call."""

import numpy as np
import pytest

import polyc
from polyc import ops
from polyc.errors import ShapeError
from polyc.graph.builder import apply, input_value
from polyc.graph.ir import Graph
from polyc.options import Options
from polyc.run.cpu_model import CpuModel
from tests.sampling import thorough

RNG = np.random.default_rng(7)
W = RNG.standard_normal((40, 50), np.float32)
KERNEL = RNG.standard_normal((16, 16, 3, 3), np.float32) / 12
V = RNG.standard_normal((50, 40), np.float32)


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def pointwise():
    x, b = input_value("x", ("n", 40)), input_value("b", (40,))
    return Graph.of(y=ops.relu(x + b)), lambda x, b: np.maximum(x + b, 0)


def product():
    return Graph.of(y=ops.relu(input_value("x", ("n", 40)) @ W)), lambda x: np.maximum(x @ W, 0)


def rows():
    return Graph.of(y=ops.softmax(input_value("x", ("n", "m")))), softmax


def layers():
    x = input_value("x", ("n", 40))
    y = ops.softmax(ops.relu(x @ W) @ V + x)
    return Graph.of(y=y), lambda x: softmax(np.maximum(x @ W, 0) @ V + x)


def attention():
    q, k, v = (input_value(i, ("b", 4, *shape)) for i, shape in
               (("q", ("n", 24)), ("k", (24, "n")), ("v", ("n", 24))))  # fmt: skip
    return Graph.of(y=ops.softmax(q @ k) @ v), lambda q, k, v: softmax(q @ k) @ v


def heads():
    x = input_value("x", ("b", "n", 24))
    y = ops.transpose(ops.reshape(x, (0, 0, 4, 6)), (0, 2, 1, 3))
    return Graph.of(y=y + 1.0), lambda x: x.reshape(*x.shape[:2], 4, 6).transpose(0, 2, 1, 3) + 1


def means():
    x = input_value("x", ("n", "m", 5))
    return Graph.of(y=ops.reduce_mean(x, (1,))), lambda x: x.mean(1, keepdims=True)


def deviations():
    """Sums of vectors, of known length, for each of an open number of images."""
    x = input_value("x", ("n", 8, 4, 16))
    apart = x - ops.reduce_mean(x, (1, 2, 3))
    y = ops.reduce_mean(apart * apart, (1, 2, 3))
    return Graph.of(y=y), lambda x: x.var((1, 2, 3), keepdims=True)


def flattened():
    x = input_value("x", ("n", 4, 10))
    return Graph.of(y=ops.reshape(x, (-1, 40)) @ W), lambda x: x.reshape(-1, 40) @ W


def images():
    """A convolution by minimal filters, and one of a stride, for any number of images."""
    x, weight = input_value("x", ("n", 16, 14, 14)), KERNEL
    y = ops.relu(ops.conv(x, weight, pads=[1, 1, 1, 1]))
    y = ops.conv(y, weight, strides=[2, 2])
    return Graph.of(y=y), lambda x: correlate(np.maximum(correlate(np.pad(
        x, ((0, 0), (0, 0), (1, 1), (1, 1)))), 0))[:, :, ::2, ::2]  # fmt: skip


def correlate(x):
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    return np.einsum("ncyxrq,ocrq->noyx", windows, KERNEL, optimize=True)


CASES = [pointwise, product, rows, layers, attention, heads, means, deviations, flattened, images]


@pytest.mark.thorough
@pytest.mark.parametrize("target", ["cpu", "baseline"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_one_model_for_all_sizes(case, target, tmp_path):
    graph, reference = case()
    model = polyc.compile(graph, target=target, options=Options(threads=2, cache_dir=tmp_path))
    assert type(model) is CpuModel
    for n, m in ((1, 1), (2, 3), (13, 16), (16, 31), (37, 5), (100, 130)):
        known = {"n": n, "m": m, "b": 3}
        feeds = {
            spec.name: RNG.standard_normal([known.get(d, d) for d in spec.shape]).astype(np.float32)
            for spec in model.inputs
        }
        expected = reference(**{k: v.astype(np.float64) for k, v in feeds.items()})
        result = model(**feeds)
        assert result.shape == expected.shape
        scale = np.abs(expected).max()
        np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5 * scale)
        np.testing.assert_array_equal(model.run(feeds)["y"], result)


@pytest.mark.thorough
def test_proof_arena_and_report_speak_of_all_sizes(tmp_path):
    graph, _ = layers()
    options = Options(threads=1, cache_dir=tmp_path)
    model = polyc.compile(graph, options=options, dims={"n": (1, 512)}, hint={"n": 64})
    assert [str(spec) for spec in model.inputs] == ["x: float32[n, 40]"]
    assert [spec.shape for spec in model.outputs] == [("n", 40)]
    assert "i64 size_n" in model.source
    assert any("none over another" in fact for fact in model.explain().proven)
    with pytest.raises(ShapeError, match="compiled for n 1 to 512, but a call has n = 513"):
        model(np.zeros((513, 40), np.float32))
    out = np.empty((3, 40), np.float32)
    assert model(np.ones((3, 40), np.float32), out=out) is out
    with pytest.raises(ShapeError):
        model(np.ones((4, 40), np.float32), out=out)


def test_a_saved_model_knows_its_sizes(tmp_path):
    graph, reference = product()
    model = polyc.compile(graph, options=Options(threads=1, cache_dir=tmp_path))
    model.save(tmp_path / "saved")
    x = RNG.standard_normal((21, 40), np.float32)
    np.testing.assert_allclose(
        polyc.load(tmp_path / "saved")(x), reference(x), rtol=1e-4, atol=1e-4
    )


def test_long_sums_of_unknown_length_are_summed_whole(tmp_path):
    x = input_value("x", ("n", 64))
    graph = Graph.of(y=ops.reduce_sum(x, (0, 1)))
    options = Options(threads=2, cache_dir=tmp_path)
    model = polyc.compile(graph, options=options, hint={"n": 8192})
    for n in (1, 8192, 10000):
        feed = RNG.standard_normal((n, 64)).astype(np.float32)
        np.testing.assert_allclose(model(feed), [[feed.sum(dtype=np.float64)]], atol=0.05)


@pytest.mark.parametrize(
    ("hint", "lanes"),
    [thorough(4, None), thorough(7, None), (4, 4), thorough(4, 12), thorough(4, 20)],
    ids=str,
)
def test_lanes_without_an_element_add_nothing(tmp_path, hint, lanes):
    """What is summed is 1/2 in such a lane, whose partial sum is stored with the others.

    A tile has fewer lanes than a vector has, or more than whole vectors have.
    """
    x = input_value("x", ("b", "n"))
    graph = Graph.of(y=ops.reduce_mean(ops.sigmoid(x), (1,)))
    asked = f"split r1 {lanes} | vector r1' | keep all at i0"
    schedule = {"ReduceMean_1_out": asked} if lanes else None
    options = Options(threads=1, cache_dir=tmp_path)
    model = polyc.compile(graph, options=options, hint={"n": hint}, schedule=schedule)
    for n in (1, 3, 4, 5, 7, 8, 11, 17, 31, 39):
        feed = RNG.standard_normal((3, n)).astype(np.float32)
        means = (1 / (1 + np.exp(-feed.astype(np.float64)))).mean(1, keepdims=True)
        np.testing.assert_allclose(model(feed), means, rtol=1e-5)


@pytest.mark.parametrize("target", ["cpu", thorough("avx2"), thorough("baseline")])
@pytest.mark.parametrize("most", [thorough(5), 16, 100])
def test_rows_of_at_most_one_tile_are_cut_into_vectors(most, target, tmp_path):
    """No loop over tiles is left: of a row of as many elements as a call brings, not one by one."""
    graph = Graph.of(y=ops.softmax(input_value("x", ("n", "m"))))
    options = Options(threads=1, cache_dir=tmp_path)
    model = polyc.compile(graph, target=target, options=options, dims={"m": (0, most)})
    if target == "cpu":
        assert "pc_exp_normal_f32x" in model.source
        assert "pc_exp_normal_f32(" not in model.source
    for m in (0, 1, 3, 4, 5, 15, 16, 17, 31, 33, 64, 99, 100):
        feed = RNG.standard_normal((3, min(m, most))).astype(np.float32)
        expected = softmax(feed) if feed.size else feed
        np.testing.assert_allclose(model(feed), expected, rtol=1e-5)


def test_rows_that_are_counted_as_one_dimension(tmp_path):
    """A product of sizes in an index is not affine: it is the same memory under another shape."""
    x = input_value("x", ("b", "n", 40))
    graph = Graph.of(y=ops.reshape(x, (-1, 40)) @ W)
    model = polyc.compile(graph, options=Options(threads=1, cache_dir=tmp_path))
    assert type(model) is CpuModel
    feed = RNG.standard_normal((2, 5, 40)).astype(np.float32)
    np.testing.assert_allclose(model(feed), feed.reshape(-1, 40) @ W, rtol=1e-4, atol=1e-4)


def test_values_that_follow_from_sizes(tmp_path):
    """Positions, masks and running sums of a length that a call brings."""
    x = input_value("x", ("n", "m"))
    rows, columns = (apply("Gather", [ops.shape_of(x), np.int64(k)]) for k in (0, 1))
    down, across = (apply("Range", [np.int64(0), n, np.int64(1)]) for n in (rows, columns))
    mask = apply("LessOrEqual", [across, ops.unsqueeze(down, 1)])
    y = ops.where(mask, apply("CumSum", [x, np.int64(0)]), np.float32(0))
    model = polyc.compile(Graph.of(y=y), options=Options(threads=1, cache_dir=tmp_path))
    assert type(model) is CpuModel
    for n, m in ((1, 1), (4, 9), (20, 17)):
        feed = RNG.standard_normal((n, m)).astype(np.float32)
        expected = np.where(np.arange(m) <= np.arange(n)[:, None], feed.cumsum(0), 0)
        np.testing.assert_allclose(model(feed), expected, rtol=1e-5, atol=1e-5)


def test_sizes_whose_temporaries_no_process_can_address(tmp_path):
    """The n^3 elements between two sums overflow an int64 of bytes, or any address."""
    x = input_value("x", ("n",))
    cube = ops.unsqueeze(x, (1, 2)) + ops.unsqueeze(x, (0, 2)) + ops.unsqueeze(x, (0, 1))
    y = apply("CumSum", [ops.softmax(cube), np.int64(0)])
    for axis in range(3):
        y = ops.reduce_sum(y, (axis,))
    model = polyc.compile(Graph.of(y=y), options=Options(threads=1, cache_dir=tmp_path))
    assert type(model) is CpuModel
    cumulated = softmax(np.add.outer(np.add.outer(np.arange(5.0), np.arange(5.0)), np.arange(5.0)))
    expected = cumulated.cumsum(0).sum()
    np.testing.assert_allclose(model(np.arange(5, dtype=np.float32)).item(), expected, rtol=1e-5)
    for n in (100_000, 3_000_000):
        with pytest.raises(ShapeError, match=rf"more memory than .* where n = {n}"):
            model(np.zeros(n, np.float32))
