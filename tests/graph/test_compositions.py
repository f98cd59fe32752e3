"""Operators that are written as others: Det, TfIdfVectorizer, trees and features of ai.onnx.ml."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from polyc.run.cpu_model import CpuModel
from tests.sampling import sampled, thorough
from tests.staged import assert_as_reference, compile_in, model_of, run_ort

RNG = np.random.default_rng(23)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return compile_in(tmp_path_factory.mktemp("cache"))


def one_node(node, shape, kind=TensorProto.FLOAT):
    x = helper.make_tensor_value_info("x", kind, shape)
    graph = helper.make_graph([node], "g", [x], [onnx.ValueInfoProto(name="y")])
    imports = [helper.make_opsetid("", 21), helper.make_opsetid("ai.onnx.ml", 5)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, None))
    return model


@pytest.mark.parametrize("shape", [(5, 5), thorough((2, 3, 4, 4)), (3, 1, 1)])
def test_determinants(compiled, shape):
    dims = ", ".join(map(str, shape))
    lead = "".join(f"[{', '.join(map(str, shape[:-2]))}]" if shape[:-2] else "")
    source = model_of(f"g (float[{dims}] x) => (float{lead} y) {{ y = Det(x) }}")
    x = RNG.standard_normal(shape).astype(np.float32)
    assert_as_reference(compiled, source, x=x)
    if len(shape) == 2:
        x[2] = 0
        assert_as_reference(compiled, source, x=x)  # singular
        x = np.eye(5, dtype=np.float32)[[1, 0, 2, 4, 3]]
        assert_as_reference(compiled, source, x=x)  # zeros on the diagonal


@pytest.mark.parametrize("n", sampled([1, 3, 5], seldom=[3]))
def test_determinants_of_what_is_no_number(compiled, n):
    """A NaN anywhere is one in the result; singular matrices give 0, whatever column shows it."""
    model = compiled(model_of(f"g (float[6, {n}, {n}] x) => (float[6] y) {{ y = Det(x) }}"))
    x = RNG.standard_normal((6, n, n)).astype(np.float32)
    x[0, n // 2, n - 1] = x[1, 0, 0] = x[2, n - 1, 0] = np.nan
    x[3, :, n - 1] = 0
    x[4, n - 1] = 2 * x[4, 0] if n > 1 else 0
    y = model(x)
    assert np.isnan(y[:3]).all()
    np.testing.assert_allclose(y[3:], [0, 0, np.linalg.det(x[5])], rtol=1e-4, atol=1e-6)


def test_a_large_determinant_is_a_loop(compiled):
    model = compiled(model_of("g (double[64, 64] x) => (double y) { y = Det(x) }"))
    assert len(model.explain().kernels) < 20
    x = RNG.standard_normal((64, 64))
    np.testing.assert_allclose(model(x), np.linalg.det(x), rtol=1e-9)


@pytest.mark.thorough
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("shape", [(12,), (3, 7)])
def test_n_grams(compiled, mode, shape):
    node = helper.make_node(
        "TfIdfVectorizer", ["x"], ["y"], mode=mode, min_gram_length=1, max_gram_length=3,
        max_skip_count=2, ngram_counts=[0, 3, 7], ngram_indexes=[2, 0, 1, 4, 3, 6],
        pool_int64s=[2, 3, 5, 2, 3, 5, 5, 1, 2, 3], weights=[0.5, 2, 1, 3, 0.25, 7, 1.5],
    )  # fmt: skip
    x = RNG.integers(1, 6, shape)
    assert_as_reference(compiled, one_node(node, shape, TensorProto.INT64), x=x)


def trees(**more):
    """Two trees of depth 2 and 1 over three features."""
    attributes = {
        "nodes_featureids": [0, 1, 2, 1], "nodes_truenodeids": [1, 0, 2, 4],
        "nodes_falsenodeids": [2, 1, 3, 5], "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falseleafs": [0, 1, 1, 1], "leaf_targetids": [0, 1, 0, 1, 1, 0],
        "tree_roots": [0, 3], "n_targets": 2,
    }  # fmt: skip
    attributes |= more
    for name in ("nodes_splits", "leaf_weights"):
        value = {"nodes_splits": [0.1, -0.2, 0.3, 0.0], "leaf_weights": [1, 2, 3, 4, 5, 6]}[name]
        attributes[name] = numpy_helper.from_array(np.array(value, np.float32))
    modes = np.array(attributes.pop("modes", [0, 1, 2, 3]), np.uint8)
    attributes["nodes_modes"] = numpy_helper.from_array(modes)
    return helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml", **attributes)


@pytest.mark.parametrize("function", sampled(range(4), often=[0, 3]))
def test_trees(compiled, function):
    x = RNG.standard_normal((9, 3)).astype(np.float32)
    x[0, 1] = np.nan
    node = trees(aggregate_function=function, nodes_missing_value_tracks_true=[0, 1, 0, 1])
    assert_as_reference(compiled, one_node(node, (9, 3)), x=x)


def test_trees_are_compiled_once_for_any_number_of_rows(compiled):
    source = one_node(trees(), ("n", 3))
    model = compiled(source)
    assert type(model) is CpuModel
    for rows in (1, 17):
        x = RNG.standard_normal((rows, 3)).astype(np.float32)
        (want,) = ReferenceEvaluator(source).run(None, {"x": x})
        np.testing.assert_allclose(model(x), want, rtol=1e-6)


@pytest.mark.thorough
def test_trees_of_sets(compiled):
    members = numpy_helper.from_array(np.array([0.5, 2, np.nan, -1, np.nan], np.float32))
    node = trees(modes=[6, 4, 6, 5], membership_values=members)
    x = RNG.choice([0.5, 2, -1, 0, -0.2], (11, 3)).astype(np.float32)
    assert_as_reference(compiled, one_node(node, (11, 3)), x=x)


@pytest.mark.parametrize("kind", [1, 2, thorough(3), 4])
def test_transforms_of_what_trees_give(compiled, kind):
    weights = numpy_helper.from_array(np.array([0.1, 0.2, 0.3, 0.4, 0.1, 0.2], np.float32))
    number = {1: 2, 2: 1}.get(kind, kind)  # ONNX Runtime has two of them by turns
    x = RNG.standard_normal((9, 3)).astype(np.float32)
    sources = []
    for which in (kind, number):
        node = trees(post_transform=which)
        next(a for a in node.attribute if a.name == "leaf_weights").t.CopyFrom(weights)
        sources.append(one_node(node, (9, 3)))
    (want,) = run_ort(sources[1], {"x": x})
    np.testing.assert_allclose(compiled(sources[0])(x), want, rtol=1e-4)


def test_features(compiled):
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=0.5)
    x = RNG.random((3, 7)).astype(np.float32)
    assert_as_reference(compiled, one_node(node, (3, 7)), x=x)
    constant = helper.make_node("Constant", [], ["i"], value_ints=[2, 0, 2])
    node = helper.make_node("ArrayFeatureExtractor", ["x", "i"], ["y"], domain="ai.onnx.ml")
    for shape in ((3, 7), (4,)):
        model = one_node(node, shape)
        model.graph.node.insert(0, constant)
        assert_as_reference(compiled, model, x=RNG.random(shape).astype(np.float32))
