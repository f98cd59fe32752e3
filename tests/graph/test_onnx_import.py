"""Models become graphs that compute the same, with types, constants and symbols as told."""

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyc.errors import InvalidModel, UnsupportedOp
from polyc.files.external import DataFolder
from polyc.graph.ir import Graph
from polyc.graph.onnx.external_data import read_sparse, read_tensor
from polyc.graph.onnx_import import import_onnx
from polyc.types.sizes import spell_shape
from tests import staged
from tests.graph.onnx_models import model_of, model_of_graph, run


def array(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).uniform(-0.5, 0.5, shape).astype(np.float32)


X = array(2, 3, 8, 8)


def network(opset: int = 13) -> onnx.ModelProto:
    """Convolution, normalisation, pooling, a computed shape and a product."""
    ones = np.ones(4, np.float32)
    constants = {"w": array(4, 3, 3, 3), "one": ones, "i": np.array([0]), "m": array(64, 5)}
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "one", "one", "one", "one"], ["b"]),
        helper.make_node("Relu", ["b"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Shape", ["p"], ["s"]),
        helper.make_node("Gather", ["s", "i"], ["n"]),
        helper.make_node("Constant", [], ["rest"], value_ints=[-1]),
        helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["p", "t"], ["f"]),
        helper.make_node("MatMul", ["f", "m"], ["g"]),
        helper.make_node("Softmax", ["g"], ["y"], axis=1),
    ]
    return model_of(nodes, {"x": X}, ["y"], opset, initializer=constants)


def relu_model(**options: object) -> onnx.ModelProto:
    return model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": (2, 3)}, ["y"], **options)


@pytest.mark.parametrize("opset", [12, 13, 17, 21, 23])
def test_a_network_computes_the_same_after_import(opset):
    graph = import_onnx(network(opset))
    (expected,) = run(network(13), {"x": X})
    (actual,) = run(model_of_graph(graph), {"x": X})
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-6)


def test_a_dimension_of_minus_one_is_open():
    """Older exporters write it for a batch of any size, in outputs as well."""
    model = network()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, (-1, 5)))
    before = model.SerializeToString()
    graph = import_onnx(model)
    assert model.SerializeToString() == before  # it is the caller's
    assert spell_shape(graph.tensor("x").shape) == ("x_d0", 3, 8, 8)
    assert spell_shape(graph.tensor("y").shape) == ("x_d0", 5)
    fixed = import_onnx(model, {"x_d0": 2})
    np.testing.assert_allclose(
        run(model_of_graph(fixed), {"x": X})[0], run(network(), {"x": X})[0], rtol=1e-4, atol=1e-6
    )


def test_what_computes_shapes_is_gone():
    graph = import_onnx(network())
    expected = ["Conv", "BatchNormalization", "Relu", "MaxPool", "Reshape", "MatMul", "Softmax"]
    assert [n.op for n in graph.nodes] == expected
    assert graph.value("t").tolist() == [2, -1]


def test_path_bytes_and_message_give_one_graph(tmp_path):
    model = network()
    path = tmp_path / "network.onnx"
    onnx.save(model, path)
    sources = (model, model.SerializeToString(), path, str(path))
    assert len({str(import_onnx(s)) for s in sources}) == 1


def test_the_message_is_not_changed():
    model = network(11)
    before = model.SerializeToString(deterministic=True)
    import_onnx(model)
    assert model.SerializeToString(deterministic=True) == before


def test_weights_in_another_file_are_read(tmp_path):
    model = network()
    (tmp_path / "sub").mkdir()
    onnx.save(
        model,
        tmp_path / "network.onnx",
        save_as_external_data=True,
        location="sub/weights",
        size_threshold=0,
    )
    graph = import_onnx(tmp_path / "network.onnx")
    np.testing.assert_array_equal(graph.value("w"), array(4, 3, 3, 3))


def test_dimensions_become_numbers_names_and_fresh_names():
    model = relu_model()
    shape = model.graph.input[0].type.tensor_type.shape
    shape.CopyFrom(onnx.TensorShapeProto())
    shape.dim.add(dim_param="N")
    shape.dim.add(dim_value=3)
    shape.dim.add()
    shape.dim.add(dim_param="x_d2")
    assert import_onnx(model).tensor("y").shape == ("N", 3, "x_d2_", "x_d2")


def test_an_initialiser_that_is_an_input_too_is_a_constant():
    model = model_of(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        {"x": (2, 3), "w": (3,)},
        ["y"],
        initializer={"w": array(3)},
    )
    model.ir_version = 3
    graph = import_onnx(model)
    assert graph.inputs == ("x",)
    np.testing.assert_array_equal(graph.value("w"), array(3))


def test_a_model_from_before_opsets_has_the_first_one():
    node = helper.make_node("Add", ["x", "b"], ["y"], broadcast=1, axis=0)
    model = model_of([node], {"x": (2, 3), "b": (2,)}, ["y"])
    model.ir_version = 2
    del model.opset_import[:]
    assert [n.op for n in import_onnx(model).nodes] == ["Unsqueeze", "Add"]


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value_int": 7}, np.array(7)),
        ({"value_ints": [7, 8]}, np.array([7, 8])),
        ({"value_float": 0.5}, np.array(0.5, np.float32)),
        ({"value_floats": [0.5, 1.5]}, np.array([0.5, 1.5], np.float32)),
        ({"value": numpy_helper.from_array(array(2, 2))}, array(2, 2)),
    ],
)
def test_each_form_of_a_constant_is_read(attributes, expected):
    model = model_of([helper.make_node("Constant", [], ["y"], **attributes)], {}, ["y"])
    value = import_onnx(model).value("y")
    assert value.dtype == expected.dtype
    np.testing.assert_array_equal(value, expected)


