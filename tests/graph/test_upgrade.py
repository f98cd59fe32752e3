"""Old forms of operators and their newest forms compute the same."""

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import helper, parser

import polyc
from polyc.errors import UnsupportedOp
from polyc.graph.ir import Node, Tensor
from polyc.graph.onnx.nodes import read_node
from polyc.graph.onnx_import import import_onnx
from polyc.graph.upgrade import FAMILIES, RULES, Context, is_newest_form, upgrade_nodes
from polyc.options import Options
from tests.graph.onnx_models import RUNTIME_OPSET, model_of, model_of_graph, node_proto, run

NOTHING_KNOWN = Context(frozenset(), {})


def array(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).uniform(-2, 2, shape).astype(dtype)


X = array(2, 6, 4, 5)
PARAMETERS = [np.abs(array(6)) + 0.1 for _ in range(4)]

# Operator, opset of its old form, inputs, attributes, number of outputs.
OLD_FORMS = [
    ("Clip", 7, [X], {"min": -0.5, "max": 0.75}, 1),
    ("Clip", 10, [X], {"max": 0.75}, 1),
    ("Pad", 7, [X], {"pads": [0, 1, 2, 0, 0, 0, 1, 3], "value": 1.5}, 1),
    ("Pad", 10, [X], {"pads": [0, 0, 2, 1, 0, 0, 1, 3], "mode": "reflect"}, 1),
    ("Slice", 9, [X], {"starts": [1, -3], "ends": [6, 9], "axes": [1, 3]}, 1),
    ("Slice", 7, [X], {"starts": [0, 2], "ends": [1, 4]}, 1),
    ("Squeeze", 11, [array(1, 3, 1)], {"axes": [0]}, 1),
    ("Squeeze", 12, [array(1, 3, 1)], {}, 1),
    ("Unsqueeze", 11, [array(2, 3)], {"axes": [0, 3]}, 1),
    ("ReduceSum", 11, [X], {"axes": [1, -1], "keepdims": 0}, 1),
    ("ReduceMean", 13, [X], {"axes": [2]}, 1),
    ("ReduceMax", 17, [X], {}, 1),
    ("ReduceL2", 11, [X], {"axes": [0, 2]}, 1),
    ("ReduceLogSumExp", 13, [X], {"axes": [3], "keepdims": 0}, 1),
    ("Split", 11, [X], {"axis": 1, "split": [1, 2, 3]}, 3),
    ("Split", 17, [X], {"axis": 1}, 3),
    ("Dropout", 7, [X], {"ratio": 0.3}, 1),
    ("Dropout", 11, [X], {"ratio": 0.3}, 1),
    ("TopK", 9, [X], {"k": 2, "axis": 1}, 2),
    ("Softmax", 7, [X], {}, 1),
    ("Softmax", 11, [X], {"axis": 2}, 1),
    ("Softmax", 11, [X], {"axis": -1}, 1),
    ("LogSoftmax", 12, [X], {"axis": 0}, 1),
    ("Hardmax", 11, [X], {"axis": 1}, 1),
    ("BatchNormalization", 8, [X, *PARAMETERS], {"epsilon": 1e-3}, 1),
    ("BatchNormalization", 9, [X, *PARAMETERS], {}, 1),
    ("Upsample", 8, [X], {"scales": [1.0, 1.0, 2.0, 1.5], "mode": "linear"}, 1),
    ("Upsample", 7, [X], {"scales": [1.0, 1.0, 2.0, 1.6], "mode": "nearest"}, 1),
    ("Resize", 10, [X, np.array([1, 1, 2, 1.5], np.float32)], {"mode": "linear"}, 1),
    ("Scatter", 9, [array(3, 3), np.array([[1, 0, 2]]), array(1, 3)], {}, 1),
    ("GridSample", 16, [X, array(2, 3, 4, 2)], {"mode": "bilinear"}, 1),
    ("PRelu", 7, [X, array(6, 1, 1)], {}, 1),
    ("LpPool", 11, [np.abs(X)], {"kernel_shape": [2, 2]}, 1),
]


