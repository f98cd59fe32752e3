"""Shape inference against the standard's test cases, onnx's inference, NumPy and ONNX Runtime."""

from __future__ import annotations

import math
import warnings

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx import helper
from onnx.backend.test.case.node import collect_testcases

from polyc.errors import ShapeError
from polyc.graph.ir import Node, Tensor
from polyc.graph.shapes import infer_node, is_supported
from polyc.graph.shapes.dims import broadcast_shapes
from polyc.graph.shapes.rules import RULES
from polyc.graph.shapes.slicing import resolve_slice
from polyc.graph.shapes.window import resolve_transposed_window, resolve_window

ANY = settings(max_examples=80)
INT64 = np.int64


def tensor(name, shape, dtype=np.float32, value=None):
    return Tensor(name, np.dtype(dtype), tuple(shape), value)


def constant(name, value, dtype=INT64):
    value = np.asarray(value, dtype)
    return tensor(name, value.shape, value.dtype, value)


def infer(op, *inputs, outputs=1, **attributes):
    names = tuple("" if t is None else t.name for t in inputs)
    results = tuple(f"y{i}" for i in range(outputs))
    return infer_node(Node("n", op, names, results, attributes), inputs)


def make_model(op, inputs, outputs=1, **attributes):
    """A model of one node; constants become initializers."""
    node = helper.make_node(
        op, [t.name if t else "" for t in inputs], [f"y{i}" for i in range(outputs)], **attributes
    )
    code = helper.np_dtype_to_tensor_dtype
    infos = [
        helper.make_tensor_value_info(t.name, code(t.dtype), t.shape)
        for t in inputs
        if t and t.value is None
    ]
    values = [onnx.numpy_helper.from_array(t.value, t.name) for t in inputs if t and t.is_constant]
    results = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)]
    graph = helper.make_graph([node], "g", infos, results, initializer=values)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def onnx_shapes(op, inputs, outputs=1, **attributes):
    """What onnx's inference says, or None where it refuses or finds an impossible extent."""
    model = make_model(op, inputs, outputs, **attributes)
    try:
        model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError:
        return None
    types = [o.type.tensor_type for o in model.graph.output]
    shapes = [tuple(d.dim_value for d in t.shape.dim) for t in types]
    return None if any(d < 0 for s in shapes for d in s) else shapes


def run_onnxruntime(op, *arrays, **attributes):
    inputs = [tensor(f"x{i}", a.shape, a.dtype) for i, a in enumerate(arrays)]
    model = make_model(op, inputs, **attributes)
    model.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(
        arrays[0].dtype
    )
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {t.name: a for t, a in zip(inputs, arrays, strict=True)})[0]


def shapes_or_none(op, *inputs, outputs=1, **attributes):
    try:
        return [t.shape for t in infer(op, *inputs, outputs=outputs, **attributes)]
    except ShapeError:
        return None


# --- the standard's own cases --------------------------------------------------------------------


def read_attribute(proto):
    value = helper.get_attribute_value(proto)
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, int | float):
        return value
    return tuple(v.decode() if isinstance(v, bytes) else v for v in value)


def read_array(value):
    if isinstance(value, onnx.TensorProto):
        value = onnx.numpy_helper.to_array(value)
    value = np.asarray(value)
    return value.astype(object) if value.dtype.kind in "US" else value


