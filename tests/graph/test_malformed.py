"""Whatever a model file holds, importing it gives a Graph or a PolycError."""

import os
import random

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from polyc.errors import InvalidModel, PolycError, TooLong, UnsupportedOp
from polyc.graph.ir import Graph
from polyc.graph.onnx_import import import_onnx
from tests.graph.onnx_models import model_of


def small_model(opset: int = 11) -> onnx.ModelProto:
    """A convolution with weights, a shape that is computed, and nodes in old forms."""
    weights = np.arange(54, dtype=np.float32).reshape(2, 3, 3, 3)
    constants = {"w": weights, "b": weights[0, 0, 0, :2], "i": np.array(0), "r": np.array([-1])}
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], "conv", pads=[1, 1, 1, 1]),
        helper.make_node("Clip", ["c"], ["d"], "clip"),
        helper.make_node("Shape", ["d"], ["s"]),
        helper.make_node("Gather", ["s", "i"], ["n"]),
        helper.make_node("Unsqueeze", ["n"], ["u"], axes=[0]),
        helper.make_node("Concat", ["u", "r"], ["t"], axis=0),
        helper.make_node("Reshape", ["d", "t"], ["f"]),
        helper.make_node("Softmax", ["f"], ["y"], axis=1),
    ]
    return model_of(nodes, {"x": (1, 3, 5, 5)}, ["y"], opset, initializer=constants)


def import_or_refuse(source: object) -> Graph | PolycError:
    """What importing gives; an error of another kind, and only that, escapes."""
    try:
        return import_onnx(source)
    except PolycError as error:
        return error


def assert_refused(source: object, kind: type[PolycError], *parts: str) -> None:
    """Importing raises this kind of error, and its message has all these parts."""
    with pytest.raises(kind) as caught:
        import_onnx(source)
    for part in parts:
        assert part in str(caught.value)


def test_the_small_model_is_valid():
    assert isinstance(import_onnx(small_model()), Graph)


# --- damaged bytes --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_flipped_bits_give_a_graph_or_a_refusal(seed):
    data = small_model().SerializeToString()
    source = random.Random(seed)
    for _ in range(20):
        damaged = bytearray(data)
        for _ in range(source.choice([1, 1, 2, 8])):
            damaged[source.randrange(len(damaged))] ^= 1 << source.randrange(8)
        assert isinstance(import_or_refuse(bytes(damaged)), Graph | PolycError)


def test_a_cut_file_is_a_graph_or_a_refusal():
    data = small_model().SerializeToString()
    for length in range(0, len(data), 7):
        assert isinstance(import_or_refuse(data[:length]), PolycError)


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff" * 100, b"{}", b"import onnx\n", b"\x08" * 99])
def test_what_is_no_model_is_refused(data):
    assert isinstance(import_or_refuse(data), InvalidModel)


def test_what_is_no_source_is_refused(tmp_path):
    assert_refused(7, InvalidModel, "int")
    assert_refused(tmp_path / "missing.onnx", InvalidModel, "missing.onnx")
    assert_refused(tmp_path, InvalidModel, "cannot be read")
    assert_refused("a\0b", InvalidModel, "cannot be read")


# --- graphs that are none -------------------------------------------------------------------------


def relu(source: str, target: str, name: str = "") -> onnx.NodeProto:
    return helper.make_node("Relu", [source], [target], name)


