"""Reads of quotients: each element in several lanes, by one load and a shuffle."""

import numpy as np
import onnx.parser
import pytest

from polyc import compile, ops
from polyc.graph.ir import Graph
from tests.machines import need_named
from tests.sampling import sampled

ISAS = ("avx512", "avx2", "baseline")


def enlarge(shape, times, dtype=np.float32, target="avx512"):
    """Rows with each element several times: x[…, floor(i/times)]."""
    x = ops.input("x", shape, np.dtype(dtype))
    wide = ops.expand(ops.unsqueeze(x, len(shape)), (*shape, times))
    y = ops.reshape(wide, (*shape[:-1], shape[-1] * times))
    return compile(Graph.of(y=y), target=need_named(target), threads=1)


@pytest.mark.parametrize("target", ISAS)
@pytest.mark.parametrize(
    "dtype",
    sampled([np.float32, np.float64, np.int8, np.bool_, np.float16], often=[np.float32, np.bool_]),
)
@pytest.mark.parametrize(("n", "times"), [(40, 2), (37, 2), (21, 3), (19, 4), (5, 7)])
def test_each_element_several_times(n, times, dtype, target):
    model = enlarge((3, n), times, dtype, target)
    x = (np.random.default_rng(n).integers(-4, 5, (3, n))).astype(dtype)
    np.testing.assert_array_equal(model(x), np.repeat(x, times, axis=1))


def test_one_load_and_a_shuffle():
    model = enlarge((3, 40), 2)
    assert "pc_pick_f32x16(pc_loadn_f32x16(&x_[" in model.source
    assert "{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7}" in model.source


RESIZE = """<ir_version: 9, opset_import: ["" : 18]>
g (float[n, 3, h, w] x) => (float[n, 3, h2, w2] y) <float[4] s = {1, 1, 2, 2}> {
    y = Resize<mode = "nearest", coordinate_transformation_mode = "asymmetric",
               nearest_mode = "floor">(x, , s)
}"""


def test_of_open_sizes():
    """Also of the last vector of a row, no lane of which reads what is not there."""
    model = compile(onnx.parser.parse_model(RESIZE), threads=1, target=need_named("avx512"))
    assert "pc_pick_f32x16(" in model.source
    assert "pc_floordiv(c3 + 1, 2)" not in model.source
    for shape in ((1, 3, 1, 1), (2, 3, 5, 7), (1, 3, 3, 40), (1, 3, 2, 23)):
        x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
        np.testing.assert_array_equal(model(x), x.repeat(2, 2).repeat(2, 3))
