"""What a prediction says of layers: which of them multiply floats all the same."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyc
from polyc.compression.shares import predict
from polyc.graph.onnx_import import import_onnx
from polyc.options import Options
from tests.sampling import thorough


def product_of_bytes(terms):
    """A product of two activations of bytes, so many terms to a sum."""
    known = {"s": np.float32(0.5), "az": np.uint8(3), "bz": np.int8(3)}
    nodes = [
        helper.make_node("DequantizeLinear", ["a", "s", "az"], ["af"]),
        helper.make_node("DequantizeLinear", ["b", "s", "bz"], ["bf"]),
        helper.make_node("MatMul", ["af", "bf"], ["y"], "it's: a product"),
    ]
    inputs = [
        helper.make_tensor_value_info("a", TensorProto.UINT8, (32, terms)),
        helper.make_tensor_value_info("b", TensorProto.INT8, (terms, 32)),
    ]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, (32, 32))
    constants = [numpy_helper.from_array(np.asarray(v), n) for n, v in known.items()]
    graph = helper.make_graph(nodes, "g", inputs, [output], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize(("terms", "fits"), [(64, True), thorough(70_000, False)])
def test_layers_that_multiply_floats_are_named_with_the_reason(terms, fits, tmp_path):
    """Sums of so many terms may pass the largest integer of 32 bits."""
    options = Options(cache_dir=tmp_path, threads=1)
    compile_here = partial(polyc.compile, target="cpu", options=options)

    def compile_there(graph, sizes):
        return compile_here(graph, dims=sizes)

    model = compile_here(product_of_bytes(terms))
    sample = {"a": np.zeros((32, terms), np.uint8), "b": np.zeros((terms, 32), np.int8)}
    floats = predict(import_onnx(product_of_bytes(terms)), sample, compile_there).floats
    assert floats == dict(model.explain().float_sums)
    assert set(floats) == (set() if fits else {"it's: a product"})
    assert all(floats.values())