@pytest.mark.parametrize(
    ("nodes", "parts"),
    [
        ([relu("b", "a", "first"), relu("a", "b"), relu("a", "y")], ("'first'", "'b'", "cycle")),
        ([relu("a", "a", "self"), relu("a", "y")], ("'self'", "'a'")),
        ([relu("ghost", "y", "lost")], ("'lost'", "'ghost'", "nothing defines")),
        ([relu("x", "y"), relu("x", "y", "second")], ("'second'", "'y'", "again")),
        ([relu("x", "x", "over"), relu("x", "y")], ("'over'", "'x'", "again")),
        ([relu("x", "z")], ("'y'", "no node")),
        ([helper.make_node("Relu", ["x", "x"], ["y"])], ("checker",)),
        ([helper.make_node("NoSuchOp", ["x"], ["y"])], ("NoSuchOp",)),
        ([helper.make_node("Relu", ["x"], ["y"], alpha=1.0)], ("alpha",)),
        ([helper.make_node("Concat", ["x"], ["y"], axis="one")], ("axis",)),
    ],
)
def test_a_broken_graph_is_refused_by_name(nodes, parts):
    assert_refused(model_of(nodes, {"x": (2,)}, ["y"]), InvalidModel, *parts)


def test_a_graph_needs_distinct_inputs_and_some_output():
    twice = model_of([relu("x", "y")], {"x": (2,)}, ["y"])
    twice.graph.input.append(twice.graph.input[0])
    assert_refused(twice, InvalidModel, "'x'", "twice")
    assert_refused(model_of([relu("x", "y")], {"x": (2,)}, []), InvalidModel, "no output")
    assert_refused(model_of([relu("x", "y")], {"x": (2,)}, ["y", "y"]), InvalidModel, "'y'")


def test_an_attribute_given_twice_is_refused():
    node = helper.make_node("Flatten", ["x"], ["y"], "flat", axis=1)
    node.attribute.append(helper.make_attribute("axis", 0))
    assert_refused(model_of([node], {"x": (2, 3)}, ["y"]), InvalidModel, "'axis'", "flat")


def test_an_attribute_that_refers_to_a_function_outside_of_one_is_refused():
    node = helper.make_node("Flatten", ["x"], ["y"], "flat")
    kind = AttributeProto.INT
    node.attribute.append(AttributeProto(name="axis", type=kind, ref_attr_name="a"))
    assert isinstance(import_or_refuse(model_of([node], {"x": (2, 3)}, ["y"])), InvalidModel)


@pytest.mark.parametrize("versions", [(0,), (-3,), (13, 17)])
def test_opsets_that_do_not_exist_are_refused(versions):
    model = small_model()
    del model.opset_import[:]
    domains = ("", "ai.onnx")
    pairs = zip(domains, versions, strict=False)
    model.opset_import.extend(helper.make_opsetid(d, v) for d, v in pairs)
    assert isinstance(import_or_refuse(model), InvalidModel)


def test_what_is_newer_than_the_onnx_package_is_explained():
    model = small_model(opset=2**40)
    assert_refused(model, UnsupportedOp, str(2**40), "newer onnx")
    model = small_model()
    model.ir_version = 10**6
    assert_refused(model, InvalidModel, "IR version 1000000", "newer onnx")


# --- functions ------------------------------------------------------------------------------------


def model_with_functions(calls: dict[str, list[str]]) -> onnx.ModelProto:
    """A model that calls f0, where each function calls others in a chain, or is a Relu."""
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("my", 1)]
    functions = []
    for name, callees in calls.items():
        nodes = [
            helper.make_node(c, [f"t{i}"], [f"t{i + 1}"], domain="my" if c != "Relu" else "")
            for i, c in enumerate(callees)
        ]
        last = f"t{len(callees)}"
        functions.append(helper.make_function("my", name, ["t0"], [last], nodes, imports))
    model = model_of([helper.make_node("f0", ["x"], ["y"], domain="my")], {"x": (2,)}, ["y"])
    model.functions.extend(functions)
    model.opset_import.append(imports[1])
    return model


def test_functions_without_end_are_refused():
    assert_refused(model_with_functions({"f0": ["f1"], "f1": ["f0"]}), InvalidModel)
    assert_refused(model_with_functions({"f0": ["f0"]}), InvalidModel)
    chain = {f"f{i}": [f"f{i + 1}"] for i in range(3000)} | {"f3000": ["Relu"]}
    assert_refused(model_with_functions(chain), InvalidModel)