def single_node_cases():
    """The cases of one supported node in its newest form: (node, inputs, expected outputs)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    for case in cases:
        graph, version = case.model.graph, case.model.opset_import[0].version
        node = graph.node[0]
        if len(graph.node) != 1 or node.domain or not is_supported(node.op_type):
            continue
        arrays, expected = case.data_sets[0]
        if onnx.defs.get_schema(node.op_type).since_version > version or any(
            v is None or isinstance(v, list) for v in arrays
        ):
            continue
        values = {i.name: read_array(a) for i, a in zip(graph.input, arrays, strict=True)}
        attributes = {a.name: read_attribute(a) for a in node.attribute}
        mine = Node(case.name, node.op_type, tuple(node.input), tuple(node.output), attributes)
        inputs = [tensor(i, values[i].shape, values[i].dtype, values[i]) if i else None
                  for i in node.input]  # fmt: skip
        yield mine, inputs, [read_array(e) for e in expected]


def test_node_cases_of_the_standard():
    wrong, count, ops = [], 0, set()
    for node, inputs, expected in single_node_cases():
        count, ops = count + 1, ops | {node.op}
        got = [(t.dtype, t.shape) for t in infer_node(node, inputs) if t.name]
        want = [(e.dtype, e.shape) for e in expected]
        if got != want:
            wrong.append((node.name, got, want))
    assert not wrong
    assert count > 850
    assert set(RULES) - ops <= {"GlobalLpPool"}


# --- windows -------------------------------------------------------------------------------------


@st.composite
def window_attributes(draw, rank, ceil=False):
    def each(low, high):
        return st.lists(st.integers(low, high), min_size=rank, max_size=rank)

    attributes = {"strides": draw(each(1, 3)), "dilations": draw(each(1, 2))}
    mode = draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    if mode == "NOTSET":
        attributes["pads"] = draw(each(0, 2)) + draw(each(0, 2))
    else:
        attributes["auto_pad"] = mode
    if ceil:
        attributes["ceil_mode"] = draw(st.integers(0, 1))
    return attributes


def window_fits(spatial, kernel, attributes):
    """Whether there is room for one window; onnx's inference rounds negative room towards zero."""
    if attributes.get("auto_pad", "VALID") != "VALID":
        return True
    rank = len(spatial)
    pads = attributes.get("pads", [0] * 2 * rank)
    for i in range(rank):
        reach = attributes["dilations"][i] * (kernel[i] - 1) + 1
        spare = attributes["strides"][i] - 1 if attributes.get("ceil_mode") else 0
        if spatial[i] + pads[i] + pads[rank + i] + spare < reach:
            return False
    return True


@ANY
@given(st.data(), st.integers(1, 3), st.sampled_from(["MaxPool", "AveragePool", "LpPool"]))
def test_pools_agree_with_onnx(data, rank, op):
    spatial = data.draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank))
    kernel = data.draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    attributes = data.draw(window_attributes(rank, ceil=True)) | {"kernel_shape": kernel}
    x = tensor("x", (2, 3, *spatial))
    fits = window_fits(spatial, kernel, attributes)
    want = onnx_shapes(op, [x], **attributes) if fits else None
    assert shapes_or_none(op, x, **attributes) == want


@ANY
@given(st.data(), st.integers(1, 3), st.integers(1, 3))
def test_conv_agrees_with_onnx(data, rank, group):
    spatial = data.draw(st.lists(st.integers(1, 9), min_size=rank, max_size=rank))
    kernel = data.draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    attributes = data.draw(window_attributes(rank)) | {"group": group}
    x, w = tensor("x", (2, 2 * group, *spatial)), tensor("w", (3 * group, 2, *kernel))
    fits = window_fits(spatial, kernel, attributes)
    want = onnx_shapes("Conv", [x, w], **attributes) if fits else None
    assert shapes_or_none("Conv", x, w, **attributes) == want


@ANY
@given(st.data(), st.integers(1, 2), st.integers(1, 3))
def test_conv_transpose_agrees_with_onnx(data, rank, group):
    spatial = data.draw(st.lists(st.integers(1, 6), min_size=rank, max_size=rank))
    kernel = data.draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    attributes = data.draw(window_attributes(rank)) | {"group": group}
    if "auto_pad" not in attributes:
        pairs = zip(attributes["strides"], attributes["dilations"], strict=True)
        extra = [data.draw(st.integers(0, max(pair) - 1)) for pair in pairs]
        attributes["output_padding"] = extra
    x, w = tensor("x", (2, 2 * group, *spatial)), tensor("w", (2 * group, 3, *kernel))
    want = onnx_shapes("ConvTranspose", [x, w], **attributes)
    empty = want is None or 0 in want[0]
    assert shapes_or_none("ConvTranspose", x, w, **attributes) == (None if empty else want)


