"""Reading at positions that are data, along a dimension that has no element: an error, no crash."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import polyc
from polyc.errors import RuntimeFailure

FAR = 2**24
"""Floats of a row: one row in front of an array lies where nothing is mapped."""


def compiled(op: str, data: tuple, indices: tuple, **attributes: int) -> polyc.CompiledModel:
    """Picks from x at k; sizes named by strings may be 0."""
    node = helper.make_node(op, ["x", "k"], ["y"], "add", **attributes)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, data)
    k = helper.make_tensor_value_info("k", TensorProto.INT64, indices)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "picks", [x, k], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    return polyc.compile(model, threads=1, dims={d: (0, 9) for d in "nm" if d in (*data, *indices)})


def zeros(data: tuple[int, ...], indices: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {"x": np.zeros(data, np.float32), "k": np.zeros(indices, np.int64)}


CASES = [
    ("Gather", (0, FAR), (1,), (0,), {}),
    ("Gather", (3, 0, 5), (2, 2), (2, 0), {"axis": 1}),
    ("GatherElements", (0, 4), (3, 4), (0, 4), {}),
    ("GatherND", (0, FAR), (1, 1), (0, 1), {}),
    ("GatherND", (3, 0, 2), (4, 2), (0, 2), {}),
]


@pytest.mark.parametrize(("op", "data", "indices", "none", "attributes"), CASES)
def test_an_index_along_nothing_is_an_error(op, data, indices, none, attributes):
    model = compiled(op, data, indices, **attributes)
    with pytest.raises(RuntimeFailure, match="out of range in add"):
        model.run(zeros(data, indices))
    empty = compiled(op, data, none, **attributes).run(zeros(data, none))["y"]
    assert empty.size == 0


@pytest.mark.thorough
@pytest.mark.parametrize(("op", "data", "indices", "none", "attributes"), CASES)
def test_a_size_that_turns_out_to_be_0_is_no_crash(op, data, indices, none, attributes):
    # n is the dimension without elements, m how many indices there are
    where = data.index(0)
    count = next(i for i, (a, b) in enumerate(zip(indices, none, strict=True)) if a != b)
    named = tuple("n" if i == where else d for i, d in enumerate(data))
    many = tuple("m" if i == count else d for i, d in enumerate(indices))
    model = compiled(op, named, many, **attributes)
    with pytest.raises(RuntimeFailure, match="out of range in add"):
        model.run(zeros(data, indices))
    assert model.run(zeros(data, none))["y"].size == 0
    some = tuple(d or 2 for d in data)
    feeds = zeros(some, tuple(d or 1 for d in indices))
    feeds["x"] += np.arange(some[0], dtype=np.float32).reshape(-1, *[1] * (len(some) - 1))
    expected = compiled(op, some, indices, **attributes).run(feeds)["y"]
    assert (model.run(feeds)["y"] == expected).all()


@pytest.mark.parametrize("rows", [0, 1, 3])
def test_updates_of_a_size_that_turns_out_to_be_0_change_nothing(rows):
    node = helper.make_node("ScatterND", ["x", "k", "u"], ["y"], "max")
    infos = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, (5, 3)),
        helper.make_tensor_value_info("k", TensorProto.INT64, ("m", 1)),
        helper.make_tensor_value_info("u", TensorProto.FLOAT, ("m", 3)),
    ]
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "writes", infos, [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    x, u = np.arange(15, dtype=np.float32).reshape(5, 3), np.full((rows, 3), -1, np.float32)
    k = np.arange(rows, dtype=np.int64).reshape(-1, 1)
    compiled = polyc.compile(model, threads=1, dims={"m": (0, 4)})
    expected = np.concatenate([u, x[rows:]])
    assert (compiled.run({"x": x, "k": k, "u": u})["y"] == expected).all()
