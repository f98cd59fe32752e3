"""Operators of bytes of com.microsoft: the standard's arithmetic exactly, ONNX Runtime's nearly.

ONNX Runtime multiplies by quotients of scales, so that what lies between two bytes may be a step
apart; the onnx package's reference computes what the operators are defined as.
"""

import numpy as np
import pytest

from polyc.errors import ShapeError
from tests.graph.contrib import by_standard, model_of
from tests.sampling import thorough
from tests.staged import compile_in, run_ort

RNG = np.random.default_rng(31)
PAIR = (
    "a = DequantizeLinear(x0, x1, x2) b = DequantizeLinear(x3, x4, x5) c = {}(a, b) "
    "y = QuantizeLinear(c, x6, x7)"
)
ALONE = "a = DequantizeLinear(x0, x1, x2) b = {}(a) y = QuantizeLinear(b, x3, x4)"
BYTES = [np.uint8, thorough(np.int8)]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def draw(dtype, *shape):
    ends = np.iinfo(dtype)
    return RNG.integers(ends.min, ends.max + 1, shape).astype(dtype)


def scale(value):
    return np.float32(value)


def zero(dtype, offset=7):
    """A zero point near the middle of the range."""
    ends = np.iinfo(dtype)
    return np.array((ends.min + ends.max + 1) // 2 + offset, dtype)


SUMMED = ("Sigmoid", "Softmax", "AveragePool", "ReduceMean")
"""Whose floats depend on the order of a sum, or on the approximation of a function."""

FEW = 0.02
"""The share of bytes that may then be on the other side of a half."""


def check(compiled, op, inputs, text, in_ort=True, **attributes):
    """Every byte as the standard's, and at most a step from ONNX Runtime's."""
    source = model_of(op, inputs, ["y"], **attributes)
    feeds = {f"x{k}": np.asarray(x) for k, x in enumerate(inputs) if x is not None}
    got = compiled(source).run(feeds)["y"]
    want = by_standard(text, feeds)
    assert got.dtype == want.dtype
    if want.dtype.kind == "f":
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    elif op.endswith(SUMMED):
        far = np.abs(got.astype(int) - want)
        assert far.max(initial=0) <= 1
        assert np.count_nonzero(far) <= max(1, FEW * far.size)
    else:
        np.testing.assert_array_equal(got, want)
    if in_ort:
        (theirs,) = run_ort(source, feeds)
        assert theirs.dtype == got.dtype
        far = np.abs(got.astype(np.float64) - theirs.astype(np.float64))
        assert far.max(initial=0) <= (1e-4 if got.dtype.kind == "f" else 1)


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("op", ["Add", thorough("Mul")])
def test_two_with_scales_of_their_own(compiled, op, dtype):
    left = [draw(dtype, 3, 5, 7), scale(0.0213), zero(dtype)]
    right = [draw(dtype, 5, 1), scale(0.0317), zero(dtype, -9)]
    inputs = [*left, *right, scale(0.0371), zero(dtype, 2)]
    check(compiled, f"QLinear{op}", inputs, PAIR.format(op))


def test_scales_that_are_lists_and_zero_points_that_are_absent(compiled):
    inputs = [draw(np.int8, 3, 7), [0.0213], None, draw(np.int8, 7), [0.0317], None, [0.04], None]
    inputs = [np.float32(x) if isinstance(x, list) else x for x in inputs]
    text = (
        "n = Constant<value_ints: ints = []>() s = Reshape(x1, n) t = Reshape(x4, n) "
        "u = Reshape(x6, n) z = Constant<value: tensor = int8 {0}>() a = DequantizeLinear(x0, s) "
        "b = DequantizeLinear(x3, t) c = Add(a, b) y = QuantizeLinear(c, u, z)"
    )
    check(compiled, "QLinearAdd", inputs, text, in_ort=False)


@pytest.mark.parametrize("dtype", BYTES)
def test_activations(compiled, dtype):
    least = np.array(np.iinfo(dtype).min, dtype)
    x = [draw(dtype, 3, 5, 7), scale(0.0513), zero(dtype)]
    check(compiled, "QLinearSigmoid", [*x, scale(1 / 256), least], ALONE.format("Sigmoid"))
    text = ALONE.format("LeakyRelu <alpha = 0.2>")
    check(compiled, "QLinearLeakyRelu", [*x, scale(0.0413), zero(dtype)], text, alpha=0.2)


@pytest.mark.parametrize("dtype", BYTES)
def test_softmax_before_and_after_opset_13(compiled, dtype):
    least = np.array(np.iinfo(dtype).min, dtype)
    inputs = [draw(dtype, 3, 5, 7), scale(0.0513), zero(dtype), scale(1 / 256), least]
    text = ALONE.format("Softmax <axis = 1>")
    check(compiled, "QLinearSoftmax", inputs, text, opset=13, axis=1)
    flat = (
        "a = DequantizeLinear(x0, x1, x2) f = Flatten <axis = 1>(a) b = Softmax <axis = 1>(f) "
        "n = Shape(x0) c = Reshape(b, n) y = QuantizeLinear(c, x3, x4)"
    )
    check(compiled, "QLinearSoftmax", inputs, flat, opset=12, axis=1)


@pytest.mark.parametrize("dtype", BYTES)
def test_pools(compiled, dtype):
    inputs = [draw(dtype, 2, 5, 9, 8), scale(0.0513), zero(dtype), scale(0.0213), zero(dtype, -3)]
    text = ALONE.format(
        "AveragePool <kernel_shape = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]>"
    )
    window = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    check(compiled, "QLinearAveragePool", inputs, text, **window)
    check(compiled, "QLinearGlobalAveragePool", inputs, ALONE.format("GlobalAveragePool"))
    last = (
        "a = DequantizeLinear(x0, x1, x2) f = Transpose <perm = [0, 3, 1, 2]>(a) "
        "b = GlobalAveragePool(f) c = Transpose <perm = [0, 2, 3, 1]>(b) "
        "y = QuantizeLinear(c, x3, x4)"
    )
    check(compiled, "QLinearGlobalAveragePool", inputs, last, channels_last=1)
    turned = (
        "a = Transpose <perm = [0, 3, 1, 2]>(x0) b = MaxPool <kernel_shape = [3, 3], "
        "strides = [2, 2], pads = [1, 1, 1, 1]>(a) y = Transpose <perm = [0, 2, 3, 1]>(b)"
    )
    check(compiled, "NhwcMaxPool", inputs[:1], turned, **window)


@pytest.mark.parametrize("dtype", BYTES)
def test_parts_with_scales_of_their_own(compiled, dtype):
    parts = [draw(dtype, 2, 5), scale(0.04), zero(dtype, 3), draw(dtype, 2, 0), scale(0.05),
             zero(dtype), draw(dtype, 2, 3), scale(0.05), zero(dtype)]  # fmt: skip
    text = (
        "a = DequantizeLinear(x2, x3, x4) b = DequantizeLinear(x5, x6, x7) "
        "c = DequantizeLinear(x8, x9, x10) d = Concat <axis = 1>(a, b, c) "
        "y = QuantizeLinear(d, x0, x1)"
    )
    check(compiled, "QLinearConcat", [scale(0.05), zero(dtype), *parts], text, axis=1)
    choice = RNG.integers(0, 2, (4, 5)).astype(bool)
    sides = [draw(dtype, 4, 5), scale(0.05), zero(dtype), draw(dtype, 5), scale(0.02), zero(dtype)]
    text = (
        "a = DequantizeLinear(x1, x2, x3) b = DequantizeLinear(x4, x5, x6) c = Where(x0, a, b) "
        "y = QuantizeLinear(c, x7, x8)"
    )
    check(compiled, "QLinearWhere", [choice, *sides, scale(0.061), zero(dtype, 1)], text)


def test_mean(compiled):
    """ONNX Runtime has the operator, and no kernel of it."""
    inputs = [draw(np.uint8, 2, 5, 6, 7), scale(0.05), zero(np.uint8), scale(0.02), zero(np.uint8)]
    text = (
        "a = DequantizeLinear(x0, x1, x2) n = Constant <value_ints = [2, 3]>() "
        "b = ReduceMean <keepdims = 0>(a, n) y = QuantizeLinear(b, x3, x4)"
    )
    check(compiled, "QLinearReduceMean", inputs, text, in_ort=False, axes=[2, 3], keepdims=0)


@pytest.mark.parametrize("result", ["bytes", thorough("floats")])
@pytest.mark.parametrize("columns", [True, thorough(False)])
@pytest.mark.parametrize("turned", [1, thorough(0)])
def test_gemm(compiled, result, columns, turned):
    weights = RNG.integers(-60, 60, (11, 20) if turned else (20, 11)).astype(np.int8)
    step = RNG.uniform(0.01, 0.02, 11).astype(np.float32) if columns else scale(0.013)
    middle = np.zeros(np.shape(step), np.int8)
    bias = RNG.integers(-9999, 9999, 11).astype(np.int32)
    inputs = [draw(np.uint8, 9, 20), scale(0.0213), zero(np.uint8), weights, step, middle, bias]
    inputs += [scale(0.213), zero(np.uint8)] if result == "bytes" else []
    axis, last = (f"<axis = {k}>" if columns else "" for k in (1 - turned, 0))
    text = (
        f"a = DequantizeLinear(x0, x1, x2) b = DequantizeLinear {axis}(x3, x4, x5) "
        f"s = Mul(x1, x4) c = DequantizeLinear {last}(x6, s) "
        f"{'y' if result == 'floats' else 'd'} = Gemm <transB = {turned}>(a, b, c)"
    )
    text += " y = QuantizeLinear(d, x7, x8)" if result == "bytes" else ""
    check(compiled, "QGemm", inputs, text, transB=turned)


def test_products_that_become_floats(compiled):
    weights, bias = RNG.integers(-60, 60, (20, 11)).astype(np.int8), np.float32(RNG.random(11))
    step, middle = RNG.uniform(0.01, 0.02, 11).astype(np.float32), np.zeros(11, np.int8)
    inputs = [draw(np.uint8, 2, 9, 20), weights, scale(0.02), step, zero(np.uint8), middle, bias]
    text = (
        "n = MatMulInteger(x0, x1, x4, x5) f = Cast <to = 1>(n) s = Mul(x2, x3) p = Mul(f, s) "
        "y = Add(p, x6)"
    )
    check(compiled, "MatMulIntegerToFloat", inputs, text)
    x = RNG.standard_normal((2, 9, 20)).astype(np.float32)
    text = (
        "q, d, z = DynamicQuantizeLinear(x0) n = MatMulInteger(q, x1, z, x3) "
        "f = Cast <to = 1>(n) s = Mul(d, x2) p = Mul(f, s) y = Add(p, x4)"
    )
    check(compiled, "DynamicQuantizeMatMul", [x, weights, step, middle, bias], text)


@pytest.mark.parametrize("form", ["mask", thorough("past")])
def test_attention(compiled, form):
    weights = RNG.integers(-60, 60, (12, 36)).astype(np.int8)
    bias = RNG.standard_normal(36).astype(np.float32)
    inputs = [draw(np.uint8, 2, 5, 12), weights, bias, scale(0.02), scale(0.013)]
    outputs, attributes = ["y"], {}
    if form == "mask":
        inputs += [np.array([5, 3], np.int32), zero(np.uint8), np.int8(0)]
    else:
        past = RNG.standard_normal((2, 2, 3, 4, 4)).astype(np.float32)
        inputs += [None, zero(np.uint8), np.int8(0), past]
        outputs, attributes = ["y", "present"], {"unidirectional": 1}
    source = model_of("QAttention", inputs, outputs, num_heads=3, **attributes)
    feeds = {f"x{k}": np.asarray(x) for k, x in enumerate(inputs) if x is not None}
    got = compiled(source).run(feeds)
    for name, want in zip(outputs, run_ort(source, feeds), strict=True):
        np.testing.assert_allclose(got[name], want, rtol=1e-4, atol=1e-4)


def test_embedding(compiled):
    words, kinds = RNG.integers(0, 9, (2, 6)), RNG.integers(0, 2, (2, 6))
    mask = np.array([[1] * 6, [1, 1, 1, 0, 0, 0]], np.int32)
    tables = [draw(np.uint8, n, 8) for n in (9, 10, 2)] + [draw(np.uint8, 8) for _ in range(2)]
    scales = [scale(x) for x in (0.02, 0.01, 0.03, 0.01, 0.02)]
    rows = [words.astype(np.int32), kinds.astype(np.int32)]
    inputs = [*rows, *tables, mask, *scales, *[zero(np.uint8)] * 5]
    source = model_of("QEmbedLayerNormalization", inputs, ["y", "m"])
    feeds = {f"x{k}": np.asarray(x) for k, x in enumerate(inputs)}
    got = compiled(source).run(feeds)
    for name, want in zip(("y", "m"), run_ort(source, feeds), strict=True):
        np.testing.assert_allclose(got[name], want, rtol=1e-5, atol=1e-5)


def test_what_does_not_fit_is_refused(compiled):
    x = [draw(np.uint8, 3, 5), scale(0.02), zero(np.uint8)]
    many = np.full(5, 0.02, np.float32)
    with pytest.raises(ShapeError, match="input 6 of QLinearAdd"):
        compiled(model_of("QLinearAdd", [*x, *x, many, zero(np.uint8)], ["y"]))
    with pytest.raises(ShapeError, match="number of inputs"):
        compiled(model_of("QLinearConcat", [*x[1:], *x, x[0]], ["y"], axis=1))
    with pytest.raises(ShapeError, match="element type of A"):
        compiled(model_of("QLinearAdd", [many, *x[1:], *x, *x[1:]], ["y"]))
    with pytest.raises(ShapeError, match="axis"):
        compiled(model_of("QLinearSoftmax", [*x, *x[1:]], ["y"], axis=2, opset=13))