@pytest.mark.parametrize(
    ("op", "opset", "arrays", "attributes", "count"),
    OLD_FORMS,
    ids=[f"{op}-{opset}-{i}" for i, (op, opset, *_) in enumerate(OLD_FORMS)],
)
def test_newest_form_computes_what_the_old_one_did(op, opset, arrays, attributes, count):
    feeds = {f"x{i}": a for i, a in enumerate(arrays)}
    outputs = [f"y{i}" for i in range(count)]
    old = helper.make_node(op, [*feeds], outputs, "node", **attributes)
    types = {name: Tensor(name, a.dtype, a.shape) for name, a in feeds.items()}
    nodes = upgrade_nodes([read_node(old, 0, None)], opset, Context(frozenset(feeds), types))
    newest = model_of([node_proto(n) for n in nodes], feeds, outputs, RUNTIME_OPSET)
    expected = run(model_of([old], feeds, outputs, opset), feeds)
    for actual, wanted in zip(run(newest, feeds), expected, strict=True):
        assert actual.dtype == wanted.dtype
        np.testing.assert_allclose(actual, wanted, rtol=1e-6, atol=1e-6)


def import_one(op, opset, inputs, constants=None, **attributes):
    """The graph of one node, whose ir_version allows what old models do."""
    names = [*inputs, *(constants or {})]
    node = helper.make_node(op, names, ["y"], **attributes)
    return import_onnx(model_of([node], inputs, ["y"], opset, initializer=constants or {}))


def test_an_operand_of_opset_6_is_aligned_at_its_axis():
    x, bias = X, array(6)
    graph = import_one("Add", 6, {"x": x, "b": bias}, broadcast=1, axis=1)
    (y,) = run(model_of_graph(graph), {"x": x, "b": bias})
    np.testing.assert_array_equal(y, x + bias[:, None, None])


def test_an_operand_of_opset_6_without_axis_is_aligned_at_the_end():
    graph = import_one("Mul", 6, {"x": X, "b": (4, 5)}, broadcast=1)
    assert [n.op for n in graph.nodes] == ["Mul"]
    assert not graph.nodes[0].attributes


def test_a_slope_of_opset_6_counts_channels():
    slope = array(6)
    graph = import_one("PRelu", 6, {"x": X, "s": slope})
    (y,) = run(model_of_graph(graph), {"x": X, "s": slope})
    np.testing.assert_array_equal(y, np.where(X < 0, X * slope[:, None, None], X))


def test_statistics_per_element_become_arithmetic():
    x = X[:, 0]
    scale, bias, mean, variance = (np.abs(array(4, 5)) + i for i in range(4))
    constants = {"s": scale, "b": bias, "m": mean, "v": variance}
    graph = import_one("BatchNormalization", 7, {"x": x}, constants, spatial=0, epsilon=0.5)
    (y,) = run(model_of_graph(graph), {"x": x})
    expected = (x - mean) / np.sqrt(variance + 0.5) * scale + bias
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


def test_scales_per_group_become_scales_per_channel():
    scale, bias = array(2), array(2)
    graph = import_one(
        "GroupNormalization", 20, {"x": X}, {"s": scale, "b": bias}, num_groups=2
    )  # fmt: skip
    (y,) = run(model_of_graph(graph), {"x": X})
    groups = X.astype(np.float64).reshape(2, 2, -1)
    unit = (groups - groups.mean(2, keepdims=True)) / np.sqrt(groups.var(2, keepdims=True) + 1e-5)
    expected = (unit * scale[:, None] + bias[:, None]).reshape(X.shape)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_softmax_over_one_long_dimension_keeps_its_axis():
    graph = import_one("Softmax", 7, {"x": ("N", 10, 1, 1)})
    assert [(n.op, n.attributes) for n in graph.nodes] == [("Softmax", {"axis": 1})]


def test_softmax_over_several_dimensions_keeps_a_symbolic_batch():
    graph = import_one("Softmax", 7, {"x": ("N", 3, 4)})
    assert [n.op for n in graph.nodes] == ["Flatten", "Softmax", "Reshape"]
    assert graph.tensor("y").shape == ("N", 3, 4)


def test_limits_take_the_type_of_what_they_limit():
    x = X.astype(np.float64)
    graph = import_one("Clip", 7, {"x": x}, min=-0.5, max=0.5)
    assert {t.dtype for t in graph.tensors.values()} == {np.dtype(np.float64)}


def test_a_shape_that_was_an_attribute_becomes_an_input():
    graph = import_one("Reshape", 4, {"x": (2, 6)}, shape=[3, 4])
    assert graph.tensor("y").shape == (3, 4)