def test_a_constant_of_strings_is_refused_by_name():
    model = model_of([helper.make_node("Constant", [], ["y"], value_string="a")], {}, ["y"])
    with pytest.raises(UnsupportedOp, match="'y' holds strings"):
        import_onnx(model)


DTYPES = [
    value
    for name, value in TensorProto.DataType.items()
    if name not in ("UNDEFINED", "STRING")
]  # fmt: skip


@pytest.mark.parametrize("kind", DTYPES, ids=TensorProto.DataType.Name)
def test_each_element_type_is_read(kind):
    dtype = helper.tensor_dtype_to_np_dtype(kind)
    expected = np.array([[1, 0, 1]]).astype(dtype)
    proto = numpy_helper.from_array(expected)
    assert proto.data_type == kind
    actual = read_tensor(proto, None)
    assert actual.dtype == dtype
    assert actual.shape == (1, 3)
    np.testing.assert_array_equal(actual.astype(np.complex64), expected.astype(np.complex64))


def test_packed_numbers_are_read_from_another_file(tmp_path):
    expected = np.array([1, -2, 3], ml_dtypes.int4)
    proto = numpy_helper.from_array(expected, "q")
    (tmp_path / "data").write_bytes(b"??" + proto.raw_data)
    proto.ClearField("raw_data")
    proto.data_location = TensorProto.EXTERNAL
    for key, value in {"location": "data", "offset": "2", "length": "2"}.items():
        proto.external_data.add(key=key, value=value)
    assert read_tensor(proto, DataFolder(tmp_path)).astype(int).tolist() == [1, -2, 3]


@pytest.mark.parametrize("indices", [[1, 5], [[0, 1], [1, 2]]])
def test_a_sparse_tensor_becomes_dense(indices):
    values = numpy_helper.from_array(np.array([7.0, 8.0], np.float32), "s")
    places = numpy_helper.from_array(np.array(indices, np.int64))
    dense = read_sparse(helper.make_sparse_tensor(values, places, [2, 3]), None)
    np.testing.assert_array_equal(dense, [[0, 7, 0], [0, 0, 8]])


def test_functions_are_inlined_before_the_upgrade():
    imports = [helper.make_opsetid("", 11)]
    body = [
        helper.make_node("Clip", ["a"], ["c"]),
        helper.make_node("Squeeze", ["c"], ["b"], axes=[0]),
    ]
    function = helper.make_function("my", "f", ["a"], ["b"], body, imports)
    nodes = [helper.make_node("f", ["x"], ["y"], domain="my")]
    model = model_of(nodes, {"x": (1, 3)}, ["y"], 11)
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("my", 1))
    graph = import_onnx(model)
    assert [n.op for n in graph.nodes] == ["Clip", "Squeeze"]
    assert graph.tensor("y").shape == (3,)


def test_nodes_get_distinct_names():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "n"),
        helper.make_node("Relu", ["a"], ["b"], "n_1"),
        helper.make_node("Relu", ["b"], ["c"], "n"),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    graph = import_onnx(model_of(nodes, {"x": (2,)}, ["y"]))
    assert [n.name for n in graph.nodes] == ["n", "n_1", "n_2", "Relu_3"]


def test_the_long_name_of_the_standard_domain_is_dropped():
    node = helper.make_node("Relu", ["x"], ["y"], domain="ai.onnx")
    model = model_of([node], {"x": (2,)}, ["y"])
    assert [n.domain for n in import_onnx(model).nodes] == [""]


def test_an_operator_of_another_domain_is_refused_by_name():
    node = helper.make_node("Gadget", ["x"], ["y"], "my_gadget", domain="com.example")
    model = model_of([node], {"x": (2,)}, ["y"])
    model.opset_import.append(helper.make_opsetid("com.example", 1))
    with pytest.raises(UnsupportedOp, match=r"my_gadget.*com\.example"):
        import_onnx(model)


def test_an_input_may_be_an_output():
    model = model_of([], {"x": (2,)}, ["x"])
    graph = import_onnx(model)
    assert isinstance(graph, Graph)
    assert graph.outputs == graph.inputs == ("x",)


def test_nodes_are_sorted_where_a_file_has_them_in_any_order():
    """Converters to float16 append the casts of inputs; runtimes sort what they read."""
    source = staged.model_of("""
        g (float[4] x, bool[1] c) => (float[4] y, float[4] z)
        {
            y = Relu (a)
            z = If (c) <
                then_branch = t () => (float[4] p) { p = Neg (q)  q = Exp (a) },
                else_branch = e () => (float[4] r) { r = Identity (b) }
            >
            b = Sqrt (a)
            a = Abs (x)
        }""")
    graph = import_onnx(source, decides=True)
    order = [node.op for node in graph.nodes if node.op != "Reshape"]
    assert order.index("Abs") == 0
    assert order.index("Exp") < order.index("Neg")
    assert order.index("Sqrt") < len(order) - 1


def test_circles_are_refused():
    source = staged.model_of("g (float[4] x) => (float[4] y) { y = Add (x, a)  a = Relu (y) }")
    with pytest.raises(InvalidModel, match="break the cycle"):
        import_onnx(source)
