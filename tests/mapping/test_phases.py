"""Transposed convolutions: rows of a result across the lanes are stored in vectors."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyc
from polyc.loopnest.nodes import Transpose, walk_nodes
from polyc.scop.expr import call
from polyc.scop.scop import Scop
from tests.analysis.nests import ZERO, array, load, scop, statement
from tests.machines import need_named
from tests.mapping.stages import AVX512, SAMPLED, check
from tests.sampling import thorough


def phases(o: int, y: int, x: int, c: int, stride: int) -> Scop:
    """Y[o, s*y + a, s*x + b] = sum of X[c, y, x] * W[c, o, a, b]"""
    full = f"0<=o<{o} and 0<=y<{y} and 0<=a<{stride} and 0<=x<{x} and 0<=b<{stride}"
    write = f"[o,{stride}y + a,{stride}x + b]"
    value = call(
        "mul", load("{ S[o,y,a,x,b,c] -> X[c,y,x] }"), load("{ S[o,y,a,x,b,c] -> W[c,o,a,b] }")
    )
    return scop(
        [
            array("X", [c, y, x], "input"),
            array("W", [c, o, stride, stride], "constant"),
            array("acc", [o, y, stride, x, stride], "temporary"),
            array("Y", [o, stride * y, stride * x], "output"),
        ],
        statement(f"{{ Z[o,y,a,x,b] : {full} }}", "{ Z[o,y,a,x,b] -> acc[o,y,a,x,b] }", ZERO),
        statement(
            f"{{ S[o,y,a,x,b,c] : {full} and 0<=c<{c} }}",
            "{ S[o,y,a,x,b,c] -> acc[o,y,a,x,b] }",
            value,
            "add",
        ),
        statement(
            f"{{ T[o,y,a,x,b] : {full} }}",
            f"{{ T[o,y,a,x,b] -> Y{write} }}",
            load("{ T[o,y,a,x,b] -> acc[o,y,a,x,b] }"),
        ),
    )


@pytest.mark.parametrize("target", SAMPLED[:2], ids=lambda t: t.isa)
@pytest.mark.parametrize(
    "size",
    [thorough((32, 3, 14, 16, 2)), (16, 1, 7, 33, 4)],
)
def test_phases_are_transposed_with_their_columns(size, target):
    stages = check(phases(*size), target)
    assert "unroll x" in str(stages.schedule)
    assert "acc" in stages.promoted
    lanes = target.lanes(np.dtype(np.float32))
    found = [n.lanes for n in walk_nodes(stages.final) if isinstance(n, Transpose)]
    assert max(found) == lanes


@pytest.mark.parametrize("target", SAMPLED, ids=lambda t: t.isa)
@pytest.mark.parametrize("size", [thorough((17, 2, 9, 20, 2)), (1, 3, 5, 2, 3), (5, 1, 1, 7, 4)])
def test_odd_sizes(size, target):
    check(phases(*size), target)


def test_panels_of_weights_are_walked_by_the_sum():
    """Whatever the phases: what a tile multiplies lies in one run for each of them."""
    stages = check(phases(16, 2, 8, 20, 2), AVX512)
    storage = stages.stored.storages["W"]
    assert storage.permutation[-1] == 0, "channels are innermost but for the lanes"


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "pad", "isa"),
    [
        thorough(14, 2, 2, 0, "avx512"),
        thorough(14, 2, 2, 0, "avx2"),
        (9, 4, 2, 1, "avx512"),
        thorough(9, 4, 2, 1, "avx2"),
        (7, 4, 4, 0, "avx512"),
        (7, 4, 4, 0, "avx2"),
        thorough(8, 3, 2, 1, "avx512"),
        thorough(8, 3, 2, 1, "avx2"),
    ],
)
def test_layers_agree_with_onnx_runtime(isa, size, kernel, stride, pad):
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((24, 20, kernel, kernel), np.float32)
    out = (size - 1) * stride - 2 * pad + kernel
    node = helper.make_node(
        "ConvTranspose", ["x", "w"], ["y"], strides=[stride] * 2, pads=[pad] * 4
    )
    graph = helper.make_graph(
        [node, helper.make_node("Relu", ["y"], ["z"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 24, size, size])],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 20, out, out])],
        [numpy_helper.from_array(weight, "w")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = rng.standard_normal((1, 24, size, size), np.float32)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (expected,) = session.run(None, {"x": x})
    compiled = polyc.compile(model, target=need_named(isa), threads=1)
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-4, atol=1e-4)