@settings(max_examples=40)
@given(st.data(), st.integers(3, 9), st.integers(1, 4))
def test_window_reads_what_onnxruntime_reads(data, size, kernel):
    attributes = data.draw(window_attributes(1, ceil=True)) | {"kernel_shape": [kernel]}
    node = Node("n", "MaxPool", ("x",), ("y",), attributes)
    assume(kernel >= attributes["strides"][0] and max(attributes.get("pads", [0])) < kernel)
    # ONNX Runtime leaves the dilation out of the padding of SAME.
    assume(attributes["dilations"] == [1] or "SAME" not in attributes.get("auto_pad", ""))
    try:
        w = resolve_window(node, (size,), (kernel,))
    except ShapeError:
        return
    x = np.random.default_rng(size).random(size).astype(np.float32)
    taps = np.arange(kernel) * w.dilations[0] - w.pads_begin[0]
    read = np.arange(w.output[0])[:, None] * w.strides[0] + taps
    inside = [row[(row >= 0) & (row < size)] for row in read]
    assume(all(len(row) for row in inside))
    expected = [x[row].max() for row in inside]
    got = run_onnxruntime("MaxPool", x[None, None], **attributes)
    np.testing.assert_array_equal(got[0, 0], expected)


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(1, 3), st.integers(-3, 1), st.data())
def test_transposed_window_writes_what_onnxruntime_writes(size, kernel, stride, less, data):
    mode = data.draw(st.sampled_from(["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    attributes = {"strides": [stride], "auto_pad": mode}
    full = stride * (size - 1) + kernel
    if less <= 0 and full + less >= 1:
        attributes["output_shape"] = [full + less]
    node = Node("n", "ConvTranspose", ("x", "w"), ("y",), attributes)
    w = resolve_transposed_window(node, (size,), (kernel,))
    generator = np.random.default_rng(size)
    x, weights = (generator.integers(1, 9, n).astype(np.float32) for n in (size, kernel))
    expected = np.zeros(w.output[0], np.float32)
    for i in range(size):
        for k in range(kernel):
            position = i * stride + k - w.pads_begin[0]
            if 0 <= position < w.output[0]:
                expected[position] += x[i] * weights[k]
    got = run_onnxruntime("ConvTranspose", x[None, None], weights[None, None], **attributes)
    np.testing.assert_array_equal(got[0, 0], expected)


# --- movement ------------------------------------------------------------------------------------

POSITION = st.integers(-12, 12) | st.sampled_from([2**31 - 1, -(2**31), 2**63 - 1, -(2**63)])


@settings(max_examples=60)
@given(st.integers(1, 8), POSITION, POSITION, st.integers(-4, 4).filter(bool))
def test_slice_agrees_with_onnxruntime(extent, start, end, step):
    # The standard's "to the end" is INT_MIN when stepping back; ONNX Runtime takes INT_MAX too.
    assume(step > 0 or end < 2**31 - 1)
    (cut,) = resolve_slice((extent,), (start,), (end,), (0,), (step,))
    x = np.arange(extent, dtype=np.float32)
    lists = [np.array([v], INT64) for v in (start, end, 0, step)]
    got = run_onnxruntime("Slice", x, *lists)
    np.testing.assert_array_equal(cut.start + cut.step * np.arange(cut.extent), got)


@ANY
@given(st.data(), st.lists(st.integers(0, 5), min_size=1, max_size=4))
def test_pad_agrees_with_onnx(data, shape):
    rank = len(shape)
    axes = data.draw(st.lists(st.sampled_from(range(rank)), unique=True, min_size=1))
    pads = data.draw(st.lists(st.integers(-3, 3), min_size=2 * len(axes), max_size=2 * len(axes)))
    inputs = [tensor("x", shape), constant("p", pads), None, constant("a", axes)]
    assert shapes_or_none("Pad", *inputs) == onnx_shapes("Pad", inputs)


SHAPE = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@ANY
@given(st.lists(SHAPE, min_size=1, max_size=3))
def test_broadcasting_agrees_with_numpy(shapes):
    try:
        expected = np.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ShapeError, match="equal or 1"):
            broadcast_shapes(*shapes)
    else:
        assert broadcast_shapes(*shapes) == expected


@ANY
@given(SHAPE, st.lists(st.integers(-1, 6), max_size=4))
def test_reshape_agrees_with_numpy(shape, target):
    data = np.zeros(shape)
    filled = [shape[i] if t == 0 and i < len(shape) else t for i, t in enumerate(target)]
    out_of_range = any(t == 0 and i >= len(shape) for i, t in enumerate(target))
    try:
        expected = None if out_of_range else [data.reshape(filled).shape]
    except ValueError:
        expected = None
    assert shapes_or_none("Reshape", tensor("x", shape), constant("s", target)) == expected


@ANY
@given(SHAPE, SHAPE)
def test_matmul_agrees_with_numpy(left, right):
    try:
        expected = [np.matmul(np.zeros(left), np.zeros(right)).shape]
    except ValueError:
        expected = None
    assert shapes_or_none("MatMul", tensor("a", left), tensor("b", right)) == expected


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("bhqd,bhkd->bhqk", [(2, 3, 5, 4), (2, 3, 6, 4)]),
        ("...ij,...jk", [(5, 1, 2, 3), (7, 3, 4)]),
        ("b...i,ij->b...j", [(2, 6, 7, 3), (3, 4)]),
        ("ii->i", [(4, 4)]),
        ("ba", [(2, 3)]),
        ("i,i->", [(5,), (5,)]),
    ],
)
def test_einsum_agrees_with_numpy(equation, shapes):
    inputs = [tensor(f"x{i}", s) for i, s in enumerate(shapes)]
    expected = np.einsum(equation, *map(np.zeros, shapes)).shape
    assert infer("Einsum", *inputs, equation=equation)[0].shape == expected


