"""Models in which values of inputs decide shapes are compiled when they are called."""

import time

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import polyc
from polyc.errors import NeedsValues, ShapeError, UnsupportedOp
from polyc.graph.inference.sources import find_sources
from polyc.graph.ir import Node
from polyc.graph.onnx_import import import_onnx
from polyc.options import Options
from polyc.run import plan
from polyc.types.call_sizes import read_sizes

X = np.arange(24, dtype=np.float32).reshape(2, 12)


def model_of(nodes, inputs):
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(np.asarray(v).dtype), np.shape(v)
        )
        for name, v in inputs.items()
    ]
    outputs = [onnx.ValueInfoProto(name="y")]
    graph = helper.make_graph(nodes, "g", infos, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def reshape_model():
    """The target is not of a type in which sizes are told."""
    nodes = [
        helper.make_node("Cast", ["t"], ["shape"], to=TensorProto.INT64),
        helper.make_node("Reshape", ["x", "shape"], ["r"]),
        helper.make_node("Neg", ["r"], ["y"]),
    ]
    return model_of(nodes, {"x": X, "t": target(4, 6)})


def target(*shape):
    return np.array(shape, np.int16)


@pytest.fixture
def compiled(tmp_path):
    options = Options(cache_dir=tmp_path, threads=1)
    return lambda model: polyc.compile(model, target="baseline", options=options)


def test_each_set_of_values_is_a_model_of_its_own(compiled):
    model = compiled(reshape_model())
    assert [spec.name for spec in model.inputs] == ["x", "t"]
    for shape in ((4, 6), (3, 8), (4, 6)):
        np.testing.assert_array_equal(model(X, target(*shape)), -X.reshape(shape))
    made = [len(similar.by_shapes) for similar in model._plan._kept.values()]
    assert made == [0, 1, 1]  # a Reshape waits for its target; then there is one for each
    y = np.empty((24, 1), np.float32)
    assert model(X, t=target(24, 1), out=y) is y
    assert model.run({"x": X, "t": [1, 24]})["y"].shape == (1, 24)


def test_what_a_call_decides_has_the_limits_of_the_options(monkeypatch, tmp_path):
    """Each call has all of the time, and none has more."""
    budgets, infer = [], plan.infer_stage

    def note(*arguments):
        budgets.append((arguments[5], time.monotonic()))
        return infer(*arguments)

    monkeypatch.setattr(plan, "infer_stage", note)
    options = Options(cache_dir=tmp_path, max_seconds=77.0, max_nodes=50, memory_limit=2**20)
    model = polyc.compile(reshape_model(), target="baseline", options=options)
    for shape in ((4, 6), (3, 8)):
        model(X, target(*shape))
    assert len(budgets) > 1
    for budget, now in budgets:
        assert (budget.seconds, budget.nodes, budget.memory) == (77.0, 50, 2**20)
        assert now + 70 < budget.end < now + 78


def test_bytes_and_paths(compiled, tmp_path):
    source = reshape_model()
    onnx.save(source, tmp_path / "m.onnx")
    for given in (source.SerializeToString(), tmp_path / "m.onnx"):
        assert compiled(given)(X, target(6, 4)).shape == (6, 4)


def test_more_values_may_be_asked_for_in_a_call(compiled):
    """Where the place is asked for shows once the axes are known."""
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["s"], keepdims=0),
             helper.make_node("Unsqueeze", ["s", "place"], ["y"])]  # fmt: skip
    feeds = {"x": X, "axes": np.array([1]), "place": np.array([0])}
    model = compiled(model_of(nodes, feeds))
    np.testing.assert_allclose(model.run(feeds)["y"], X.sum(1)[None])
    assert model._plan._steering == {"axes", "place"}


def test_a_condition_that_is_fed(compiled):
    def branch(op):
        node = helper.make_node(op, ["x"], ["o"])
        return helper.make_graph([node], op, [], [helper.make_empty_tensor_value_info("o")])

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("Exp"), else_branch=branch("Neg")
    )
    model = compiled(model_of([node], {"x": X, "c": np.array(True)}))
    np.testing.assert_array_equal(model(X, np.array(False)), -X)
    np.testing.assert_allclose(model(X / 24, np.array(True)), np.exp(X / 24), rtol=1e-6)


def test_what_belongs_to_one_model_is_refused(compiled, tmp_path):
    model = compiled(reshape_model())
    with pytest.raises(UnsupportedOp, match="depends on the value of shape"):
        model.save(tmp_path / "saved")
    with pytest.raises(UnsupportedOp, match="before the first call"):
        model.explain()
    assert model.place == "compiled when it is called"
    model(X, target(4, 6))
    assert not model.explain().fallbacks
    assert "thread" in model.place


def test_wrong_arguments_are_named(compiled):
    model = compiled(reshape_model())
    with pytest.raises(ShapeError, match="is not given its inputs t: int16"):
        model(X)
    with pytest.raises(ShapeError):
        model(X, target(5, 5))


def test_the_inputs_behind_a_value():
    nodes = [Node("a", "Add", ("p", "q"), ("s",)), Node("b", "Neg", ("s",), ("t",))]
    assert find_sources("t", nodes, ["x", "q", "p"]) == ("q", "p")
    with pytest.raises(NeedsValues) as caught:
        import_onnx(reshape_model())
    assert caught.value.inputs == ("t",)


def dynamic_model():
    """s = x + b of x: float32[n, m], b: float32[m]."""
    f32 = TensorProto.FLOAT
    add = helper.make_node("Add", ["x", "b"], ["s"])
    infos = [helper.make_tensor_value_info(*each) for each in
             (("x", f32, ["n", "m"]), ("b", f32, ["m"]))]  # fmt: skip
    graph = helper.make_graph([add], "g", infos, [onnx.ValueInfoProto(name="s")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_sizes_of_a_call(tmp_path):
    options = Options(cache_dir=tmp_path, threads=1)
    model = polyc.compile(dynamic_model(), target="baseline", options=options, dims={"n": (0, 9)})
    for n, m in ((2, 3), (1, 7), (0, 2), (2, 3)):
        x, b = np.ones((n, m), np.float32), np.arange(m, dtype=np.float32)
        np.testing.assert_array_equal(model(x, b), x + b)
    with pytest.raises(ShapeError, match=r"input 'b' has shape \(4,\), expected \(m,\) where"):
        model(np.ones((2, 3), np.float32), np.ones(4, np.float32))
    with pytest.raises(ShapeError, match="expected"):
        model(np.ones(3, np.float32), np.ones(3, np.float32))


def test_sizes_that_are_said(tmp_path):
    options = Options(cache_dir=tmp_path, threads=1)
    model = polyc.compile(
        dynamic_model(), target="baseline", options=options, dims={"n": 2, "m": 3}
    )
    assert [s.shape for s in model.outputs] == [(2, 3)]
    ranged = polyc.compile(
        dynamic_model(), target="baseline", options=options, dims={"n": (1, 4)}, hint={"n": 2}
    )
    assert ranged(np.ones((4, 2), np.float32), np.ones(2, np.float32)).shape == (4, 2)
    with pytest.raises(ShapeError, match="compiled for n 1 to 4, but a call has n = 5"):
        ranged(np.ones((5, 2), np.float32), np.ones(2, np.float32))


@pytest.mark.parametrize(
    ("dims", "hint"), [({"n": (3, 2)}, {}), ({"n": -1}, {}), ({"n": (1, 4)}, {"n": 5})]
)
def test_ranges_that_are_none(dims, hint):
    with pytest.raises(ShapeError, match="size 'n'"):
        read_sizes(dims, hint)
