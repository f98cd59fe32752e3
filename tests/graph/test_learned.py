"""Trained models in ai.onnx.ml: trees, linear models and support vectors, as ONNX Runtime has them.

What it leaves unwritten (the second of two scores behind PROBIT) is compared nowhere.
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyc.errors import InvalidModel, ShapeError
from polyc.graph.onnx_import import import_onnx
from tests.sampling import sampled, thorough
from tests.staged import assert_same, compile_in, run_ort

RNG = np.random.default_rng(31)
FLOAT, DOUBLE, INT64 = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64
KINDS = {FLOAT: np.float32, DOUBLE: np.float64, INT64: np.int64, TensorProto.INT32: np.int32}
CLASSES = {"classlabels_int64s": [5, 1, 3]}
MIXED, SHARES = [-0.5, 0.4, 0.3, -0.2, 0.5], [0.1, 0.4, 0.3, 0.2, 0.5]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def learned(op, features=3, kind=FLOAT, text=False, **attributes):
    """A model of one node, of an open number of rows; classifiers give labels and scores."""
    names = ["label", "scores"] if op.endswith("Classifier") else ["y"]
    attributes = {name: value for name, value in attributes.items() if value is not None}
    for name, value in attributes.items():
        if isinstance(value, np.ndarray):
            attributes[name] = numpy_helper.from_array(value)
    node = helper.make_node(op, ["x"], names, domain="ai.onnx.ml", **attributes)
    x = helper.make_tensor_value_info("x", kind, ["n", features])
    label = TensorProto.STRING if text else INT64
    types = {"label": label, "scores": FLOAT, "y": kind if op == "Imputer" else FLOAT}
    outputs = [helper.make_tensor_value_info(name, types[name], None) for name in names]
    graph = helper.make_graph([node], "g", [x], outputs)
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def rows(count, features=3, kind=FLOAT):
    return (RNG.standard_normal((count, features)) * 2).astype(KINDS[kind])


def assert_as_runtime(model, source, *batches, tolerance=1e-5):
    for x in batches:
        got = model.run({"x": x})
        for output, want in zip(source.graph.output, run_ort(source, {"x": x}), strict=True):
            assert_same(got[output.name], want, tolerance, tolerance / 10)


# --- trees ----------------------------------------------------------------------------------------


def tables(what, ids, weights=MIXED, **more):
    """Two trees, of depth 2 and 1, over three features; a NaN goes the first way in two nodes."""
    leaf = ["LEAF"] * 2
    return {
        "nodes_treeids": [0, 0, 0, 0, 0, 7, 7, 7],
        "nodes_nodeids": [0, 1, 2, 3, 4, 0, 1, 2],
        "nodes_featureids": [0, 1, 0, 0, 0, 2, 0, 0],
        "nodes_values": [0.1, -0.2, 0, 0, 0, 0.3, 0, 0],
        "nodes_modes": ["BRANCH_LEQ", "BRANCH_LT", "LEAF", *leaf, "BRANCH_GT", *leaf],
        "nodes_truenodeids": [1, 3, 0, 0, 0, 1, 0, 0],
        "nodes_falsenodeids": [2, 4, 0, 0, 0, 2, 0, 0],
        "nodes_missing_value_tracks_true": [1, 0, 0, 0, 0, 1, 0, 0],
        f"{what}_treeids": [0, 0, 0, 7, 7],
        f"{what}_nodeids": [2, 3, 4, 1, 2],
        f"{what}_ids": ids,
        f"{what}_weights": weights,
    } | more


def holes(x):
    """x, with a NaN in each column, of different rows."""
    x[range(3), range(3)] = np.nan
    return x


@pytest.mark.parametrize(
    ("ids", "weights", "more"),
    [
        ([0] * 5, SHARES, {}),
        thorough([0] * 5, SHARES, {"base_values": [0.25], "post_transform": "LOGISTIC"}),
        thorough([0] * 5, MIXED, {"post_transform": "LOGISTIC"}),
        thorough([1] * 5, MIXED, {"base_values": [0.25, -0.5]}),
        ([0, 1, 1, 0, 1], SHARES, {"base_values": [0.25, -0.5]}),
        thorough([0, 1, 0, 0, 0], MIXED, {}),
    ],
)
def test_trees_for_two_classes(compiled, ids, weights, more):
    """A row whose leaves have no weight for the second class is looked at in another way."""
    attributes = tables("class", ids, weights, classlabels_int64s=[4, 9], **more)
    source = learned("TreeEnsembleClassifier", **attributes)
    assert_as_runtime(compiled(source), source, holes(rows(9)), rows(1))


@pytest.mark.parametrize(
    ("ids", "weights", "more"),
    [
        ([0, 1, 2, 0, 1], MIXED, {"post_transform": "SOFTMAX"}),
        thorough([0, 0, 0, 1, 1], [-0.5, -0.4, -0.3, -0.2, -0.5], {}),
        thorough(
            [2] * 5, MIXED, {"base_values": [0.25, -0.5, 1.0], "post_transform": "SOFTMAX_ZERO"}
        ),
        thorough([0, 1, 2, 0, 1], SHARES, {"post_transform": "PROBIT"}),
        thorough([0, 1, 2, 0, 1], SHARES, {"post_transform": "LOGISTIC"}),
    ],
)
def test_trees_for_more_classes(compiled, ids, weights, more):
    """A class without a weight is never chosen, and neither is one that a row has none for."""
    attributes = tables("class", ids, weights, **CLASSES, **more)
    source = learned("TreeEnsembleClassifier", **attributes)
    assert_as_runtime(compiled(source), source, holes(rows(9)), rows(1))


@pytest.mark.parametrize("function", sampled(["SUM", "AVERAGE", "MIN", "MAX"], often=["MIN"]))
@pytest.mark.parametrize(("targets", "ids"), [thorough(1, [0] * 5), (3, [0, 1, 1, 2, 1])])
def test_trees_that_regress(compiled, function, targets, ids):
    attributes = tables("target", ids, n_targets=targets, aggregate_function=function)
    base = [0.25, -0.5, 0.7][:targets]
    source = learned("TreeEnsembleRegressor", **attributes, base_values=base)
    assert_as_runtime(compiled(source), source, holes(rows(9)))


def test_thresholds_of_doubles(compiled):
    attributes = tables("target", [0, 1, 0, 1, 0], n_targets=2)
    for name in ("nodes_values", "target_weights"):
        attributes[f"{name}_as_tensor"] = np.array(attributes.pop(name))
    source = learned("TreeEnsembleRegressor", kind=DOUBLE, **attributes)
    x = rows(5, kind=DOUBLE)
    x[0, 0], x[1, 0] = 0.1, np.nextafter(0.1, 1)  # one float32
    assert_as_runtime(compiled(source), source, x)


@pytest.mark.parametrize("kind", [INT64, thorough(TensorProto.INT32), thorough(DOUBLE)])
def test_trees_over_numbers_of_other_types(compiled, kind):
    source = learned("TreeEnsembleClassifier", kind=kind, **tables("class", [0] * 5, SHARES),
                     classlabels_int64s=[0, 1])  # fmt: skip
    assert_as_runtime(compiled(source), source, rows(9, kind=kind))


@pytest.mark.parametrize("modes", [("EQ", "NEQ", "GTE"), thorough(("NEQ", "NEQ", "NEQ"))])
def test_kinds_of_branches(compiled, modes):
    attributes = tables("target", [0] * 5)
    for at, mode in zip((0, 1, 5), modes, strict=True):
        attributes["nodes_modes"][at] = f"BRANCH_{mode}"
    source = learned("TreeEnsembleRegressor", **attributes, n_targets=1)
    x = holes(rows(9))
    x[3:6, 0], x[4:, 1], x[5:7, 2] = (np.float32(v) for v in (0.1, -0.2, 0.3))
    assert_as_runtime(compiled(source), source, x)


def test_labels_that_are_text_are_the_last_step(compiled):
    attributes = tables("class", [0, 1, 2, 0, 1], classlabels_strings=["a", "b", "c"])
    source = learned("TreeEnsembleClassifier", text=True, **attributes)
    model, x = compiled(source), rows(9)
    assert_as_runtime(model, source, x)
    (late,) = model.explain({"x": x}).fallbacks
    assert late.operator == "LabelEncoder"


def chain(depth):
    """One tree, each of whose branches has a leaf on one side and the next branch on the other."""
    branches = ["BRANCH_LEQ"] * depth
    return {
        "nodes_treeids": [3] * (2 * depth + 1),
        "nodes_nodeids": list(range(2 * depth + 1)),
        "nodes_featureids": [0] * (2 * depth + 1),
        "nodes_values": np.linspace(-2, 2, 2 * depth + 1).tolist(),
        "nodes_modes": [*branches, *["LEAF"] * (depth + 1)],
        "nodes_truenodeids": [*range(depth, 2 * depth), *[0] * (depth + 1)],
        "nodes_falsenodeids": [*range(1, depth), 2 * depth, *[0] * (depth + 1)],
        "target_treeids": [3] * (depth + 1),
        "target_nodeids": list(range(depth, 2 * depth + 1)),
        "target_ids": [0] * (depth + 1),
        "target_weights": list(map(float, range(depth + 1))),
        "n_targets": 1,
    }


def test_deep_trees_are_walked_in_a_loop(compiled):
    source = learned("TreeEnsembleRegressor", features=1, **chain(29))
    assert_as_runtime(compiled(source), source, rows(20, 1), rows(1, 1))


def test_no_rows(compiled):
    source = learned("TreeEnsembleRegressor", **tables("target", [0] * 5), n_targets=1)
    model = compiled(source, dims={"n": (0, 9)})
    assert model(rows(0)).shape == (0, 1)
    assert model(rows(2)).shape == (2, 1)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"nodes_truenodeids": [1, 3, 0]}, "nodes_truenodeids has 3 entries"),
        ({"nodes_truenodeids": [1, 9, 0, 0, 0, 1, 0, 0]}, "node 9 of tree 0, which is not there"),
        ({"nodes_truenodeids": [1, 0, 0, 0, 0, 1, 0, 0]}, "circles"),
        ({"nodes_truenodeids": [0, 3, 0, 0, 0, 1, 0, 0]}, "circles"),
        ({"nodes_nodeids": [0, 1, 2, 3, 3, 0, 1, 2]}, "node 3 of tree 0 is there twice"),
        ({"nodes_values": [1.0]}, "nodes_values has 1 entries"),
        ({"nodes_values_as_tensor": np.zeros(8, np.float32)}, "as a list and as a tensor"),
        ({"nodes_modes": ["LEAF", "BRANCH"]}, "attribute nodes_modes must be one of"),
        ({"nodes_featureids": [0, -1, 0, 0, 0, 2, 0, 0]}, "attribute nodes_featureids"),
        ({"nodes_missing_value_tracks_true": [1]}, "tracks_true has 1 entries"),
        ({"class_ids": [0, 1, 2, 3, 0]}, "class_ids go up to 3, but there are 3"),
        ({"class_ids": [2**62] * 5}, "attribute class_ids"),
        ({"class_nodeids": [2, 3, 3, 1, 2]}, "1 leaves have no entry in class_nodeids"),
        ({"class_treeids": [0, 0, 0, 5, 7]}, "node 1 of tree 5"),
        ({"class_weights": [0.5]}, "class_weights has 1 entries"),
        ({"base_values": [0.5]}, "base_values has 1 entries"),
        ({"classlabels_strings": ["a"]}, "only one may be given"),
        ({"classlabels_int64s": None}, "neither classlabels_strings nor"),
        ({"post_transform": "EXP"}, "attribute post_transform must be one of"),
        (dict.fromkeys(tables("class", [])), "no nodes"),
    ],
)
def test_broken_trees(changed, told):
    attributes = tables("class", [0, 1, 2, 0, 1]) | CLASSES | changed
    with pytest.raises(InvalidModel, match=told):
        import_onnx(learned("TreeEnsembleClassifier", **attributes))


def test_trees_ask_for_features_that_are_there():
    with pytest.raises(ShapeError, match="features"):
        import_onnx(learned("TreeEnsembleClassifier", 2, **tables("class", [0] * 5), **CLASSES))


# --- linear models and support vectors ------------------------------------------------------------


def numbers(*shape):
    return RNG.standard_normal(shape).astype(np.float32).ravel().tolist()


@pytest.mark.parametrize(
    ("targets", "labels", "transform", "kind"),
    [
        (3, [5, 1, 3], "SOFTMAX", FLOAT),
        thorough(3, [0, 1, 2], "NONE", INT64),
        thorough(2, [5, 1], "LOGISTIC", DOUBLE),
        thorough(1, [5, 1], "LOGISTIC", FLOAT),
        (1, [5, 1], "NONE", FLOAT),
    ],
)
def test_linear_classifiers(compiled, targets, labels, transform, kind):
    attributes = {"coefficients": numbers(targets, 4), "intercepts": numbers(targets)}
    attributes |= {"classlabels_ints": labels, "post_transform": transform}
    source = learned("LinearClassifier", 4, kind, **attributes)
    assert_as_runtime(compiled(source), source, rows(3, 4, kind), rows(1, 4, kind))


@pytest.mark.parametrize(("targets", "transform"), [(1, "LOGISTIC"), (3, "SOFTMAX")])
def test_linear_regressors(compiled, targets, transform):
    attributes = {"coefficients": numbers(targets, 4), "intercepts": numbers(targets)}
    attributes |= {"targets": targets, "post_transform": transform}
    source = learned("LinearRegressor", 4, **attributes)
    assert_as_runtime(compiled(source), source, rows(3, 4))


VECTORS = {"support_vectors": numbers(9, 4), "kernel_params": [0.3, 0.5, 3.0]}


@pytest.mark.parametrize("kernel", sampled(["LINEAR", "POLY", "RBF", "SIGMOID"], often=["POLY"]))
def test_support_vectors_that_regress(compiled, kernel):
    attributes = {"coefficients": numbers(9), "rho": numbers(1), "n_supports": 9}
    attributes |= {"one_class": int(kernel == "LINEAR"), "kernel_type": kernel}
    source = learned("SVMRegressor", 4, **VECTORS, **attributes)
    assert_as_runtime(compiled(source), source, rows(5, 4))


@pytest.mark.parametrize(
    ("counts", "transform", "shares"),
    [
        ([5, 4], "NONE", False),
        thorough([5, 4], "LOGISTIC", False),
        thorough([5, 4], "NONE", True),
        thorough([2, 3, 0, 4], "NONE", False),
        ([2, 3, 4], "NONE", True),
        thorough([2, 3, 4], "SOFTMAX", True),
    ],
)
def test_support_vectors_that_classify(compiled, counts, transform, shares):
    classes = len(counts)
    pairs = classes * (classes - 1) // 2
    attributes = {"coefficients": numbers(classes - 1, 9), "rho": numbers(pairs)}
    attributes |= {"classlabels_ints": list(range(3, 3 + classes)), "post_transform": transform}
    attributes |= {"vectors_per_class": counts, "kernel_type": "RBF"}
    if shares:
        attributes |= {"prob_a": np.negative(np.abs(numbers(pairs))).tolist()}
        attributes |= {"prob_b": numbers(pairs)}
    source = learned("SVMClassifier", 4, **VECTORS, **attributes)
    assert_as_runtime(compiled(source), source, rows(7, 4))


@pytest.mark.parametrize("sign", [1, -1])
def test_linear_models_without_support_vectors(compiled, sign):
    coefficients = [sign * abs(number) for number in numbers(2, 4)]
    attributes = {"coefficients": coefficients, "rho": [0.2], "classlabels_ints": [3, 7]}
    source = learned("SVMClassifier", 4, kernel_params=[1.0, 0.0, 1.0], **attributes)
    assert_as_runtime(compiled(source), source, rows(7, 4))


@pytest.mark.parametrize(
    ("op", "attributes", "told"),
    [
        ("LinearClassifier", {"coefficients": numbers(7), "intercepts": [0.0, 1.0],
                              "classlabels_ints": [0, 1]}, "less than"),
        ("LinearClassifier", {"coefficients": numbers(8), "intercepts": [0.0, 1.0],
                              "classlabels_ints": [0]}, "labels has 1 entries"),
        ("LinearClassifier", {"coefficients": numbers(8), "intercepts": [0.0, 1.0]}, "neither"),
        ("LinearRegressor", {"coefficients": numbers(4), "targets": 2**40}, "attribute targets"),
        ("LinearRegressor", {"coefficients": numbers(4), "intercepts": [0.0, 1.0]}, "intercepts"),
        ("SVMRegressor", {"coefficients": numbers(3), "rho": [0.0], "n_supports": 2}, "coefficie"),
        ("SVMRegressor", {"coefficients": numbers(3), "rho": [0.0], "n_supports": 3,
                          "support_vectors": numbers(5)}, "5 numbers for 3 vectors"),
        ("SVMRegressor", {"coefficients": numbers(2), "rho": [0.0], "n_supports": 2,
                          "support_vectors": numbers(8), "kernel_type": "RBF"}, "kernel_params"),
        ("SVMClassifier", {"coefficients": numbers(9), "rho": [0.0], "vectors_per_class": [5, 4],
                           "classlabels_ints": [0]}, "vectors_per_class has 2 entries"),
        ("SVMClassifier", {"coefficients": numbers(9), "vectors_per_class": [5, 4],
                           "classlabels_ints": [0, 1]}, "rho has 0 entries"),
        ("SVMClassifier", {"coefficients": numbers(9), "rho": [0.0], "vectors_per_class": [-5, 4],
                           "classlabels_ints": [0, 1]}, "attribute vectors_per_class"),
    ],
)  # fmt: skip
def test_broken_models(op, attributes, told):
    with pytest.raises(InvalidModel, match=told):
        import_onnx(learned(op, 4, **attributes))


def test_linear_models_ask_for_features_that_are_there():
    attributes = {"coefficients": numbers(6), "intercepts": numbers(2)}
    with pytest.raises(InvalidModel, match="less than those of 2 targets and 4 features"):
        import_onnx(learned("LinearClassifier", 4, **attributes, classlabels_ints=[0, 1]))


@pytest.mark.parametrize("text", [False, True])
def test_maps_of_scores(compiled, text):
    """ZipMap is no operator of the reference evaluator; each call has as many maps as rows."""
    labels = ["a", "b"] if text else [5, 1]
    attributes = {"coefficients": numbers(2, 4), "intercepts": numbers(2)}
    attributes["classlabels_strings" if text else "classlabels_ints"] = labels
    source = learned("LinearClassifier", 4, text=text, **attributes)
    names = {"classlabels_strings" if text else "classlabels_int64s": labels}
    node = helper.make_node("ZipMap", ["scores"], ["maps"], domain="ai.onnx.ml", **names)
    source.graph.node.append(node)
    number = helper.make_tensor_type_proto(FLOAT, [])
    key = helper.make_map_type_proto(TensorProto.STRING if text else INT64, number)
    source.graph.output[1].CopyFrom(onnx.ValueInfoProto(name="maps"))
    source.graph.output[1].type.CopyFrom(helper.make_sequence_type_proto(key))
    model = compiled(source)
    for x in (rows(1, 4), rows(3, 4), rows(7, 4), rows(2, 4)):
        got = model.run({"x": x})
        label, maps = run_ort(source, {"x": x})
        assert got["label"].tolist() == label.tolist()
        for g, want in zip(got["maps"], maps, strict=True):
            assert g == pytest.approx(want, rel=1e-5, abs=1e-6)  # sums of float32
