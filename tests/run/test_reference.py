"""`polyc.verify` takes whatever `polyc.compile` does, and says what else it has to be given."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import onnx
import pytest

import polyc
from polyc import Graph, ops
from polyc.errors import InvalidModel, PolycError, RuntimeFailure, UnsupportedOp
from polyc.graph.onnx.export import export_onnx
from polyc.run.reference import verify_numbers
from tests.programs import options
from tests.staged import model_of

GRAPH = Graph.of(y=ops.exp(ops.relu(ops.input("x", (2, 3)))))
RESHAPED = "g (float[2, 12] x, int64[2] t) => (float[i, j] y) { r = Reshape(x, t) y = Exp(r) }"


@pytest.fixture
def verify(tmp_path):
    def call(model, **more):
        return polyc.verify(model, target="baseline", options=options(tmp_path), **more)

    return call


def test_models_of_every_kind(verify, tmp_path):
    proto = export_onnx(GRAPH)
    onnx.save(proto, tmp_path / "m.onnx")
    path = tmp_path / "m.onnx"
    for model in (GRAPH, proto, proto.SerializeToString(), path, str(path)):
        assert verify(model).outputs == 1
    for wrong in (5, None, [GRAPH]):
        with pytest.raises(InvalidModel, match="is no model"):
            verify(wrong)
    with pytest.raises(InvalidModel, match="cannot be read"):
        verify(b"\xff\xff")


def test_arguments_that_mean_nothing(verify):
    x = np.ones((2, 3), np.float32)
    for name, wrong in (("feeds", [x]), ("feeds", x), ("seed", "1"), ("seed", 1.5), ("seed", None)):
        with pytest.raises(TypeError, match=f"`{name}` is of type"):
            verify(GRAPH, **{name: wrong})
    for wrong in ({"seed": -1}, {"feeds": {"z": x}}, {"feeds": {"x": x[0]}}):
        with pytest.raises(PolycError):
            verify(GRAPH, **wrong)


def test_a_model_that_a_call_completes(verify):
    model = model_of(RESHAPED)
    report = verify(model, feeds={"t": np.array([4, 6])})
    assert (report.tensors, report.outputs) == (2, 1)
    with pytest.raises(UnsupportedOp, match=r"its inputs 't'.*feeds=\{'t': …\}"):
        verify(model)
    found = model_of("g (float[5] x) => (int64[r, n] y) { y = NonZero(x) }")
    assert verify(found).outputs == 1


BYTES = """g (float[n, 8] x) => (float[n, 8] z)
<float s = {0.05}, uint8 zero = {128}, float[8] t = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8}> {
    q = QuantizeLinear(x, s, zero)
    y = DequantizeLinear(q, s, zero)
    e = Exp(y)
    r = QuantizeLinear(e, s, zero)
    z = DequantizeLinear(r, t)
}"""


@dataclass
class Shifted:
    """A compiled model whose first byte of a tensor is so many steps too low."""

    model: polyc.CompiledModel
    tensor: str
    steps: int

    def __getattr__(self, name):
        return getattr(self.model, name)

    def run(self, feeds):
        results = dict(self.model.run(feeds))
        if self.tensor in results:
            changed = results[self.tensor].copy()
            changed.flat[0] -= self.steps
            results[self.tensor] = changed
        return results


@pytest.mark.parametrize("opset", [13, 21])
def test_bytes_a_step_apart_are_told_and_others_refused(tmp_path, opset):
    model = model_of(BYTES, opset)
    here = partial(polyc.compile, target="baseline", options=options(tmp_path))
    assert verify_numbers(model, here).ties == 0
    report = verify_numbers(model, lambda m: Shifted(here(m), "r", 1))
    assert report.ties == 1
    assert "bytes a step apart, of floats between two: 1" in str(report)
    with pytest.raises(RuntimeFailure, match="'r'"):
        verify_numbers(model, lambda m: Shifted(here(m), "r", 2))
