"""What ends networks for depth, masks and larger images: an image is interpolated, and summed up
to a few channels. Each kernel has to run in SIMD lanes, though channels lie together by then.
"""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyc import Options, compile

CHANNELS = 32
rng = np.random.default_rng(5)


def head(last, mode):
    """Channels are mixed, the image is enlarged, and summed up: to all channels, to few of them."""
    weights = {
        "u": rng.standard_normal((CHANNELS, CHANNELS, 1, 1)) / 6,
        "w": rng.standard_normal((CHANNELS, CHANNELS, 3, 3)) / 17,
        "v": rng.standard_normal((last, CHANNELS, 3, 3)) / 17,
        "scales": np.array([1, 1, 2, 2]),
    }
    nodes = [
        helper.make_node("Conv", ["x", "u"], ["a"], kernel_shape=[1, 1]),
        helper.make_node(
            "Resize", ["a", "", "scales"], ["r"], mode=mode,
            coordinate_transformation_mode="half_pixel",
        ),
        helper.make_node("Conv", ["r", "w"], ["c"], kernel_shape=[3, 3], pads=[1] * 4),
        helper.make_node("Relu", ["c"], ["d"]),
        helper.make_node("Conv", ["d", "v"], ["y"], kernel_shape=[3, 3], pads=[1] * 4),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "head",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, CHANNELS, 24, 40])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, last, 48, 80])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("last", [1, 2])
@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_all_kernels_run_in_lanes(last, mode):
    source = head(last, mode)
    model = compile(source, options=Options(threads=2))
    for kernel in model.explain().kernels:
        assert "vector" in str(kernel.schedule), kernel.name
    x = rng.standard_normal((1, CHANNELS, 24, 40)).astype(np.float32)

    session = onnxruntime.InferenceSession(source.SerializeToString())
    (expected,) = session.run(None, {"x": x})
    np.testing.assert_allclose(model(x), expected, rtol=1e-3, atol=1e-4)


def test_a_norm_of_channels_between_transpositions_writes_in_lanes():
    """As between the convolutions of a network for sound: rows of channels, then of moments."""
    weights = {
        "w": rng.standard_normal((CHANNELS, 1, 10)) / 3,
        "v": rng.standard_normal((CHANNELS, CHANNELS, 3)) / 10,
        "scale": rng.uniform(0.5, 1.5, CHANNELS),
        "bias": rng.standard_normal(CHANNELS),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], strides=[5]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[0, 2, 1]),
        helper.make_node("LayerNormalization", ["b", "scale", "bias"], ["c"]),
        helper.make_node("Transpose", ["c"], ["d"], perm=[0, 2, 1]),
        helper.make_node("Gelu", ["d"], ["e"]),
        helper.make_node("Conv", ["e", "v"], ["y"], strides=[2]),
    ]
    graph = helper.make_graph(
        nodes,
        "sound",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 4000])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, CHANNELS, 399])],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    model = compile(source, options=Options(threads=2))
    assert "pc_erf_f32x" in model.source
    assert "pc_erf_f32(" not in model.source
    x = rng.standard_normal((1, 1, 4000)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(source.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(model(x), expected, rtol=1e-3, atol=1e-4)
