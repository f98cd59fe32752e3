"""Fourier transforms against NumPy's, and as few products as their length allows."""

import numpy as np
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from polyc import ops
from polyc.errors import ShapeError
from polyc.graph.builder import apply, graph_of
from polyc.graph.onnx.export import export_onnx
from polyc.graph.onnx_import import import_onnx
from tests.graph.onnx_models import model_of

RNG = np.random.default_rng(8)


class Windows(OpRun):
    """The operator of polyc's own, for the reference evaluator."""

    op_domain = "polyc"

    def _run(self, x, size, step):
        return (np.lib.stride_tricks.sliding_window_view(x, size, 1)[:, ::step],)


def array(*shape):
    return RNG.standard_normal(shape)


def as_complex(y):
    return y[..., 0] + 1j * y[..., 1] if y.shape[-1] == 2 else y[..., 0]


def transform(x, length=None, axis=-2, **attributes):
    value = ops.input("x", x.shape, x.dtype)
    count = None if length is None else np.array(length)
    graph = graph_of({"y": apply("DFT", [value, count, np.array(axis)], **attributes)})
    (y,) = ReferenceEvaluator(export_onnx(graph)).run(None, {"x": x})
    assert y.shape == graph.tensors["y"].shape
    return y, graph


@pytest.mark.parametrize("count", [1, 2, 7, 16, 48, 49, 53, 96, 120, 1024])
@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("inverse", [0, 1])
def test_lengths_prime_and_composite(count, parts, inverse):
    x = array(2, count, parts)
    y, _ = transform(x, inverse=inverse)
    function = np.fft.ifft if inverse else np.fft.fft
    np.testing.assert_allclose(as_complex(y), function(as_complex(x)), atol=1e-9)


@pytest.mark.parametrize("axis", [0, 1, 2, -2, -3])
def test_any_axis_and_length(axis):
    x = array(3, 5, 6, 2)
    for length in (None, 4, 9):
        y, _ = transform(x, length, axis)
        place = axis if axis >= 0 else axis + 1
        np.testing.assert_allclose(as_complex(y), np.fft.fft(as_complex(x), length, place))


@pytest.mark.parametrize("count", [6, 7, 100])
def test_one_side_of_a_real_signal_and_back(count):
    x = array(3, count, 1)
    half, _ = transform(x, onesided=1)
    np.testing.assert_allclose(as_complex(half), np.fft.rfft(x[..., 0]), atol=1e-9)
    back, _ = transform(half, count, onesided=1, inverse=1)
    np.testing.assert_allclose(back, x, atol=1e-9)


def test_a_long_transform_is_made_of_short_ones():
    _, graph = transform(array(1, 1024, 1))
    sizes = [t.size for t in graph.tensors.values() if t.is_constant]
    assert max(sizes) <= 1024


@pytest.mark.parametrize("window", [False, True])
@pytest.mark.parametrize("onesided", [0, 1])
def test_windows_of_a_signal(window, onesided):
    x, step, size = array(2, 50, 1).astype(np.float32), 7, 16
    weights = np.hanning(size).astype(np.float32)
    constants = {"step": np.array(step)}
    constants |= {"w": weights} if window else {"size": np.array(size)}
    inputs = ["x", "step", "w"] if window else ["x", "step", "", "size"]
    node = helper.make_node("STFT", inputs, ["y"], onesided=onesided)
    graph = import_onnx(model_of([node], {"x": x}, ["y"], 17, initializer=constants))
    (y,) = ReferenceEvaluator(export_onnx(graph), new_ops=[Windows]).run(None, {"x": x})
    frames = np.stack([x[:, s : s + size, 0] for s in range(0, 50 - size + 1, step)], 1)
    frames = frames * weights if window else frames
    function = np.fft.rfft if onesided else np.fft.fft
    np.testing.assert_allclose(as_complex(y), function(frames), atol=1e-4)


def test_what_has_no_one_side():
    with pytest.raises(ShapeError, match=r"DFT.*one-sided"):
        transform(array(2, 6, 2), onesided=1)