def test_functions_that_grow_without_bound_are_refused():
    calls = {f"f{i}": [f"f{i + 1}"] * 10 for i in range(12)} | {"f12": ["Relu"]}
    assert_refused(model_with_functions(calls), TooLong, "inlined (1000000000000)")


# --- tensors --------------------------------------------------------------------------------------


def model_with_tensor(tensor: TensorProto) -> onnx.ModelProto:
    node = helper.make_node("Add", ["x", tensor.name], ["y"])
    model = model_of([node], {"x": (2,)}, ["y"])
    model.graph.initializer.append(tensor)
    return model


def tensor_proto(dims: list[int], data: bytes, kind: int = TensorProto.FLOAT) -> TensorProto:
    return TensorProto(name="weights", data_type=kind, dims=dims, raw_data=data)


@pytest.mark.parametrize(
    "tensor",
    [
        tensor_proto([2], b"1234"),
        tensor_proto([1], b"12345678"),
        tensor_proto([-1], b"12345678"),
        tensor_proto([2**62], b""),
        tensor_proto([2**32, 2**32, 2**32], b""),
        tensor_proto([0, 2**62], b""),
        tensor_proto([1] * 70, b"1234"),
        tensor_proto([2], b"12345678", kind=99),
        tensor_proto([2], b"12345678", kind=0),
        tensor_proto([2], b"12345678", kind=TensorProto.STRING),
        TensorProto(name="weights", data_type=TensorProto.FLOAT, dims=[3], float_data=[1, 2]),
        TensorProto(name="weights", data_type=TensorProto.INT64, dims=[2], float_data=[1, 2]),
    ],
)
def test_a_tensor_whose_claims_are_false_is_refused_by_name(tensor):
    result = import_or_refuse(model_with_tensor(tensor))
    assert isinstance(result, InvalidModel | UnsupportedOp)
    assert "'weights'" in str(result)


def test_bytes_that_are_no_booleans_become_booleans():
    model = model_of([helper.make_node("Not", ["b"], ["y"])], {}, ["y"])
    model.graph.initializer.append(tensor_proto([3], b"\0\1\7", TensorProto.BOOL))
    model.graph.initializer[0].name = "b"
    assert import_onnx(model).tensor("y").value.view(np.uint8).tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("indices", "dims"),
    [([9], [4]), ([-1], [4]), ([0], [2**50]), ([0], [2**33]), ([[0, 5]], [4, 4]), ([0, 1], [4])],
)
def test_a_sparse_tensor_whose_claims_are_false_is_refused(indices, dims):
    values = numpy_helper.from_array(np.ones(1, np.float32), "sparse")
    places = numpy_helper.from_array(np.array(indices, np.int64), "places")
    model = model_of([helper.make_node("Add", ["x", "sparse"], ["y"])], {"x": (4,)}, ["y"])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, dims))
    assert_refused(model, InvalidModel, "'sparse'")


@pytest.mark.parametrize("dims", [(2**62, 2**62), (2**41,), (2,) * 65])
def test_an_input_of_impossible_shape_is_refused(dims):
    result = import_or_refuse(model_of([relu("x", "y")], {"x": dims}, ["y"]))
    assert isinstance(result, InvalidModel | UnsupportedOp)
    assert "'x'" in str(result)


def test_a_result_of_absurd_size_is_refused_before_it_is_computed():
    node = helper.make_node("ConstantOfShape", ["s"], ["y"])
    for shape in ([2**62], [2**20] * 3, [-1]):
        model = model_of([node], {}, ["y"], initializer={"s": np.array(shape)})
        assert isinstance(import_or_refuse(model), PolycError)


