"""TopK of so many elements that some are chosen first, against NumPy's stable sort."""

import ml_dtypes
import numpy as np
import onnx.parser
import pytest

from polyc import compile, ops
from polyc.errors import ShapeError
from polyc.graph.builder import apply_many
from polyc.graph.ir import Graph
from tests.sampling import sampled

SPECIAL = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45]
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
INTEGERS = [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64]


def make(shape, dtype, seed=3):
    """Elements of few values, so that many are equal, and all that is special of a type."""
    rng = np.random.default_rng(seed)
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        values = np.array([info.min, info.min + 1, 0, 1, 7, info.max - 1, info.max], dtype)
        return rng.choice(values, shape)
    x = rng.integers(-9, 9, shape).astype(dtype)
    special = rng.random(shape) < 0.02
    x[special] = rng.choice(np.array(SPECIAL), special.sum()).astype(dtype)
    return x


def expect(x, count, axis, largest):
    """(values, indices) of the first ones; equal ones in their order, a NaN above all numbers."""
    floats = x.dtype.kind not in "iu"
    number = x.astype(np.float64) if floats else x.astype(object)
    nan = np.isnan(number) if floats else np.zeros(x.shape, bool)
    number = np.where(nan, 0, number)
    sign, n = -1 if largest else 1, x.shape[axis]
    rows = [np.moveaxis(part, axis, -1).reshape(-1, n).tolist() for part in (nan, number)]
    keys = [
        [(sign * a, sign * b) for a, b in zip(*row, strict=True)] for row in zip(*rows, strict=True)
    ]
    ranked = np.array([sorted(range(n), key=row.__getitem__) for row in keys])
    order = np.moveaxis(ranked.reshape(np.moveaxis(x, axis, -1).shape), -1, axis)
    chosen = np.take(order, range(count), axis=axis)
    return np.take_along_axis(x, chosen, axis), chosen


def check(model, x, count, axis=-1, largest=True):
    values, indices = model(x)
    wanted, places = expect(x, count, axis, largest)
    np.testing.assert_array_equal(indices, places)
    if x.dtype.kind in "iu":
        np.testing.assert_array_equal(values, wanted)
        return
    values, wanted = values.astype(np.float64), wanted.astype(np.float64)
    np.testing.assert_array_equal(values, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(values)[numbers], np.signbit(wanted)[numbers])


def choose(x, count, axis=-1, largest=True):
    given = ops.input("x", x.shape, x.dtype)
    values, indices = ops.top_k(given, count, axis, largest)
    return compile(Graph.of(v=values, i=indices), target="cpu", threads=1)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    "dtype", sampled([*FLOATS, *INTEGERS], seldom=lambda t: t not in (np.float32, np.uint64))
)
def test_of_every_type(dtype, largest):
    x = make((2, 700), dtype)
    model = choose(x, 40, largest=largest)
    assert any(row.steps for row in model.explain().kernels), "all were ranked"
    for seed in range(3):
        check(model, make((2, 700), dtype, seed), 40, largest=largest)


def test_along_an_axis_in_the_middle():
    x = make((2, 600, 3), np.float32)
    check(choose(x, 3, axis=1), x, 3, axis=1)


@pytest.mark.parametrize("value", [0.0, np.nan, -np.inf])
def test_where_all_are_equal(value):
    """The first ones are chosen, and no more than there is room for."""
    x = np.full((1, 600), value, np.float32)
    check(choose(x, 100), x, 100)


def test_one_compilation_for_every_number_of_elements():
    text = """<ir_version: 9, opset_import: ["" : 18]>
    g (float[2, n] x) => (float[2, k] v, int64[2, k] i) <int64[1] k = {20}> { v, i = TopK(x, k) }"""
    model = compile(onnx.parser.parse_model(text), target="cpu", threads=1)
    assert any(row.steps for row in model.explain().kernels)
    for n in (20, 21, 64, 511, 512, 5000):
        check(model, make((2, n), np.float32, n), 20)
    with pytest.raises(ShapeError):
        model(make((2, 19), np.float32))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", sampled([*FLOATS, *INTEGERS], often=[np.float32, np.uint64]))
def test_all_are_merged(dtype, largest):
    """Blocks of 128, the last of which is not full, and has what comes last of the type."""
    x = make((2, 1111), dtype)
    model = choose(x, 1111, largest=largest)
    assert any(row.steps == "4" for row in model.explain().kernels), "all were ranked"
    for seed in range(3):
        check(model, make((2, 1111), dtype, seed), 1111, largest=largest)


@pytest.mark.parametrize(
    "sizes", sampled([(1024, 1024), (1025, 1000), (2500, 800)], often=[(1025, 1000)])
)
def test_more_than_a_few_are_merged(sizes):
    n, count = sizes
    x = make((1, n, 2), np.float32)
    check(choose(x, count, axis=1), x, count, axis=1)


def test_few_are_ranked_at_once():
    x = make((2, 100), np.float32)
    model = choose(x, 10)
    assert not any(row.steps for row in model.explain().kernels)
    check(model, x, 10)


def test_in_no_order():
    """What is not to be sorted may come in any order, and comes in this."""
    x = make((1, 600), np.float32)
    given = ops.input("x", x.shape, x.dtype)
    count = np.array([9], np.int64)
    values, indices = apply_many("TopK", [given, count], 2, axis=1, sorted=0)
    check(compile(Graph.of(v=values, i=indices), target="cpu", threads=1), x, 9)


@pytest.mark.parametrize("shape", [(0, 600), (2, 0), (2, 600)])
def test_nothing_is_chosen(shape):
    values, indices = choose(np.ones(shape, np.float32), 0)(np.ones(shape, np.float32))
    assert values.shape == indices.shape == (shape[0], 0)
    assert (values.dtype, indices.dtype) == (np.float32, np.int64)
