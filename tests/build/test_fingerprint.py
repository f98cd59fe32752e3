"""The key of the whole-model cache changes with all that matters, and with nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyc.build.fingerprint import fingerprint
from polyc.errors import InvalidModel
from polyc.files.model_file import ModelFile
from polyc.graph.ir import Body, Graph, Node, Tensor
from polyc.target.machine import Target
from tests.programs import options

TARGET = Target.named("avx2")
F32 = np.dtype(np.float32)


def onnx_model(weight: float = 1.0) -> onnx.ModelProto:
    value = numpy_helper.from_array(np.full((300,), weight, np.float32), "w")
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [300]) for n in "xy"]
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return helper.make_model(helper.make_graph([node], "g", [info[0]], [info[1]], [value]))


def graph(value: float = 1.0, attribute: object = 2, op: str = "Add") -> Graph:
    constant = Tensor("w", F32, (2,), np.full(2, value, np.float32))
    tensors = {"x": Tensor("x", F32, (2,)), "w": constant, "y": Tensor("y", F32, (2,))}
    node = Node("n", op, ("x", "w"), ("y",), {"a": attribute})
    return Graph("g", (node,), tensors, ("x",), ("y",))


@pytest.fixture
def key(tmp_path):
    def make(model, target=TARGET, **choices):
        source = ModelFile.examine(Path(model)) if isinstance(model, str | Path) else model
        return fingerprint(source, target, options(tmp_path, **choices))

    return make


def test_a_graph_is_hashed_by_content(key):
    models = [graph(), graph(3.0), graph(1.0, 7), graph(op="Sub")]
    models += [graph(1.0, np.ones(2)), graph(1.0, np.zeros(2)), graph(1.0, graph())]
    assert len({key(m) for m in models}) == len(models)
    assert key(graph()) == key(graph())
    assert key(graph(1.0, np.ones(2))) == key(graph(1.0, np.ones(2)))


def test_a_graph_is_hashed_with_all_that_its_bodies_hold(key):
    def holding(last: float) -> Graph:
        value = np.zeros(5000, np.float32)  # so many that their text leaves some out
        value[2500] = last
        inner = Body((), (Node("c", "Constant", (), ("y",), {"value": value}),), ("y",))
        return graph(1.0, Body((), (Node("i", "If", ("b",), ("y",), {"then": inner}),), ("y",)))

    assert key(holding(0.0)) == key(holding(0.0)) != key(holding(1.0))
    with pytest.raises(InvalidModel, match="no value of an attribute"):
        key(graph(1.0, object()))


def test_a_proto_and_its_file_change_with_the_weights(key, tmp_path):
    assert key(onnx_model()) == key(onnx_model()) != key(onnx_model(2.0))
    assert key(onnx_model().SerializeToString(deterministic=True)) == key(onnx_model())
    onnx.save(onnx_model(), tmp_path / "m.onnx")
    before = key(tmp_path / "m.onnx")
    assert before == key(str(tmp_path / "m.onnx"))
    onnx.save(onnx_model(2.0), tmp_path / "m.onnx")
    assert key(tmp_path / "m.onnx") != before


@pytest.mark.parametrize("name", ["weights.bin", "a" * 150 + ".bin"])
def test_external_weights_are_part_of_the_model(key, tmp_path, name):
    file = tmp_path / "m.onnx"
    onnx.save(onnx_model(), file, save_as_external_data=True, location=name, size_threshold=0)
    before = key(file)
    (tmp_path / name).write_bytes(np.full(300, 2, np.float32).tobytes())
    assert key(file) != before


def test_choices_that_matter_and_those_that_do_not(key, tmp_path):
    base = key(graph())
    assert base != key(graph(), opt_level=1)
    assert base != key(graph(), verify=False)
    assert base != key(graph(), Target.named("avx512"))
    assert base != key(graph(), replace(TARGET, cores=3))
    assert base == key(graph(), cache=False, dump=("c",), dump_dir=tmp_path)