@pytest.mark.parametrize(
    "info",
    [
        helper.make_tensor_sequence_value_info("x", TensorProto.FLOAT, [2]),
        helper.make_value_info("x", helper.make_optional_type_proto(
            helper.make_tensor_type_proto(TensorProto.FLOAT, [2])
        )),
        helper.make_tensor_value_info("x", TensorProto.STRING, [2]),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, None),
        onnx.ValueInfoProto(name="x"),
    ],
)  # fmt: skip
def test_an_input_that_is_no_numeric_tensor_is_refused_by_name(info):
    model = model_of([relu("x", "y")], {"x": (2,)}, ["y"])
    model.graph.input[0].CopyFrom(info)
    assert_refused(model, UnsupportedOp, "'x'")


# --- names ----------------------------------------------------------------------------------------


HOSTILE = [
    "'\"`",
    "a\nb\r\tc",
    '*/ system("true"); /*',
    "x;system()",
    "%s%n{0}{x}",
    "../../etc/passwd",
    "\0",
    "名前‮🙂",
    "int",
    "n" * 10_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_survive_as_names(name):
    nodes = [relu("x", name, name), relu(name, "y", name)]
    model = model_of(nodes, {"x": ("N", 3)}, ["y"])
    model.graph.name = name
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = name
    graph = import_onnx(model.SerializeToString())
    assert graph.tensor(name).shape == (name, 3)
    assert len({n.name for n in graph.nodes}) == 2


@pytest.mark.parametrize("old", [b"conv", b"Reshape", b"axes", b"\x01w", b"\x01y"])
def test_names_that_are_no_text_are_refused(old):
    data = small_model().SerializeToString()
    assert old in data
    assert_refused(data.replace(old, old[:-1] + b"\xf0"), InvalidModel, "UTF-8")


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_stay_on_one_short_line_of_a_message(name):
    error = import_or_refuse(model_of([relu(name, "y", name)], {"x": (2,)}, ["y"]))
    assert isinstance(error, InvalidModel)
    assert len(str(error)) < 1000
    assert "\n" not in str(error)


# --- external data --------------------------------------------------------------------------------


def external_model(path, location: str, size: int = 2, **entries: object) -> os.PathLike:
    """A model file in folder `path` whose tensor lies in `location`."""
    tensor = TensorProto(name="weights", data_type=TensorProto.FLOAT, dims=[size])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    path.mkdir(exist_ok=True)
    (path / "model.onnx").write_bytes(model_with_tensor(tensor).SerializeToString())
    return path / "model.onnx"


def test_external_data_outside_the_folder_is_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"12345678")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "link").symlink_to(secret)
    (folder / "up").symlink_to(tmp_path)
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "pipe")
    hostile = [
        "../secret",
        str(secret),
        "link",
        "up/secret",
        "a/../../secret",
        "..\\secret",
        "loop",
    ]
    for location in [*hostile, "pipe", "", ".", "a\0b", "C:\\secret", "n" * 10_000, "missing"]:
        model = external_model(folder, location)
        assert_refused(model, InvalidModel, "'weights'", "folder")


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": 4},
        {"offset": 2**62},
        {"offset": -4},
        {"offset": "1e1"},
        {"offset": "9" * 5000},
        {"length": 4},
        {"length": -8},
        {"length": 2**63},
        {"size": 3},
        {"size": 2**50},
        {"size": -1},
    ],
)
def test_external_data_that_is_too_short_is_refused(tmp_path, entries):
    (tmp_path / "data").write_bytes(b"12345678")
    assert_refused(external_model(tmp_path, "data", **entries), InvalidModel, "'weights'")


def test_external_data_without_a_folder_is_refused(tmp_path):
    (tmp_path / "data").write_bytes(b"12345678")
    path = external_model(tmp_path, "data")
    assert isinstance(import_onnx(path), Graph)
    assert_refused(path.read_bytes(), InvalidModel, "'weights'", "path")
    assert_refused(onnx.load(path, load_external_data=False), InvalidModel, "'weights'")
