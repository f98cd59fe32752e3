"""Compiled float16 and bfloat16: each result is what float64 gives, rounded at most twice."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import polyc
from polyc import Graph, ops
from polyc.errors import ShapeError
from polyc.options import options_from_environment

TARGETS = [None, pytest.param("cuda:sm_80", marks=pytest.mark.cuda)]
TYPES = [np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]


@pytest.fixture(params=TARGETS, ids=["cpu", "cuda"])
def compiled(request):
    if request.param is None:
        return lambda **outputs: polyc.compile(Graph.of(**outputs), threads=1)
    options = replace(options_from_environment(), emulated=True)
    return lambda **outputs: polyc.compile(
        Graph.of(**outputs), target=request.param, options=options
    )


def check(model, feeds, expected, ulps=1.0):
    """Each result within some units of the last place of the value that has one rounding."""
    results = model.run(feeds)
    for name, value in expected.items():
        dtype = results[name].dtype
        with np.errstate(over="ignore"):
            rounded = np.asarray(value).astype(dtype)
        finite = np.isfinite(rounded)
        got, wanted = results[name].astype(np.float64), rounded.astype(np.float64)
        np.testing.assert_array_equal(got[~finite], wanted[~finite])
        unit = np.abs(wanted[finite]) * float(ml_dtypes.finfo(dtype).eps)
        assert (np.abs(got[finite] - wanted[finite]) <= ulps * unit + 1e-7).all(), name


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_products_norms_and_chains(compiled, dtype):
    rng = np.random.default_rng(0)
    x, w = (rng.standard_normal(s).astype(dtype) for s in ((13, 37), (37, 21)))
    a, b = ops.input("x", x.shape, dtype), ops.input("w", w.shape, dtype)
    bias = rng.standard_normal(21).astype(dtype)
    model = compiled(
        product=ops.relu(a @ b + bias),
        soft=ops.softmax(a),
        chain=ops.tanh(ops.exp(a) * 0.25) + 1.0,
        total=ops.reduce_sum(a, axes=[0]),
        moved=ops.transpose(a),
    )
    wide, v = x.astype(np.float64), w.astype(np.float64)
    powers = np.exp(wide - wide.max(1, keepdims=True))
    expected = {
        "product": np.maximum(wide @ v + bias.astype(np.float64), 0),
        "soft": powers / powers.sum(1, keepdims=True),
        "chain": np.tanh(np.exp(wide) * 0.25) + 1,
        "total": wide.sum(0, keepdims=True),
    }
    check(model, {"x": x, "w": w}, expected)
    np.testing.assert_array_equal(model.run({"x": x, "w": w})["moved"], x.T)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_convolution(compiled, dtype):
    rng = np.random.default_rng(1)
    x = rng.standard_normal((1, 5, 9, 11)).astype(dtype)
    w = rng.standard_normal((7, 5, 3, 3)).astype(dtype)
    y = ops.conv(ops.input("x", x.shape, dtype), ops.constant(w), pads=(1, 1, 1, 1))
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    exact = np.einsum("ncyxhw,ochw->noyx", windows, w.astype(np.float64))
    check(compiled(y=y), {"x": x}, {"y": exact}, ulps=4)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_conversions_round_once(compiled, dtype):
    """Doubles beside the middle of two narrow numbers, which float32 does not tell from it."""
    below = np.array([1, 1.5, 300, 1e-3, 2**-20, 6e-8, 4e4], dtype)
    above = np.nextafter(below, np.asarray(np.inf, dtype))
    middle = (below.astype(np.float64) + above.astype(np.float64)) / 2
    even = np.where(below.view(np.uint16) % 2 == 0, below, above)
    x = np.concatenate([middle * (1 - 2.0**-40), middle, middle * (1 + 2.0**-40)])
    x, wanted = np.concatenate([x, -x]), np.concatenate([below, even, above])
    a = ops.input("x", x.shape, "float64")
    got = compiled(y=ops.cast(a, dtype)).run({"x": x})["y"]
    np.testing.assert_array_equal(got, np.concatenate([wanted, -wanted]))


def test_a_float16_overflows_where_it_is_stored(compiled):
    x = np.array([200.0, 300.0, -300.0], np.float16)
    a = ops.input("x", x.shape, "float16")
    results = compiled(square=a * a, root=ops.sqrt(a * a)).run({"x": x})
    np.testing.assert_array_equal(results["square"], np.array([40000, np.inf, np.inf], "f2"))


def test_a_saved_model_knows_its_types(tmp_path):
    x = np.arange(7).astype(ml_dtypes.bfloat16)
    graph = Graph.of(y=ops.input("x", x.shape, x.dtype) + 1.0)
    polyc.compile(graph, threads=1).save(tmp_path / "model")
    loaded = polyc.load(tmp_path / "model")
    assert loaded.run({"x": x})["y"].dtype == x.dtype
    with pytest.raises(ShapeError, match=r"astype\(ml_dtypes.bfloat16\)"):
        loaded.run({"x": x.astype(np.float32)})


@pytest.mark.cuda
def test_arrays_of_other_libraries():
    """bfloat16 by DLPack, which NumPy's own has not: from the device, and on the host."""
    options = replace(options_from_environment(), emulated=True)
    x = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    graph = Graph.of(y=ops.input("x", x.shape, x.dtype) * 2.0)
    there = polyc.compile(graph, target="cuda:sm_80", options=options)
    y = there(there.to_device(x))

    class Foreign:
        """An array of another library, which NumPy cannot make one of its own."""

        def __array__(self, *_, **__):
            raise TypeError("no such scalar type")

        def __dlpack__(self, **asked):
            return y.__dlpack__(**asked)

        def __dlpack_device__(self):
            return y.__dlpack_device__()

    expected = (x * 4).astype(x.dtype)
    np.testing.assert_array_equal(there(Foreign()).numpy(), expected)
    np.testing.assert_array_equal(polyc.compile(graph, threads=1)(Foreign()), expected)
    assert y.__cuda_array_interface__["typestr"] == "<V2"
