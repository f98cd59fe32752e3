"""ONNX's backend interface, by the test runner that onnx has for it, and by hand."""

import unittest
import warnings

import numpy as np
import onnx.backend.test
import pytest
from onnx import helper

from polyc import backend
from polyc.errors import UnsupportedOp
from tests.staged import model_of

CHOSEN = ["test_relu_cpu", "test_softmax_axis_1_cpu", "test_reduce_sum_keepdims_example_cpu",
          "test_nonzero_example_cpu", "test_split_to_sequence_1_cpu",
          "test_string_concat_cpu"]  # fmt: skip


def chosen_tests():
    """onnx's test classes without the thousands of tests that are not chosen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # expected results are computed, infinities and all
        suite = onnx.backend.test.BackendTest(backend.PolycBackend, __name__)
        for name in CHOSEN:
            suite.include(f"^{name}$")
        classes = suite.test_cases
    for title, found in classes.items():
        tests = {n: t for n, t in vars(found).items() if n in CHOSEN}
        if tests:
            yield title, type(title, (unittest.TestCase,), tests)


globals().update(chosen_tests())


def test_a_model_is_prepared_once_and_run_often():
    model = model_of("g (float[2, 3] x, float[3] b) => (float[2, 3] y, float[2] s) {"
                     " y = Add(x, b) a = Constant<value_ints = [1]>()"
                     " s = ReduceSum<keepdims = 0>(y, a) }")  # fmt: skip
    prepared = backend.prepare(model, "CPU", threads=1)
    for _ in range(2):
        x, b = np.random.default_rng(0).random((2, 3)).astype(np.float32), np.ones(3, np.float32)
        outputs = prepared.run([x, b])
        np.testing.assert_allclose(outputs[0], x + b)
        np.testing.assert_allclose(outputs.s, (x + b).sum(1), rtol=1e-6)
    np.testing.assert_allclose(backend.run_model(model, [x, b])[0], x + b)


def test_a_node_runs_alone():
    x = np.array([[-1.0, 2.0]], np.float32)
    (y,) = backend.run_node(helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.5), [x])
    np.testing.assert_array_equal(y, [[-0.5, 2]])
    clip = helper.make_node("Clip", ["x", "", "most"], ["y"])
    (y,) = backend.run_node(clip, {"x": x, "most": np.float32(0)})
    np.testing.assert_array_equal(y, [[-1, 0]])
    join = helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)
    assert backend.run_node(join, [[x, x]])[0].shape == (2, 2)
    square = helper.make_node("Squeeze", ["x"], ["y"], axes=[0])
    assert backend.run_node(square, [x], opset_version=11)[0].shape == (2,)


def test_devices():
    assert backend.supports_device("CPU")
    assert not backend.supports_device("CUDA")  # hidden from this test
    assert not backend.supports_device("TPU:0")
    with pytest.raises(UnsupportedOp, match="device 'TPU'"):
        backend.prepare(model_of("g (float[1] x) => (float[1] y) { y = Neg(x) }"), "TPU")