@ANY
@given(SHAPE.filter(len), st.data(), st.booleans())
def test_reduce_agrees_with_numpy(shape, data, keepdims):
    axes = data.draw(st.lists(st.sampled_from(range(-len(shape), len(shape))), max_size=3))
    x = tensor("x", shape)
    got = shapes_or_none("ReduceSum", x, constant("a", axes), keepdims=int(keepdims))
    try:
        total = np.sum(np.zeros(shape), axis=tuple(axes) if axes else None, keepdims=keepdims)
        assert got == [np.shape(total)]
    except ValueError:
        assert got is None


@ANY
@given(st.integers(-9, 9), st.integers(-9, 9), st.integers(1, 5), st.booleans(), st.booleans())
def test_range_agrees_with_numpy(start, limit, delta, down, real):
    dtype, scale = (np.float32, 0.5) if real else (INT64, 1)
    values = [v * scale for v in (start, limit, -delta if down else delta)]
    inputs = [constant(n, v, dtype) for n, v in zip("abc", values, strict=True)]
    assert infer("Range", *inputs)[0].shape == np.arange(*values).shape


@ANY
@given(st.integers(0, 9), st.integers(1, 4))
def test_split_agrees_with_onnx(extent, parts):
    x = tensor("x", (extent, 2))
    got = shapes_or_none("Split", x, outputs=parts, num_outputs=parts)
    sizes = [
        min(max(extent - i * -(-extent // parts), 0), -(-extent // parts)) for i in range(parts)
    ]
    if math.ceil(extent / parts) * (parts - 1) > extent:
        assert got is None
    else:
        assert got == [(s, 2) for s in sizes] == onnx_shapes("Split", [x], parts, num_outputs=parts)
