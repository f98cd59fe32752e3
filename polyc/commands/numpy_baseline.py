"""The demo's yardstick: a convolutional network as one would write it in NumPy.

Convolution is im2col and one matrix product a layer, which NumPy gives to its BLAS; everything else
is a whole-array expression. That is what a user has without a compiler.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from polyc.errors import UnsupportedOp

Operator = Callable[..., np.ndarray]


def make_evaluator(model: onnx.ModelProto) -> Callable[[Mapping[str, np.ndarray]], np.ndarray]:
    """A function from feeds to the model's first output; UnsupportedOp for operators not here."""
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    steps = []
    for node in model.graph.node:
        if node.op_type not in OPERATORS:
            raise UnsupportedOp(
                f"node {node.name!r}: the NumPy yardstick has no {node.op_type}; it knows "
                + ", ".join(OPERATORS)
            )
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        _check_plain(node, attributes)
        steps.append((OPERATORS[node.op_type], tuple(node.input), node.output[0], attributes))
    result = model.graph.output[0].name

    def evaluate(feeds: Mapping[str, np.ndarray]) -> np.ndarray:
        values = {**constants, **feeds}
        for operator, inputs, output, attributes in steps:
            values[output] = operator(*(values[i] for i in inputs), **attributes)
        return values[result]

    return evaluate


def conv(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray | None = None, **attributes: Any
) -> np.ndarray:
    """y[n, o, p] = sum over c, k of w[o, c, k] x[n, c, p * stride + k], as one product a group."""
    windows = _windows(x, w.shape[2:], 0.0, attributes)
    n, _, height, width = windows.shape[:4]
    groups = attributes.get("group", 1)
    columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(n, groups, w[0].size, height * width)
    y = (w.reshape(groups, -1, w[0].size) @ columns).reshape(n, len(w), height, width)
    return y if bias is None else y + bias[:, None, None]


def batch_norm(
    x: np.ndarray,
    scale: np.ndarray,
    shift: np.ndarray,
    mean: np.ndarray,
    variance: np.ndarray,
    epsilon: float = 1e-5,
    **_: Any,
) -> np.ndarray:
    factor = scale / np.sqrt(variance + np.float32(epsilon))
    return x * factor[:, None, None] + (shift - mean * factor)[:, None, None]


def max_pool(x: np.ndarray, kernel_shape: list[int], **attributes: Any) -> np.ndarray:
    return _windows(x, kernel_shape, -np.inf, attributes).max(axis=(4, 5))


def average_pool(x: np.ndarray, kernel_shape: list[int], **attributes: Any) -> np.ndarray:
    """The mean of each window; without padding, so that every window is full."""
    return _windows(x, kernel_shape, 0.0, attributes).mean(axis=(4, 5))


def gemm(a: np.ndarray, b: np.ndarray, c: np.ndarray, transB: int = 0, **_: Any) -> np.ndarray:
    return a @ (b.T if transB else b) + c


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _check_plain(node: onnx.NodeProto, attributes: Mapping[str, Any]) -> None:
    """UnsupportedOp for options that the functions here do not read."""
    averages = node.op_type == "AveragePool" and any(attributes.get("pads", ()))
    if (
        attributes.get("auto_pad", b"NOTSET") != b"NOTSET"
        or attributes.get("ceil_mode", 0)
        or any(d != 1 for d in attributes.get("dilations", ()))
        or averages
    ):
        raise UnsupportedOp(
            f"node {node.name!r}: the NumPy yardstick knows {node.op_type} with explicit "
            "pads only, without ceil_mode, dilations, or padded averages"
        )


def _windows(
    x: np.ndarray, kernel: Any, outside: float, attributes: Mapping[str, Any]
) -> np.ndarray:
    """A view [n, c, p, q, k, l] of the padded input's windows."""
    top, left, bottom, right = attributes.get("pads", (0, 0, 0, 0))
    down, along = attributes.get("strides", (1, 1))
    if any((top, left, bottom, right)):
        around = ((0, 0), (0, 0), (top, bottom), (left, right))
        x = np.pad(x, around, constant_values=outside)
    windows = np.lib.stride_tricks.sliding_window_view(x, tuple(kernel), axis=(2, 3))
    return windows[:, :, ::down, ::along]


OPERATORS: Mapping[str, Operator] = {
    "Add": lambda a, b: a + b,
    "AveragePool": average_pool,
    "BatchNormalization": batch_norm,
    "Concat": lambda *x, axis: np.concatenate(x, axis),
    "Conv": conv,
    "Dropout": lambda x, **_: x,
    "Gemm": gemm,
    "GlobalAveragePool": lambda x: x.mean(axis=(2, 3), keepdims=True),
    "MaxPool": max_pool,
    "Relu": lambda x: np.maximum(x, 0),
    "Reshape": lambda x, shape: x.reshape(tuple(shape)),
    "Softmax": softmax,
    "Sum": lambda *x: np.sum(x, axis=0) if len(x) > 2 else x[0] + x[1],
}
