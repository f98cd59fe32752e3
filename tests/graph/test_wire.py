"""Models that are read field by field say what protobuf says, whatever is in them."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import onnx
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from polyc.errors import InvalidModel
from polyc.files.model_file import ModelChanged, ModelFile
from polyc.files.reader import PART, Reader
from polyc.graph.onnx.wire import LARGE, split_model
from polyc.graph.onnx_import import import_onnx, read_model

RANDOM = np.random.default_rng(0)


def model(*values: np.ndarray) -> onnx.ModelProto:
    """y = x + the sum of the values, all of which are initialisers."""
    tensors = [numpy_helper.from_array(v, f"w{k}") for k, v in enumerate(values)]
    sums = ["x", *(f"s{k}" for k in range(len(values)))]
    nodes = [helper.make_node("Add", [sums[k], f"w{k}"], [sums[k + 1]]) for k in range(len(values))]
    shape = [TensorProto.FLOAT, None]
    inputs, outputs = (helper.make_tensor_value_info(n, *shape) for n in ("x", sums[-1]))
    graph = helper.make_graph(nodes, "g", [inputs], [outputs], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def read(data: bytes) -> onnx.ModelProto:
    """What is read field by field, with the data back in their tensors."""
    with Reader(BytesIO(data), len(data)) as reader:
        message, large = split_model(reader)
    found = onnx.ModelProto.FromString(message)
    for k, one in large.items():
        assert not found.graph.initializer[k].raw_data
        assert one.nbytes >= LARGE
        found.graph.initializer[k].raw_data = one.tobytes()
    return found


SIZES = [1, LARGE // 4 - 1, LARGE // 4, LARGE // 4 + 1, PART // 4 - 3, PART // 4, PART + 5]


@pytest.mark.parametrize("size", SIZES)
def test_large_data_are_kept_apart_and_nothing_else_changes(size):
    whole = model(*(RANDOM.standard_normal(n).astype(np.float32) for n in (size, 3, size)))
    assert read(whole.SerializeToString()) == whole


def test_fields_that_are_there_twice():
    """Messages are joined, of bytes the last ones count."""
    first, second = (model(RANDOM.standard_normal(n).astype(np.float32)) for n in (5000, 4000))
    first.producer_name = "a"
    both = first.SerializeToString() + second.SerializeToString()
    assert read(both) == onnx.ModelProto.FromString(both)
    twice = TensorProto(dims=[2], raw_data=b"a" * LARGE).SerializeToString()
    for last in (b"b" * (LARGE + 1), b"c"):
        tensor = twice + TensorProto(raw_data=last).SerializeToString()
        initializer = bytes([5 << 3 | 2]) + varint(len(tensor)) + tensor
        graph = bytes([7 << 3 | 2]) + varint(len(initializer)) + initializer
        assert read(graph) == onnx.ModelProto.FromString(graph)
        assert read(graph).graph.initializer[0].raw_data == last


def varint(value: int) -> bytes:
    digits = [value >> 7 * k & 0x7F for k in range(max(1, -(-value.bit_length() // 7)))]
    return bytes(d | 0x80 for d in digits[:-1]) + bytes(digits[-1:])


CONTENT = model(
    np.arange(2000, dtype=np.float32), np.arange(6, dtype=np.float32)
).SerializeToString()


@given(
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3),
    st.integers(0, len(CONTENT)),
)
@settings(max_examples=150, deadline=None)
def test_what_strangers_write_is_what_protobuf_reads_or_is_refused(changes, end):
    damaged = bytearray(CONTENT)
    for place, value in changes:
        damaged[place] = value
    data = bytes(damaged[:end])
    try:
        expected = onnx.ModelProto.FromString(data)
    except DecodeError:
        expected = None
    try:
        found = read(data)
    except (ValueError, EOFError, DecodeError):
        return  # a group, which protobuf reads and ONNX never had
    assert expected is not None
    assert found == expected


@pytest.mark.parametrize("end", [1, 40, len(CONTENT) - 30])
def test_a_file_that_ends_early_is_no_model(tmp_path, end):
    (tmp_path / "m.onnx").write_bytes(CONTENT[:end])
    for source in (CONTENT[:end], tmp_path / "m.onnx", ModelFile.examine(tmp_path / "m.onnx")):
        with pytest.raises(InvalidModel, match="no ONNX model"):
            read_model(source)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int8, np.bool_, np.int64])
def test_values_are_those_of_the_file(tmp_path, dtype):
    value = (100 * RANDOM.standard_normal((70, 90))).astype(dtype)
    graph = helper.make_graph(
        [helper.make_node("Identity", ["w"], ["y"])],
        "g",
        [],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(value.dtype), None)],
        [numpy_helper.from_array(value, "w")],
    )
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    onnx.save(whole, tmp_path / "m.onnx")
    for source in (whole, str(tmp_path / "m.onnx"), ModelFile.examine(tmp_path / "m.onnx")):
        found = read_model(source).constants["w"].value
        np.testing.assert_array_equal(found, value)
        assert found.dtype == value.dtype
        assert dtype == np.bool_ or not found.flags.writeable


def test_more_or_less_data_than_the_shape_takes(tmp_path):
    whole = model(np.zeros(5000, np.float32))
    for size in (4999, 5001):
        whole.graph.initializer[0].dims[:] = [size]
        with pytest.raises(InvalidModel, match="holds 20000 bytes, but float32"):
            import_onnx(whole.SerializeToString())


@pytest.mark.parametrize("change", [b"", CONTENT[:-1], CONTENT + b"\0", CONTENT[:-1] + b"\1"])
def test_a_file_that_is_replaced_after_it_was_hashed(tmp_path, change):
    path = tmp_path / "m.onnx"
    path.write_bytes(CONTENT)
    known = ModelFile.examine(path)
    path.write_bytes(change)
    with pytest.raises(ModelChanged):
        read_model(known)
