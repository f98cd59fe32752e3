"""Movement of data: views emit nothing but the copy into the graph's output."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from polyc.graph.ir import Graph, Node, Tensor
from polyc.scop.expr import Load
from polyc.scop.lower import lower_graph
from tests.scop.check import backend_cases, check_case, check_node
from tests.scop.interpreter import interpret

VIEWS = "Transpose Expand Slice Tile DepthToSpace SpaceToDepth Identity Split"
SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4)


def numbered(shape, dtype=np.float32):
    return np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)


@pytest.mark.parametrize("case", backend_cases(*VIEWS.split()), ids=lambda case: case.name)
def test_views(case):
    scop = check_case(case)
    assert len(scop.statements) <= len(scop.outputs)
    assert all(isinstance(s.value, Load) for s in scop.statements)


@pytest.mark.parametrize("case", backend_cases("Concat", "Pad"), ids=lambda case: case.name)
def test_written(case):
    scop = check_case(case)
    assert scop.statements


DROPOUT = [c for c in backend_cases("Dropout") if not c.name.startswith("test_training")]


@pytest.mark.parametrize("case", DROPOUT, ids=lambda case: case.name)
def test_dropout(case):
    assert len(check_case(case).statements) == len(case.data_sets[0][1])


@settings(max_examples=25, deadline=None)
@given(SHAPES, st.data())
def test_slice(shape, data):
    axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True, min_size=1))
    bounds = st.lists(st.integers(-6, 6), min_size=len(axes), max_size=len(axes))
    step = st.sampled_from([-3, -2, -1, 1, 2, 3])
    starts, ends = data.draw(bounds), data.draw(bounds)
    steps = data.draw(st.lists(step, min_size=len(axes), max_size=len(axes)))
    index = [slice(None)] * len(shape)
    for axis, *cut in zip(axes, starts, ends, steps, strict=True):
        index[axis] = slice(*cut)
    x = numbered(shape)
    lists = [np.array(v, np.int64) for v in (starts, ends, axes, steps)]
    scop = check_node("Slice", [x, *lists], expected=[x[tuple(index)]])
    assert len(scop.statements) <= 1


@settings(max_examples=20, deadline=None)
@given(SHAPES, st.data())
def test_concat_and_split(shape, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    sizes = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    shapes = [tuple(n if k == axis % len(shape) else m for k, m in enumerate(shape)) for n in sizes]
    parts = [numbered(s) + 100 * k for k, s in enumerate(shapes)]
    scop = check_node("Concat", parts, {"axis": axis})
    assert len(scop.statements) == (sum(p.size > 0 for p in parts))
    whole = np.concatenate(parts, axis)
    lists = [whole, np.array(sizes, np.int64)]
    scop = check_node("Split", lists, {"axis": axis}, expected=parts)
    assert len(scop.statements) == (sum(p.size > 0 for p in parts))


@settings(max_examples=30, deadline=None)
@given(
    hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=4),
    st.sampled_from(["constant", "edge", "wrap", "reflect"]),
    st.data(),
)
def test_pad(shape, mode, data):
    widest = 5 if mode != "reflect" else 3
    amounts = st.lists(st.integers(0, widest), min_size=len(shape), max_size=len(shape))
    begin, end = data.draw(amounts), data.draw(amounts)
    x = numbered(shape) + 1
    expected = np.pad(x, list(zip(begin, end, strict=True)), mode=mode)
    scop = check_node("Pad", [x, np.array(begin + end)], {"mode": mode}, expected=[expected])
    if mode != "constant":
        assert len(scop.statements) == 1


@pytest.mark.parametrize(
    ("mode", "rows", "columns"),
    [("edge", [1, 2, 3, 3], [0, 0, 0, 1, 2]), ("wrap", [1, 2, 3, 0], [3, 4, 0, 1, 2]),
     ("reflect", [1, 2, 3, 2], [2, 1, 0, 1, 2])],
)  # fmt: skip
def test_pad_crops(mode, rows, columns):
    x, pads = numbered((4, 5)), np.array([-1, 2, 1, -2])
    check_node("Pad", [x, pads], {"mode": mode}, expected=[x[np.ix_(rows, columns)]])
    framed = np.pad(x[1:, :3], [(0, 1), (2, 0)])
    check_node("Pad", [x, pads], expected=[framed])


@pytest.mark.parametrize("known", [(), (2,)])
def test_pad_with_a_value(known):
    x, fill, axes = numbered((2, 3), np.int32), np.array(7, np.int32), np.array([-1])
    expected = np.pad(x, [(0, 0), (1, 2)], constant_values=7)
    inputs = [x, np.array([1, 2]), fill, axes]
    scop = check_node("Pad", inputs, constant_inputs=known, expected=[expected])
    assert (scop.inputs == ("x0",)) == bool(known)


def test_concat_of_one_filled_part_is_a_view():
    parts = [np.zeros((0, 3)), np.ones((2, 3)), np.zeros((0, 3))]
    (statement,) = check_node("Concat", parts, {"axis": 0}).statements
    assert isinstance(statement.value, Load)


def test_views_compose_into_one_access():
    """Windows of 7 x 7 out of an image, split into heads: one statement reads it all."""
    shapes = {"x": (1, 196, 6), "a": (1, 2, 7, 2, 7, 6), "b": (1, 2, 2, 7, 7, 6),
              "c": (4, 49, 2, 3), "d": (4, 2, 49, 3), "y": (4, 2, 49, 3)}  # fmt: skip
    tensors = {name: Tensor(name, np.dtype(np.float32), s) for name, s in shapes.items()}
    for name in ("a", "c"):
        value = np.array(shapes[name])
        tensors[f"to_{name}"] = Tensor(f"to_{name}", value.dtype, value.shape, value)
    nodes = (
        Node("a", "Reshape", ("x", "to_a"), ("a",)),
        Node("b", "Transpose", ("a",), ("b",), {"perm": [0, 1, 3, 2, 4, 5]}),
        Node("c", "Reshape", ("b", "to_c"), ("c",)),
        Node("d", "Transpose", ("c",), ("d",), {"perm": [0, 2, 1, 3]}),
        Node("y", "Neg", ("d",), ("y",)),
    )
    scop = lower_graph(Graph("windows", nodes, tensors, ("x",), ("y",)))
    assert len(scop.statements) == 1
    x = numbered(shapes["x"])
    windows = x.reshape(shapes["a"]).transpose(0, 1, 3, 2, 4, 5).reshape(shapes["c"])
    np.testing.assert_array_equal(interpret(scop, {"x": x})["y"], -windows.transpose(0, 2, 1, 3))
