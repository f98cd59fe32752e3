"""Windows whose taps run along a diagonal with the rows of their tile: each row is loaded once."""

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import polyc
from polyc.loopnest.nodes import Block, For, walk_nodes
from polyc.loopnest.registers import elements
from polyc.mapping.cpu.contraction.diagonal import Diagonal, find_diagonal
from polyc.schedule.cluster import find_clusters
from polyc.schedule.directives import Skew
from polyc.scop.expr import call
from polyc.scop.scop import Scop
from tests.analysis.nests import ZERO, array, load, scop, statement
from tests.machines import need_named
from tests.mapping.stages import AVX512, SAMPLED, check
from tests.sampling import thorough


def depthwise(c: int, y: int, x: int, r: int, stride: int = 1, dilation: int = 1) -> Scop:
    """Y[c, y, x] = sum of X[c, s*y + d*r, s*x + q] * W[c, r, q], all rows one after another."""
    full = f"0<=c<{c} and 0<=y<{y} and 0<=x<{x}"
    rows, columns = stride * (y - 1) + dilation * (r - 1) + 1, stride * (x - 1) + r
    read = f"{{ S[c,y,x,r,q] -> X[c,{stride}y + {dilation}r,{stride}x+q] }}"
    total = load("{ T[c,y,x] -> acc[c,y,x] }")
    return scop(
        [
            array("X", [c, rows, columns], "input"),
            array("W", [c, r, r], "constant"),
            array("acc", [c, y, x], "temporary"),
            array("Y", [c, y, x], "output"),
        ],
        statement(f"{{ Z[c,y,x] : {full} }}", "{ Z[c,y,x] -> acc[c,y,x] }", ZERO),
        statement(
            f"{{ S[c,y,x,r,q] : {full} and 0<=r<{r} and 0<=q<{r} }}",
            "{ S[c,y,x,r,q] -> acc[c,y,x] }",
            call("mul", load(read), load("{ S[c,y,x,r,q] -> W[c,r,q] }")),
            "add",
        ),
        statement(f"{{ T[c,y,x] : {full} }}", "{ T[c,y,x] -> Y[c,y,x] }", total),
    )


def innermost(block: Block) -> list[For]:
    """The loops over taps along a row, which hold nothing but what is written out."""
    loops = [n for n in walk_nodes(block) if isinstance(n, For) and n.kind == "sequential"]
    return [n for n in loops if not any(m in loops for m in walk_nodes(n.body))]


@pytest.mark.parametrize("target", SAMPLED, ids=lambda t: t.isa)
@pytest.mark.parametrize(
    "size",
    [
        thorough((3, 14, 28, 5)),
        (2, 31, 31, 3),
        thorough((2, 13, 17, 7)),
        (1, 4, 33, 3, 2),
        thorough((2, 7, 19, 5, 2)),
    ],
)
def test_loads_of_a_row_serve_all_outputs_that_need_it(size, target):
    stages = check(depthwise(*size), target)
    skews = [d for d in stages.schedule.directives if isinstance(d, Skew)]
    assert [skew.factor for skew in skews] == [size[4] if len(size) > 4 else 1]
    assert "acc" in stages.promoted
    for loop in innermost(stages.final):
        found = [(e, lanes.lower if lanes else None) for e, lanes in elements(loop, None)]
        loads = [(e, start) for e, start in found if e.array == "X"]
        assert len({e.index[1] for e, _ in loads}) == 1, "all taps of a row before the next row"
        sums = [(e, start) for e, start in found if e.array == "acc_local"]
        assert len(set(sums)) == len(sums), "each sum gets one term"
        assert len(loads) <= len(sums) <= size[3] * len(set(loads))


def test_what_no_diagonal_helps():
    def found(of: Scop, vector: int = 2, unroll: int | None = 1) -> Diagonal | None:
        clusters, *_ = find_clusters(of, AVX512)
        cluster = next(c for c in clusters if any(s.reduction for s in c.statements))
        return find_diagonal(cluster, vector, unroll)

    assert found(depthwise(2, 9, 17, 3)) == Diagonal("S", 3, 3, 1)
    assert found(depthwise(2, 9, 17, 3, 2)) == Diagonal("S", 3, 3, 2)
    assert found(depthwise(2, 9, 17, 3, 2, 2)) == Diagonal("S", 3, 3, 1)
    assert found(depthwise(2, 9, 17, 3, 1, 2)) is None, "rows two apart share nothing"
    assert found(depthwise(2, 9, 17, 3), vector=0) is None, "lanes do not move with taps"
    assert found(depthwise(2, 9, 17, 3), unroll=None) is None
    assert found(depthwise(2, 9, 17, 1)) is None, "one tap"


@pytest.mark.parametrize(
    ("kernel", "stride", "size", "isa"),
    [
        thorough(7, 1, 28, "avx512"),
        thorough(7, 1, 28, "avx2"),
        (5, 1, 31, "avx512"),
        thorough(5, 1, 31, "avx2"),
        (5, 2, 29, "avx512"),
        (5, 2, 29, "avx2"),
    ],
)
def test_depthwise_layers_agree_with_onnx_runtime(isa, kernel, stride, size):
    rng = np.random.default_rng(1)
    weight = rng.standard_normal((5, 1, kernel, kernel), np.float32)
    out = (size + kernel // 2 * 2 - kernel) // stride + 1
    node = helper.make_node(
        "Conv", ["x", "w"], ["y"], group=5, strides=[stride] * 2, pads=[kernel // 2] * 4
    )
    compare(node, isa, [1, 5, size, size], [1, 5, out, out], weight)


@pytest.mark.parametrize(
    ("kernel", "stride", "size", "isa"),
    [
        (3, 2, 55, "avx512"),
        thorough(3, 2, 55, "avx2"),
        (5, 1, 20, "avx512"),
        (5, 1, 20, "avx2"),
        thorough(3, 1, 33, "avx512"),
        thorough(3, 1, 33, "avx2"),
    ],
)
def test_max_pools_agree_with_onnx_runtime(isa, kernel, stride, size):
    out = (size + kernel // 2 * 2 - kernel) // stride + 1
    node = helper.make_node(
        "MaxPool", ["x"], ["y"],
        kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4,
    )  # fmt: skip
    compare(node, isa, [1, 3, size, size], [1, 3, out, out])


def compare(node, isa, shape, out, weight=None):
    constants = [] if weight is None else [numpy_helper.from_array(weight, "w")]
    graph = helper.make_graph(
        [node], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        constants,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.random.default_rng(2).standard_normal(shape, np.float32)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (expected,) = session.run(None, {"x": x})
    compiled = polyc.compile(model, target=need_named(isa), threads=1)
    np.testing.assert_allclose(compiled(x), expected, rtol=1e-5, atol=1e-5)