def test_an_element_type_that_was_a_name_becomes_a_number():
    graph = import_one("Cast", 5, {"x": (2,)}, to="INT32")
    assert graph.tensor("y").dtype == np.int32


def test_a_boolean_mask_is_cast_to_the_type_it_had():
    node = Node("d", "Dropout", ("x",), ("y", "m"), {"ratio": 0.5})
    with pytest.raises(UnsupportedOp, match="type of its input 'x' is not known"):
        upgrade_nodes([node], 9, NOTHING_KNOWN)
    graph = import_onnx(
        model_of([helper.make_node("Dropout", ["x"], ["y", "m"])], {"x": (2,)}, ["y", "m"], 9)
    )
    assert graph.tensor("m").dtype == np.float32


@pytest.mark.parametrize(
    ("op", "opset", "inputs", "attributes"),
    [
        ("Tile", 5, ("x", "t", "a"), {}),
        ("Dropout", 6, ("x",), {}),
        ("LpPool", 1, ("x",), {"p": 2.5}),
        ("Resize", 12, ("x", "r", "s"), {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}),
        ("Cast", 5, ("x",), {"to": "NUMBER"}),
        ("Scan", 8, ("", "s", "x"), {"num_scan_inputs": 1}),
    ],
)
def test_a_form_without_a_successor_is_refused_by_name(op, opset, inputs, attributes):
    node = Node("the_node", op, inputs, ("y",), attributes)
    with pytest.raises(UnsupportedOp, match="'the_node'"):
        upgrade_nodes([node], opset, NOTHING_KNOWN)


def test_new_constants_avoid_the_names_of_the_model():
    node = Node("s", "Squeeze", ("x",), ("y",), {"axes": (0,)})
    (constant, _) = upgrade_nodes([node], 11, Context(frozenset({"x", "y", "y.axes"}), {}))
    assert constant.outputs == ("y.axes_",)


def test_nodes_of_other_domains_are_left_alone():
    node = Node("s", "Squeeze", ("x",), ("y",), {"axes": (0,)}, domain="com.example")
    assert is_newest_form(node, 1)
    assert upgrade_nodes([node], 1, NOTHING_KNOWN) == (node,)


def test_families_share_no_operator():
    assert sum(len(family.RULES) for family in FAMILIES) == len(RULES)


# Forms that old models spell in a way that no rule can change, with the reason.
UNCHANGED = {
    ("Constant", "value"): "read before any upgrade",
    ("GRU", "direction"): "the default was misspelt in the standard",
    ("LpPool", "kernel_shape"): "what had no default is now required",
    ("Split", "axis"): "what had no default is now 0",
}


def test_each_change_of_an_attribute_in_the_standard_has_a_rule():
    history = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            history.setdefault(schema.name, []).append(schema)
    missing = []
    for op, schemas in history.items():
        schemas.sort(key=lambda s: s.since_version)
        for old, new in pairwise(schemas):
            handled = {since for since, _ in RULES.get(op, ())}
            changed = [
                name
                for name, attribute in old.attributes.items()
                if name not in new.attributes
                or attribute.default_value != new.attributes[name].default_value
                or new.attributes[name].required > attribute.required
            ]
            missing += [
                (op, new.since_version, name)
                for name in changed
                if new.since_version not in handled and (op, name) not in UNCHANGED
            ]
    assert not missing


def test_the_first_scan_goes_through_each_sample_of_a_batch(tmp_path):
    """Running sums of two samples, with outputs of the states and of all steps."""
    text = """<ir_version: 8, opset_import: ["": 8]>
    g (float[2, 3] s, float[2, 4, 3] x) => (float[2, 3] y, float[2, 4, 3] z) {
        y, z = Scan <num_scan_inputs = 1, body = b (float[3] a, float[3] e)
            => (float[3] t, float[3] c) { t = Add(a, e) c = Identity(t) }> (, s, x) }"""
    s, x = np.ones((2, 3), np.float32), np.random.default_rng(0).random((2, 4, 3), np.float32)
    model = polyc.compile(parser.parse_model(text), options=Options(cache_dir=tmp_path, threads=1))
    sums = s[:, None] + np.cumsum(x, 1)
    y, z = model(s, x)
    np.testing.assert_allclose(z, sums, rtol=1e-6)
    np.testing.assert_array_equal(y, z[:, -1])
